"""`Densities`: values at points and on grids, in the units of the data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bagbasis import Box, DataError, ParameterError
from bagbasis.densities import Densities
from bagbasis.embeddings import BASES, index_set
from tests.oracles.densities import density_by_loop

BOX = [(-10.0, 10.0), (2.0, 2.5), (-1.0, 3.0)]


def random_series(n, indices, basis="cosine", box=None, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, len(indices))) / (1 + indices.sum(axis=1)) ** 2
    a[:, (indices == 0).all(axis=1)] = 1
    return Densities(a, indices, basis=basis, box=Box.of(box, indices.shape[1]))


def points_around(box, n, seed=1):
    """Points in the box, outside of it, on its edges and in its corners."""
    lo, hi = np.array(box).T
    rng = np.random.default_rng(seed)
    points = rng.uniform(lo - 0.2 * (hi - lo), hi + 0.2 * (hi - lo), (n, len(box)))
    points[: n // 4] = rng.uniform(lo, hi, (n // 4, len(box)))
    points[1, 0], points[2, -1], points[3], points[4] = lo[0], hi[-1], lo, hi
    return points


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("limits", [(4, None), (None, 3.2)])
def test_at_against_the_loop(basis, n_dims, limits):
    """Values at points, outside the box and on its edges are those of the series written out."""
    indices, box = index_set(n_dims, limits[0], max_norm=limits[1], basis=basis), BOX[:n_dims]
    densities = random_series(3, indices, basis, box)
    points = points_around(box, 40)
    values = densities.at(points)
    assert values.shape == (3, 40)
    assert (values == 0).any()
    for i in range(3):
        expected = density_by_loop(densities.coefficients[i], indices, basis, box, points)
        np.testing.assert_allclose(values[i], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n_dims", [1, 2, 4])
def test_any_order_of_indices(n_dims):
    """The index set may be any distinct indices, in any order, gaps included."""
    rng = np.random.default_rng(2)
    indices = rng.permutation(index_set(n_dims, 5, max_norm=None))[:20]
    indices = np.unique(np.concatenate([indices, np.zeros((1, n_dims), int)]), axis=0)
    indices = rng.permutation(indices)
    densities = random_series(2, indices)
    points = rng.random((30, n_dims))
    expected = density_by_loop(
        densities.coefficients[1], indices, "cosine", [(0, 1)] * n_dims, points
    )
    np.testing.assert_allclose(densities.at(points)[1], expected, rtol=1e-11, atol=1e-12)
    on_grid = densities.on_grid(3).reshape(2, -1)
    np.testing.assert_allclose(on_grid, densities.at(lattice(densities, 3)), atol=1e-12)


def lattice(densities, n):
    axes = np.meshgrid(*densities.grid_axes(n), indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 6, 11])
def test_on_grid_is_at_the_midpoints(basis, n_dims, n):
    """A grid holds the values at its axes, dimension j on axis 1 + j; many points as few."""
    densities = random_series(
        4, index_set(n_dims, None, max_norm=4.0, basis=basis), basis, BOX[:n_dims]
    )
    for batch in (densities, densities.valid()):
        values = batch.on_grid(n)
        assert values.shape == (4, *(n,) * n_dims)
        points = lattice(batch, n)
        np.testing.assert_allclose(values.reshape(4, -1), batch.at(points), rtol=1e-11, atol=1e-12)
    axes = densities.grid_axes(4)
    lo, hi = np.array(BOX[:n_dims]).T
    np.testing.assert_allclose([axis[0] for axis in axes], lo + (hi - lo) / 8)
    np.testing.assert_allclose([axis[-1] for axis in axes], hi - (hi - lo) / 8)


def test_many_points_and_many_densities():
    """More points than a block, more densities than a block of grids: the same values."""
    densities = random_series(50, index_set(2, 9, max_norm=None), box=BOX[:2])
    points = points_around(BOX[:2], 1111)
    values, grids = densities.at(points), densities.on_grid(70)
    for i in (0, 17, 49):
        np.testing.assert_allclose(values[i], densities[i].at(points)[0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(grids[i], densities[i].on_grid(70)[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(values[:, 500], densities.at(points[500:501])[:, 0], atol=1e-13)


@pytest.mark.parametrize("basis", BASES)
def test_integrates_to_one_in_its_box(basis):
    """In [−10, 10]² a density is per unit of the data: it integrates to a_0 there."""
    densities = random_series(
        3, index_set(2, 6, max_norm=None, basis=basis), basis, [(-10, 10)] * 2
    )
    points, weights = np.polynomial.legendre.leggauss(40)
    x = 10 * points
    mesh = np.stack([g.ravel() for g in np.meshgrid(x, x, indexing="ij")], axis=1)
    integrals = densities.at(mesh) @ (100 * np.outer(weights, weights).ravel())
    np.testing.assert_allclose(integrals, 1, atol=1e-10)
    np.testing.assert_allclose(densities.integral(), np.ones(3), atol=1e-12)
    assert densities.integral().shape == (3,)
    if basis != "legendre":
        np.testing.assert_allclose(densities.on_grid(12).mean(axis=(1, 2)) * 400, 1, atol=1e-12)


def test_float32_points_on_the_walls_are_inside():
    """A float32 point on an edge that float32 cannot hold is in the box."""
    box = [(0.7, 0.8)]
    densities = Densities([[1.0]], [[0]], basis="cosine", box=Box.of(box, 1))
    assert (densities.at(np.array([0.7, 0.8], dtype=np.float32)) == 1 / densities.volume).all()
    assert (densities.at(np.array([0.7, 0.8])) > 0).all()
    assert (densities.at(np.array([0.6999, 0.8001])) == 0).all()


def test_a_sequence_of_batches():
    """Length, integers, slices, masks and iteration; a batch of none."""
    densities = random_series(5, index_set(1, 4, max_norm=None)).valid()
    assert len(densities) == 5
    np.testing.assert_array_equal(densities[-1].coefficients, densities.coefficients[4:])
    np.testing.assert_array_equal(densities[1:3].threshold, densities.threshold[1:3])
    mask = np.array([True, False, False, True, False])
    np.testing.assert_array_equal(densities[mask].threshold, densities.threshold[[0, 3]])
    assert [len(densitie) for densitie in densities] == [1] * 5
    with pytest.raises(IndexError):
        densities[5]
    none = densities[:0]
    assert none.at([0.5]).shape == (0, 1)
    assert none.on_grid(3).shape == (0, 3)
    assert len(none.valid()) == len(none.sample(3)) == 0


def test_immutable_and_picklable():
    """Arrays cannot be written, nor changed through the caller's; pickles whole."""
    a = np.array([[1.0, 0.5]])
    densities = Densities(a, [[0], [1]], basis="cosine", box=None).valid()
    with pytest.raises(ValueError, match="read-only"):
        densities.coefficients[0, 0] = 2
    a[0, 1] = 7
    assert densities.coefficients[0, 1] == 0.5
    again = pickle.loads(pickle.dumps(densities))
    assert again.box == densities.box
    np.testing.assert_array_equal(again.at([0.2, 0.9]), densities.at([0.2, 0.9]))


