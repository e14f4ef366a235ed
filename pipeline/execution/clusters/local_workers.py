"""A cluster of worker processes on this machine, closed to its other accounts."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import dask
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster

from ...core.errors import ClusterError, refuse_exhaustion
from ...data.storage.temporary import temporary_folder
from ..worker_threads import CORES_VARIABLE
from .owning_client import owning
from .profiles import LocalProfile
from .tls import LOOPBACK_HTTP, closed_http

CORES_PER_WORKER = 8
SPILL_PREFIX = "bagbasis-cluster-"
# those that tell of a start that fails; Dask gives the last one a level of its own
LOGGERS = ("distributed", "asyncio", "tornado", "tornado.application")
SILENT = logging.CRITICAL + 1


def open_local(profile: LocalProfile) -> Client:
    """Start the workers of a profile, and return the client that ends them.

    Raises
    ------
    ClusterError
        If the workers cannot start (limit of open files, no shared memory, no working folder, …).
    """
    with ExitStack() as ends, _silent_loggers():
        try:
            folder = ends.enter_context(_spill_folder())
            cluster = _local_cluster(profile, folder)
            ends.callback(cluster.close)
            client = owning(cluster, ends.pop_all().close)
        except Exception as error:  # Dask and the system raise any error
            first = _first_cause(error)
            refuse_exhaustion("no local cluster can be started", first)
            raise ClusterError(
                f"no local cluster can be started ({type(first).__name__}: {first}); mend that, or "
                "work without a cluster"
            ) from error
    return client


def cores_of_worker(profile: LocalProfile) -> int:
    """Return the cores of each worker: the profile's, or an even fraction of the machine's."""
    return profile.cores_per_worker or max(1, int(CPU_COUNT) // _n_workers(profile))


def _n_workers(profile: LocalProfile) -> int:
    return profile.n_workers or -(-int(CPU_COUNT) // CORES_PER_WORKER)


def _local_cluster(profile: LocalProfile, folder: str) -> LocalCluster:
    options: dict[str, Any] = {"memory_limit": profile.memory_limit} if profile.memory_limit else {}
    n_cores = cores_of_worker(profile)
    with closed_http(profile.dashboard):
        return LocalCluster(
            processes=True,
            n_workers=_n_workers(profile),
            threads_per_worker=1,
            host="127.0.0.1",
            security=True,  # certificates in memory: loopback is open to every account
            dashboard_address=LOOPBACK_HTTP,
            scheduler_kwargs={"dashboard": profile.dashboard, "local_directory": folder},
            local_directory=folder,
            env={CORES_VARIABLE: str(n_cores), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            **options,
        )


@contextmanager
def _spill_folder() -> Iterator[str]:
    """Yield a folder for spilled data, which no other account has made or can change.

    Workers unpickle spilled data, and Dask adds the folder to ``sys.path``, also here. Dask's
    default folder is the same for all accounts, so its owner could run code as other users.
    """
    with temporary_folder(SPILL_PREFIX, dask.config.get("temporary-directory")) as folder:
        try:
            yield folder
        finally:  # another account could make a folder of that name once it is gone
            sys.path[:] = [path for path in sys.path if not path.startswith(folder)]


@contextmanager
def _silent_loggers() -> Iterator[None]:
    """Let Dask log nothing within the block: a start that fails is one error of ours."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(SILENT)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _first_cause(error: BaseException) -> BaseException:
    """Return the first error in a chain: the last one only names a class of Dask."""
    while before := error.__cause__ or error.__context__:
        error = before
    return error
