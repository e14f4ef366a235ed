"""001, §5.4's recipe at small scale: one embedding per dimension, in 64 of them."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.samples import Patches


@pytest.mark.long
def test_both_kinds_of_filters_have_the_same_marginals():
    """Dependence changes which filters fire together, and nothing about each of them alone."""
    sizes = {"n_classes": 1, "n_filters": 6, "n_points": 50, "closeness": 1e5}
    bags = [Patches(**sizes, dependent=kind).images(600, 0)[0] for kind in (False, True)]
    for j in range(6):
        a, b = (np.quantile(bag.points[:, j], [0.1, 0.3, 0.5, 0.7, 0.9]) for bag in bags)
        np.testing.assert_allclose(a, b, atol=0.015)
    within = [
        np.mean([np.corrcoef(bag.T) for bag in each], axis=0)[np.triu_indices(6, 1)]
        for each in bags
    ]
    assert np.abs(within[0]).max() < 0.02
    assert np.abs(within[1]).max() > 0.05


def test_images_are_those_of_seed_and_index():
    """Other indices are other images of the same classes, other seeds other classes."""
    patches = Patches(n_classes=3, n_filters=4, n_points=30)
    bags, labels = patches.images(7, 0)
    again, _ = patches.images(7, 0)
    others = [patches.images(7, 1)[0], Patches(n_classes=3, n_filters=4, n_points=30, seed=1)]
    np.testing.assert_array_equal(labels, [0, 1, 2, 0, 1, 2, 0])
    np.testing.assert_array_equal(again.points, bags.points)
    assert bags.points.dtype == np.float32
    assert bags.points.shape == (210, 4)
    assert bags.points.min() >= 0
    assert bags.points.max() <= 1
    for other in (others[0], others[1].images(7, 0)[0]):
        assert not np.isin(other.points, bags.points).all()
