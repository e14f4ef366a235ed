"""Random generators of a test: one independent stream of the seed for each use."""

from __future__ import annotations

import numpy as np

from ...core.arrays import Floats

# Numbers of streams, counted from 2^63; blocks of random frequencies use the streams from 0 on.
# "locations" and "orders" share a number: no test draws both.
USES = {
    "splits": 0,
    "simulation": 1,
    "locations": 2,
    "orders": 2,
    "weights": 3,
    "features": 4,
    "buckets": 5,
    "scales": 6,
    "learning": 7,  # units on which locations are learnt
}
FAR_DISTANCE = 10.0  # in median distances


def generator_of(seed: int, use: str) -> np.random.Generator:
    """Return the generator for a use, a key of `USES`; ``seed`` is taken modulo 2^64."""
    key = np.array([seed % 2**64, 2**63 + USES[use]], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def near_rows(rows: Floats) -> Floats:
    """Return the rows at most ten times as far from the coordinates' medians as the median row.

    In heavy-tailed data, the few largest rows make up nearly all of the variance. A normal
    distribution with this variance has hardly any mass where the rows are.
    """
    distances = np.linalg.norm(rows - np.median(rows, axis=0), axis=1)
    limit = FAR_DISTANCE * np.median(distances)
    return rows[distances <= limit] if limit else rows
