"""The log of changes of bags after their append: removals and new labels.

The log only grows. A fit that reads the log up to some length sees the bags at that moment. So the
sums of these bags can be subtracted again later.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers

REMOVED_COLUMN = -1.0  # column number that stands for a removed bag in the list of changes


@dataclass(frozen=True, eq=False)
class ListedBags:
    """Bags given by their positions, ascending, shape (n,)."""

    index: Integers

    def of(self, index: Integers) -> NDArray[np.bool_]:
        """Membership of some bags, shape (n,)."""
        return np.isin(index, self.index)

    def members(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Membership of bags start … stop − 1, shape (stop − start,)."""
        is_member = np.zeros(stop - start, dtype=bool)
        first, last = np.searchsorted(self.index, [start, stop])
        is_member[self.index[first:last] - start] = True
        return is_member

    def to_dict(self) -> dict[str, Any]:
        """Return the positions, in JSON types."""
        return {"listed": hashlib.sha256(self.index.tobytes()).hexdigest()}


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes of bags, oldest first.

    Attributes
    ----------
    rows : float64, shape (n, 3)
        For each change, the bag's index, the target's column or -1 for a removal, and the new
        value.
    """

    rows: Floats

    @cached_property
    def bags(self) -> Integers:
        """Indices of the changed bags, ascending, without repeats."""
        return np.unique(self.rows[:, 0]).astype(np.int64)

    @cached_property
    def removed(self) -> Integers:
        """Indices of the bags that were removed, ascending."""
        return np.unique(self.rows[self.rows[:, 1] == REMOVED_COLUMN, 0]).astype(np.int64)

    def since(self, n: int) -> Changes:
        """Return the changes after the first ``n`` changes."""
        return Changes(self.rows[n:])

    @cached_property
    def _by_bag(self) -> Floats:
        return self.rows[np.argsort(self.rows[:, 0], kind="stable")]

    def present(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return which of the bags ``start:stop`` were not removed."""
        return ~ListedBags(self.removed).members(start, stop)

    def relabel(self, targets: Floats, start: int) -> Floats:
        """Return all targets of the bags from ``start`` on, with the changes applied."""
        first, last = np.searchsorted(self._by_bag[:, 0], [start, start + len(targets)])
        rows = self._by_bag[first:last]
        out, labels = targets.copy(), rows[rows[:, 1] != REMOVED_COLUMN]
        # of several values for one place numpy keeps the last
        out[labels[:, 0].astype(np.int64) - start, labels[:, 1].astype(np.int64)] = labels[:, 2]
        out[~self.present(start, start + len(targets))] = np.nan
        return out


def removals(bags: Integers) -> Floats:
    """Return the rows of the log that remove these bags."""
    return np.column_stack([bags, np.full(len(bags), REMOVED_COLUMN), np.zeros(len(bags))])


def relabellings(bags: Integers, column: int, values: Floats) -> Floats:
    """Return the rows of the log that give these bags new values of a target."""
    return np.column_stack([bags, np.full(len(bags), float(column)), values])
