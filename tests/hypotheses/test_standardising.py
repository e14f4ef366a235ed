"""Coordinates in units of their own: no test of points depends on the units of the data."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, DataError, ParameterError
from bagbasis.hypotheses import (
    EnergyDistance,
    MeanEmbeddings,
    independence_test,
    two_sample_test,
)
from bagbasis.hypotheses.samples.standardising import CoordinateUnits

UNITS = np.array([1.0, 1024.0, 2.0**-30])  # powers of 2 change no digit


def two_samples(seed=0):
    """Points whose first coordinate differs, shapes (40, 3) and (30, 3)."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    x[:, 0] += 1.2
    return x, y


@pytest.mark.parametrize("statistic", ["fuse", "agg", "energy", "mmd_u", "me"])
def test_units_do_not_matter_to_two_samples(statistic):
    """The same p-value and statistic in other units, and without it none of the difference."""
    x, y = two_samples()
    arguments = {"statistic": statistic, "n_permutations": 99}
    plain, other = (
        two_sample_test(x, y, **arguments),
        two_sample_test(UNITS * x, UNITS * y, **arguments),
    )
    assert plain.p_value <= (0.02 if statistic not in ("fuse", "agg") else 0.2)
    assert other.p_value == plain.p_value
    assert other.statistic == pytest.approx(plain.statistic, rel=1e-12)
    if statistic == "energy":
        saved = two_sample_test(UNITS * x, UNITS * y, standardize=False, **arguments)
        assert saved.p_value > 0.05


