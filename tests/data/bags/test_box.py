"""The box that is scaled to the unit cube."""

from __future__ import annotations

import astropy.units
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bagbasis import Box, DataError
from bagbasis.data.bags.box import range_of

FINITE = st.floats(-1e9, 1e9, allow_subnormal=False)


def test_a_box_is_one_pair_a_dimension():
    """Pairs (lo, hi), one per dimension, as list, tuple or array; a Box passes through."""
    box = Box((-1.0, 0.0), (1.0, 10.0))
    assert Box.of([(-1, 1), (0, 10)], 2) == Box.of(np.array([[-1, 1], [0, 10]]), 2) == box
    assert Box.of(box, 2) is box
    assert box.bounds == [[-1.0, 1.0], [0.0, 10.0]]
    assert box.n_dims == 2


@pytest.mark.parametrize(
    ("box", "n_dims", "message"),
    [
        ([(0, 1)], 2, "box has 1 dimensions, the points have 2"),
        ([(1, 1)], 1, r"dimension 0: \[1.0, 1.0\]"),
        ([(0, 1), (2, 1)], 2, "dimension 1"),
        ([(0, np.inf)], 1, "not a finite range"),
        ([(0, np.nan)], 1, "not a finite range"),
        ([0, 1], 2, "not one .lo, hi. per dimension"),
        ([(0, 1, 2)], 1, "not one .lo, hi. per dimension"),
        ([("a", "b")], 1, "box has texts"),
        ([("0", "1")], 1, "box has texts"),
        (np.zeros((1, 2), "M8[s]"), 1, "box has dtype datetime64"),
        ([[0, 1]] * astropy.units.km, 1, "box has the unit km"),
        (3.0, 1, "not one .lo, hi. per dimension"),
        ([], 1, "box has 0 lower"),
    ],
)
def test_wrong_boxes_name_the_dimension(box, n_dims, message):
    """A range without extent, of another dimension, or no range at all is refused."""
    with pytest.raises(DataError, match=message):
        Box.of(box, n_dims)


@pytest.mark.long
@settings(max_examples=200)
@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=4))
def test_a_measured_box_holds_its_data(ranges):
    """The box around measured minima and maxima holds them.

    It is wider unless they are equal up to rounding.
    """
    lo, hi = np.sort(np.array(ranges), axis=1).T
    box = Box.around(lo, hi)
    assert all(np.array(box.lo) <= lo)
    assert all(np.array(box.hi) >= hi)
    wide = (hi == lo) | (hi - lo > 1e-12 * np.maximum(np.abs(lo), np.abs(hi)))
    assert all((np.array(box.lo) < lo)[wide])
    assert all((np.array(box.hi) > hi)[wide])


@pytest.mark.parametrize("n_dims", [1, 3, 513])
@pytest.mark.parametrize("n", [1, 170, 171, 1025])
def test_the_range_of_points(n, n_dims):
    """Rows that are compared many at once, and those that are left, both count."""
    points = np.random.default_rng(n).normal(size=(n, n_dims))
    np.testing.assert_array_equal(range_of(points), [points.min(axis=0), points.max(axis=0)])


def test_the_margin_is_one_percent_of_the_range():
    """The documented margin: 1 % a side, half a unit around a constant coordinate."""
    box = Box.around([0.0, 5.0, 1e6], [10.0, 5.0, 1e6])
    np.testing.assert_allclose(box.lo, [-0.1, 4.5, 1e6 - 1e3])
    np.testing.assert_allclose(box.hi, [10.1, 5.5, 1e6 + 1e3])


@pytest.mark.parametrize("quantile", [0.0, 0.01, 0.2])
def test_outliers_of_a_sample_do_not_stretch_the_box(quantile):
    """It ends a quarter of the quantiles' distance beyond them, and a margin. A coordinate that is
    nearly constant is not cut."""
    values = np.random.default_rng(0).permutation(np.linspace(0, 1, 1001))
    sample = np.column_stack([values, np.full(1001, 5.0)])
    sample = np.vstack([sample, [[np.nan, 0.0]]])
    box = Box.around([-50.0, -50.0], [90.0, 90.0], sample=sample, quantile=quantile)
    ends = np.array([[-50.0, 90.0]] * 2)
    if quantile:
        reach = 0.25 * (1 - 2 * quantile)
        ends[0] = quantile - reach, 1 - quantile + reach
    expected = ends + [-0.01, 0.01] * np.ptp(ends, axis=1, keepdims=True)
    np.testing.assert_allclose(box.bounds, expected)
    near = Box.around([0.0, 5.0], [1.0, 5.0], sample=sample, quantile=0.01)
    np.testing.assert_allclose(near.bounds, [[-0.01, 1.01], [4.5, 5.5]])


@pytest.mark.parametrize(
    ("ends", "sample", "message"),
    [
        (([0.0], [1.0, 2.0]), None, r"lo and hi have shapes \(1,\) and \(2,\)"),
        ((0.0, 1.0), None, r"expected \(d,\)"),
        (([0.0], [1.0]), np.zeros((3, 2)), r"expected an array \(n, 1\)"),
    ],
)
def test_ends_and_samples_of_other_shapes_are_refused(ends, sample, message):
    with pytest.raises(DataError, match=message):
        Box.around(*ends, sample=sample)


def test_unit_coordinates_and_back():
    """The lower end goes to 0, the upper to 1, linearly in between, and `from_unit` undoes it."""
    box = Box((-1.0, 10.0), (1.0, 20.0))
    points = np.array([[-1.0, 10.0], [1.0, 20.0], [0.0, 12.5]], dtype=np.float32)
    unit = box.to_unit(points)
    assert unit.dtype == np.float64
    np.testing.assert_allclose(unit, [[0, 0], [1, 1], [0.5, 0.25]])
    np.testing.assert_allclose(box.from_unit(unit), points)
