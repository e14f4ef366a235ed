"""Intervals from folds are those of the definition, have the coverage, and go with the model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bagbasis import (
    DataError,
    DoubleBasisRegressor,
    ModelError,
    MomentsEmbedding,
    ParameterError,
    load_model,
)
from bagbasis.data.labelled.column_splits import GroupFolds
from bagbasis.data.labelled.columns import Column
from bagbasis.models import write_predictions
from bagbasis.models.intervals import calibration
from bagbasis.models.intervals.fold_calibration import FoldCalibration
from tests.models.predicting import BAGS, N, Y, bases, features_of, regressor
from tests.models.splits import held_out
from tests.oracles.conformal import intervals_by_folds
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.planned import folds_by_content

NEW, _ = labelled_bags(23, most=30, seed=9)
TWO = np.stack([Y, 9 * Y**2], axis=1)
DRAWS = 50


def check(model, bags, y, folds, coverage=0.8, counted=None, weights=None, fitted=None):
    """The intervals are those of models that are fitted one by one; ``fitted`` weighed so much."""
    weight = fitted or (len(bags) if weights is None else weights.sum())
    rows = features_of(model, bags), y.reshape(len(y), -1), features_of(model, NEW)
    ends = intervals_by_folds(*rows, folds, model.alpha_ / weight, coverage, counted, weights)
    for actual, expected in zip(model.predict_interval(NEW, coverage=coverage), ends, strict=True):
        np.testing.assert_allclose(actual.reshape(len(NEW), -1), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("y", [Y, TWO], ids=["one target", "two targets"])
@pytest.mark.parametrize("cv", [2, 7])
@pytest.mark.parametrize("sums", [False, True], ids=["from rows", "from sums"])
def test_by_the_definition(y, cv, sums):
    """Both where there are fewer bags than features, and more."""
    bags, y = (BAGS, y) if sums else (BAGS[:30], y[:30])
    model = regressor().fit(bags, y).conformalize(bags, y, cv=cv)
    folds = folds_by_content(bags, y, cv)
    for coverage in (0.1, 0.8):
        check(model, bags, y, folds, coverage)


def test_every_bag_by_itself():
    """As many folds as bags: jackknife+."""
    model = regressor().fit(BAGS[:40], Y[:40]).conformalize(BAGS[:40], Y[:40], cv=40)
    check(model, BAGS[:40], Y[:40], np.arange(40), 0.9)


def test_weights_and_missing_labels():
    """Folds are those of the labelled bags; a weight counts as in fit."""
    weights = np.random.default_rng(0).uniform(0, 2, N)
    y = np.where(np.arange(N) % 9 == 4, np.nan, Y)
    there = np.flatnonzero(~np.isnan(y))
    model = regressor().fit(BAGS, y, sample_weight=weights)
    model.conformalize(BAGS, y, cv=5, sample_weight=weights)
    folds = folds_by_content([BAGS[i] for i in there], y[there], 5)
    arguments = [BAGS[i] for i in there], y[there], folds
    check(model, *arguments, weights=weights[there])


def test_beside_a_baseline():
    """Its penalty per bag is the model's, too: coefficients solve both together."""
    model = regressor(baseline="linear").fit(BAGS, Y)
    model.conformalize(BAGS, Y, cv=5)
    folds = folds_by_content(BAGS, Y, 5)
    share = {j: (folds != j).mean() for j in range(5)}
    for j in range(5):
        rest = np.flatnonzero(folds != j)
        z, y = features_of(model, BAGS)[rest], Y[rest]
        d = model.features_.n_penalized
        penalties = np.full(z.shape[1], model.report_["baseline_alpha"] * share[j])
        penalties[:d] = model.alpha_ * share[j]
        centred = z - z.mean(axis=0)
        psi = np.linalg.solve(centred.T @ centred + np.diag(penalties), centred.T @ (y - y.mean()))
        values = features_of(model, NEW) @ model.calibration_.coef[j, 0]
        np.testing.assert_allclose(values, features_of(model, NEW) @ psi, rtol=1e-6)


