"""A scheduler in a process of its own, and many workers that share processes and only sleep.

They are real `distributed.Worker`, with their own connections, heartbeats, events and thread: the
scheduler cannot tell. Run as a module this is one of the processes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import dask
import numpy as np
import psutil
from distributed import Client, Scheduler, Worker
from distributed.security import Security

from bagbasis import Report
from bagbasis.core.arrays import Floats
from bagbasis.core.errors import ClusterError
from bagbasis.execution.clusters.tls import closed_http

LOOPBACK = "127.0.0.1"
PROCESSES = 2  # that the workers share
AT_A_TIME = 50  # workers that are started together
_NUMBERS = 128  # of a simulated partial result
_SECONDS_BETWEEN_REPORTS = 0.5  # of a sleeping task, more often than a real one
_QUIET = {  # what each worker does for itself, which would only take the cores
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.tick.limit": "1h",
    "distributed.admin.system-monitor.interval": "60s",
}


@dataclass(frozen=True)
class Sleep:
    """Instead of the pass over a range of bags: the same calls and events, and no work."""

    seconds: float

    def __call__(self, task: int, report: Report) -> Floats:
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < self.seconds:
            report(int(100 * passed / self.seconds))
            time.sleep(min(_SECONDS_BETWEEN_REPORTS, self.seconds - passed))
        return np.full(_NUMBERS, float(task))


@contextmanager
def simulated_cluster(n_workers: int) -> Iterator[tuple[psutil.Process, int]]:
    """Return the scheduler, to which a client is connected, and its bytes before the workers came.

    All processes end with the block.
    """
    security = Security.temporary()  # every account of the machine can reach its loopback
    with ExitStack() as stack:
        scheduler = stack.enter_context(_process(security, "scheduler"))
        address = _first_line(scheduler)
        process = psutil.Process(scheduler.pid)
        bare = process.memory_info().rss
        parts = [len(part) for part in np.array_split(np.arange(n_workers), PROCESSES)]
        command = security, "workers", address
        shares = [stack.enter_context(_process(*command, str(part))) for part in parts if part]
        for share in shares:
            _first_line(share)
        stack.enter_context(Client(address, security=security))
        yield process, bare


@contextmanager
def _process(security: Security, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start one part as a process that ends when its standard input does: with the block or us."""
    command, pipe = [sys.executable, "-m", __name__, *arguments], subprocess.PIPE
    env = {**os.environ, **_as_environment(security)}
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _as_environment(security: Security) -> dict[str, str]:
    """Return certificates as settings of Dask; others cannot read a process's environment."""
    prefix = "DASK_DISTRIBUTED__COMM__"
    variables = {f"{prefix}REQUIRE_ENCRYPTION": "True"}
    for role in ("scheduler", "worker"):
        files = security.get_tls_config_for_role(role)
        variables[f"{prefix}TLS__CA_FILE"] = files["ca_file"]
        for name in ("cert", "key"):
            variables[f"{prefix}TLS__{role}__{name}".upper()] = files[name]
    return variables


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise ClusterError(f"a simulated cluster's process ended with code {process.wait()}")
    return line


async def _scheduler() -> None:
    options: dict[str, Any] = {"port": 0, "dashboard_address": f"{LOOPBACK}:0", "dashboard": False}
    async with Scheduler(host=LOOPBACK, protocol="tls://", **options) as scheduler:
        await _until_input_ends(scheduler.address)


async def _workers(address: str, n_workers: int) -> None:
    threads: Any = import_module("bagbasis.execution.worker_threads")
    threads.TURN = nullcontext()  # each stands for a process, which would run a task of its own
    with dask.config.set(_QUIET), tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"host": LOOPBACK, "nthreads": 1, "memory_limit": 0,
                                   "dashboard": False, "local_directory": folder}  # fmt: skip
        workers = [Worker(address, **options) for _ in range(n_workers)]
        for start in range(0, n_workers, AT_A_TIME):
            await asyncio.gather(*workers[start : start + AT_A_TIME])
        await _until_input_ends(f"{n_workers} workers")


async def _until_input_ends(ready: str) -> None:
    print(ready, flush=True)
    await asyncio.to_thread(sys.stdin.read)


def main(part: str, *arguments: str) -> None:
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with closed_http(False):
        if part == "scheduler":
            asyncio.run(_scheduler())
        else:
            address, n_workers = arguments
            asyncio.run(_workers(address, int(n_workers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
