"""The two synthetic distributions of 004, §8.4.1: a Markovian one, and a star of step functions."""

from __future__ import annotations

import numpy as np

from bagbasis.core.arrays import Floats

_SIGMA = 0.1  # of both; the paper does not print it
_STEPS = 32  # intervals of the step functions
_REACH = 4.0  # of the step functions' arguments, each way


def markovian(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Return points (n, d): amplitude, frequency and shift, then a noisy sine on a grid.

    y_i = y_1 sin(y_2 g_i + y_3) + ε_i for i > 3, ε_i a random walk; coordinates are shuffled by a
    fixed permutation.
    """
    y = np.empty((n, d))
    y[:, :3] = rng.standard_normal((n, 3))
    walk = np.cumsum(_SIGMA * rng.standard_normal((n, d - 3)), axis=1)
    grid = np.linspace(0, 1, d - 3)
    y[:, 3:] = y[:, :1] * np.sin(y[:, 1:2] * grid + y[:, 2:3]) + walk
    return y[:, np.random.default_rng(1).permutation(d)]


def star(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Return points (n, d): four normal centres, and step functions of sums of them with noise."""
    fixed = np.random.default_rng(2)
    weights = fixed.standard_normal((d - 4, 4)) / 2
    heights = fixed.standard_normal((d - 4, _STEPS))
    y = np.empty((n, d))
    y[:, :4] = rng.standard_normal((n, 4))
    at = (y[:, :4] @ weights.T + _REACH) / (2 * _REACH) * _STEPS
    interval = np.clip(at.astype(np.int64), 0, _STEPS - 1)
    means = heights[np.arange(d - 4)[None], interval]
    y[:, 4:] = means + _SIGMA * rng.standard_normal((n, d - 4))
    return y[:, np.random.default_rng(3).permutation(d)]


DISTRIBUTIONS = {"Markovian": markovian, "star": star}