@pytest.mark.long
def test_coverage():
    """With 500 bags in ten folds, over 50 draws: .90 ± .01; no wider than with 50 held out."""
    shares, widths = {"folds": [], "split": []}, {"folds": [], "split": []}

    def judge(name, model, X, y):
        low, high = model.predict_interval(X, coverage=0.9)
        shares[name].append(((low <= y) & (y <= high)).mean())
        widths[name].append((high - low).mean())

    for seed in range(DRAWS):
        bags, y = labelled_bags(700, most=3, seed=seed)
        y = y + 0.3 * np.random.default_rng(seed).standard_normal(700)
        new = bags[500:], y[500:]
        model = DoubleBasisRegressor(MomentsEmbedding(), False, alpha=1.0)
        model.fit(bags[:500], y[:500]).conformalize(bags[:500], y[:500], cv=10)
        judge("folds", model, *new)
        if seed % 2 == 0:
            model.fit(bags[50:500], y[50:500]).conformalize(bags[:50], y[:50])
            judge("split", model, *new)
    assert abs(np.mean(shares["folds"]) - 0.9) < 0.01
    assert np.std(shares["folds"]) < 0.8 * np.std(shares["split"])
    gaps = np.subtract(widths["folds"][::2], widths["split"])
    assert gaps.mean() < 2 * gaps.std() / len(gaps) ** 0.5


@pytest.mark.long
@given(st.data())
def test_ranks_of_sums(data):
    """The ends are the sorted sums' own, with equal errors, folds without any and huge ones."""
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=5).filter(any))
    number = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
    centres = [data.draw(number) for _ in sizes]
    scales = [data.draw(st.sampled_from([1.0, 0.5, 3.0])) for _ in sizes]
    errors = [sorted(abs(data.draw(number)) for _ in range(n)) for n in sizes]
    flat = np.array([e for fold in errors for e in fold])[:, None]
    m = len(flat)
    rank = data.draw(st.integers(1, m))
    coverage = rank / (m + 1)
    k = len(sizes)
    made = FoldCalibration(np.zeros((k, 1, 1)), np.zeros((k, 1)), flat, sizes)
    arguments = np.zeros((1, 1)), np.array(centres).reshape(1, 1, k), coverage
    low, high = made.ends(*arguments, np.array(scales).reshape(1, 1, k))
    each = list(zip(centres, scales, errors, strict=True))
    above = sorted(c + s * e for c, s, fold in each for e in fold)
    below = sorted(c - s * e for c, s, fold in each for e in fold)
    assert (low[0, 0], high[0, 0]) == (below[m - rank], above[rank - 1])
    without = np.stack(made.ends(*arguments))
    np.testing.assert_array_equal(without, np.stack(made.ends(*arguments, np.ones((1, 1, k)))))


@pytest.mark.long
def test_of_a_store(tmp_path):
    """As in memory: the holdout is left out, with a column of weights, saved, lazily, in files."""
    weights = np.random.default_rng(0).uniform(0.5, 2, N)
    columns = np.stack([Y, weights], axis=1)
    store = stored(tmp_path / "s.zarr", BAGS, columns, ["y", "w"], chunk_points=100)
    fit = {"target": "y", "holdout": 0.2, "sample_weight": "w"}
    model = regressor().fit(store, **fit).conformalize(store, cv=4)
    saved = np.flatnonzero(~held_out(0.2, N))
    folds = folds_by_content([BAGS[i] for i in saved], Y[saved], 4)
    check(model, [BAGS[i] for i in saved], Y[saved], folds, weights=weights[saved])
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    ends = model.predict_interval(BAGS, coverage=0.5)
    for actual, now in zip(loaded.predict_interval(BAGS, coverage=0.5), ends, strict=True):
        np.testing.assert_array_equal(actual, now)
    write_predictions(loaded, store, tmp_path / "p.zarr", columns=["lower", "upper"], coverage=0.5)
    for lazy, now in zip(loaded.predict_interval(store, coverage=0.5), ends, strict=True):
        np.testing.assert_allclose(lazy.compute(), now, rtol=1e-12)
    loaded.conformalize(BAGS, Y, cv=3)
    check(loaded, BAGS, Y, folds_by_content(BAGS, Y, 3), fitted=weights[saved].sum())


