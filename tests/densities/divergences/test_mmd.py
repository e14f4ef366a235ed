"""The exact MMDs against reference values, loops and the L2 distance of density estimates."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagError
from bagbasis.densities import divergence_matrix, median_bandwidth
from bagbasis.densities.divergences import mmd as library_mmd
from tests.oracles.divergences import matrix_by_loop, mmd
from tests.oracles.fourier import median_distance_by_loop
from tests.oracles.ragged import random_bags

pytestmark = pytest.mark.portable

SIZES = (7, 1, 12, 30, 3)
FORMS = {"mmd": False, "mmd_unbiased": True}


@pytest.mark.parametrize(
    ("bandwidth", "biased", "unbiased"),
    [(0.5, 0.1763539318, 0.1261937895), (1.0, 0.0530276874, 0.0134723850)],
)
def test_reference_values(bandwidth, biased, unbiased):
    """X_ij = sin(ij), i ≤ 40, j ≤ 3; Y_ij = cos(.7ij) + .3, i ≤ 30."""
    j = np.arange(1, 4)
    X = np.sin(np.arange(1, 41)[:, None] * j)
    Y = np.cos(0.7 * np.arange(1, 31)[:, None] * j) + 0.3
    for name, truth in (("mmd", biased), ("mmd_unbiased", unbiased)):
        value = divergence_matrix([X], [Y], divergence=name, bandwidth=bandwidth)[0, 0]
        assert value == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize("tile", [1, 7, 40, library_mmd.PAIRS_PER_TILE])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("name", FORMS)
def test_against_loops(name, n_dims, dtype, tile, monkeypatch):
    """Every pair of ragged bags, in tiles of any size, from one set or from two."""
    monkeypatch.setattr(library_mmd, "PAIRS_PER_TILE", tile)
    rng = np.random.default_rng(n_dims)
    sizes = SIZES if name == "mmd" else SIZES[2:]
    X, Y = random_bags(rng, sizes, n_dims, dtype), random_bags(rng, (6, 9), n_dims, dtype)
    for other in (X, [*Y, X[0]]):
        truth = matrix_by_loop(X, other, lambda x, y: mmd(x, y, 0.8, FORMS[name]))
        D = divergence_matrix(X, None if other is X else other, divergence=name, bandwidth=0.8)
        np.testing.assert_allclose(D, truth, atol=1e-13)
    own = divergence_matrix(X, None, divergence=name, bandwidth=0.8)
    assert (own == own.T).all()
    assert (np.diag(own) == 0).all()


def test_far_from_the_origin():
    """Distances are differences of points: a common offset costs no digits but its own."""
    X = random_bags(np.random.default_rng(0), (20, 30), 2)
    near = divergence_matrix(X, None, divergence="mmd", bandwidth=1.0)
    far = divergence_matrix([x + 2.0**20 for x in X], None, divergence="mmd", bandwidth=1.0)
    np.testing.assert_allclose(far, near, atol=1e-8)


def test_distance_of_density_estimates():
    """(4πh²)^(−d/2) MMD² of bandwidth √2·h is the L2² distance of the estimates of bandwidth h."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(15), rng.standard_normal(25) + 1
    h, grid = 0.4, np.linspace(-8, 9, 20_001)

    def density(points):
        bumps = np.exp(-((grid[:, None] - points) ** 2) / (2 * h**2))
        return bumps.mean(axis=1) / (np.sqrt(2 * np.pi) * h)

    truth = np.trapezoid((density(x) - density(y)) ** 2, grid)
    value = divergence_matrix([x], [y], divergence="mmd", bandwidth=np.sqrt(2) * h)[0, 0]
    assert value / np.sqrt(4 * np.pi * h**2) == pytest.approx(truth, rel=1e-9)


def test_median_bandwidth():
    """The default bandwidth is the median distance of points of both sets."""
    rng = np.random.default_rng(0)
    X, Y = random_bags(rng, (10, 14), 2), random_bags(rng, (11,), 2)
    assert median_bandwidth(X) == pytest.approx(
        median_distance_by_loop(np.concatenate(X)), rel=1e-3
    )
    bandwidth = median_distance_by_loop(np.concatenate([*X, *Y]))
    np.testing.assert_allclose(
        divergence_matrix(X, Y, divergence="mmd"),
        divergence_matrix(X, Y, divergence="mmd", bandwidth=bandwidth),
        rtol=5e-3,
    )


def test_unbiased_needs_two_points():
    """A bag of one point is refused by its number."""
    X = random_bags(np.random.default_rng(0), (5, 1), 2)
    with pytest.raises(BagError, match="bag 1: of X has one point"):
        divergence_matrix(X, None, divergence="mmd_unbiased")
    with pytest.raises(BagError, match="bag 1: of Y has one point"):
        divergence_matrix(X[:1], X, divergence="mmd_unbiased")


def test_progress():
    """Pairs done, rising to all pairs."""
    X, calls = random_bags(np.random.default_rng(0), (5, 6, 7), 2), []
    divergence_matrix(X, X[:2], divergence="mmd", progress=lambda *call: calls.append(call))
    assert calls == [(0, 6), (2, 6), (4, 6), (6, 6)]