@pytest.mark.long
def test_units_do_not_matter_to_independence():
    """x has a nuisance in other units; classes and single coordinates stay as they are."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(80, 2))
    y = 0.7 * x[:, 0] + 0.7 * rng.normal(size=80)
    plain, other = (independence_test(x * [1, u], y, n_permutations=99) for u in (1, 1024))
    assert other.p_value == plain.p_value <= 0.02
    saved = independence_test(x * [1, 2**20], y, n_permutations=99, standardize=False)
    assert saved.p_value > 0.05
    single = independence_test(x[:, 0], y, n_permutations=99)
    same = independence_test(x[:, 0], y, n_permutations=99, standardize=False)
    assert single.statistic == same.statistic
    classes = np.array(["a", "b", "c"])[np.digitize(x[:, 0], [-0.5, 0.5])]
    for statistic in ("hsic_fuse", "nfsic"):
        arguments = {"statistic": statistic, "n_permutations": 99}
        r = independence_test(classes, y, **arguments)
        assert r.p_value == 0.01
        assert (
            r.statistic == independence_test(classes, y, standardize=False, **arguments).statistic
        )


def test_locations_are_in_units_of_the_data():
    """Locations of me and nfsic, and the rows next to them, are where the points are."""
    x, y = two_samples()
    x, y = UNITS * x + [0, 5e5, 0], UNITS * y + [0, 5e5, 0]
    for r in (
        two_sample_test(x, y, statistic="me", n_permutations=9),
        independence_test(x[:30], y, statistic="nfsic", n_permutations=9),
    ):
        places = r.details["locations"]
        places = np.array(places["v"] if isinstance(places, dict) else places)
        assert (np.abs(places - [0, 5e5, 0]) < 8 * UNITS).all()
        first = next(iter(r.sampled_rows.values()))
        assert np.abs(first - x[: len(first)]).max(axis=0) == pytest.approx(0, abs=1e-9)


def test_widths_of_coordinates_are_in_units_of_the_data():
    """bandwidth="ard" has a bandwidth for each coordinate, in its unit."""
    x, y = two_samples()
    plain, other = (
        two_sample_test(u * x, u * y, bandwidth="ard", n_permutations=9) for u in (1.0, UNITS)
    )
    ratio = np.array(other.details["coordinates"]["bandwidth"]) / np.array(
        plain.details["coordinates"]["bandwidth"]
    )
    np.testing.assert_allclose(ratio, UNITS, rtol=1e-9)


def test_what_has_units_is_honoured():
    """A bandwidth that is a number, and given locations, are in the units of the points."""
    x, y = two_samples()
    arguments = {"bandwidth": 1.5, "n_permutations": 9}
    saved = two_sample_test(x, y, standardize=False, **arguments)
    assert two_sample_test(x, y, **arguments).statistic == saved.statistic
    assert two_sample_test(x, y, standardize=True, **arguments).statistic != saved.statistic
    at = MeanEmbeddings(n_locations=1, locations=[[0.0, 0.0, 0.0]])
    saved = two_sample_test(x, y, statistic=at, standardize=False, n_permutations=9)
    assert two_sample_test(x, y, statistic=at, n_permutations=9).statistic == saved.statistic
    with pytest.raises(ParameterError, match="standardize"):
        two_sample_test(x, y, statistic=at, standardize=True)


def test_bags_and_single_coordinates_stay_as_they_are():
    """Bit for bit; points of bags that are pooled are points."""
    rng = np.random.default_rng(5)
    a, b = (
        Bags.from_list([rng.normal(size=(6, 2)) * [1, 64] for _ in range(12)]) for _ in range(2)
    )
    arguments = {"statistic": EnergyDistance(), "n_permutations": 9}
    for sample, other, more in ((a, b, {}), (a.points[:, 0], b.points[:, 0], {})):
        values = {
            two_sample_test(sample, other, standardize=s, **arguments, **more).statistic
            for s in (None, True, False)
        }
        assert len(values) == 1
    pooled = two_sample_test(a, b, unit="point", **arguments).statistic
    assert pooled == two_sample_test(a.points, b.points, **arguments).statistic
    assert pooled != two_sample_test(a, b, unit="point", standardize=False, **arguments).statistic


def test_units_of_counts_classes_and_constants():
    """The median distance from the median, of the values that differ from it."""
    rows = np.array([
        [0, 0, 7.0, 1, 1e300],
        [0, 0, 7.0, 2, 1e300],
        [0, 1, 7.0, 3, 2e300],
        [1, 0, 7.0, 4, 3e300],
        [0, 0, 7.0, 9, 4e300],
    ])  # fmt: skip
    units = CoordinateUnits.of(rows)
    np.testing.assert_array_equal(units.centre, [0, 0, 7, 3, 2e300])
    np.testing.assert_array_equal(units.unit, [1, 1, 1, 1.5, 1e300])
    np.testing.assert_array_equal(CoordinateUnits.of(-rows).unit, units.unit)  # of even n, too
    np.testing.assert_array_equal(
        CoordinateUnits.of(-rows[1:]).unit, CoordinateUnits.of(rows[1:]).unit
    )
    np.testing.assert_allclose(units.restored(units(rows)), rows, rtol=1e-15)
    order = np.random.default_rng(0).permutation(5)
    np.testing.assert_array_equal(CoordinateUnits.of(rows[order]).unit, units.unit)
    for column in ([-1.7e308, 1.6e308, 1.7e308, 1.7e308], [0, 1e-300, 2e-300, 1e300]):
        huge = np.column_stack([np.arange(4.0), column])
        with pytest.raises(DataError, match=r"coordinate 1 .* standardize=False"):
            CoordinateUnits.of(huge)(huge)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 57])
def test_units_are_medians_to_the_bit(n):
    """Those of `numpy.median` for each coordinate: of continuous, rounded and constant numbers."""
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 6))
    rows[:, 1:4] = rng.poisson([0.3, 1.0, 3.0], (n, 3))
    rows[:, 4], rows[:, 5] = 3.0, rows[:, 5] * 1e-310
    units, before = CoordinateUnits.of(rows), rows.copy()
    for column, centre, unit in zip(rows.T, units.centre, units.unit, strict=True):
        gaps = np.abs(column - np.median(column))
        assert centre == np.median(column)
        assert unit == (np.median(gaps[gaps > 0]) if gaps.any() else 1.0)
    np.testing.assert_array_equal(rows, before)


@pytest.mark.long
def test_level_is_exact():
    """In 200 tests of 12 against 8 points in unlike units, p ≤ .1 in a tenth."""
    rng = np.random.default_rng(6)
    p = []
    for seed in range(200):
        rows = rng.standard_cauchy((20, 2)) * [1, 1e4]
        r = two_sample_test(rows[:12], rows[12:], statistic="energy", n_permutations=19, seed=seed)
        p.append(r.p_value)
    assert (np.array(p) <= 0.1).mean() < 0.1 + 3 * (0.09 / 200) ** 0.5
