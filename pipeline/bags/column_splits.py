"""Bags chosen by a column of their store: whole groups, or the bags later than a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Integers
from .columns import Column
from .splits import hash_values


@dataclass(frozen=True, eq=False)
class GroupSplit:
    """Whole groups: those whose hash is below a limit, which `Holdout.resolve` finds."""

    column: Column
    below: float
    seed: int

    def of(self, index: Integers) -> NDArray[np.bool_]:
        """See `splits.Membership`."""
        return hash_values(self.column.at(index), self.seed) < self.below

    def members(self, start: int, stop: int) -> NDArray[np.bool_]:
        """See `splits.Membership`."""
        return hash_values(self.column.members(start, stop), self.seed) < self.below

    def to_dict(self) -> dict[str, Any]:
        """See `splits.Membership`."""
        return {"groups": self.column.name, "below": self.below, "seed": self.seed}


@dataclass(frozen=True, eq=False)
class TimeSplit:
    """The bags later than a time."""

    column: Column
    after: float

    def of(self, index: Integers) -> NDArray[np.bool_]:
        """See `splits.Membership`."""
        return np.asarray(self.column.at(index) > self.after)

    def members(self, start: int, stop: int) -> NDArray[np.bool_]:
        """See `splits.Membership`."""
        return np.asarray(self.column.members(start, stop) > self.after)

    def to_dict(self) -> dict[str, Any]:
        """See `splits.Membership`."""
        return {"time": self.column.name, "after": self.after}