@pytest.mark.parametrize("basis", BASES)
def test_marginals_integrate_the_others_out(basis):
    """A marginal is the integral over the other coordinates, in the order asked for."""
    densities = random_series(2, index_set(3, None, max_norm=3.0, basis=basis), basis, BOX)
    points, weights = np.polynomial.legendre.leggauss(20)
    x, w = 0.5 + 0.5 * points, 0.5 * weights
    at = np.array([[1.5, -9.0], [2.9, 4.0]])  # of coordinates 2 and 0
    marginal = densities.marginal([2, 0])
    assert marginal.box.bounds == [list(BOX[2]), list(BOX[0])]
    for k, (third, first) in enumerate(at):
        line = np.column_stack([np.full(20, first), 2 + 0.5 * x, np.full(20, third)])
        np.testing.assert_allclose(densities.at(line) @ w * 0.5, marginal.at(at)[:, k], rtol=1e-10)
    alone = densities.marginal(1)
    np.testing.assert_allclose(
        alone.coefficients, densities.marginal([0, 1]).marginal(1).coefficients
    )
    np.testing.assert_allclose(alone.integral(), 1)


@pytest.mark.parametrize("valid", [False, True])
def test_l2_distance_is_the_integral(valid):
    """Parseval, also over two index sets, is the integral of the squared difference."""
    p = random_series(3, index_set(2, 3, max_norm=None), box=BOX[:2])
    q = random_series(3, index_set(2, None, max_norm=4.0), box=BOX[:2], seed=5)
    if valid:
        q = q.valid()
    gap = (p.on_grid(64) - q.on_grid(64)).reshape(3, -1)
    expected = np.sqrt((gap**2).mean(axis=1) * p.volume)
    np.testing.assert_allclose(p.l2_distance(q), expected, rtol=1e-10)
    np.testing.assert_allclose(q.l2_distance(p), expected, rtol=1e-10)
    assert (p.l2_distance(p) == 0).all()


