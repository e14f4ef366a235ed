"""Texts, times and missing values of labels and variables, of every library's type."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bagbasis import BagbasisWarning, DataError, DoubleBasisRegressor, MomentsEmbedding
from bagbasis.hypotheses import independence_test, two_sample_test
from bagbasis.operations import DriftDetector

X = np.arange(60.0)
FEW = {"n_permutations": 99}
DX = np.where(X > 30, "ill", "well")
MISSING = {
    "None": np.array([None, *"ab" * 29, "c"], dtype=object),
    "NA": pd.Series(pd.array([None, *range(59)], "Int64")),
    "NaN": np.array([np.nan, *range(59)]),
    "NaT": pd.Series(pd.to_datetime([None] + ["2020-01-01", "2020-01-02"] * 29 + ["2020-01-03"])),
    "texts": pd.Series([None, *"ab" * 29, "c"], dtype="string"),
}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (DX.astype(object), DX),
        (pd.Series(DX).astype("category").to_numpy(), DX),
        (X.astype(int).astype(object), X),
        (pd.date_range("2020", periods=60, tz="Asia/Tokyo").to_series(), X * 86400),
        (np.array(pd.date_range("2020", periods=60).to_pydatetime(), dtype=object), X * 86400),
    ],
)
def test_object_arrays_are_what_they_hold(value, plain):
    """Texts are classes, numbers numbers, times seconds."""
    result, expected = (independence_test(X, y, **FEW) for y in (value, plain))
    assert result.p_value == expected.p_value
    assert result.statistic == pytest.approx(expected.statistic, rel=1e-9)


@pytest.mark.parametrize("kind", MISSING)
def test_missing_labels_are_counted(kind):
    """Missing groups of either test, and missing values of `within`."""
    labels = MISSING[kind]
    with pytest.raises(DataError, match=r"groups of a are missing .* for 1 unit"):
        two_sample_test(X, X[:50] + 1, groups=(labels, np.arange(50)), **FEW)
    with pytest.raises(DataError, match=r"groups of the pairs are missing .* for 1 point"):
        independence_test(X, X[::-1], groups=labels, **FEW)
    with pytest.raises(DataError, match=r"within are missing .* for 1 point"):
        independence_test(X, X[::-1], within=labels, **FEW)


def test_groups_of_texts_and_numbers_are_groups():
    """7 is another group than "7", and the same as 7.0; `fuse` depends on no order of groups."""
    mixed = np.array(["7", 7, 7.0, *range(100, 157)], dtype=object)
    plain = np.array([1, 0, 0, *range(100, 157)])
    result, expected = (
        two_sample_test(X, X[:50] + 1, statistic="fuse", groups=(item, np.arange(200, 250)), **FEW)
        for item in (mixed, plain)
    )
    assert result.statistic == pytest.approx(expected.statistic, rel=1e-9)
    with pytest.raises(DataError, match="the group 7 is in both samples"):
        two_sample_test(X, X[:1].repeat(9), groups=(mixed, np.array([7, "c"] * 4 + [7], object)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, "a"] * 30, dtype=object), "texts and 1"),
        (np.array([0, *"a" * 59], dtype=object), "texts and 0"),
        (MISSING["None"], "1 values are missing"),
        (MISSING["NA"], "holds NaN"),
        (np.array([pd.Timedelta(1)] * 60, dtype=object), "y"),
    ],
)
def test_variables_that_cannot_be_used_are_refused(values, message):
    """By their name."""
    with pytest.raises(DataError, match=message):
        independence_test(X, values, **FEW)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "double[pyarrow]"])
def test_detectors_refuse_missing_values_of_every_type(dtype):
    """In the reference and in what came later; without any they are numbers."""
    whole = pd.DataFrame({"x": X, "n": pd.array([0, 1] * 30, dtype)})
    holed = whole.copy()
    holed.loc[0, "n"] = pd.NA
    detector = DriftDetector(n_permutations=99).fit(whole)
    assert detector.test(whole).p_value > 0.05
    for call in (DriftDetector().fit, detector.test):
        with pytest.raises(DataError, match="row 0, column 'n' is NaN or infinite"):
            call(holed)


@pytest.mark.parametrize("library", [pd, pl])
def test_texts_among_numbers_are_not_read_as_numbers(library):
    """The codes 007 and 7 are not one number."""
    table = library.DataFrame({"x": X, "code": ["007", "7"] * 30})
    for call in (
        lambda: two_sample_test(table, table),
        lambda: independence_test(table, X),
        lambda: DriftDetector().fit(table),
    ):
        with pytest.raises(DataError, match=r"column 'code' holds [sS]tr.*, not numbers; leave it"):
            call()


def test_numbers_written_as_text_are_no_classes():
    """Each was a class of its own, and p was 1 whatever the dependence."""
    x = np.random.default_rng(0).normal(size=60)
    for texts in (x.astype(str), pd.Series(x.astype(str)), x.astype(str).astype(object)):
        with pytest.raises(DataError, match="x has a class for each value"):
            independence_test(texts, x)


def test_dates_and_nanoseconds_are_times():
    days = np.random.default_rng(0).permutation(60)
    y = np.random.default_rng(1).normal(size=60) + days
    expected = independence_test(days, y, n_permutations=99)
    dates = [datetime.date(2020, 1, 1) + datetime.timedelta(int(day)) for day in days]
    for times in (dates, pd.Series(dates), days.astype("M8[ns]"), days.astype("M8[D]")):
        assert independence_test(times, y, n_permutations=99).p_value == expected.p_value


def test_rows_of_pandas_that_share_some_labels():
    """They are not paired by position in silence."""
    x = pd.Series(np.arange(40.0), [f"a{i}" for i in range(40)])
    y = pd.Series(np.arange(40.0), [f"a{i + 9}" for i in range(40)])
    with pytest.raises(DataError, match="y has the index 'a9', …, and x 'a0', …: some labels"):
        independence_test(x, y)
    with pytest.warns(BagbasisWarning, match="rows are paired in their order"):
        independence_test(x.reset_index(drop=True), y.set_axis(np.arange(40) + 9))


def test_labels_in_floats_that_stand_for_several_numbers():
    """Two patients were one group."""
    groups = (2**53 + np.arange(60)).astype(float), np.arange(60)
    with pytest.raises(DataError, match="groups of a have 9007199254740992, a float64"):
        two_sample_test(X, X + 1, groups=groups, **FEW)
    with pytest.raises(DataError, match="labels of within have"):
        independence_test(X, X, within=groups[0] * 2, **FEW)
    bags = [np.random.default_rng(i).normal(size=(5, 1)) for i in range(60)]
    with pytest.raises(DataError, match="groups have 9007199254740992, a float64"):
        DoubleBasisRegressor(MomentsEmbedding()).fit(bags, X, groups=groups[0])


def test_integers_that_float64_merges_are_refused():
    """Nanoseconds as integers, some of which are one number as float64."""
    nanoseconds = 2**60 + 100 * np.arange(60)
    message = "float64 merges integers: coordinate 0 .* subtract an offset"
    with pytest.raises(DataError, match=f"b: {message}"):
        two_sample_test(X, nanoseconds, **FEW)
    with pytest.raises(DataError, match=f"x: {message}"):
        independence_test(nanoseconds.tolist(), X, **FEW)


def test_a_series_of_arrays_is_a_sample_of_bags():
    bags = [np.random.default_rng(i).normal(size=(5, 2)) for i in range(20)]
    series = pd.Series(bags, [f"b{i}" for i in range(20)])
    expected = two_sample_test(bags[:9], bags[9:], **FEW)
    assert two_sample_test(series[:9], series[9:], **FEW).p_value == expected.p_value
