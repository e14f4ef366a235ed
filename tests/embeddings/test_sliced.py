"""`SlicedWassersteinEmbedding` against distances of sorted points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from bagbasis import SlicedWassersteinEmbedding

RNG = np.random.default_rng(0)


def embedded(bags, **params):
    box = [(0, 1)] * np.shape(bags[0])[1]
    return SlicedWassersteinEmbedding(box=box, dtype="float64", **params).fit_transform(bags)


def squared(rows):
    return ((rows[:, None] - rows[None]) ** 2).sum(axis=2)


def test_mean_over_directions():
    """In more dimensions it is the mean over the directions, of which orthogonal ones share the
    distance itself: each transport of points is one of their projections."""
    bags = list(RNG.random((2, 30, 3)))
    embedding = SlicedWassersteinEmbedding(
        n_directions=12, n_quantiles=30, box=[(0, 1)] * 3, dtype="float64"
    ).fit(bags)
    first, second = (np.sort(bag @ embedding.spec_.directions().T, axis=0) for bag in bags)
    distance = squared(embedding.transform(bags))[0, 1]
    np.testing.assert_allclose(distance, ((first - second) ** 2).mean(), rtol=1e-12)
    cost = cdist(*bags, "sqeuclidean")
    assert 0 < distance < cost[linear_sum_assignment(cost)].mean() / 3


@pytest.mark.parametrize("out_of_box", ["clip", "drop"])
@pytest.mark.parametrize("size", [2, 15, 1025, 2500, 5000, 16_384, 16_385, 33_001])
def test_bags_of_any_number_of_points(size, out_of_box):
    """Sorted projections of the points, those outside the box clipped or left out.

    With more points, fewer directions are sorted together; above 2^14 points, parts are merged.
    """
    bag = np.random.default_rng(size).uniform(-0.1, 1, (size, 3))
    selected = bag[(bag >= 0).all(axis=1)] if out_of_box == "drop" else bag.clip(0)
    embedding = SlicedWassersteinEmbedding(
        n_directions=5,
        n_quantiles=len(selected),
        out_of_box=out_of_box,
        box=[(0, 1)] * 3,
        dtype="float64",
    ).fit([bag])
    expected = np.sort(embedding.spec_.directions() @ selected.T, axis=1) / np.sqrt(
        5 * len(selected)
    )
    np.testing.assert_allclose(embedding.transform([bag]), expected.reshape(1, -1), atol=1e-15)


@pytest.mark.parametrize("n", [2, 23, 24, 25, 100, 4097])
def test_values_in_any_order_are_sorted(n):
    """Sorted, reversed, equal, alternating, rising and falling: intervals of one value each."""
    orders = {
        "sorted": np.arange(n),
        "reversed": np.arange(n)[::-1],
        "equal": np.zeros(n),
        "alternating": np.arange(n) % 2,
        "rising and falling": np.minimum(np.arange(n), np.arange(n)[::-1]),
        "random": np.random.default_rng(n).permutation(n),
        "random, few": np.random.default_rng(n).integers(0, min(5, n), n),
    }
    for name, order in orders.items():
        bag = (order / n).reshape(n, 1)
        rows = embedded([bag], n_directions=1, n_quantiles=n)
        np.testing.assert_allclose(rows[0] * n**0.5, np.sort(bag[:, 0]), rtol=1e-14, err_msg=name)
