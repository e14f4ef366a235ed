"""`project`: edges, empty bags, NaN, huge bags; the values are in tests/oracles/test_table.py."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from bagbasis import Bags, Box
from bagbasis.core.arrays import by_precision
from bagbasis.embeddings import BASES, index_set
from bagbasis.embeddings.bases.coefficients import kernel_arguments, project
from tests.oracles.ragged import random_bags
from tests.oracles.series import project_by_loop

pytestmark = pytest.mark.portable

ALL = {d: np.array([range(d)]) for d in (1, 2, 3)}


def coefficients(bags, indices, basis="cosine", box=None, dtype=np.float64, **options):
    """(means, points outside) over all dimensions."""
    out = np.empty((len(bags), len(indices)), dtype=dtype)
    box = box or Box.unit(bags.n_dims)
    return out, project(bags, indices, ALL[bags.n_dims], basis, box, out, **options)


def test_one_compilation_serves_both_precisions():
    """Kernels see arguments of one type, whatever the dtype of points and of outputs."""
    types = set()
    for dtype in (np.float32, np.float64):
        bags = Bags.from_list(random_bags(np.random.default_rng(0), [3, 5], 2, dtype))
        arguments = kernel_arguments(bags, ALL[2], Box.unit(2), False, np.dtype(dtype))
        value = np.ones((4, 2), dtype)
        types.add((*map(numba.typeof, arguments), numba.typeof(by_precision(value))))
        (selected,) = (array for array in by_precision(value) if len(array))
        assert selected is value
    assert len(types) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_just_beyond_the_walls_are_outside(dtype):
    """A few roundings beyond an edge is outside: clipped it counts, dropped it is gone."""
    box = Box((-1.5,), (2.0,))
    beyond = np.array([[2.0], [-1.5]], dtype=dtype) * (1 + 8 * np.finfo(dtype).eps)
    bags = Bags.from_list([[[0.25], beyond[0]], [[0.25], beyond[1]]], dtype=dtype)
    indices = index_set(1, 3)
    clipped, outside = coefficients(bags, indices, box=box)
    dropped, outside_too = coefficients(bags, indices, box=box, drop=True)
    assert outside.tolist() == outside_too.tolist() == [1, 1]
    middle = [1, 0, -np.sqrt(2)]
    np.testing.assert_allclose(dropped, [middle, middle], atol=1e-15)
    np.testing.assert_allclose(clipped[0], [1, -np.sqrt(0.5), 0], atol=1e-15)
    np.testing.assert_allclose(clipped[1], [1, np.sqrt(0.5), 0], atol=1e-15)


def test_nothing_left_after_dropping():
    """A bag whose points are all dropped becomes NaN, and only that bag."""
    bags = Bags.from_list([[[0.5, 0.5]], [[0.5, 7.0], [-3.0, 0.5]], [[0.1, 0.2]]])
    means, outside = coefficients(bags, index_set(2, 3), drop=True)
    assert outside.tolist() == [0, 2, 0]
    assert np.isnan(means).all(axis=1).tolist() == [False, True, False]


def test_count_is_of_the_worst_marginal():
    """A point outside in two coordinates is one point."""
    bags = Bags.from_list([[[5.0, 5.0], [0.5, 5.0], [0.5, 0.5]]])
    out = np.empty((1, 2 * 3))
    groups = np.array([[0], [1]])
    outside = project(bags, index_set(1, 3), groups, "cosine", Box.unit(2), out)
    assert outside.tolist() == [2]


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_stays_nan(basis, drop, dtype):
    """A NaN coordinate is never clipped, dropped or averaged away; other bags are not touched."""
    points = np.random.default_rng(0).random((600, 2)).astype(dtype)
    good = Bags(points, [0, 300, 600])
    points = points.copy()
    points[299, 1] = np.nan
    bad = Bags.trusted(points, good.offsets)
    indices = index_set(2, 4)
    means, _ = coefficients(bad, indices, basis, dtype=dtype, drop=drop)
    expected, _ = coefficients(good, indices, basis, dtype=dtype, drop=drop)
    np.testing.assert_array_equal(np.isnan(means[0]), indices[:, 1] > 0)
    np.testing.assert_array_equal(means[1], expected[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_million_points(dtype):
    """One bag of 10^6 points among small ones: sums over blocks in double lose nothing."""
    rng = np.random.default_rng(0)
    bags = [rng.random((size, 2)).astype(dtype) for size in (1, 10**6, 3)]
    indices = index_set(2, 3)
    means, _ = coefficients(Bags.from_list(bags), indices, dtype=dtype)
    truth, _ = project_by_loop(bags, indices.tolist(), "cosine", (0, 0), (1, 1))
    np.testing.assert_allclose(means, truth, atol=3e-7 if dtype == np.float32 else 1e-14)


def test_far_from_the_origin():
    """A box of width 1 at 10^6 in double precision loses only what the coordinates lost."""
    rng = np.random.default_rng(1)
    bags = [1e6 + bag for bag in random_bags(rng, [5, 300], 1)]
    box = Box((1e6 - 8,), (1e6 + 8,))
    indices = index_set(1, 6)
    means, _ = coefficients(Bags.from_list(bags), indices, box=box)
    truth, _ = project_by_loop(bags, indices.tolist(), "cosine", box.lo, box.hi)
    np.testing.assert_allclose(means, truth, atol=1e-12)


def test_box_too_narrow_for_float32():
    """Edges that float32 cannot tell apart do not divide by zero."""
    bags = Bags.from_list([np.array([[1e8]], dtype=np.float32)])
    means, _ = coefficients(bags, index_set(1, 3), box=Box((1e8 - 1,), (1e8 + 1,)))
    assert np.isfinite(means).all()


def test_many_small_bags():
    """More bags than parallel parts, of one point each, keep their order."""
    points = np.random.default_rng(2).random((5000, 1))
    means, _ = coefficients(Bags(points, np.arange(5001)), index_set(1, 2))
    np.testing.assert_allclose(means[:, 1], np.sqrt(2) * np.cos(np.pi * points[:, 0]), atol=1e-14)
