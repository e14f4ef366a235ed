"""The k-th neighbour by all distances: that of a sort in double, whatever the numbers."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from bagbasis.densities import divergence_matrix
from bagbasis.densities.divergences import nearest, neighbours
from bagbasis.densities.divergences.nearest import AllDistances
from bagbasis.densities.divergences.resources import for_each

RNG = np.random.default_rng(0)


def sorted_distances(queries, points, k):
    """Every distance in double, sorted."""
    gaps = queries[:, None, :] - points[None, :, :]
    return np.sort(np.sqrt((gaps**2).sum(axis=2)), axis=1)[:, k - 1]


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 3, 25])
@pytest.mark.parametrize("n", [25, 64, 65, 700])
@pytest.mark.parametrize("d", [1, 10, 31])
def test_equals_a_sort(k, n, d):
    """Clouds far from the origin, repeated points, and scales far apart."""
    points = RNG.normal(size=(n, d)) * 10.0 ** RNG.integers(-3, 3, d) + 1e4
    points[n // 2 :: 3] = points[0]
    queries = np.concatenate([points[:5], RNG.normal(size=(600, d)) + 1e4])
    distances = AllDistances(points).distances(queries, k)
    np.testing.assert_allclose(distances, sorted_distances(queries, points, k), rtol=1e-13, atol=0)


@pytest.mark.long
def test_ties_closer_than_single_precision():
    """Points whose distances differ in the ninth digit are told apart."""
    directions = RNG.normal(size=(400, 12))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    points = directions * (1 + 1e-9 * RNG.permutation(400))[:, None]
    distances = AllDistances(points).distances(np.zeros((1, 12)), 25)
    np.testing.assert_allclose(
        distances, sorted_distances(np.zeros((1, 12)), points, 25), rtol=1e-15
    )


@pytest.mark.parametrize("scale", [1e-18, 1e-20, 1e-22, 1e-24, 1e-150])
def test_products_too_small_for_single_precision(scale):
    """What the products lose counts among their errors: distances in double decide."""
    points = RNG.normal(size=(300, 12)) * scale
    queries = RNG.normal(size=(50, 12)) * scale
    distances = AllDistances(points).distances(queries, 25)
    np.testing.assert_allclose(distances, sorted_distances(queries, points, 25), rtol=1e-13, atol=0)


@pytest.mark.parametrize("n", [33, 1000])
def test_many_points_as_near_as_the_kth(n):
    """Whole numbers have equal distances; no bound lets only k blocks through."""
    points = RNG.integers(0, 2, (n, 11)).astype(float)
    distances = AllDistances(points).distances(points, 7)
    np.testing.assert_array_equal(distances, sorted_distances(points, points, 7))


def test_blas_has_one_thread_while_bags_are_compared():
    """The caller says so for all threads of the pool, before any of them begins."""
    seen = []

    def look(_):
        seen.extend(item["num_threads"] for item in threadpool_info() if item["user_api"] == "blas")

    for_each(look, 4, lambda: None)
    assert set(seen) == {1}


def test_divergences_are_those_of_trees(monkeypatch):
    """The matrix of GloScope, k = 25, on both ways; huge coordinates go to the tree."""
    bags = [RNG.normal(i / 10, 1, (60 + 9 * i, 12)) for i in range(6)]
    ours = divergence_matrix(bags, divergence="symmetric_kl", k=25)
    huge = divergence_matrix([bag * 1e100 for bag in bags], divergence="symmetric_kl", k=25)
    monkeypatch.setattr(neighbours, "MANY_DIMS", 100)
    trees = divergence_matrix(bags, divergence="symmetric_kl", k=25)
    np.testing.assert_allclose(ours, trees, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(huge, trees, rtol=1e-9, atol=1e-9)
    assert nearest.MANY_DIMS < 12
