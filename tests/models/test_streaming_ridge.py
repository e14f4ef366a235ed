"""Ridge of rows in batches: scikit-learn's of all rows, whatever the batches."""

import datetime
import pickle
from decimal import Decimal

import astropy.units
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

from bagbasis import DataError, StreamingRidge
from bagbasis.models.ridge.sums import RidgeStatistics, StatisticsBuilder

RNG = np.random.default_rng(0)
X = RNG.normal(2, 1, (301, 17))
Y = X @ RNG.normal(size=(17, 2)) + RNG.normal(size=(301, 2))


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("y", [Y, Y[:, 0]])
def test_equals_ridge_in_any_batches(alpha, y):
    """Coefficients, intercepts and predictions; and any other penalty afterwards."""
    ours = StreamingRidge(alpha)
    for rows in np.split(np.arange(301), [1, 40, 41, 200]):
        ours.partial_fit(X[rows], y[rows])
    for item in (alpha, 7.0):
        truth = Ridge(item).fit(X, y)
        ours.solve(item)
        np.testing.assert_allclose(ours.coef_, truth.coef_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.intercept_, truth.intercept_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.predict(X), truth.predict(X), rtol=0, atol=1e-8)


def folds_of(groups, n_folds=5):
    """The fold of each group: a batch of one row leaves all others empty."""
    batches = (groups[i : i + 1] for i in range(len(groups)))
    fits = [
        StreamingRidge("folds", n_folds=n_folds).partial_fit(X[:1], Y[:1], groups=batch)
        for batch in batches
    ]
    return [[part.n for part in fit.folds_].index(1) for fit in fits]


def test_the_penalty_of_folds_is_that_of_folds_by_hand():
    """Groups stay together over batches; the least error over the folds by scikit-learn."""
    groups = np.arange(301) // 10
    alphas = np.geomspace(0.1, 1000, 201)
    ours = StreamingRidge("folds", alphas=alphas, n_folds=3)
    for rows in np.split(np.arange(301), [105]):
        ours.partial_fit(X[rows], Y[rows], groups=groups[rows])
    folds = np.array(folds_of(np.unique(groups), 3))[groups]
    errors = []
    for alpha in alphas:
        result = 0.0
        for train, held in GroupKFold(3).split(X, groups=folds):
            result += ((Ridge(alpha).fit(X[train], Y[train]).predict(X[held]) - Y[held]) ** 2).sum()
        errors.append(result)
    assert 0 < int(np.argmin(errors)) < 200
    assert ours.alpha_ == alphas[int(np.argmin(errors))]
    assert StreamingRidge("gcv").fit(X, Y).score(X, Y) > 0.9


def test_rows_that_cannot_be_used():
    """Each is named, before a row is counted: shapes, other features or targets, and NaN."""
    ours, bad = StreamingRidge().fit(X, Y), np.full((2, 17), np.nan)
    for rows, targets, why in (
        (X[:3], Y[:2], "samples"),
        (X[:, :3], Y, "expecting 17 features"),
        (bad, Y[:2], "NaN"),
    ):
        with pytest.raises(DataError, match=why):
            ours.partial_fit(rows, targets)
    assert sum(item.n for item in ours.folds_) == 301
    for rows, why in (
        (X[0], "Expected 2D array"),
        (X[:, :3], "expecting 17 features"),
        (bad, "NaN"),
    ):
        with pytest.raises(DataError, match=why):
            ours.predict(rows)
    with pytest.raises(DataError, match="y has 2 targets; there were 1"):
        StreamingRidge().fit(X, Y[:, 0]).partial_fit(X, Y)
    with pytest.raises(DataError, match="0 sample"):
        StreamingRidge().fit(X[:0], Y[:0])
    with pytest.raises(DataError, match="two folds"):
        StreamingRidge("folds").fit(X[:1], Y[:1])


FAR = {
    "a timestamp": ([1.7e9, 0, 0], 0.0),
    "targets": ([0, 0, 0], 1e12),
    "both": ([1.7e9, -4e7, 2024], 1e12),
    "nearer": ([1e3, 10, -5], -300.0),
}


