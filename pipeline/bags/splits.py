"""Which bags are held out: a hash of the bag's index, so that it never depends on the plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HOLDOUT_SEED = 1  # of the bags that no model is fitted to
VALIDATION_SEED = 2  # of the bags that a penalty is chosen on


@dataclass(frozen=True)
class Split:
    """A pseudo-random share of the bags; growing stores keep the membership of old bags.

    Bag i is a member when splitmix64(i, seed) < fraction · 2⁶⁴.
    """

    fraction: float
    seed: int

    def of(self, index: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Membership of some bags, shape (n,)."""
        return hash_index(index.astype(np.uint64), self.seed) < self.fraction

    def members(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Membership of bags start … stop − 1, shape (stop − start,)."""
        return hash_index(np.arange(start, stop, dtype=np.uint64), self.seed) < self.fraction


def holdout_split(holdout: float) -> Split | None:
    """Return the bags that ``holdout=`` leaves out of any estimator's fit."""
    return Split(holdout, HOLDOUT_SEED) if holdout else None


def hash_index(index: NDArray[np.uint64], seed: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), one per index."""
    with np.errstate(over="ignore"):
        step = np.uint64(0x9E3779B97F4A7C15)
        z = (index + np.uint64(1)) * step + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
