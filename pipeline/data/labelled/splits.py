"""Subsets of bags chosen by the bag's index, independent of the plan of a pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.saved import Saved

HOLDOUT_SEED = 1  # for the bags that no model is fitted to
VALIDATION_SEED = 2  # for the bags on which a penalty is chosen
_FOLD_SEED = 7  # for the folds of prediction intervals; those of groups have another seed
N_FOLDS = 5  # unless a number is asked for


class Membership(Protocol):
    """A subset of bags; when a store grows, its old bags keep their membership."""

    def of(self, index: Integers) -> NDArray[np.bool_]:
        """Membership of some bags, shape (n,)."""
        ...

    def members(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Membership of bags start … stop − 1, shape (stop − start,)."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters of the subset, in JSON types."""
        ...


@dataclass(frozen=True)
class Split(Saved):
    """A pseudo-random fraction of the bags.

    Bag i is a member when splitmix64(i, seed) < fraction · 2⁶⁴.
    """

    fraction: float
    seed: int

    def of(self, index: Integers) -> NDArray[np.bool_]:
        """Membership of some bags, shape (n,)."""
        return hash_index(index.astype(np.uint64), self.seed) < self.fraction

    def members(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Membership of bags start … stop − 1, shape (stop − start,)."""
        return hash_index(np.arange(start, stop, dtype=np.uint64), self.seed) < self.fraction


class Folds(Protocol):
    """Parts of the bags, by a bag's position; when a store grows, its old bags keep theirs."""

    @property
    def n_folds(self) -> int:
        """Number of folds; some may be empty."""
        ...

    def of(self, index: Integers) -> Integers:
        """Return the folds of some bags, from 0 to n_folds − 1, shape (n,)."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters of the subset, in JSON types."""
        ...


@dataclass(frozen=True)
class IndexFolds(Saved):
    """Folds of equally many bags: n_folds neighbouring bags are in different folds.

    A hash of the neighbours' position rotates their order.
    """

    n_folds: int
    seed: int = _FOLD_SEED

    def of(self, index: Integers) -> Integers:
        """Return the folds of some bags, from 0 to n_folds − 1, shape (n,)."""
        turns = hash_index((index // self.n_folds).astype(np.uint64), self.seed) * self.n_folds
        return (index + turns.astype(np.int64)) % self.n_folds


@dataclass(frozen=True, eq=False)
class PlacedFolds:
    """Folds that were decided bag by bag.

    Attributes
    ----------
    places : int64, shape (n,), ascending
        Positions of the bags with a fold. All other bags are in the first fold.
    folds : int64, shape (n,)
        Fold of each of these bags, from 0 to n_folds − 1.
    n_folds : int
    """

    places: Integers
    folds: Integers
    n_folds: int

    def of(self, index: Integers) -> Integers:
        """Return the folds of some bags, from 0 to n_folds − 1, shape (n,)."""
        at = np.minimum(np.searchsorted(self.places, index), len(self.places) - 1)
        return np.where(self.places[at] == index, self.folds[at], 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that distinguish these folds from others."""
        digest = hashlib.sha256(np.stack([self.places, self.folds]).tobytes()).hexdigest()
        return {"placed": digest, "n": self.n_folds}


def hash_values(values: NDArray[Any], seed: int) -> Floats:
    """Hash values to uniform numbers in [0, 1), equal for equal values; −0 equals 0."""
    return hash_index((values.astype(np.float64) + 0.0).view(np.uint64), seed)


def hash_index(index: NDArray[np.uint64], seed: int) -> Floats:
    """Hash indices to uniform numbers in [0, 1)."""
    with np.errstate(over="ignore"):
        step = np.uint64(0x9E3779B97F4A7C15)
        z = (index + np.uint64(1)) * step + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