def in_batches(model, x, y, ends, groups=None):
    """A model of rows in batches that end there."""
    for rows in np.split(np.arange(len(x)), ends):
        model.partial_fit(x[rows], y[rows], groups=None if groups is None else groups[rows])
    return model


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("alpha", [0.0, 1.0, "folds"])
def test_columns_far_from_zero(name, alpha, warned):
    """Sums are about the first batch's mean: offsets of columns and targets take no digits."""
    offsets, of_y = FAR[name]
    rng = np.random.default_rng(0)
    near = rng.normal(size=(400, 3))
    y = near @ [1.0, 2.0, 3.0] + of_y
    x = near + offsets
    ours = in_batches(StreamingRidge(alpha), x, y, np.arange(50, 400, 50))
    truth = Ridge(ours.alpha_, solver="svd").fit(x - offsets, y - of_y)
    np.testing.assert_allclose(ours.coef_, truth.coef_, rtol=1e-4 if of_y > 1 else 1e-6)
    rough = 1e-15 * max(abs(of_y), 10 * np.abs(offsets).max())
    np.testing.assert_allclose(ours.predict(x), truth.predict(near) + of_y, atol=1e-4 * (rough > 0))
    again = in_batches(StreamingRidge(ours.alpha_), x[::-1], y[::-1], [1, 3, 250])
    np.testing.assert_allclose(again.coef_, ours.coef_, rtol=1e-4 if of_y > 1 else 1e-6)
    assert warned.text == ""


def test_sums_about_several_origins_add_up():
    """Models of other rows, each with its own origin: their sums are those of one model."""
    x, y = X + 1e6, Y[:, :1] * [1.0, 1e-3] - [5e5, 0.0]
    first, other = (StreamingRidge().partial_fit(x[r], y[r]) for r in (slice(9), slice(9, None)))
    whole = StreamingRidge(0.5).partial_fit(x, y)
    first.folds_ = [a + b for a, b in zip(first.folds_, other.folds_, strict=True)]
    np.testing.assert_allclose(first.solve(0.5).coef_, whole.coef_, rtol=1e-6)
    np.testing.assert_allclose(first.predict(x), whole.predict(x), rtol=1e-9)
    rest = whole.folds_[0] + whole.folds_[1] - whole.folds_[1]
    np.testing.assert_allclose(rest.gram, whole.folds_[0].gram, rtol=1e-9)


def test_models_of_earlier_versions_go_on():
    """Their sums are about 0, and they keep their predictions."""
    old = StreamingRidge(2.0).fit(X[:200], Y[:200])
    sums = []
    for fold in range(5):
        builder = StatisticsBuilder(17, 2, np.float64)
        builder.add(X[fold:200:5], Y[fold:200:5])
        sums.append(builder.finish())
    assert type(sums[0]) is RidgeStatistics
    before = old.predict(X)
    old.folds_ = sums
    state = {name: value for name, value in vars(old).items() if name != "_intercept"}
    old = StreamingRidge()
    old.__setstate__(pickle.loads(pickle.dumps(state)))
    np.testing.assert_allclose(old.predict(X), before, rtol=1e-12)
    old.partial_fit(X[200:], Y[200:])
    np.testing.assert_allclose(old.coef_, Ridge(2.0).fit(X, Y).coef_, atol=1e-10)
    np.testing.assert_allclose(old.predict(X), Ridge(2.0).fit(X, Y).predict(X), atol=1e-9)


EQUAL = {
    "numbers": [
        [7, 8, 9],
        [7.0, 8.0, 9.0],
        np.array([7, 8, 9], np.uint8),
        pd.Series([7, 8, 9], dtype="Int64"),
        pd.Series([7, 8.0, Decimal("9.0")], dtype=object),
        np.array([7, 8, 9], np.float32),
    ],
    "texts": [["a", "é", "007"], np.array(["a", "é", "007"], object), pd.Series(["a", "é", "007"])],
    "bytes": [np.array([b"a", b"b", b"c"]), np.array([b"a", b"b", b"c"], object), ["a", "b", "c"]],
    "days": [
        np.array(["2020-01-01", "2021-02-03", "1999-12-31"], "M8[D]"),
        pd.to_datetime(["2020-01-01", "2021-02-03", "1999-12-31"]),
        [datetime.date(2020, 1, 1), datetime.date(2021, 2, 3), datetime.date(1999, 12, 31)],
        pd.Series(pd.to_datetime(["2020-01-01", "2021-02-03", "1999-12-31"])).astype(object),
    ],
}


