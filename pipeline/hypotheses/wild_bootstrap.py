"""The wild bootstrap: nulls of series, by random signs with the memory of the series."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .nulls import Null, permutation_null

Floats = NDArray[np.float64]

WILD = "wild_bootstrap"
SIGNS = 2**63 + 3  # of the seed: no block of frequencies and no other null has that number


def wild_signs(n: int, n_draws: int, memory: float, seed: int) -> Floats:
    """Random signs of a series with correlations e^{−lag / memory}, shape (n_draws, n).

    Parameters
    ----------
    memory : float ≥ 0
        Points over which the series forgets itself; 0 for independent points.
    """
    rng = np.random.Generator(np.random.Philox(key=np.array([seed, SIGNS], np.uint64)))
    stay = 0.5 if memory == 0 else 0.5 + 0.5 * np.exp(-1 / memory)
    flips = rng.random((n_draws, n)) >= stay
    flips[:, 0] = rng.random(n_draws) < 0.5
    return np.where(np.cumsum(flips, axis=1) % 2, -1.0, 1.0)


def wild_null(observed: float, values: Floats, scale: float) -> Null:
    """Return the null of a statistic's values with signs; see `permutation_null`."""
    return replace(permutation_null(observed, values, scale), name=WILD)
