"""Bags chosen by a column of their store: whole groups, or the bags later than a time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Integers
from .columns import Column
from .splits import N_FOLDS, hash_values

_FOLD_SEED = 6  # differs from the seeds in `splits`


@dataclass(frozen=True, eq=False)
class GroupSplit:
    """Whole groups whose hash is below a limit, which `Holdout.resolve` determines."""

    column: Column
    below: float
    seed: int

    def of(self, index: Integers) -> NDArray[np.bool_]:
        """Membership of some bags, shape (n,)."""
        return hash_values(self.column.at(index), self.seed) < self.below

    def members(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Membership of bags start … stop − 1, shape (stop − start,)."""
        return hash_values(self.column.members(start, stop), self.seed) < self.below

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters of the split, in JSON types."""
        return {"groups": self.column.name, "below": self.below, "seed": self.seed}


@dataclass(frozen=True, eq=False)
class GroupFolds:
    """Folds of whole groups, by a hash of the group: old bags keep theirs when a store grows.

    For bags in memory, groups may be texts.
    """

    column: Column
    n_folds: int = N_FOLDS
    seed: int = _FOLD_SEED

    @classmethod
    def of_column(cls, column: Column) -> GroupFolds:
        """Return the folds of a column; texts are numbered in their order."""
        if column.values is None or column.values.dtype.kind in "iufb":
            return cls(column)
        _, codes = np.unique(column.values.astype(str), return_inverse=True)
        return cls(replace(column, values=codes))

    def of(self, index: Integers) -> Integers:
        """Return the folds of some bags, from 0 to n_folds − 1, shape (n,)."""
        shares = hash_values(self.column.at(index), self.seed)
        return (shares * self.n_folds).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that distinguish these folds from others."""
        values = self.column.values
        digest = None if values is None else hashlib.sha256(values.tobytes()).hexdigest()
        return {"groups": self.column.name, "given": digest, "n": self.n_folds, "seed": self.seed}


@dataclass(frozen=True, eq=False)
class TimeSplit:
    """The bags later than a time."""

    column: Column
    after: float

    def of(self, index: Integers) -> NDArray[np.bool_]:
        """Membership of some bags, shape (n,)."""
        return np.asarray(self.column.at(index) > self.after)

    def members(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Membership of bags start … stop − 1, shape (stop − start,)."""
        return np.asarray(self.column.members(start, stop) > self.after)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters of the split, in JSON types."""
        return {"time": self.column.name, "after": self.after}
