"""Connect to a cluster: local processes, a scheduler's address, or a profile."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from distributed import Client
from distributed.security import Security

from ...core import UrlOrPath, checked
from ...core.errors import ClusterError, ConfigError
from ..notebook import watched
from ..progress import Progress, say
from ..tasks import current_client
from .cluster_checks import check_store, check_versions, wait_for_workers
from .local_workers import cores_of_worker, open_local
from .owning_client import OwningClient, owning
from .profiles import (
    AddressProfile,
    GatewayProfile,
    JobQueueProfile,
    KubernetesProfile,
    LocalProfile,
    Profile,
    changed,
    load_profile,
)
from .tls import check_address, check_handshake, security_of

_NO_WORKERS = "start workers (dask worker {address} --nthreads 1)"


@checked
def connect(
    target: str = "local",
    *,
    n_workers: int | None = None,
    cores_per_worker: int | None = None,
    memory_limit: str | None = None,
    dashboard: bool | None = None,
    store: UrlOrPath | None = None,
    progress: Progress | None = None,
) -> Client:
    """Start or join a Dask cluster, on which fits and jobs run while the client is open.

    A cluster that was started for the client (local, slurm, pbs, gateway, kubernetes) is closed
    together with the client.

    Parameters
    ----------
    target : str
        Cluster to use. ``"local"`` starts worker processes on this machine, which other accounts
        cannot use. The address of a running scheduler is ``tls://…``, or on loopback also
        ``tcp://…``. A profile is a YAML file, or the name of a file in ``configs/profiles``.
    n_workers, cores_per_worker : int, optional
        Number of workers and of cores per worker, instead of the profile's numbers. A worker runs
        one task at a time, on all its cores. Default: all cores of the machine, in workers of up to
        eight cores.
    memory_limit : str, optional
        Memory limit of each worker, such as "3GiB". Local workers share the memory evenly by
        default.
    dashboard : bool, optional
        Whether to serve Dask's dashboard at ``client.dashboard_link``; this needs bokeh. The
        dashboard has no password: every account of this machine can read it. Default: False.
    store : str, optional
        URL of a store that every worker must be able to open.
    progress : callable, optional
        Function that is called with the number of joined workers and of wanted workers during the
        wait. Its method ``say(text)``, if it has one, gets a line with workers, cores and the
        dashboard's link. Default: a notebook shows both.

    Raises
    ------
    ClusterError
        If local workers cannot start, no scheduler answers, workers do not join, versions differ,
        or a worker cannot open the store.
    ConfigError
        If there is no such profile, a key in it is wrong, the text is not an address, or a
        parameter for workers is given for a cluster that has its own.

    See Also
    --------
    features : Compute the features of every bag.
    ClusterError : A cluster that cannot be reached.

    Examples
    --------
    >>> from bagbasis import DoubleBasisRegressor, connect
    >>> with connect('local', n_workers=2) as client:  # doctest: +SKIP
    ...     model = DoubleBasisRegressor().fit(store)
    """
    profile = profile_of(target)
    where = profile.address if isinstance(profile, AddressProfile) else target
    profile = changed(
        profile,
        where,
        n_workers=n_workers,
        cores_per_worker=cores_per_worker,
        memory_limit=memory_limit,
        dashboard=dashboard,
    )
    progress = watched(progress)
    client = (
        open_local(profile) if isinstance(profile, LocalProfile) else _remote(profile, progress)
    )
    try:
        if store is not None:
            check_store(client, store)
        say(progress, workers_line(client, profile))
    except BaseException:
        client.close()
        raise
    return client


def workers_line(client: Client, profile: Profile) -> str:
    """Return a line with the workers, cores and dashboard link of a cluster."""
    threads = client.nthreads()
    cores_per_worker = getattr(profile, "cores_per_worker", None)
    if isinstance(profile, LocalProfile):
        cores_per_worker = cores_of_worker(profile)
    cores = sum(cores_per_worker or n for n in threads.values())
    shown = getattr(profile, "dashboard", None)
    if shown is None:  # a cluster that bagbasis did not start
        shown = "dashboard" in client.scheduler_info(n_workers=0)["services"]
    link = client.dashboard_link if shown else "none"
    return f"workers: {len(threads):,} (one task at a time), cores: {cores:,}, dashboard: {link}"


def profile_of(target: str) -> Profile:
    """Return the profile for the arguments of `connect`."""
    if target == "local":
        return LocalProfile()
    return AddressProfile(address=target) if "://" in target else load_profile(target)


def _remote(
    profile: AddressProfile | JobQueueProfile | GatewayProfile | KubernetesProfile,
    progress: Progress,
) -> Client:
    with warnings.catch_warnings():  # Dask's table of versions; `check_versions` is one line
        warnings.filterwarnings("ignore", message="Mismatched versions found")
        client, hint = _open(profile)
        try:
            wait_for_workers(
                client,
                least=profile.min_workers,
                wanted=getattr(profile, "n_workers", None) or profile.min_workers,
                timeout=profile.timeout,
                progress=progress,
                hint=hint,
            )
            check_versions(client)
        except OSError as error:
            client.close()
            raise ClusterError(f"the scheduler is gone ({error})") from error
        except BaseException:
            client.close()
            raise
    return client


def _open(
    profile: AddressProfile | JobQueueProfile | GatewayProfile | KubernetesProfile,
) -> tuple[Client, str]:
    """Return the client, and a hint for the case that workers do not join."""
    if isinstance(profile, AddressProfile):
        security = security_of(profile)
        client = _at(profile.address, security, profile.timeout, insecure=profile.insecure)
        return client, _NO_WORKERS.format(address=profile.address)
    try:
        if isinstance(profile, JobQueueProfile):
            from .job_queue import open_job_queue, waiting_hint

            return owning(open_job_queue(profile)), waiting_hint(profile)
        if isinstance(profile, GatewayProfile):
            from .gateway import open_gateway

            return owning(open_gateway(profile)), "see the gateway's log"
        from .kubernetes import open_kubernetes

        cluster = open_kubernetes(profile)
    except ImportError as error:
        extra = "slurm" if isinstance(profile, JobQueueProfile) else profile.cluster
        raise ConfigError(
            f"a {profile.cluster} profile needs pip install 'bagbasis[{extra}]' ({error})"
        ) from error
    try:
        client = _at(cluster.address, security_of(profile), profile.timeout, cluster.close)
    except BaseException:
        cluster.close()
        raise
    return client, f"see kubectl get pods -n {profile.namespace}"


def _at(
    address: str,
    security: Security | None,
    timeout: float,
    end: Callable[[], Any] | None = None,
    insecure: bool = False,
) -> Client:
    check_address(address, insecure)
    if address.startswith("tls://"):
        check_handshake(address, security or Security(), timeout)
    try:
        if end is not None:
            return OwningClient(address, end, timeout=timeout, security=security)
        return Client(address, timeout=timeout, security=security)
    except (OSError, MemoryError) as error:  # the latter of a peer that does not speak Dask
        unfinished = current_client()
        if unfinished is not None and unfinished.status == "connecting":
            unfinished.close()
        raise ClusterError(f"no scheduler answers at {address} within {timeout:.0f} s") from error
