"""What is counted: trials, kills, what was lost, wrong or stuck, and the junk that stays."""

from __future__ import annotations

import os
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

LONG_AGO = 2 * 86400.0  # seconds, twice the age at which leftovers belong to nobody
RANDOM_NAME = re.compile(r"[0-9a-f]{8,}|\d{8}-\d{6}")  # parts of names that differ between runs


class Fault(Exception):
    """What must never happen; the kind is the column that counts it."""

    kind: str


class Lost(Fault):
    """Something that was committed is gone."""

    kind = "lost"


class Wrong(Fault):
    """Something is there that no unkilled job makes, or an error is not one of bagbasis."""

    kind = "wrong"


class Stuck(Fault):
    """The job cannot be finished by running it again."""

    kind = "stuck"


@dataclass
class Tally:
    """Counts of one campaign.

    Attributes
    ----------
    kills : int
        Processes killed, and other faults that were brought about.
    junk : int
        Bytes that stay although they are older than their sweep.
    met : Counter
        How often each kind of fault of a network was met.
    """

    trials: int = 0
    kills: int = 0
    junk: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)

    @property
    def is_bad(self) -> bool:
        """Whether anything happened that must not."""
        return bool(self.faults or self.junk)


class Campaign(ABC):
    """Trials of one kind.

    Parameters
    ----------
    name : str
        What ``--only`` takes.
    """

    name: str

    def missing(self) -> str | None:
        """Return what this machine lacks for it; None for nothing."""
        return None

    @abstractmethod
    def begin(self, folder: Path) -> None:
        """Make what all trials begin with, and what an undisturbed job makes of it."""

    @abstractmethod
    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        """Do one trial in an empty folder, counting its kills and junk.

        Raises
        ------
        Fault
        """

    def end(self) -> None:  # noqa: B027 (most have taken nothing)
        """Give back what `begin` took."""


class Mixed(Campaign):
    """Campaigns of which each trial takes one, as its dice and their weights say."""

    def __init__(
        self, name: str, parts: Sequence[Campaign], weights: Sequence[float] | None = None
    ) -> None:
        self.name, self.parts = name, parts
        self._weights = np.ones(len(parts)) if weights is None else np.asarray(weights)
        self._begun: set[int] = set()
        self._broken: dict[int, Fault] = {}  # those that could not begin

    def missing(self) -> str | None:
        return self.parts[0].missing()

    def begin(self, folder: Path) -> None:
        pass  # each when it is taken first

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        i = int(rng.choice(len(self.parts), p=self._weights / self._weights.sum()))
        part, place = self.parts[i], folder / self.parts[i].name
        if i not in self._begun:
            self._begun.add(i)
            place.mkdir()
            try:
                part.begin(place)
            except Fault as fault:
                self._broken[i] = fault
        try:
            if i in self._broken:
                raise self._broken[i]
            part.trial(rng, place, tally)
        except Fault as fault:
            raise type(fault)(f"{part.name}: {fault}") from fault

    def end(self) -> None:
        for i in self._begun:
            self.parts[i].end()


def files_below(folder: Path) -> Counter[str]:
    """Count the files by their names below the folder, random parts left out."""
    values = (os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    return Counter(RANDOM_NAME.sub("*", os.path.relpath(path, folder)) for path in values)


def bytes_beside(folder: Path, expected: Counter[str]) -> tuple[int, list[str]]:
    """Return the bytes, and the names, of files that an undisturbed job does not leave."""
    remaining, size, names = Counter(expected), 0, []
    for root, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(root, name)
            key = RANDOM_NAME.sub("*", os.path.relpath(path, folder))
            remaining[key] -= 1
            if remaining[key] < 0:
                size += max(1, os.lstat(path).st_size)
                names.append(os.path.relpath(path, folder))
    return size, names


def grow_old(folder: Path) -> None:
    """Let everything in the folder look as if nobody had written to it for days."""
    then = time.time() - LONG_AGO
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.utime(os.path.join(root, name), (then, then), follow_symlinks=False)
