"""The order of a mixture by cross-validation."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.mixture_order_cv import order_by_cross_validation


@pytest.mark.parametrize("order", [1, 3])
def test_clusters_far_apart(order):
    """Clusters that nobody would mistake are counted."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(90, 2)) + 30 * np.repeat(np.eye(order, 2), 90 // order, axis=0)
    if order == 3:
        points[-30:] += 60
    assert order_by_cross_validation(points, 4, 3, 0) == order


def test_fewer_points_than_components():
    """Orders are tried up to the points of the smallest training part."""
    points = np.random.default_rng(0).normal(size=(5, 2))
    assert 1 <= order_by_cross_validation(points, 10, 5, 0) <= 4