def folds_of_batch(groups):
    """The fold of each row of one batch: the sums of a fold have its row's own column."""
    rows = np.eye(len(groups))
    model = StreamingRidge("folds").partial_fit(rows, rows[:, 0], groups=groups)
    counts = [
        part.sum_z + part.n * part.origin_z if part.n else np.zeros(len(groups))
        for part in model.folds_
    ]
    return np.argmax(counts, axis=0).tolist()


@pytest.mark.parametrize("name", EQUAL)
def test_equal_groups_of_any_type_are_in_one_fold(name):
    """A batch whose ids became floats, or objects: its rows go where their groups are."""
    folds = [folds_of_batch(item) for item in EQUAL[name]]
    assert folds == [folds[0]] * len(folds)
    assert folds_of_batch([7, 8, 9]) == [0, 3, 1]
    assert folds_of_batch(["7.5", "8"]) == folds_of_batch([7.5, 8.0])


@pytest.mark.parametrize(
    "groups",
    [
        pd.Series([7, 8, None]),
        pd.Series([7, 8, pd.NA], dtype="Int64"),
        np.array(["a", "b", None], object),
        np.array(["2020-01-01", "2021-01-01", "NaT"], "M8[s]"),
        [1.0, 2.0, np.inf],
        [1.0, 2.0, 2.0**60],
    ],
)
def test_groups_that_are_missing_or_inexact(groups):
    """Rows without a group would be one group; such floats stand for several ids."""
    model = StreamingRidge().fit(X[:50], Y[:50])
    with pytest.raises(DataError, match="row 2"):
        model.partial_fit(X[:3], Y[:3], groups=groups)
    assert sum(item.n for item in model.folds_) == 50


@pytest.mark.parametrize("exponent", [-660, 660])
def test_folds_choose_the_penalty_in_any_unit_of_targets(exponent):
    noise = np.random.default_rng(0).normal(size=Y.shape)
    plain, scaled = (StreamingRidge("folds").fit(X, y) for y in (noise, np.ldexp(noise, exponent)))
    assert scaled.alpha_ == plain.alpha_ > 1
    np.testing.assert_array_equal(scaled.coef_, np.ldexp(plain.coef_, exponent))


def test_messages_are_of_rows():
    """They name a column, and no option of other estimators."""
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(17)])
    for factor, why in ((1e200, "'f0' has numbers"), (1e-200, "'f0' differ by at most")):
        with pytest.raises(DataError, match=why) as caught:
            StreamingRidge().fit(frame * factor, Y)
        assert not any(item in str(caught.value) for item in ("bags", "precision", "random"))
    with pytest.raises(DataError, match=r"^y contains NaN; fill"):
        StreamingRidge().fit(X, np.where(Y < 0, np.nan, Y))
    with pytest.raises(DataError, match="divide y by a constant"):
        StreamingRidge().fit(np.array([[0.0], [1e-100]]), np.array([-1e300, 1e300])).solve(0.0)
    model = StreamingRidge().fit(X, Y)
    with pytest.raises(DataError, match="call fit to begin again"):
        model.set_params(n_folds=3).partial_fit(X, Y)
    assert np.isfinite(model.fit(X, Y).coef_).all()


def wide(n, d, seed=0):
    """Rows of d features, of which twenty matter, and as many new ones."""
    rng = np.random.default_rng(seed)
    x, b = rng.normal(size=(2 * n, d)), np.zeros(d)
    b[:20] = rng.normal(size=20)
    return x[:n], x @ b + 7, x[n:]


