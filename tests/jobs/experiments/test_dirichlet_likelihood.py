"""Maximum likelihood estimates of Dirichlet distributions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from bagbasis.jobs.experiments.dirichlet_likelihood import fit_dirichlets, log_likelihood


def bags_of(sizes, alpha, seed=0):
    """Proportions of bags, one row of alpha each, and their offsets."""
    rng = np.random.default_rng(seed)
    points = [rng.dirichlet(a, n) for a, n in zip(alpha, sizes, strict=True)]
    return np.concatenate(points), np.concatenate([[0], np.cumsum(sizes)])


@pytest.mark.parametrize("d", [2, 3, 5])
def test_largest_likelihood(d):
    """No other alpha is likelier: a general minimiser finds the same, for small and ragged bags,
    at the ends of the range of 004 too."""
    rng = np.random.default_rng(d)
    alpha = rng.uniform(0.3, 10, (6, d))
    alpha[0], alpha[1] = 0.3, 10
    sizes = [4, 5, 10, 50, 300, 20]
    proportions, offsets = bags_of(sizes, alpha)
    found = fit_dirichlets(proportions, offsets)
    for i, (a, b) in enumerate(pairwise(offsets)):
        logs = np.log(proportions[a:b]).mean(axis=0)[None]
        best = minimize(
            lambda x, logs=logs: -log_likelihood(np.exp(x)[None], logs)[0], np.zeros(d), tol=1e-12
        )
        np.testing.assert_allclose(found[i], np.exp(best.x), rtol=2e-3)
        assert log_likelihood(found[i : i + 1], logs)[0] >= -best.fun - 1e-9


def test_recovers_alpha_of_many_points():
    """With many points the estimate is near the truth."""
    alpha = np.array([[0.1, 5.0, 10.0], [2.0, 0.5, 1.0]])
    found = fit_dirichlets(*bags_of([40_000, 40_000], alpha))
    np.testing.assert_allclose(found, alpha, rtol=0.05)


def test_points_that_hardly_differ():
    """Two nearly equal points: parameters grow large, and stay finite and positive."""
    proportions = np.array([[0.2, 0.3, 0.5], [0.2 + 1e-6, 0.3, 0.5 - 1e-6]])
    found = fit_dirichlets(proportions, np.array([0, 2]))
    assert np.isfinite(found).all()
    assert found.min() > 1e4
