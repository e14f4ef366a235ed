"""Clusters with TLS that lose a worker, the scheduler, the driver or a link in the middle of a job.

Scheduler and workers are children on loopback, or each in a network namespace of its own: the
namespaces hang on one bridge, which lies in that of the scheduler and the driver.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Scheduler, Worker
from distributed.security import Security

from tests.chaos.accounting import Mixed, Tally, Wrong
from tests.chaos.children import Child, End, tell
from tests.chaos.contents import Place
from tests.chaos.jobs import CLUSTER, JOBS, Job
from tests.chaos.kills import Files, Killed
from tests.clusters.encrypted import certificates, profile

N_WORKERS = 3
LOST_JOBS = ("fit", "predict-zarr", "retrain")
MAX_WRITES = 8  # of a worker, in these jobs: before one of them something is lost
SUBNET = "10.213.77"  # of the namespaces
CLONE_NEWNET = 0x40000000  # of linux/sched.h
_numbers = itertools.count()  # of machines, in the names of their namespaces
DOWN_SECONDS = (0.5, 8.0)  # of a link that comes back
# Dask waits for half a minute before it gives a silent peer up: shortened, for more trials
TIMEOUTS = {"distributed.comm.timeouts.tcp": "15s", "distributed.comm.timeouts.connect": "10s"}


def in_space(space: str | None, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a network namespace; in a child, as the thread stays there."""
    dask.config.set(TIMEOUTS)
    if space is not None:
        libc = ctypes.CDLL(None, use_errno=True)
        fd = os.open(f"/run/netns/{space}", os.O_RDONLY)
        if libc.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    return function(*args)


def _security(folder: Path, role: str) -> Security:
    files = {f"tls_{role}_cert": f"{role}.crt", f"tls_{role}_key": f"{role}.key"}
    paths = {name: str(folder / file) for name, file in files.items()}
    return Security(require_encryption=True, tls_ca_file=str(folder / "ca.crt"), **paths)


def schedule(host: str, folder: Path) -> None:
    async def serve() -> None:
        security = _security(folder, "scheduler")
        options = {"dashboard_address": f"{host}:0", "dashboard": False}
        async with Scheduler(host=f"tls://{host}", port=0, security=security, **options) as item:
            tell(item.address)
            await item.finished()

    asyncio.run(serve())


def work(address: str, host: str, folder: Path) -> None:
    async def serve() -> None:
        security = _security(folder, "worker")
        options = {"nthreads": 1, "dashboard": False, "local_directory": str(folder)}
        async with Worker(address, host=f"tls://{host}", security=security, **options) as item:
            await item.finished()

    asyncio.run(serve())


class Machines(Files):
    """A local folder and a cluster of three workers, each on a machine of its own if wanted."""

    def __init__(self, apart: bool) -> None:
        super().__init__()
        number = next(_numbers)
        names = [f"chaos-{os.getpid()}-{number}-{i}" for i in range(N_WORKERS + 1)]
        self.spaces: list[str | None] = list(names) if apart else [None] * (N_WORKERS + 1)
        self.hosts = [f"{SUBNET}.{i + 1}" if apart else "127.0.0.1" for i in range(N_WORKERS + 1)]

    def take(self, folder: Path) -> Place:
        self.certificates = certificates(folder / "certificates")
        if self.spaces[0] is not None:
            self._join_spaces()
        return super().take(folder)

    def give_back(self) -> None:
        for space in self.spaces:
            if space is not None:
                ip("netns", "del", space)

    def _join_spaces(self) -> None:
        first, *others = self.spaces
        for space, host in zip(self.spaces, self.hosts, strict=True):
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")
            if space == first:
                ip("-n", space, "link", "add", "eth0", "type", "bridge")
            else:
                link = ("-n", first, "link")
                at = f"v{others.index(space)}"
                ip(*link, "add", at, "type", "veth", "peer", "name", "eth0", "netns", space)
                ip(*link, "set", at, "master", "eth0", "up")
            ip("-n", space, "addr", "add", f"{host}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")

    def link(self, worker: int, state: str) -> None:
        """Take the link of a worker's machine up or down."""
        ip("-n", self.spaces[0], "link", "set", f"v{worker}", state)

    @contextmanager
    def cluster(self, place: Place, at: int | None = None) -> Iterator[Cluster]:
        """A cluster whose first worker stands still before its at-th write below the place."""
        cluster = Cluster(self, place)
        try:
            cluster.begin(at)
            yield cluster
        finally:
            cluster.end()

    def run_counted(self, function: Callable[..., Any], place: Place) -> tuple[End, int]:
        with self.cluster(place) as cluster:
            return cluster.start(function).wait(), MAX_WRITES


