"""Two of the same job at once, one of them killed now and then, and readers meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.chaos.accounting import Mixed, Tally, Wrong
from tests.chaos.children import Child, End, tell
from tests.chaos.contents import Place
from tests.chaos.jobs import ALONE, JOBS, REFUSALS
from tests.chaos.kills import AT_A_WRITE, Files, Killed, check_between

# stores that the second call may make anew, or whose points it deletes under a reader of before
REPLACED = ("overwrite", "ingest", "generate", "remove")


def keep_looking(place: Place, look: Callable[[Place], Any]) -> None:
    """Tell whatever is new, until killed."""
    seen: list[Any] = []
    while True:
        now = look(place)
        if now not in seen:
            seen.append(now)
            tell(now)
        time.sleep(0.01)


class Meeting(Killed):
    """Trials of two calls of one job.

    Either the first one stands still before some write, a whole second one comes, and the first
    goes on or dies; or both run freely, while a reader reads.
    """

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        place = self.copy(folder)
        if rng.integers(2):
            self._in_between(rng, place, tally)
        else:
            self._race(rng, place, tally)
        self._finish(place)

    def _in_between(self, rng: np.random.Generator, place: Place, tally: Tally) -> None:
        dies = bool(rng.integers(2))

        def act(child: Child) -> None:
            self._check(place, self.before, End())
            self._judge(Child(self.job.run, place, place=place.local).wait())
            if dies:
                child.kill()
                tally.kills += 1

        at = int(rng.integers(self.n_writes))
        self._judge(Child(self.job.run, place, place=place.local, at=at).wait(act=act))
        self._check(place, self.before, End())

    def _race(self, rng: np.random.Generator, place: Place, tally: Tally) -> None:
        first, second = (Child(self.job.run, place, place=place.local) for _ in range(2))
        reader = Child(keep_looking, place, self.job.look, place=place.local)
        after = rng.uniform(0, 2) * self.seconds
        end = first.wait(after=after)
        tally.kills += end.killed
        ends = end, second.wait()
        reader.kill()
        seen = reader.wait()
        for end in ends:
            self._judge(end)
        # a store that is replaced, be it an empty one, refuses its readers meanwhile
        is_refused = self.job.name in REPLACED and (seen.last_line or "").startswith(REFUSALS)
        if seen.error is not None and not is_refused:
            raise Wrong(f"a reader failed: {seen.last_line}")
        for now in seen.messages:
            check_between(self.job, self.before, now, self.after)


class Rivals(Killed):
    """Trials of two callers of one job, both of which die, up to three times, while one reads."""

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        place = self.copy(folder)
        seen = self.before
        for _ in range(rng.integers(1, self.ground.most_kills + 1)):
            at = int(rng.integers(self.n_writes)) if rng.random() < AT_A_WRITE else None
            first = Child(self.job.run, place, place=place.local, at=at)
            second = Child(self.job.run, place, place=place.local)
            reader = Child(keep_looking, place, self.job.look, place=place.local)
            moments = rng.uniform(0, 1.5 * self.seconds, 2)
            ends = [
                first.wait(act=Child.kill) if at is not None else first.wait(after=moments[0]),
                second.wait(after=moments[1]),
            ]
            reader.kill()
            looked = reader.wait()
            if looked.error is not None:
                raise Wrong(f"a reader failed: {looked.last_line}")
            for now in looked.messages:
                check_between(self.job, self.before, now, self.after)
            for end in ends:
                tally.kills += end.killed
                self._judge(end)
            seen = self._check(place, seen, End())
        self._finish(place)


CAMPAIGNS = (
    Mixed("two-at-once", [Meeting(job, Files) for job in JOBS if job.name not in ALONE]),
    *(Rivals(job, Files, "two-retrains") for job in JOBS if job.name == "retrain"),
)
