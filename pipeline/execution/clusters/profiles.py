"""Cluster profiles: the keys of the YAML files in ``configs/profiles``."""

from __future__ import annotations

import os
import re
from importlib import resources
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from dask.utils import parse_bytes
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from ...core.config_errors import first_error, refuse_credentials
from ...core.errors import ConfigError
from ...core.yaml_text import parse_yaml
from ...data.storage.files import storage_errors

PROFILES = Path("configs/profiles")

_WORD = re.compile(r"[\w.,:@/~+=-]+")
_WALLTIME = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)$")


def walltime_seconds(walltime: str) -> int:
    """Seconds of ``[days-]hours:minutes:seconds``."""
    match = _WALLTIME.match(walltime)
    if match is None:
        raise ValueError(f"{walltime!r} is not a walltime; expected '[days-]hours:mm:ss' in quotes")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _walltime(value: str) -> str:
    if walltime_seconds(value) < 60:
        raise ValueError(f"{value!r} is less than a minute")
    return value


def shell_word(text: str) -> str:
    """Quote a path as one word of the job's shell, in which only variables are expanded."""
    path = re.sub(r'[\\`"]|\$(?!\w|\{\w+\})', r"\\\g<0>", text)
    preferred = re.match(r"~[\w.-]*/", path)  # quoted, it would not be a preferred
    return f'{preferred[0]}"{path[preferred.end() :]}"' if preferred else f'"{path}"'