@pytest.mark.long
def test_by_groups(tmp_path):
    """Folds of whole groups, of which one bag counts; the holdout's groups without saying so."""
    days = np.arange(N) // 5
    column = Column("groups", values=days)
    folds = GroupFolds(column, n_folds=4).of(np.arange(N))
    assert all(len(set(folds[days == day])) == 1 for day in days)
    model = regressor().fit(BAGS, Y).conformalize(BAGS, Y, cv=4, groups=days)
    assert len(model.calibration_.errors) == N / 5
    counted = calibration.choose_calibrating(model.outcome_.label(BAGS, Y, None), 1, column).only
    rows = np.flatnonzero(counted.members(0, N))
    check(model, BAGS, Y, folds, counted=rows)
    names = regressor().fit(BAGS, Y)
    names.conformalize(BAGS, Y, cv=4, groups=[f"day {day:02d}" for day in days])
    np.testing.assert_array_equal(names.calibration_.errors, model.calibration_.errors)
    store = stored(tmp_path / "s.zarr", BAGS, np.stack([Y, days], axis=1), ["y", "day"])
    held = regressor().fit(store, target="y", holdout={"fraction": 0.4, "groups": "day"})
    n_held = held.report_["n_bags_held_out"]
    assert len(held.conformalize(store, cv=3).calibration_.errors) == (N - n_held) / 5


@pytest.mark.long
def test_coverage_by_groups():
    """A group's bags are alike: folds of whole groups cover a bag of a new group, others do not."""
    rng, shares = np.random.default_rng(1), {True: [], False: []}
    for _ in range(20):
        groups = np.repeat(np.arange(60), 6)
        centres = rng.random((60, 2))[groups]
        bags = [np.clip(rng.normal(a, 0.02, (4, 2)), 0, 1) for a in centres]
        y = rng.standard_normal(60)[groups] + 0.05 * rng.standard_normal(360)
        old = groups < 30
        new = np.flatnonzero(np.diff(groups, prepend=-1) * (groups >= 30))
        known = [bag for bag, is_old in zip(bags, old, strict=True) if is_old]
        model = DoubleBasisRegressor(*bases(), alpha=1e-3, precision="float64").fit(known, y[old])
        for grouped, actual in shares.items():
            arguments = {"groups": groups[old]} if grouped else {}
            low, high = model.conformalize(known, y[old], cv=10, **arguments).predict_interval(
                [bags[i] for i in new], coverage=0.9
            )
            actual.append(((low <= y[new]) & (y[new] <= high)).mean())
    assert np.mean(shares[True]) > 0.88
    assert np.mean(shares[False]) < 0.75


def test_refusals(tmp_path, monkeypatch):
    """What is missing is named, and what to do about it."""
    model = regressor().fit(BAGS, Y)
    with pytest.raises(ParameterError, match="sample_weight is used with cv"):
        model.conformalize(BAGS, Y, sample_weight=np.ones(N))
    with pytest.raises(DataError, match="there is one group"):
        model.conformalize(BAGS, Y, cv=5, groups=np.zeros(N))
    with pytest.raises(DataError, match="there are 2 targets, the model has 1"):
        model.conformalize(BAGS, TWO, cv=5)
    with pytest.raises(DataError, match="no labelled bag"):
        model.conformalize(BAGS, np.full(N, np.nan), cv=5)
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    with pytest.raises(ModelError, match="give cv=10, fit with holdout="):
        regressor().fit(store).conformalize(store)
    few = model.conformalize(BAGS[:20], Y[:20], cv=5)
    with pytest.raises(ParameterError, match=r"takes 99 .* there are 20"):
        few.predict_interval(BAGS, coverage=0.99)
