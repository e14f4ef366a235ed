"""Nothing learns from removed bags, judges on them, compares or predicts them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import zarr

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ModelError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    cross_val_score,
    evaluate,
    features,
)
from bagbasis.densities import choose_smoothness
from bagbasis.hypotheses import independence_test, two_sample_test
from bagbasis.models import write_predictions
from tests.oracles.labelled import labelled_bags

N = 80
GONE = np.array([0, 3, 4, 5, 40, 79])
KEPT = np.setdiff1d(np.arange(N), GONE)
BASES = ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=16, scale=0.7, seed=3)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Return a store without some bags, and its twin in which they are there, unlabelled."""
    folder, made = tmp_path_factory.mktemp("removed"), {}
    bags, y = labelled_bags(N, seed=1)
    for name in ("removed", "unlabelled"):
        store = BagStore.create(
            folder / name, 2, target_names=["y"], dtype=np.float64, chunk_points=50
        )
        targets = np.where(np.isin(np.arange(N), GONE) & (name != "removed"), np.nan, y)
        made[name] = store.append(bags, targets, ids=[f"b{i}" for i in range(N)])
    made["removed"].remove([f"b{i}" for i in GONE])
    return made["removed"], made["unlabelled"], Bags.from_list([bags[i] for i in KEPT])


def regressor():
    return DoubleBasisRegressor(*BASES, alpha="gcv", precision="float64")


@pytest.mark.long
def test_what_learns_and_judges_takes_them_as_unlabelled(stores):
    """Fits, errors, K folds and scores are those of a store where they never had a label."""
    removed, unlabelled, _ = stores
    models = [regressor().fit(store, holdout=0.2) for store in (removed, unlabelled)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[0].report_["n_bags_fitted"] == models[1].report_["n_bags_fitted"]
    judged = [evaluate(models[0], store, subset="all") for store in (removed, unlabelled)]
    assert judged[0].n == judged[1].n == len(KEPT)
    assert judged[0].error == judged[1].error
    assert models[0].score(removed) == models[1].score(unlabelled)
    scores = [cross_val_score(regressor(), store, cv=3) for store in (removed, unlabelled)]
    np.testing.assert_array_equal(*[np.asarray(score) for score in scores])


@pytest.mark.long
def test_bags_that_are_looked_at_for_themselves_are_the_others(stores):
    """Choices, tests and features are those of the remaining bags in memory."""
    removed, unlabelled, selected = stores
    rows = np.asarray(features(removed, *BASES, dtype="float64"))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(rows).any(axis=1)), GONE)
    np.testing.assert_array_equal(
        rows[KEPT], np.asarray(features(unlabelled, *BASES, dtype="float64"))[KEPT]
    )
    options = {"kind": "series", "box": removed.box}
    chosen = [choose_smoothness(data, **options) for data in (removed, selected)]
    np.testing.assert_allclose(chosen[0].scores, chosen[1].scores, rtol=1e-12)
    other = [bag**2 for bag in labelled_bags(30, seed=2)[0]]
    for unit in ("bag", "point"):
        tests = [two_sample_test(data, other, unit=unit) for data in (removed, selected)]
        assert tests[0].p_value == tests[1].p_value
        np.testing.assert_allclose(tests[0].statistic, tests[1].statistic, rtol=1e-9)
    y = removed.targets()[KEPT, 0]
    tests = [independence_test(removed, "y"), independence_test(selected, y)]
    np.testing.assert_allclose(tests[0].statistic, tests[1].statistic, rtol=1e-9)


@pytest.mark.long
def test_predictions_leave_them_out(stores, tmp_path):
    """Lazy and written arrays have NaN and no id there; Parquet has no row; classes are -1."""
    removed, unlabelled, selected = stores
    model = regressor().fit(unlabelled)
    expected = model.predict(selected)
    for rows in (
        np.asarray(model.predict(removed)),
        KernelSmoother(*BASES[:1], bandwidth=0.5).fit(removed).predict(removed),
    ):
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(rows)), GONE)
    np.testing.assert_allclose(np.asarray(model.predict(removed))[KEPT], expected, rtol=1e-12)
    write_predictions(model, removed, tmp_path / "p.zarr")
    group = zarr.open_group(tmp_path / "p.zarr", mode="r")
    np.testing.assert_allclose(group["predictions"][:][KEPT], expected, rtol=1e-12)
    assert np.isnan(group["predictions"][:][GONE]).all()
    assert [group["ids"][int(i)] for i in GONE] == [""] * len(GONE)
    write_predictions(model, removed, tmp_path / "p", format="parquet")
    frame = pd.read_parquet(tmp_path / "p").set_index("id")["y"]
    assert sorted(frame.index) == sorted(f"b{i}" for i in KEPT)
    np.testing.assert_allclose(frame[[f"b{i}" for i in KEPT]], expected, rtol=1e-12)
    classes = DoubleBasisClassifier(*BASES, alpha=0.1).fit(selected, np.arange(len(selected)) % 2)
    values = np.asarray(classes.predict(removed))
    np.testing.assert_array_equal(np.flatnonzero(values == -1), GONE)


@pytest.mark.parametrize("classes", [[False, True], [-1, 1]])
def test_classes_that_leave_no_value_for_them(stores, classes, tmp_path):
    """Neither false nor -1 says that a bag is missing: probabilities, sets and files do."""
    removed, unlabelled, selected = stores
    y = np.array(classes)[np.arange(len(selected)) % 2]
    model = (
        DoubleBasisClassifier("moments", alpha=0.1).fit(selected, y).conformalize(selected, y, cv=5)
    )
    expected = model.predict(selected)
    with pytest.raises(ModelError, match=r"6 bags were removed, and the classes .*predict_proba"):
        model.predict(removed)
    np.testing.assert_array_equal(model.predict(unlabelled).compute()[KEPT], expected)
    shares = model.predict_proba(removed).compute()
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(shares).all(axis=1)), GONE)
    sets = model.predict_set(removed).compute()
    assert not sets[GONE].any()
    np.testing.assert_array_equal(sets[KEPT], model.predict_set(selected))
    write_predictions(model, removed, tmp_path / "p.zarr")
    group = zarr.open_group(tmp_path / "p.zarr", mode="r")
    assert [group["ids"][int(i)] for i in GONE] == [""] * len(GONE)
    np.testing.assert_array_equal(group["predictions"][:][KEPT], expected)


def test_their_points_are_not_counted(stores):
    """`n_points` is what `read` gives, on a copy that was pickled, too; repr says how many went."""
    removed, unlabelled, selected = stores
    assert removed.n_points == selected.n_points == pickle.loads(pickle.dumps(removed)).n_points
    assert unlabelled.n_points > selected.n_points
    assert f"n_removed={len(GONE)}" in repr(removed)
    assert "n_removed" not in repr(unlabelled)