class Cluster:
    """The processes of one cluster."""

    def __init__(self, machines: Machines, place: Place) -> None:
        self.machines, self.place = machines, place
        self.children: list[Child] = []

    def begin(self, at: int | None) -> None:
        self.scheduler = self._child(0, schedule, self.machines.hosts[0])
        self.address = self.scheduler.heard()
        self.workers = [self.add(i, at if i == 0 else None) for i in range(N_WORKERS)]
        folder = self.place.local.parent
        keys = {"min_workers": 1, "timeout": 60}
        self.profile = profile(folder, self.address, self.machines.certificates, **keys)

    def add(self, i: int, at: int | None = None) -> Child:
        """Start the worker of a machine."""
        return self._child(i + 1, work, self.address, self.machines.hosts[i + 1], at=at)

    def start(self, function: Callable[..., Any]) -> Child:
        """Start a job on the cluster, next to its scheduler."""
        environment = {CLUSTER: self.profile}
        args = (self.machines.spaces[0], function, self.place)
        return Child(in_space, *args, place=self.place.local, environment=environment)

    def end(self) -> None:
        for child in self.children:
            child.end()

    def _child(self, machine: int, function: Callable[..., Any], *args: Any, **more: Any) -> Child:
        space = self.machines.spaces[machine]
        options = {"place": self.place.local, **more}
        child = Child(in_space, space, function, *args, self.machines.certificates, **options)
        self.children.append(child)
        return child


class Lost(Killed):
    """Trials in which a job on a cluster loses a part of it."""

    ground: Machines

    def __init__(self, job: Job, apart: bool) -> None:
        super().__init__(job, lambda: Machines(apart))
        self.apart = apart
        self.parts = ("link", "link for good") if apart else ("worker", "scheduler", "driver")

    def missing(self) -> str | None:
        if shutil.which("openssl") is None:
            return "needs openssl, for certificates"
        if not self.apart:
            return None
        if os.getuid() != 0:
            return "needs root"
        if shutil.which("ip") is None:
            return "needs ip, of Debian's iproute2"
        probe = f"chaos-probe-{os.getpid()}"
        made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False)
        if made.returncode != 0:
            return "needs network namespaces"
        ip("netns", "del", probe)
        return None

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        place = self.copy(folder)
        part = str(rng.choice(self.parts))
        at, after = int(rng.integers(MAX_WRITES)), rng.uniform(0.3, 1.0) * self.seconds
        done: list[str] = []
        with self.ground.cluster(place, at) as cluster:

            def lose(child: Child, what: object = None) -> None:
                if not done:
                    self._lose(part, cluster, child, rng)
                    done.append(part)
                if part != "worker":
                    cluster.workers[0].answer()

            job = cluster.start(self.job.run)
            end = job.wait(after=after, act=lose, beside=cluster.workers[0], react=lose)
            if part == "link for good":
                self.ground.link(0, "up")
        tally.kills += len(done)
        self._check(place, self.before, end)
        self._judge(end, f"after the loss of a {part}, ")
        self._finish(place)

    def _lose(self, part: str, cluster: Cluster, job: Child, rng: np.random.Generator) -> None:
        print(f"{self.name}: {part} is lost", file=job.log_of(job.place).open("a"))
        if part == "worker":
            cluster.workers[0].kill()
            cluster.add(0)  # as whoever watches over it does
        elif part == "scheduler":
            cluster.scheduler.kill()
        elif part == "driver":
            job.kill()
        else:
            self.ground.link(0, "down")
            if part == "link":
                seconds = rng.uniform(*DOWN_SECONDS)
                up = f"sleep {seconds}; ip -n {self.ground.spaces[0]} link set v0 up"
                subprocess.Popen(["sh", "-c", up])

    def _finish(self, place: Place) -> None:
        with self.ground.cluster(place) as cluster:
            end = cluster.start(self.job.run).wait()
            if end.error is not None:
                raise Wrong(end.last_line)
        super()._finish(place)


def ip(*args: str | None) -> None:
    """Run ``ip``, of iproute2."""
    subprocess.run(["ip", *map(str, args)], check=True, capture_output=True)


CAMPAIGNS = tuple(
    Mixed(name, [Lost(job, apart) for job in JOBS if job.name in LOST_JOBS])
    for name, apart in (("cluster", False), ("links", True))
)
