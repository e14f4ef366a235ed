"""Proportions from Dirichlet distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bagbasis.datasets import Dirichlet


@pytest.mark.parametrize("d", [2, 3, 6])
def test_points_lie_on_the_simplex(d: int) -> None:
    """Only d - 1 proportions are stored, none negative, and the d-th is what they leave of one."""
    dataset = Dirichlet(n_points=50, n_categories=d)
    bags, alpha = dataset.block(0)
    assert bags.n_dims == d - 1
    assert alpha.shape == (len(bags), d)
    assert dataset.target_names == tuple(f"alpha_{i}" for i in range(1, d + 1))
    assert np.isfinite(bags.points).all()
    assert bags.points.min() >= 0
    assert bags.points.astype(float).sum(axis=1).max() <= 1 + 1e-6


def test_alpha_is_uniform() -> None:
    """The targets are uniform in [0.1, 10]."""
    alpha = np.concatenate([Dirichlet(n_points=1).block(i)[1] for i in range(10)])
    assert stats.kstest(alpha.ravel(), stats.uniform(0.1, 9.9).cdf).statistic < 0.01


def test_each_bag_has_the_marginals_of_its_alpha() -> None:
    """Through Beta(alpha_j, sum of the others), its marginal, a bag's coordinate is uniform."""
    bags, alpha = Dirichlet(n_points=20).block(0)
    x = bags.points.reshape(len(bags), 20, 2).astype(float)
    total = alpha.sum(axis=1)
    for j in (0, 1):
        a = alpha[:, j]
        u = stats.beta.cdf(x[:, :, j], a[:, None], (total - a)[:, None])
        assert stats.kstest(u.ravel(), "uniform").statistic < 0.011


def test_coordinates_have_the_covariance_of_their_alpha() -> None:
    """Cov(x_1, x_2) = -alpha_1 alpha_2 / (s² (s + 1)), on average over the bags."""
    bags, alpha = Dirichlet(n_points=200).block(0)
    x = bags.points.reshape(len(bags), 200, 2).astype(float)
    centred = x - x.mean(axis=1, keepdims=True)
    sample = (centred[:, :, 0] * centred[:, :, 1]).sum(axis=1) / 199
    s = alpha.sum(axis=1)
    error = sample + alpha[:, 0] * alpha[:, 1] / (s**2 * (s + 1))
    assert abs(error.mean()) < 5 * error.std() / np.sqrt(len(error))
    assert abs(error.mean()) < 0.05 * abs(sample.mean())


def test_proportions_are_those_of_the_points() -> None:
    """A block's proportions sum to one, and its points are all but the last of them, rounded."""
    dataset = Dirichlet(n_points=(3, 9), n_categories=4, seed=5)
    proportions, sizes, alpha = dataset.proportions(2)
    bags, targets = dataset.block(2)
    np.testing.assert_array_equal(bags.sizes, sizes)
    np.testing.assert_array_equal(targets, alpha)
    np.testing.assert_array_equal(bags.points, proportions[:, :-1].astype(np.float32))
    np.testing.assert_allclose(proportions.sum(axis=1), 1)
    assert proportions.min() > 0