def is_loopback(host: str) -> bool:
    """Whether a name or an address is a loopback address of this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _memory(value: str) -> str:
    try:
        parse_bytes(value)
    except ValueError as error:
        raise ValueError(f"{value!r} is not a size; expected one such as 4GiB") from error
    return value


def _word(value: str) -> str:
    """Refuse characters that split a word in a batch script or its shell."""
    if not _WORD.fullmatch(value):
        raise ValueError(
            f"{value!r} does not fit into a batch script; expected letters, digits and any of "
            ". , : @ / ~ + = _ -"
        )
    return value


def _line(value: str) -> str:
    if not value.isprintable():
        raise ValueError(
            f"{value!r} does not fit into one line of a batch script; expected text without line "
            "breaks and control characters"
        )
    return value


Word = Annotated[str, AfterValidator(_word)]
OneLine = Annotated[str, AfterValidator(_line)]
_Count = Annotated[int, Field(ge=1, le=100_000)]  # of workers, cores, pods
Seconds = Annotated[float, Field(gt=0)]
Memory = Annotated[str, AfterValidator(_memory)]
Walltime = Annotated[str, AfterValidator(_walltime)]


class _Profile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class LocalProfile(_Profile):
    """Worker processes on this machine, closed to its other accounts.

    Attributes
    ----------
    dashboard : bool
        Whether Dask's dashboard is served. Every account of this machine can read it.
    """

    cluster: Literal["local"] = "local"
    n_workers: _Count | None = None
    cores_per_worker: _Count | None = None
    memory_limit: Memory | None = None
    dashboard: bool = False


class _Waiting(_Profile):
    """Settings of a cluster whose workers start at unpredictable times.

    Attributes
    ----------
    timeout : float
        Seconds to wait for the scheduler, and for ``min_workers`` workers.
    min_workers : int
        Number of workers with which work begins. Later workers join in.
    """

    timeout: Seconds = 30.0
    min_workers: _Count = 1


class _Tls(_Waiting):
    """TLS certificates of a cluster: all three files, or none."""

    tls_ca_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    @model_validator(mode="after")
    def _all_or_none(self) -> _Tls:
        names = ("tls_ca_file", "tls_cert", "tls_key")
        missing = [name for name in names if getattr(self, name) is None]
        if 0 < len(missing) < len(names):
            raise ValueError(f"{' and '.join(missing)} missing: {', '.join(names)} go together")
        return self


class AddressProfile(_Tls):
    """A running scheduler. Outside loopback it needs TLS, unless ``insecure``."""

    cluster: Literal["tcp"] = "tcp"
    address: str
    insecure: bool = False

    @model_validator(mode="after")
    def _encrypted(self) -> AddressProfile:
        if self.tls_cert is not None and not self.address.startswith("tls://"):
            raise ValueError(f"address {self.address!r} with TLS files; expected tls://...")
        return self


class JobQueueProfile(_Tls):
    """Workers as jobs of a queue, one worker process a job; the scheduler runs in this process.

    Attributes
    ----------
    n_workers, cores_per_worker : int
        Number of jobs, and of cores of each job.
    memory_limit : str
        Memory limit of each job.
    walltime : str
        Time limit of each job. A worker shuts down before the limit, and a new job is submitted.
    interface : str or None
        Network interface of scheduler and workers. Connections are encrypted with the TLS files, or
        with certificates that are made for this run alone.
    spill_directory : str or None
        Folder for spilled data on the nodes' own disks. A variable, such as $TMPDIR, is expanded on
        the node.
    job_directory : str
        Folder for the logs of the jobs and the certificates of the run, which this machine and all
        nodes must see. With SLURM its path must not contain blanks.
    dashboard : bool
        Whether Dask's dashboards are served. Every account of this machine and of the nodes can
        read them.
    """

    cluster: Literal["slurm", "pbs"]
    n_workers: _Count
    cores_per_worker: _Count
    memory_limit: Memory
    walltime: Walltime
    timeout: Seconds = 3600.0
    queue: Word | None = None
    account: Word | None = None
    interface: Word | None = None
    spill_directory: OneLine | None = None
    job_directory: Word = "~/.bagbasis/jobs"
    directives: tuple[OneLine, ...] = Field(default=(), strict=False)
    prologue: tuple[str, ...] = Field(default=(), strict=False)
    python: OneLine | None = None
    dashboard: bool = False

    @model_validator(mode="after")
    def _reachable(self) -> JobQueueProfile:
        if self.min_workers > self.n_workers:
            raise ValueError(f"min_workers is {self.min_workers}, n_workers is {self.n_workers}")
        return self


class GatewayProfile(_Waiting):
    """A cluster of a dask-gateway server; ``options`` are options of the server."""

    cluster: Literal["gateway"]
    address: str
    proxy_address: str | None = None
    auth: Literal["basic", "kerberos", "jupyterhub"] | None = None
    n_workers: _Count
    options: dict[str, Any] = {}
    timeout: Seconds = 600.0

    @model_validator(mode="after")
    def _encrypted(self) -> GatewayProfile:
        url = urlsplit(self.address)
        if url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname or "")):
            return self
        raise ValueError(f"address {self.address!r}; expected https://..., or http://127.0.0.1:...")


class KubernetesProfile(_Tls):
    """A cluster that dask-kubernetes' operator makes from a DaskCluster manifest.

    Attributes
    ----------
    cluster_spec : str
        YAML file of the manifest.
    name : str or None
        Name of the cluster, instead of the manifest's.
    address : str or None
        Address at which this machine reaches the scheduler. None: the scheduler's service, from
        within Kubernetes.
    """

    cluster: Literal["kubernetes"]
    cluster_spec: str
    namespace: str = "default"
    name: str | None = None
    n_workers: _Count | None = None
    address: str | None = None
    tls_ca_file: str
    tls_cert: str
    tls_key: str
    timeout: Seconds = 600.0


Profile = LocalProfile | AddressProfile | JobQueueProfile | GatewayProfile | KubernetesProfile

_PROFILES: TypeAdapter[Profile] = TypeAdapter(Annotated[Profile, Field(discriminator="cluster")])


def load_profile(name: str) -> Profile:
    """Read a profile by the path of its YAML file or by its name.

    A name is looked for in ``configs/profiles`` of the current folder, then among the profiles
    that the package contains.

    Raises
    ------
    ConfigError
        If there is no such profile, the file is not YAML, or a key or value is wrong. The message
        names the key.
    """
    places = (PROFILES, _packaged_profiles())
    is_path = name.endswith((".yaml", ".yml"))
    paths = [Path(name)] if is_path else [place / f"{name}.yaml" for place in places]
    path = next((path for path in paths if os.path.isfile(path)), None)
    if path is None:  # not a path, or a name that is too long
        known = sorted({p.stem for place in places for p in place.glob("*.yaml")})
        raise ConfigError(f"no cluster profile {name!r} ({paths[0]} not found); there are {known}")
    with storage_errors(f"profile {path}", "cannot be read", kind=ConfigError):
        text = path.read_bytes()
    values = parse_yaml(text, str(path))
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected 'key: value' lines, with the key cluster")
    refuse_credentials(values, f"{path}: ")
    try:
        return _PROFILES.validate_python(values)
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(_PROFILES, error).text}") from None


def _packaged_profiles() -> Path:
    """Return the folder of the profiles that an installed package contains."""
    return Path(str(resources.files(__name__.partition(".")[0]) / "configs" / "profiles"))


def changed(profile: Profile, where: str, **values: object) -> Profile:
    """Return a profile with the values that are not None replaced.

    Raises
    ------
    ConfigError
        If the profile has no such key, or a value is wrong.
    """
    changes = {name: value for name, value in values.items() if value is not None}
    for name in changes:
        if name not in type(profile).model_fields:
            raise ConfigError(f"{name} is for local workers; those of {where} are there")
    try:
        return type(profile).model_validate(profile.model_dump() | changes)
    except ValidationError as error:
        raise ConfigError(first_error(TypeAdapter(type(profile)), error).text) from None
