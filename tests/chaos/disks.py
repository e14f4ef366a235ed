"""Disks that become full or read-only in the middle of a job, and clocks that are set meanwhile."""

from __future__ import annotations

import datetime
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tests.chaos.accounting import Mixed, Tally
from tests.chaos.children import Child
from tests.chaos.contents import Place
from tests.chaos.jobs import ALONE, JOBS, Job
from tests.chaos.kills import Files, Killed
from tests.data.storage.killing import before_writes

DISK_BYTES = 64 * 2**20
FILLER = "filler"
STEPS = (-400 * 86400.0, -2 * 86400.0, -3600.0, 3600.0, 2 * 86400.0, 400 * 86400.0)  # seconds
CLOCK_JOBS = ("fit", "refit", "predict-zarr", "promote", "retrain")


class Disk(Files):
    """A disk in memory for the place alone."""

    def take(self, folder: Path) -> Place:
        place = super().take(folder)
        size = f"size={DISK_BYTES}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place.local)], check=True)
        self._mounted = place.local
        return place

    def give_back(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._mounted)], check=True)

    def keep(self, place: Place) -> Callable[[Path], Place]:
        path = place.local.with_name("given")
        shutil.copytree(place.local, path)

        def copy(folder: Path) -> Place:
            for entry in place.local.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            shutil.copytree(path, place.local, dirs_exist_ok=True)
            return place

        return copy


class Filled(Killed):
    """Trials in which the disk takes no more from some write on."""

    def __init__(self, job: Job, read_only: bool) -> None:
        super().__init__(job, Disk)
        self.read_only = read_only

    def missing(self) -> str | None:
        return None if os.getuid() == 0 else "needs root"

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        place = self.copy(folder)

        def fail(child: Child) -> None:
            tally.kills += self._lock(place) if self.read_only else self._fill(place)

        child = Child(self.job.run, place, place=place.local, at=int(rng.integers(self.n_writes)))
        end = child.wait(act=fail)
        if self.read_only:
            remount(place.local, "rw")
        self._check(place, self.before, end)
        self._judge(end)
        (place.local / FILLER).unlink(missing_ok=True)
        self._finish(place)

    def _fill(self, place: Place) -> bool:
        with suppress(OSError), (place.local / FILLER).open("wb", buffering=0) as file:
            while True:
                file.write(bytes(2**20))
        with suppress(OSError), (place.local / FILLER).open("ab", buffering=0) as file:
            while True:
                file.write(bytes(2**8))
        return True

    def _lock(self, place: Place) -> bool:
        """False where a file is open for writing, which the system does not allow."""
        return remount(place.local, "ro")


def remount(folder: Path, mode: str) -> bool:
    command = ["mount", "-o", f"remount,{mode}", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def with_clock(place: Place, function: Callable[[Place], Any], k: int, seconds: float) -> Any:
    """Call a function whose clock is set by so many seconds just before its k-th write.

    Every clock that Python reads for the library: ``time.time`` and ``datetime.now``. The
    timestamps of files stay the kernel's, as on a server whose clock is right.
    """
    clock, numbers, offset = time.time, itertools.count(), [0.0]

    def react(what: str) -> None:
        if next(numbers) == k:
            offset[0] = seconds

    class Datetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return datetime.datetime.fromtimestamp(time.time(), tz)

    time.time = lambda: clock() + offset[0]
    for name, module in list(sys.modules.items()):
        if name.startswith("bagbasis") and getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Datetime  # type: ignore[attr-defined]
    before_writes(place.local, react)
    return function(place)


class Clocked(Killed):
    """Trials in which the clock jumps in a job, which is killed, and again when it goes on.

    In every second one another call of the job comes in between, with a clock of its own.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job, Files)

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        place = self.copy(folder)
        first, second = (self._stepped(rng, place) for _ in range(2))
        is_met = bool(rng.integers(2)) and self.job.name not in ALONE

        def act(child: Child) -> None:
            if is_met:
                self._judge(Child(*second, place=place.local).wait())
            else:
                child.kill()
            tally.kills += 1

        at = int(rng.integers(self.n_writes))
        self._judge(Child(*first, place=place.local, at=at).wait(act=act))
        self._look(place)
        self._judge(Child(*second, place=place.local).wait())
        self._finish(place)

    def _stepped(self, rng: np.random.Generator, place: Place) -> tuple[Any, ...]:
        k, seconds = int(rng.integers(self.n_writes)), float(rng.choice(STEPS))
        return with_clock, place, self.job.run, k, seconds


CAMPAIGNS = (
    Mixed("full-disk", [Filled(job, read_only=False) for job in JOBS]),
    Mixed("read-only-disk", [Filled(job, read_only=True) for job in JOBS]),
    Mixed("clock", [Clocked(job) for job in JOBS if job.name in CLOCK_JOBS]),
)
