"""Connect to a cluster: local processes, a scheduler's address, or a profile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import yaml
from dask.system import CPU_COUNT
from distributed import Client, get_client
from distributed.comm import get_address_host_port
from distributed.security import Security
from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import ClusterError, ConfigError
from .lane import CORES_VARIABLE

PROFILES = Path("configs/profiles")
CORES_A_LANE = 8


class Profile(BaseModel):
    """A cluster profile, as in ``configs/profiles/*.yaml``."""

    model_config = ConfigDict(extra="forbid")

    cluster: Literal["local", "tcp"]
    n_workers: int | None = None
    cores_per_worker: int | None = None
    memory_limit: str | None = None
    address: str | None = None
    tls_ca_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    timeout: float = 30.0


def connect(
    target: str = "local",
    *,
    n_workers: int | None = None,
    cores_per_worker: int | None = None,
    memory_limit: str | None = None,
) -> Client:
    """A Dask client, used as a context manager; `fit` and the jobs run on it while it is open.

    Parameters
    ----------
    target : str
        ``"local"``: worker processes on this machine, listening on loopback only. A scheduler's
        address (``tcp://…``, ``tls://…``). Or a profile: a YAML file, or the name of one in
        ``configs/profiles``.
    n_workers, cores_per_worker : int, optional
        For local processes. A worker is one lane: it runs one task at a time, on all its cores.
        By default all cores of the machine in lanes of up to eight.
    memory_limit : str, optional
        Of each local worker, such as "3GiB"; default an even share.

    Raises
    ------
    ClusterError
        No scheduler answers.
    ConfigError
        No such profile, a wrong key in it, an address that is none, or a parameter for local
        processes beside an address.
    """
    if target == "local":
        profile = Profile(cluster="local")
    elif "://" in target:
        profile = Profile(cluster="tcp", address=target)
    else:
        profile = load_profile(target)
    given = {
        "n_workers": n_workers,
        "cores_per_worker": cores_per_worker,
        "memory_limit": memory_limit,
    }
    profile = profile.model_copy(update={k: v for k, v in given.items() if v is not None})
    return _local(profile) if profile.cluster == "local" else _remote(profile)


def load_profile(name: str) -> Profile:
    """The profile in a YAML file, or of that name in ``configs/profiles``."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else PROFILES / f"{name}.yaml"
    if not path.is_file():
        known = sorted(p.stem for p in PROFILES.glob("*.yaml"))
        raise ConfigError(f"no cluster profile {name!r} ({path} not found); there are {known}")
    try:
        return Profile.model_validate(yaml.safe_load(path.read_text()) or {})
    except (ValidationError, yaml.YAMLError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        detail = f"{first['loc']}: {first['msg']}" if first else str(error)
        raise ConfigError(f"{path}: {detail}") from error


def current_client() -> Client | None:
    """The client that is open in this process, if any."""
    try:
        return get_client()
    except ValueError:
        return None


def _local(profile: Profile) -> Client:
    cores = int(CPU_COUNT)
    n_workers = profile.n_workers or -(-cores // CORES_A_LANE)
    lane = profile.cores_per_worker or max(1, cores // n_workers)
    options: dict[str, Any] = {"memory_limit": profile.memory_limit} if profile.memory_limit else {}
    return Client(
        processes=True,
        n_workers=n_workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        env={CORES_VARIABLE: str(lane), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        **options,
    )


def _remote(profile: Profile) -> Client:
    if not profile.address:
        raise ConfigError("a tcp profile needs an address")
    for name in ("n_workers", "cores_per_worker", "memory_limit"):
        if getattr(profile, name) is not None:
            raise ConfigError(f"{name} is for local workers; those of {profile.address} are there")
    try:
        get_address_host_port(profile.address)
    except ValueError as error:
        raise ConfigError(f"{profile.address!r} is no scheduler's address: {error}") from error
    security = None
    if profile.tls_ca_file:
        security = Security(
            tls_ca_file=profile.tls_ca_file,
            tls_client_cert=profile.tls_cert,
            tls_client_key=profile.tls_key,
            require_encryption=True,
        )
    try:
        return Client(profile.address, timeout=profile.timeout, security=security)
    except (OSError, TimeoutError) as error:
        raise ClusterError(
            f"no scheduler answers at {profile.address} within {profile.timeout:.0f} s"
        ) from error