SHAPES = {"wide": (50, 100), "square": (50, 50), "one more": (51, 50), "long": (300, 40)}


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4, 1e6, 1e7, 1e9])
@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1.0])
def test_small_penalties_beside_large_features(shape, size, alpha, warned):
    """As by singular values, silently: rounding fills no direction that the rows do not span."""
    x, y, new = wide(*SHAPES[shape])
    n = len(x)
    centred = (x - x.mean(axis=0)) * size
    left, sigma, right = np.linalg.svd(centred, full_matrices=False)
    rank = min(n - 1, x.shape[1])
    left, sigma, right = left[:, :rank], sigma[:rank], right[:rank]
    coef = right.T @ ((sigma / (sigma**2 + alpha)) * (left.T @ (y[:n] - y[:n].mean())))
    truth = (new - x.mean(axis=0)) * size @ coef + y[:n].mean()
    for model in (StreamingRidge(alpha), StreamingRidge("gcv", alphas=[alpha])):
        ours = in_batches(model, x * size, y[:n], [13, 30]).predict(new * size)
        assert np.abs(ours - truth).max() < 1e-6 * truth.std() + 1e-14
    assert warned.text == ""


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 1.0])
def test_features_of_different_sizes(alpha):
    """A column of 1e8 does not hide one of 1, one that is there twice, or a constant one."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    x = np.column_stack([1e8 * a, b, b, np.full(200, 3.0), np.zeros(200)])
    y = a + b
    ours = StreamingRidge(alpha).fit(x, y)
    centred = x - x.mean(axis=0)
    if alpha == 0:
        expected = np.linalg.lstsq(centred, y - y.mean(), rcond=1e-14)[0]
    else:
        expected = Ridge(alpha, solver="svd").fit(centred, y).coef_
    np.testing.assert_allclose(ours.coef_, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(ours.predict(x), centred @ expected + y.mean(), atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("alpha", ["gcv", "folds"])
@pytest.mark.parametrize("n", [60, 100, 101, 160])
def test_the_choice_does_not_depend_on_the_unit_of_the_features(alpha, n):
    """Not with as many rows as features, either, where residuals are lost in rounding."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 100))
    y = x @ rng.normal(size=100) + 5 * rng.normal(size=n)
    chosen = [StreamingRidge(alpha).fit(x * s, y).alpha_ / s**2 for s in (1e-3, 1.0, 1e3, 1e6)]
    np.testing.assert_allclose(chosen, chosen[0], rtol=1e-6)


KILOMETRES = np.ones((9, 2)) * astropy.units.km
REFUSED = {
    "units": (KILOMETRES, "has the unit km"),
    "texts": (np.full((9, 2), "007"), "has texts"),
    "objects": (np.full((9, 2), "007", dtype=object), "has texts"),
    "times": (np.zeros((9, 2), "M8[s]"), "days since a date"),
    "durations": (np.zeros((9, 2), "m8[s]"), "such as seconds"),
    "a column": (pd.DataFrame({"a": [1.0] * 9, "b": ["2"] * 9}), "column 'b' has texts"),
    "large integers": (2**60 + np.arange(18).reshape(9, 2), "float64 merges integers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_numpy_would_change(name):
    """They became other numbers, or numbers of an unknown unit, without an error."""
    values, why = REFUSED[name]
    with pytest.raises(DataError, match=why):
        StreamingRidge().fit(values, np.arange(9.0))
    if name != "large integers":
        with pytest.raises(DataError, match=why):
            StreamingRidge().fit(np.ones((9, 2)), values)
        with pytest.raises(DataError, match=why):
            StreamingRidge().fit(np.eye(9)[:, :2], np.arange(9.0)).predict(values)


def test_rows_and_targets_are_matched_by_name():
    """Rows by their index, targets by their columns, in each batch."""
    labels = [f"row {i}" for i in range(301)]
    x = pd.DataFrame(X, labels, [f"f{j}" for j in range(17)])
    y = pd.DataFrame(Y, labels, ["p", "q"])
    order = np.random.default_rng(1).permutation(301)
    expected = StreamingRidge().fit(X, Y).coef_
    np.testing.assert_allclose(StreamingRidge().fit(x, y.iloc[order]).coef_, expected, rtol=1e-12)
    batches = StreamingRidge().partial_fit(x, y).partial_fit(x, y[["q", "p"]])
    twice = StreamingRidge().partial_fit(X, Y).partial_fit(X, Y)
    np.testing.assert_allclose(batches.coef_, twice.coef_, rtol=1e-12)
    with pytest.raises(DataError, match=r"y has the columns \['p', 'r'\], the rows before had"):
        batches.partial_fit(x, y.set_axis(["p", "r"], axis=1))
    with pytest.raises(DataError, match="some labels are in both"):
        StreamingRidge().fit(x.iloc[:200], y.iloc[100:300])
    grouped = StreamingRidge("folds").partial_fit(
        x, y, groups=pd.Series(labels, labels).iloc[order]
    )
    by_place = StreamingRidge("folds").partial_fit(X, Y, groups=labels)
    np.testing.assert_allclose(grouped.coef_, by_place.coef_, rtol=1e-12)