@pytest.mark.parametrize(
    ("coefficients", "indices", "settings", "error", "message"),
    [
        ([[1.0]], [[0, 0], [0, 1]], {}, DataError, r"shape \(1, 1\); expected \(n, 2"),
        ([1.0], [[0]], {}, DataError, "coefficients have shape"),
        ([[1.0], [np.nan]], [[0]], {}, DataError, "density 1 has a coefficient"),
        ([[1.0]], [[1]], {}, DataError, "lack the constant"),
        ([[1.0, 1]], [[0], [0]], {}, DataError, "twice"),
        ([[1.0]], [[0.5]], {}, DataError, "float64"),
        ([[1.0]], [[-1]], {}, DataError, "≥ 0"),
        ([[1.0]], [[0]], {"box": [(0, 1)] * 2}, DataError, "box has 2 dimensions"),
        ([[1.0]], [[0]], {"threshold": [0.0, 1.0]}, DataError, r"expected \(1,\)"),
        ([[1.0]], [[0]], {"threshold": [np.inf]}, DataError, "finite"),
        ([[1.0]], [[0]], {"grid": 0}, ParameterError, "grid is 0"),
    ],
)
def test_refused(coefficients, indices, settings, error, message):
    """What does not fit together is refused by name."""
    with pytest.raises(error, match=message):
        Densities(coefficients, indices, **{"basis": "cosine", "box": None} | settings)


def test_settings_are_named():
    """Coefficients and their indices stand first; a basis by its position is refused."""
    with pytest.raises(TypeError, match="positional arguments"):
        Densities([[1.0]], [[0]], "cosine", None)


def test_refused_uses():
    """Points, grids, marginals, samples and comparisons that cannot be."""
    densities = random_series(2, index_set(2, 3, max_norm=None))
    with pytest.raises(DataError, match=r"points have shape \(3,\)"):
        densities.at([0.1, 0.2, 0.3])
    with pytest.raises(DataError, match="points, row 1: a coordinate is not finite"):
        densities.at([[0.1, 0.2], [np.nan, 0.2]])
    with pytest.raises(ParameterError, match=r"take 160,000,000,000 bytes; take a smaller grid"):
        densities.on_grid(100_000)
    with pytest.raises(ParameterError, match="bytes; take a smaller grid"):
        densities.valid(100_000)
    for dims in ([], [0, 0], [2], -1):
        with pytest.raises(ParameterError, match="expected distinct dimensions of 0 to 1"):
            densities.marginal(dims)
    with pytest.raises(ParameterError, match=r"then valid\(\)"):
        densities.valid().marginal(0)
    with pytest.raises(DataError, match="as many, in one box"):
        densities.l2_distance(densities[:1])
    with pytest.raises(ParameterError, match=r"grid of 60\^8 cells"):
        Densities(np.ones((1, 1)), np.zeros((1, 8), int), basis="cosine", box=None, grid=60).sample(
            5
        )
