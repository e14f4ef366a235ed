"""Jobs that are killed and run again, and the oracle: what an unkilled job makes of the same."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.chaos.accounting import (
    Campaign,
    Lost,
    Stuck,
    Tally,
    Wrong,
    bytes_beside,
    files_below,
    grow_old,
)
from tests.chaos.children import Child, End, run
from tests.chaos.contents import Place
from tests.chaos.jobs import JOBS, REFUSALS, Job

SWEPT = 0.3  # share of the trials whose leftovers grow old and are swept
AT_A_WRITE = 0.75  # share of the kills that come right before a write; the others at any time


class Ground(ABC):
    """Where jobs work, and how they are killed there.

    Attributes
    ----------
    environment : dict
        Environment variables of the children.
    most_kills : int
        Kills of one job, after which it is left to finish.
    """

    environment: dict[str, str]
    most_kills = 3

    def give_back(self) -> None:  # noqa: B027 (files need none)
        """End what was started."""

    @abstractmethod
    def take(self, folder: Path) -> Place:
        """Return an empty place."""

    @abstractmethod
    def keep(self, place: Place) -> Callable[[Path], Place]:
        """Return a function that makes copies of the place as it is now."""

    @abstractmethod
    def run_counted(self, function: Callable[..., Any], place: Place) -> tuple[End, int]:
        """Run the function undisturbed, and count its writes."""

    @abstractmethod
    def kill_at(self, k: int, after: bool, function: Callable[..., Any], place: Place) -> End:
        """Run the function and kill it before its k-th write (or, after it, where that is seen)."""


class Files(Ground):
    """A local folder. The paths of its copies are all the same: stores are known by theirs."""

    def __init__(self) -> None:
        self.environment: dict[str, str] = {}

    def take(self, folder: Path) -> Place:
        place = folder / "place"
        place.mkdir()
        return Place(str(place), place)

    def keep(self, place: Place) -> Callable[[Path], Place]:
        path = place.local.with_name("given")
        shutil.copytree(place.local, path)

        def copy(folder: Path) -> Place:
            shutil.rmtree(place.local, ignore_errors=True)
            shutil.copytree(path, place.local)
            return place

        return copy

    def run_counted(self, function: Callable[..., Any], place: Place) -> tuple[End, int]:
        end = Child(function, place, place=place.local).wait()
        return end, end.n_writes

    def kill_at(self, k: int, after: bool, function: Callable[..., Any], place: Place) -> End:
        return Child(function, place, place=place.local, at=k).wait()


def is_prefix(part: Sequence[Any] | None, whole: Sequence[Any] | None) -> bool:
    return not part or (whole is not None and list(whole[: len(part)]) == list(part))


def check_between(job: Job, before: Any, now: Any, after: Any) -> None:
    """Raise `Wrong` or `Lost` for what no moment of an unkilled job shows.

    A list (bags, changes) grows; anything else is the old or the new one.
    """
    if isinstance(after, list):
        grows = is_prefix(now, after) and len(now or ()) >= len(before or ())
        if (grows and job.keeps) or (not job.keeps and (now == before or is_prefix(now, after))):
            return
        if job.keeps and is_prefix(now, before):
            raise Lost(f"{len(now or ())} of {len(before)} are left")
        raise Wrong(f"{now}, neither the old content nor a part of the new one: {after}")
    if now in (before, after):
        return
    raise (Lost if now is None else Wrong)(f"{now}, neither the old {before} nor the new {after}")


class Killed(Campaign):
    """Trials in which one job is killed some times and then finished."""

    def __init__(self, job: Job, ground: Callable[[], Ground], name: str = "") -> None:
        self.job = job
        self._make_ground = ground
        self.name = name or job.name

    def begin(self, folder: Path) -> None:
        self.ground = self._make_ground()
        place = self.ground.take(folder)
        self._run(self.job.prepare, place)
        self.before = self._run(self.job.look, place)
        self.copy = self.ground.keep(place)
        end, self.n_writes = self.ground.run_counted(self.job.run, place)
        if end.error:
            raise Stuck(f"undisturbed: {end.last_line}")
        self.seconds = end.seconds
        self.after = self._run(self.job.look, place)
        self._run(self.job.sweep, place)
        self.swept = files_below(place.local)

    def end(self) -> None:
        self.ground.give_back()

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        place = self.copy(folder)
        seen = self.before
        for _ in range(rng.integers(1, self.ground.most_kills + 1)):
            end = self._killed(rng, place)
            if not end.killed:
                if end.error:
                    raise Stuck(end.last_line)
                break
            tally.kills += 1
            seen = self._check(place, seen, end)
        self._finish(place)
        if rng.random() < SWEPT:
            self._sweep(place, tally)

    def _killed(self, rng: np.random.Generator, place: Place) -> End:
        if rng.random() < AT_A_WRITE:
            k, after = int(rng.integers(self.n_writes)), bool(rng.integers(2))
            return self.ground.kill_at(k, after, self.job.run, place)
        child = Child(self.job.run, place, place=place.local, environment=self.ground.environment)
        return child.wait(after=rng.uniform(0, 1.1 * self.seconds))

    def _check(self, place: Place, seen: Any, end: End) -> Any:
        """Look at what a kill has left; nothing goes back behind what was seen before."""
        now = self._look(place)
        check_between(self.job, self.before, now, self.after)
        message = end.messages[-1] if end.messages else 0
        if isinstance(self.after, list) and self.job.keeps:
            if len(now or ()) < max(message, len(seen or ())):
                raise Lost(
                    f"{len(now or ())} are left of {max(message, len(seen or ()))} committed"
                )
        elif seen == self.after and now != seen and self.job.keeps and self.before is None:
            raise Lost(f"{now} instead of the result, which was there")
        return now

    def _judge(self, end: End, what: str = "") -> None:
        """Raise `Wrong` for an error that bagbasis does not raise."""
        if end.error is not None and not end.killed and not end.last_line.startswith(REFUSALS):
            raise Wrong(f"{what}an error that bagbasis does not raise: {end.last_line}")

    def _finish(self, place: Place) -> None:
        self._run(self.job.run, place)
        now = self._look(place)
        if now != self.after:
            raise Wrong(f"run again to its end: {now}; undisturbed: {self.after}")

    def _sweep(self, place: Place, tally: Tally) -> None:
        grow_old(place.local)
        self._run(self.job.sweep, place)
        size, names = bytes_beside(place.local, self.swept)
        if names:
            tally.junk += size
            print(f"\n{self.name}: junk: {', '.join(names[:5])}")

    def _look(self, place: Place) -> Any:
        try:
            return self._run(self.job.look, place)
        except Stuck as error:
            raise Wrong(f"cannot be read: {error}") from error

    def _run(self, function: Callable[[Place], Any], place: Place) -> Any:
        return run(function, place, place=place.local, environment=self.ground.environment)


CAMPAIGNS = tuple(Killed(job, Files) for job in JOBS)
