"""Random generators of a test: one independent stream of the seed for each use."""

from __future__ import annotations

import numpy as np

from ...core.arrays import Floats

# Blocks of frequencies, the other streams of a seed, count from 0; these from 2^63 on. Locations
# are drawn for two samples and orders for pairs: no test draws both.
USES = {
    "splits": 0,
    "simulation": 1,
    "locations": 2,
    "orders": 2,
    "weights": 3,
    "features": 4,
    "buckets": 5,
    "scales": 6,
    "learning": 7,  # the units that locations are learnt on
}
FAR_DISTANCE = 10.0  # in median distances


def generator_of(seed: int, use: str) -> np.random.Generator:
    """Return the generator of a use; ``seed`` counts modulo 2^64."""
    key = np.array([seed % 2**64, 2**63 + USES[use]], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def near_rows(rows: Floats) -> Floats:
    """Return the rows that are not far from all others: at most ten times the median distance.

    Distances are those from the median of each coordinate. In heavy tails the largest few rows
    have nearly all of the variance, and a normal distribution with that has no place where rows
    are.
    """
    distances = np.linalg.norm(rows - np.median(rows, axis=0), axis=1)
    limit = FAR_DISTANCE * np.median(distances)
    return rows[distances <= limit] if limit else rows
