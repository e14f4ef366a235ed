"""`MomentsEmbedding` against numpy's means and covariances."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import MomentsEmbedding
from bagbasis.errors import ParameterError

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 3)) for size in (1, 30, 257)]


def test_mean_and_upper_triangle():
    """The mean, then the covariance row by row from its diagonal; lone points have none."""
    out = MomentsEmbedding(dtype="float64").fit_transform(UNIT)
    assert out.shape == (3, 9)
    for row, bag in zip(out, UNIT, strict=True):
        covariance = np.cov(bag, rowvar=False, bias=True)
        np.testing.assert_allclose(row[:3], bag.mean(axis=0), atol=1e-14)
        np.testing.assert_allclose(row[3:], covariance[np.triu_indices(3)], atol=1e-14)
    assert (out[0, 3:] == 0).all()


def test_mean_alone():
    """covariance=False keeps the first d columns."""
    both = MomentsEmbedding().fit_transform(UNIT)
    alone = MomentsEmbedding(covariance=False).fit_transform(UNIT)
    assert alone.dtype == np.float32
    np.testing.assert_array_equal(alone, both[:, :3])


def test_small_spread_far_from_zero():
    """Two passes: a spread of 1e-7 around 0.9 keeps its digits, where E x² − (E x)² has none."""
    deviations = 1e-7 * RNG.standard_normal((1000, 2))
    out = MomentsEmbedding(box=[(0, 1)] * 2, dtype="float64").transform([0.9 + deviations])
    expected = np.cov(deviations, rowvar=False, bias=True)[np.triu_indices(2)]
    np.testing.assert_allclose(out[0, 2:], expected, rtol=1e-6)


def test_units_of_the_box():
    """Means are in [0, 1], covariances in shares of the box's sides."""
    box = [(-10, 10), (0, 4)]
    bag = np.array([[-10.0, 1.0], [10.0, 3.0]])
    out = MomentsEmbedding(box=box, dtype="float64").transform([bag])
    np.testing.assert_allclose(out, [[0.5, 0.5, 0.25, 0.125, 0.0625]], atol=1e-15)


@pytest.mark.parametrize("covariance", [None, 1, "full"])
def test_wrong_covariance(covariance):
    """What is neither True nor False is refused."""
    with pytest.raises(ParameterError, match=r"covariance is .*; expected True or False"):
        MomentsEmbedding(covariance=covariance).fit(UNIT)
