"""Two workers of this machine that the tests of a process share.

To start two that import the library takes seconds of CPU. Tests that scale workers or compare bits
have some of their own: these here may have compiled a kernel that others load, and the last digits
of the two can differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from distributed import Client, LocalCluster

from bagbasis.execution.worker_threads import CORES_VARIABLE


@contextmanager
def two_workers() -> Iterator[Client]:
    """Within the block, what is computed on a cluster is by two workers of one core each."""
    if not _cluster().loop.asyncio_loop.is_running():  # a test has closed what Dask had open
        _cluster.cache_clear()
    with Client(_cluster()) as client:
        client.wait_for_workers(2)
        yield client


@cache
def _cluster() -> LocalCluster:
    """Closed by Dask when the process ends."""
    return LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        security=True,
        dashboard_address=None,
        env={CORES_VARIABLE: "1"},
    )
