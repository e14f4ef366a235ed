"""Cluster profiles: what a YAML file of ``configs/profiles`` may say."""

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
    """Return a path as one word of the job's shell, which puts in variables and nothing else."""
    path = re.sub(r'[\\`"]|\$(?!\w|\{\w+\})', r"\\\g<0>", text)
    preferred = re.match(r"~[\w.-]*/", path)  # quoted, it would not be a preferred
    return f'{preferred[0]}"{path[preferred.end() :]}"' if preferred else f'"{path}"'


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own, which no network sees."""
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
    """Refuse what a line of a batch script, or the shell that runs it, would take apart."""
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
Count = Annotated[int, Field(ge=1, le=100_000)]  # of workers, cores, pods
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
        Whether Dask's dashboard is shown, to every account of this machine.
    """

    cluster: Literal["local"] = "local"
    n_workers: Count | None = None
    cores_per_worker: Count | None = None
    memory_limit: Memory | None = None
    dashboard: bool = False


class _Waiting(_Profile):
    """Settings of a cluster whose workers start at unpredictable times.

    Attributes
    ----------
    timeout : float
        Seconds to wait for the scheduler, and for ``min_workers`` workers.
    min_workers : int
        Work begins when so many are there; later ones join in.
    """

    timeout: Seconds = 30.0
    min_workers: Count = 1


class _Tls(_Waiting):
    """Settings of a cluster reached with certificates: all three files, or none."""

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
    """A scheduler that runs already; beyond loopback only with TLS, unless ``insecure``."""

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
        Jobs, and the cores of each.
    memory_limit : str
        Memory limit of each job.
    walltime : str
        Time limit of each job; a worker leaves in good order before it ends, and its job is asked
        for again.
    interface : str or None
        Network interface of scheduler and workers. Connections are encrypted: with the TLS files,
        or with certificates made for this run alone.
    spill_directory : str or None
        On the nodes' own disks; a variable, such as $TMPDIR, is the node's.
    job_directory : str
        Seen by this machine and all nodes: logs of the jobs, and certificates of the run. SLURM
        takes no blanks in it.
    dashboard : bool
        Whether Dask's dashboards are shown, to every account of this machine and of the nodes.
    """

    cluster: Literal["slurm", "pbs"]
    n_workers: Count
    cores_per_worker: Count
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
    """A cluster of a dask-gateway server; ``options`` are those the server offers."""

    cluster: Literal["gateway"]
    address: str
    proxy_address: str | None = None
    auth: Literal["basic", "kerberos", "jupyterhub"] | None = None
    n_workers: Count
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
        The manifest's YAML file.
    name : str or None
        Name of the cluster, instead of the manifest's.
    address : str or None
        Where this machine reaches the scheduler; None: at its service, from within Kubernetes.
    """

    cluster: Literal["kubernetes"]
    cluster_spec: str
    namespace: str = "default"
    name: str | None = None
    n_workers: Count | None = None
    address: str | None = None
    tls_ca_file: str
    tls_cert: str
    tls_key: str
    timeout: Seconds = 600.0


Profile = LocalProfile | AddressProfile | JobQueueProfile | GatewayProfile | KubernetesProfile

_PROFILES: TypeAdapter[Profile] = TypeAdapter(Annotated[Profile, Field(discriminator="cluster")])


def load_profile(name: str) -> Profile:
    """Read the profile in a YAML file, or of that name.

    A name is looked for in ``configs/profiles`` of the current folder, then among the profiles
    that the package contains.

    Raises
    ------
    ConfigError
        No such profile, no YAML, an unknown key or a wrong value; one line that names it.
    """
    places = (PROFILES, _packaged_profiles())
    is_path = name.endswith((".yaml", ".yml"))
    paths = [Path(name)] if is_path else [place / f"{name}.yaml" for place in places]
    path = next((path for path in paths if os.path.isfile(path)), None)
    if path is None:  # or a name that is too long
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
    """Return a profile with other values, where they are not None.

    Raises
    ------
    ConfigError
        A value the profile has no key for, or a wrong one.
    """
    changes = {name: value for name, value in values.items() if value is not None}
    for name in changes:
        if name not in type(profile).model_fields:
            raise ConfigError(f"{name} is for local workers; those of {where} are there")
    try:
        return type(profile).model_validate(profile.model_dump() | changes)
    except ValidationError as error:
        raise ConfigError(first_error(TypeAdapter(type(profile)), error).text) from None
