"""Estimates of MMD² and their tests, against definitions and the library's exact matrices."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.divergences import divergence_matrix
from bagbasis.jobs.experiments.data.samples import blobs, ring
from bagbasis.jobs.experiments.two_sample import (
    block_mmds,
    exact_mmd,
    exact_rejects,
    mean_test_rejects,
    pair_mmds,
    random_feature_mmd,
    random_feature_rejects,
    splits,
)

SIGMA = 0.7


@pytest.fixture(scope="module")
def sets():
    """Two sets of more points than a tile has."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(700, 3)), rng.normal(0.3, 1.0, size=(700, 3))


def values_of_four(X, Y, i, j):
    """h of 002: k(x_i, x_j) + k(y_i, y_j) − k(x_i, y_j) − k(x_j, y_i)."""

    def k(a, b):
        return np.exp(-((a - b) ** 2).sum() / (2 * SIGMA**2))

    return k(X[i], X[j]) + k(Y[i], Y[j]) - k(X[i], Y[j]) - k(X[j], Y[i])


@pytest.mark.parametrize(("dtype", "accuracy"), [("float64", 1e-12), ("float32", 1e-6)])
def test_exact(sets, dtype, accuracy):
    """Tiles give the MMD² of the library's matrices, whose oracle is elsewhere."""
    X, Y = sets
    found = exact_mmd(X, Y, SIGMA, dtype)
    for value, divergence in zip(found, ("mmd", "mmd_unbiased"), strict=True):
        expected = divergence_matrix([X], [Y], divergence, bandwidth=SIGMA)[0, 0]
        assert value == pytest.approx(expected, abs=accuracy)


def test_random_features(sets):
    """Of many frequencies they are near the exact values, both forms."""
    found = random_feature_mmd(*sets, SIGMA, 20_000, seed=1)
    assert found == pytest.approx(exact_mmd(*sets, SIGMA), rel=0.05)


def test_pairs_and_blocks(sets):
    """MMD-linear and the B-test average h over the pairs of points that they look at."""
    X, Y = (points[:31] for points in sets)
    linear = [values_of_four(X, Y, i, i + 1) for i in range(0, 30, 2)]
    np.testing.assert_allclose(pair_mmds(X, Y, SIGMA), linear, atol=1e-12)
    expected = [
        np.mean(
            [values_of_four(X, Y, b + i, b + j) for i in range(10) for j in range(10) if i != j]
        )
        for b in (0, 10, 20)
    ]
    np.testing.assert_allclose(block_mmds(X, Y, SIGMA, 10), expected, atol=1e-6)


def test_splits_are_halves():
    """The first is as it was, the others are halves too, and differ."""
    rows = splits(50, 20, seed=3)
    np.testing.assert_array_equal(rows[0], np.repeat([1, 0], 50))
    assert (rows.sum(axis=1) == 50).all()
    assert len(np.unique(rows, axis=0)) == 21


def test_tests_find_a_difference_and_only_that():
    """Far sets are told apart by all tests, equal densities by none of them."""
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(2, 300, 2))
    shuffles = splits(300, 200, seed=0)
    for far in (0.0, 3.0):
        found = [
            random_feature_rejects(X, Y + far, 1.0, 64, 0, shuffles),
            exact_rejects(X, Y + far, 1.0, shuffles),
            mean_test_rejects(block_mmds(X, Y + far, 1.0, 17)),
            mean_test_rejects(pair_mmds(X, Y + far, 1.0)),
        ]
        assert found == [far > 0] * 4


def test_data():
    """Eigenvalues of a blob have the ratio that was asked for; a ring is a ring."""
    rng = np.random.default_rng(4)
    points = blobs(rng, 100_000, 4.0)
    centred = points - 10 * np.round(points / 10)
    low, high = np.linalg.eigvalsh(np.cov(centred.T))
    assert high / low == pytest.approx(4.0, rel=0.05)
    inside, outside = (np.hypot(*points.T) for points in ring(rng, 500))
    assert ((inside > 1) & (inside < 4)).all()
    assert ((outside <= 1) | (outside >= 4)).all()
