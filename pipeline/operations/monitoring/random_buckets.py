"""Random assignment of rows to buckets, computed from the row positions without storage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Integers
from ...hypotheses.nulls.draws import generator_of

SMALL_ROWS = 2**16  # rows whose permutation is drawn and held
_N_ROUNDS = 6  # rounds of the Feistel network: neighbours then have nothing in common
_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)  # splitmix64's


@dataclass(frozen=True)
class RandomBuckets:
    """Random buckets of n rows, all of one length; with many rows, nothing is stored.

    Attributes
    ----------
    n_rows : int
    n_apart : int
        Number of rows at the start of the random order that are in no bucket.
    length, count : int
        Length and number of the buckets that follow. The remaining rows are in no bucket either.
    seed : int
    """

    n_rows: int
    n_apart: int
    length: int
    count: int
    seed: int

    def ranks(self, positions: Integers) -> Integers:
        """Return the rank of each row in the random order, from 0 to n_rows − 1."""
        if self.n_rows <= SMALL_ROWS:
            return _order(self.n_rows, self.seed)[positions]
        half = max(1, ((self.n_rows - 1).bit_length() + 1) // 2)
        mask = np.uint64((1 << half) - 1)
        ranks = np.asarray(positions).astype(np.uint64)
        far = np.ones(len(ranks), bool)
        while far.any():  # values beyond n_rows are encrypted again: the map stays one-to-one
            left, right = ranks[far] >> np.uint64(half), ranks[far] & mask
            for turn in range(_N_ROUNDS):
                left, right = right, left ^ (_mixed(right, self.seed, turn) & mask)
            ranks[far] = (left << np.uint64(half)) | right
            far = ranks >= self.n_rows
        return ranks.astype(np.int64)

    def buckets(self, positions: Integers) -> Integers:
        """Return the bucket of each row; ``count`` for rows without a bucket."""
        places = self.ranks(positions) - self.n_apart
        buckets = places // self.length
        return np.where((places < 0) | (buckets >= self.count), self.count, buckets)


@lru_cache(maxsize=4)
def _order(n_rows: int, seed: int) -> Integers:
    ranks: Integers = generator_of(seed, "buckets").permutation(n_rows)
    return ranks


def _mixed(values: NDArray[np.uint64], seed: int, turn: int) -> NDArray[np.uint64]:
    key = np.uint64((seed * 8 + turn + 1) * _MULTIPLIERS[0] % 2**64)
    with np.errstate(over="ignore"):
        mixed: NDArray[np.uint64] = (values ^ key) * np.uint64(_MULTIPLIERS[0])
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(_MULTIPLIERS[1])
        return mixed ^ (mixed >> np.uint64(32))
