"""`transformation-networks` at the smallest sizes, and the laws that it learns."""

from __future__ import annotations

import numpy as np

from bagbasis.jobs.experiments.data.correlated_points import SIGMA, markovian, star


def test_markovian_law():
    """Undone, coordinates are the sine of the first three with a random walk of the same step."""
    x = markovian(4000, 8, np.random.default_rng(0))
    y = np.empty_like(x)
    y[:, np.random.default_rng(1).permutation(8)] = x
    rest = y[:, 3:] - y[:, :1] * np.sin(y[:, 1:2] * np.linspace(0, 1, 5) + y[:, 2:3])
    np.testing.assert_allclose(np.diff(rest, axis=1).std(axis=0), SIGMA, rtol=0.1)


def test_star_law():
    """Fringe coordinates take 32 means each, with the same noise."""
    x = star(4000, 6, np.random.default_rng(0))
    y = np.empty_like(x)
    y[:, np.random.default_rng(3).permutation(6)] = x
    np.testing.assert_allclose(y[:, :4].std(axis=0), 1, atol=0.05)
    fixed = np.random.default_rng(2)
    weights, heights = fixed.standard_normal((2, 4)) / 2, fixed.standard_normal((2, 32))
    place = np.clip(((y[:, :4] @ weights.T + 4) * 4).astype(int), 0, 31)
    rest = y[:, 4:] - heights[[0, 1], place]
    np.testing.assert_allclose(rest.std(axis=0), SIGMA, rtol=0.05)
