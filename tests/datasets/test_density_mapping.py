"""The known map of densities: points, and the densities that tests compare with."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.datasets import DensityMapping
from bagbasis.datasets.density_mapping import BLUR, CENTRE, MAP, mapped
from tests.oracles.hdd import midpoints

DATASET = DensityMapping(n_points=(50, 90), n_response_points=70, seed=3)


def test_shapes_and_boxes():
    """Ragged bags, responses of the size asked for, everything inside the box."""
    bags, targets, responses = DATASET.response_block(1)
    assert targets.shape == (1024, 0)
    assert set(np.unique(bags.sizes)) == set(range(50, 91))
    assert (responses.sizes == 70).all()
    for points in (bags.points, responses.points):
        assert points.dtype == np.float32
        assert points.min() >= -0.5
        assert points.max() <= 1.5


@pytest.mark.long
@pytest.mark.parametrize("which", ["bags", "responses"])
def test_points_follow_their_density(which):
    """The mean of a smooth function over a bag's points is its integral under the density."""
    block, p = DATASET.response_block(0), DATASET.mixtures(0)
    density = p if which == "bags" else mapped(p)
    points = block.bags if which == "bags" else block.responses.present
    at = 2 * midpoints(40, 2) - 0.5
    values = density.at(at)
    np.testing.assert_allclose(values.mean(axis=1) * 4, 1, atol=5e-3)
    for function in (
        lambda x: np.cos(3 * x[..., 0]) * x[..., 1],
        lambda x: x[..., 0] * x[..., 1],
        lambda x: x[..., 1] ** 2,
    ):
        integral = (values * function(at)).mean(axis=1) * 4
        means = np.array([function(bag.astype(np.float64)).mean() for bag in points])
        spread = np.std(means - integral) / np.sqrt(len(means))
        assert abs(np.mean(means - integral)) < 4 * spread + 2e-3


def test_map_is_turn_shear_and_blur():
    """The response of one component has its mean and covariance mapped, and the blur added."""
    p = DATASET.mixtures(0)
    q = mapped(p)
    x = np.random.default_rng(0).standard_normal((200_000, 2))
    drawn = x @ p.factors[0, 0].T + p.means[0, 0]
    moved = (drawn - CENTRE) @ MAP.T + CENTRE
    covariance = np.cov(moved.T) + BLUR**2 * np.eye(2)
    np.testing.assert_allclose(q.means[0, 0], moved.mean(axis=0), atol=2e-3)
    np.testing.assert_allclose(
        q.factors[0, 0] @ q.factors[0, 0].T, covariance, rtol=0.03, atol=1e-3
    )
    assert np.linalg.det(MAP) == pytest.approx(1)


def test_bag_and_response_are_independent_draws():
    """Given the density, the response says nothing about the noise in the bag."""
    block, p = DATASET.response_block(0), DATASET.mixtures(0)
    single = p.n_components == 1
    bag = np.array([b.mean(axis=0) for b in block.bags])[single] - p.means[single, 0]
    answer = np.array([r.mean(axis=0) for r in block.responses.present])[single]
    answer = answer - mapped(p).means[single, 0]
    for i in range(2):
        for j in range(2):
            assert abs(np.corrcoef(bag[:, i], answer[:, j])[0, 1]) < 4 / np.sqrt(single.sum())
