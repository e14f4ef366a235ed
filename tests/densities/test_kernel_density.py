"""`kde_at`: the reflected Gaussian kernel estimate, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, DataError, ParameterError
from bagbasis.densities import estimate_densities, kde_at
from tests.oracles.densities import kernel_density_by_loop

BOX = [(-10.0, 10.0), (0.0, 0.5), (3.0, 4.0)]


def ragged(n_dims, sizes=(1, 2, 30, 7), dtype=np.float64, seed=0):
    """Bags in the box, some points on its edges."""
    lo, hi = np.array(BOX[:n_dims]).T
    rng = np.random.default_rng(seed)
    bags = [rng.uniform(lo, hi, (size, n_dims)) for size in sizes]
    bags[2][0], bags[2][1] = lo, hi
    return Bags.from_list([bag.astype(dtype) for bag in bags])


def unit(points, n_dims):
    lo, hi = np.array(BOX[:n_dims]).T
    return (np.asarray(points, dtype=np.float64) - lo) / (hi - lo)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bandwidth", [0.03, 0.3, 1.0])
def test_against_the_loop(n_dims, dtype, bandwidth):
    """Each bag's estimate is the sum over its points and their mirror images."""
    bags = ragged(n_dims, dtype=dtype)
    lo, hi = np.array(BOX[:n_dims]).T
    at = np.random.default_rng(1).uniform(lo, hi, (70, n_dims))
    at[0], at[1] = lo, hi
    values = kde_at(bags, at, bandwidth=bandwidth, box=BOX[:n_dims])
    for i, bag in enumerate(bags):
        expected = kernel_density_by_loop(
            np.clip(unit(bag, n_dims), 0, 1), unit(at[:12], n_dims), bandwidth
        )
        expected /= (hi - lo).prod()
        np.testing.assert_allclose(values[i, :12], expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("bandwidth", [0.12, 0.4])
def test_integrates_to_one(n_dims, bandwidth):
    """No mass is lost at the edges."""
    n = {1: 400, 2: 60, 3: 16}[n_dims]
    lo, hi = np.array(BOX[:n_dims]).T
    axes = [low + (np.arange(n) + 0.5) / n * (high - low) for low, high in BOX[:n_dims]]
    grid = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    values = kde_at(ragged(n_dims), grid, bandwidth=bandwidth, box=BOX[:n_dims])
    np.testing.assert_allclose(values.mean(axis=1) * (hi - lo).prod(), 1, atol=1e-9)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_is_what_the_cosine_series_gives(n_dims):
    """The damped cosine coefficients are those of the exact sum, edges included."""
    bags = ragged(n_dims)
    bandwidth = {1: 0.02, 2: 0.04, 3: 0.1}[n_dims]
    densities = estimate_densities(bags, "kde", smoothness=bandwidth, box=BOX[:n_dims])
    lo, hi = np.array(BOX[:n_dims]).T
    at = np.random.default_rng(2).uniform(lo - 0.1 * (hi - lo), hi + 0.1 * (hi - lo), (50, n_dims))
    at[0], at[1] = lo, hi
    exact = kde_at(bags, at, bandwidth=bandwidth, box=BOX[:n_dims])
    peak = (1 / np.sqrt(2 * np.pi) / bandwidth) ** n_dims / (hi - lo).prod()
    assert np.abs(densities.at(at) - exact).max() < 2e-6 * 2**n_dims * peak
    assert (exact == 0).any()


def test_points_outside_are_clipped():
    """A point of a bag beyond the edge counts as one on it."""
    inside, beyond = [[0.5, 0.5], [1.0, 0.25]], [[0.5, 0.5], [7.0, 0.25]]
    at = np.random.default_rng(3).random((10, 2))
    unit_box = [(0, 1)] * 2
    np.testing.assert_array_equal(
        kde_at([beyond], at, bandwidth=0.1, box=unit_box),
        kde_at([inside], at, bandwidth=0.1, box=unit_box),
    )


def test_far_from_the_points_it_is_zero():
    """Beyond nine bandwidths the density is zero, without warnings."""
    assert kde_at([[[0.1]]], [0.9], bandwidth=0.02)[0, 0] == 0


def test_refused():
    """No bags, and points that do not fit."""
    with pytest.raises(DataError, match="no bags"):
        kde_at(Bags.from_list([[[0.5]]])[:0], [0.5], bandwidth=0.1)
    with pytest.raises(DataError, match="points have shape"):
        kde_at([[[0.5, 0.5]]], [[0.5]], bandwidth=0.1)
    for bandwidth in (0.0, 1.01, np.nan):
        with pytest.raises(ParameterError, match="bandwidth is"):
            kde_at([[[0.5]]], [0.5], bandwidth=bandwidth)
