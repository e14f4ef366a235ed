"""What cannot be fitted or predicted is refused in one line that names it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bagbasis import (
    Bags,
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ModelError,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    features,
)
from bagbasis.densities import ExponentialFamilyDensity
from tests.oracles.labelled import labelled, labelled_bags, stored
from tests.oracles.planned import plan_of
from tests.passes import pass_limits

BAGS, Y = labelled_bags(30, most=9)
KINDS = (DoubleBasisRegressor, DoubleBasisClassifier)


def small(kind=DoubleBasisRegressor, embedding=None, **params):
    embedding = embedding or ProjectionEmbedding(n_per_dim=3)
    return kind(embedding, RandomFourierFeatures(n_features=16), **{"alpha": 1.0, **params})


@pytest.fixture
def store(tmp_path):
    return stored(tmp_path / "s.zarr", BAGS, np.stack([Y, Y > 0], axis=1), ["y", "sign"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((30, 1, 1)), "y holds one array of points per bag"),
        (np.zeros((30, 0)), r"y has shape \(30, 0\)"),
        (np.where(Y > 1e-9, np.inf, Y), "y has an infinite value"),
        (Y + 1j, "y has dtype complex128; expected numbers"),
    ],
)
def test_targets_in_memory(kind, y, message):
    """y of another shape, infinite or complex."""
    with pytest.raises(DataError, match=message):
        small(kind).fit(BAGS, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([[y, "x"] for y in Y], object), r"dtype object; .* \(bag 0, column 1: 'x'\)"),
        ([*Y[:-1], {1.0}], r"dtype object; .* \(bag 29: \{1.0\}\)"),
        ({0: 1.0}, "y: the keys of a mapping are ids of bags, and these bags have none"),
        ({1.0, 2.0}, r"y has shape \(\) for 30 bags \(it is a set\)"),
        (np.arange(30) + 2**60, r"y: \d+ is an integer beyond ±2\^53"),
        (np.array(list(zip(Y > 0, Y, strict=True)), [("dead", "?"), ("days", "f8")]), "y.'days'."),
    ],
)
def test_targets_that_are_not_numbers_are_named(y, message):
    """The first of them with its place; integers that float64 would merge; records of fields."""
    with pytest.raises(DataError, match=message):
        small().fit(BAGS, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:, None] > 0, r"shape \(30, 1\); expected one class per bag, such as y\[:, 0\]"),
        (pd.cut(pd.Series(Y), 3), r"write classes as text, \[str\(label\) for label in y\]"),
    ],
)
def test_classes_that_are_not_texts_or_numbers(y, message):
    """A column, and the intervals of pandas, with what to give instead."""
    with pytest.raises(DataError, match=message):
        small(DoubleBasisClassifier).fit(BAGS, y)


def test_targets_that_are_text():
    """A regressor does not read numbers out of text."""
    with pytest.raises(DataError, match="y has dtype <U1; expected numbers"):
        small().fit(BAGS, ["1"] * 30)
    fitted = small().fit(BAGS, Y)
    for labels in (Y.astype(str), Y.astype("M8[s]"), Y + 1j):
        with pytest.raises(DataError, match=r"y has dtype .*; expected numbers"):
            fitted.conformalize(BAGS, labels, cv=3)
    texts = np.array(["007", 1.5, None] * 10, dtype=object)
    for fit in (small().fit, small().fit(BAGS, Y).score):
        with pytest.raises(DataError, match="y has dtype object; expected numbers"):
            fit(BAGS, texts)
    with pytest.raises(DataError, match="has texts"):
        ExponentialFamilyDensity().fit(np.full((9, 2), "1.5", dtype=object))


@pytest.mark.parametrize("kind", KINDS)
def test_targets_of_a_store(store, kind, tmp_path):
    """An unknown target, none where there are two, an empty list, or y for a store."""
    with pytest.raises(DataError, match=r"no target 'z'; there are \['y', 'sign'\]"):
        small(kind).fit(store, target="z")
    with pytest.raises(DataError, match=r"no target 'sing' \(did you mean 'sign'\?\)"):
        small(kind).fit(store, target="sing")
    with pytest.raises(DataError, match=r"has the targets \['y', 'sign'\]; say which"):
        small(kind).fit(store)
    with pytest.raises(DataError, match=r"none\.zarr has no targets"):
        small(kind).fit(BagStore.create(tmp_path / "none.zarr", n_dims=2))
    with pytest.raises(ParameterError, match=r"target is \[\]"):
        small(kind).fit(store, target=[])
    with pytest.raises(DataError, match="names a target twice"):
        small(kind).fit(store, target=["y", "y"])
    with pytest.raises(ParameterError, match="a BagStore carries its targets"):
        small(kind).fit(store, Y)
    with pytest.raises(ParameterError, match="target names a column of a BagStore"):
        small(kind).fit(BAGS, Y > 0, target="y")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_fit(tmp_path, kind):
    """A store or Bags without bags, and bags without labels."""
    empty = BagStore.create(tmp_path / "empty.zarr", 2, target_names=["y"])
    with pytest.raises(DataError, match=r"empty\.zarr: no bags to fit"):
        small(kind).fit(empty)
    with pytest.raises(DataError, match="no bags to fit"):
        small(kind).fit(Bags.from_list(BAGS)[:0], [])
    with pytest.raises(DataError, match="no bags"):
        small(kind).fit([], [])
    unlabelled = stored(tmp_path / "nan.zarr", BAGS, None)
    with pytest.raises(DataError, match=r"nan\.zarr: no labelled bags to fit"):
        DoubleBasisRegressor().fit(unlabelled)
    message = "no labelled bags to fit" if kind is DoubleBasisRegressor else "needs two classes"
    for attempt in (
        lambda: small(kind).fit(unlabelled),
        lambda: small(kind).fit(BAGS, np.full(30, np.nan)),
    ):
        with pytest.raises(DataError, match=message):
            attempt()


def test_everything_held_out():
    """Nothing left to fit, or nothing to validate on, is said."""
    with pytest.raises(DataError, match=r"no labelled bags to fit.*held out"):
        small().fit(BAGS[:3], Y[:3], holdout=0.9999)
    with pytest.raises(DataError, match="no labelled bag was held out for validation"):
        small(alpha="validation", validation_fraction=1e-9).fit(BAGS, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": [1.0, 0.0]}, "only numbers > 0"),
        ({"alpha": "gcv", "alphas": [1.0, -1.0]}, r"alphas is \[1.0, -1.0\]"),
        (
            {"alpha": 1.0, "alphas": [1.0]},
            "alphas is the grid of alpha='auto' or 'gcv' or 'folds' or",
        ),
        ({"alpha": "folds", "solver": "cg"}, "solver='cg' has no alpha='folds'"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_parameters(kind, params, message):
    """Every wrong parameter is refused before any bag is read, in one line naming it."""
    with pytest.raises(ParameterError, match=message):
        small(kind, **params).fit(BAGS, Y > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_failed_fit_keeps_the_old_one(kind):
    """A fit that is refused leaves what was fitted before."""
    model = small(kind).fit(BAGS, Y > 0)
    before = model.predict(BAGS)
    with pytest.raises(DataError):
        model.fit(BAGS, Y[:3] > 0)
    np.testing.assert_array_equal(model.predict(BAGS), before)


@pytest.mark.parametrize("kind", KINDS)
def test_bags_of_another_dimension(tmp_path, kind):
    """A model refuses bags and stores of another dimension, at once and not when computed."""
    model = small(kind).fit(BAGS, Y > 0)
    flat = [bag[:, :1] for bag in BAGS]
    with pytest.raises(ModelError, match="fitted on bags of dimension 2, these have 1"):
        model.predict(flat)
    store = stored(tmp_path / "flat.zarr", flat, None)
    with pytest.raises(ModelError, match=r"flat\.zarr holds dimension 1"):
        model.predict(store)


@pytest.mark.parametrize("basis", ["cosine", "trigonometric", "legendre"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_nan_points_never_reach_the_statistics(monkeypatch, basis, precision):
    """Bags that got past validation with a NaN are refused when they are embedded, by the
    position among all bags."""
    monkeypatch.setattr("bagbasis.models.fitting.feature_map.MAPPED_ROWS", 8)
    bags = Bags.from_list(BAGS)
    model = small(embedding=ProjectionEmbedding(basis=basis, n_per_dim=3), precision=precision).fit(
        bags, Y
    )
    bags.points[bags.offsets[19]] = np.nan
    with pytest.raises(DataError, match="bag 19: its embedding is not finite"):
        model.predict(bags)
    fit = plan_of(labelled(bags, Y), model.features_, precision=precision)
    with (
        pass_limits(rows_per_block=8),
        pytest.raises(DataError, match="bag 19: its embedding is not finite"),
    ):
        fit.run()


@pytest.mark.parametrize("mode", ["error", "drop"])
def test_points_outside_that_are_refused(tmp_path, mode):
    """out_of_box="error", and "drop" with no point left, name the store and the bag: at fit and
    at predict, wherever the partitions end."""
    bags = [*BAGS[:20], np.full((3, 2), 1.5), *BAGS[20:]]
    store = stored(tmp_path / "s.zarr", bags, np.append(Y, 0.0), chunk_points=5)
    embedding = ProjectionEmbedding(n_per_dim=3, out_of_box=mode, box=[(0, 1), (0, 1)])
    message = "3 points lie outside the box|no point lies inside the box"
    with pytest.raises(DataError, match=rf"s\.zarr: a bag: ({message}) \[\[0\.0, 1\.0\]"):
        small(embedding=embedding).fit(store)
    estimator = DoubleBasisRegressor(
        embedding, RandomFourierFeatures(n_features=8, scale=1.0), alpha=1.0
    )
    with pytest.raises(DataError, match=rf"s\.zarr, bag 20: ({message})"):
        estimator.fit(store)
    model = estimator.fit(BAGS, Y)
    with pytest.raises(DataError, match=rf"^bag 20: ({message})"):
        model.predict(bags)
    lazy = (model.predict(store), features(store, embedding))
    for array in lazy:
        with pytest.raises(DataError, match=rf"s\.zarr, bag 20: ({message})"):
            array.compute()


def test_features_of_mismatched_parts(store, tmp_path):
    """A fitted basis for other data is refused when features are asked for, not when computed."""
    embedding = ProjectionEmbedding(n_per_dim=3).fit(store)
    flat = stored(tmp_path / "flat.zarr", [bag[:, :1] for bag in BAGS], None)
    with pytest.raises(DataError, match="bags have dimension 1, the embedding was fitted for 2"):
        features(flat, embedding)
    second = RandomFourierFeatures(n_features=8).fit(np.random.default_rng(0).random((9, 5)))
    with pytest.raises(DataError, match="9 coefficients, the random features were fitted for 5"):
        features(store, embedding, second)


def test_pairs_of_an_event_and_a_time_are_not_two_targets():
    """As a structured array is refused; an array with a column per target is fitted."""
    pairs = [(bool(time > 0), float(time)) for time in Y]
    with pytest.raises(DataError, match="a flag next to numbers; give the numbers alone"):
        small().fit(BAGS, pairs)
    records = np.array(pairs, dtype=[("event", bool), ("time", float)])
    with pytest.raises(DataError, match="y has the fields"):
        small().fit(BAGS, records)
    assert small().fit(BAGS, np.array(pairs, dtype=float)).predict(BAGS).shape == (30, 2)
