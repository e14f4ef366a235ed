"""Random generators of a test: a stream of the seed for each use, so that none repeats another."""

from __future__ import annotations

import numpy as np

# Blocks of frequencies, the other streams of a seed, count from 0; these from 2^63 on. Locations
# are drawn for two samples and orders for pairs: no test draws both.
USES = {"splits": 0, "simulation": 1, "locations": 2, "orders": 2, "weights": 3, "features": 4}


def generator_of(seed: int, use: str) -> np.random.Generator:
    """Return the generator of a use; ``seed`` counts modulo 2^64."""
    key = np.array([seed % 2**64, 2**63 + USES[use]], np.uint64)
    return np.random.Generator(np.random.Philox(key=key))
