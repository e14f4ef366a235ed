"""Samples follow the valid density, reproducibly, in the units of the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from bagbasis import Bags, Box
from bagbasis.densities import Densities
from bagbasis.densities.rejection import cell_bounds
from bagbasis.embeddings import BASES, index_set

N = 20_000


def peaked(n_dims, basis="cosine", box=None, n_per_dim=6):
    """A series density with a peak in a corner, so that edges and thresholds matter."""
    indices = index_set(n_dims, n_per_dim, max_norm=None, basis=basis)
    a = np.exp(-0.5 * (0.35 * indices) ** 2).prod(axis=1)
    a *= np.where(indices == 0, 1, np.sqrt(2)).prod(axis=1)
    return Densities(
        np.stack([a, a * (-1.0) ** indices[:, 0]]), indices, basis=basis, box=Box.of(box, n_dims)
    )


def chi_square(points, density, n_cells):
    """Pearson's statistic of counts in cells against integrals over them, and its 1e-4 bound."""
    n_dims = points.shape[1]
    lo, hi = np.array(density.box.bounds).T
    counts = np.histogramdd(points, bins=n_cells, range=np.stack([lo, hi], axis=1))[0].ravel()
    fine = {1: 64, 2: 24, 3: 12}[n_dims]
    values = density.on_grid(n_cells * fine)[0]
    shape = [part for _ in range(n_dims) for part in (n_cells, fine)]
    mass = values.reshape(shape).sum(axis=tuple(range(1, 2 * n_dims, 2))).ravel()
    expected = len(points) * mass / mass.sum()
    enough = expected >= 5
    statistic = ((counts - expected) ** 2 / np.maximum(expected, 1e-300))[enough].sum()
    assert counts[~enough].sum() <= 5 * (~enough).sum() + 20
    return statistic, chi2.ppf(1 - 1e-4, enough.sum() - 1)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(("n_dims", "n_cells"), [(1, 50), (2, 12), (3, 6)])
def test_points_follow_the_density(basis, n_dims, n_cells):
    """Counts in cells that are not those of the sampling grid fit the density."""
    box = [(-10, 10), (0, 0.5), (3, 4)][:n_dims]
    density = peaked(n_dims, basis, box).valid()
    bags = density.sample(N, seed=1)
    assert isinstance(bags, Bags)
    assert bags.sizes.tolist() == [N, N]
    for first, points in zip(density, bags, strict=True):
        statistic, bound = chi_square(points, first, n_cells)
        assert statistic < bound


def test_inside_a_cell():
    """Within the cells of a coarse grid points follow the density too, not a step function."""
    density = Densities([[1.0, -0.7]], [[0], [1]], basis="cosine", box=None, grid=2)
    points = density.sample(N, seed=2)[0]
    statistic, bound = chi_square(points, density.valid(), 40)
    assert statistic < bound


def test_reproducible():
    """A seed gives the same points; another gives others; densities have streams of their own."""
    density = peaked(2)
    np.testing.assert_array_equal(
        density.sample(9, seed=3).points, density.sample(9, seed=3).points
    )
    assert (density.sample(9, seed=3).points != density.sample(9, seed=4).points).all()
    np.testing.assert_array_equal(density.sample(9, seed=3)[0], density[:1].sample(9, seed=3)[0])
    same = Densities(density.coefficients[[0, 0]], density.indices, basis="cosine", box=density.box)
    first, second = same.sample(9, seed=3)
    assert (first != second).all()


def test_series_are_made_valid():
    """A series is sampled as its nearest valid density; never where that is zero."""
    series = Densities([[1.0, 1.2]], [[0], [1]], basis="cosine", box=None)
    points = series.sample(2000).points
    np.testing.assert_array_equal(points, series.valid().sample(2000).points)
    assert (series.valid().at(points) > 0).all()
    assert series.at([0.9])[0, 0] < 0


def test_points_stay_in_a_box_far_from_zero():
    """Rounding does not put points outside of a thin box far away."""
    box = Box((1e6,), (1e6 + 1e-9,))
    points = Densities([[1.0]], [[0]], basis="cosine", box=box).sample(1000).points
    assert ((points >= box.lo) & (points <= box.hi)).all()


def test_four_dimensions():
    """With more dimensions than three, on a grid that is small enough."""
    density = Densities([[1.0, 0.5]], [[0, 0, 0, 0], [0, 0, 0, 1]], basis="cosine", box=None)
    points = density.sample(N, seed=5)[0]
    statistic, bound = chi_square(points[:, 3:], density.marginal(3).valid(), 20)
    assert statistic < bound
    assert np.abs(points[:, :3].mean(axis=0) - 0.5).max() < 0.01


def test_bounds_hold():
    """The bound of a cell is no less than the density in it, for every kind of function."""
    rng = np.random.default_rng(6)
    for basis in BASES:
        for n_dims, n_per_dim in ((1, 10), (2, 5), (3, 3)):
            indices = index_set(n_dims, n_per_dim, max_norm=None, basis=basis)
            a = rng.standard_normal((1, len(indices)))
            density = Densities(a, indices, basis=basis, box=None)
            g = density.resolution
            corners = np.stack(
                np.meshgrid(*[np.arange(g + 1) / g] * n_dims, indexing="ij"), axis=-1
            )
            at_corners = density.at(corners.reshape(-1, n_dims)).reshape((g + 1,) * n_dims)
            bounds = cell_bounds(density.on_grid()[0], at_corners, 0.0)
            points = rng.random((4000, n_dims))
            cells = tuple((points * g).astype(int).T)
            assert (density.at(points)[0] <= bounds[cells] + 1e-2).all()
