"""Intervals have the coverage that they promise, per bag or per group, and go with the model."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from bagbasis import BagError, DataError, ModelError, ParameterError, load_model
from bagbasis.models import write_predictions
from bagbasis.models.intervals import calibration
from bagbasis.models.intervals.calibration import Calibration
from tests.models.predicting import BAGS, N, Y, classifier, fitted, regressor
from tests.models.splits import held_out
from tests.oracles.labelled import labelled_bags, stored
from tests.workers import two_workers

REPEATS = 200


def assert_promised(shares, promised):
    """The mean of the repeats is within two standard errors of what was promised."""
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - promised) <= 2 * error


@pytest.mark.long
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_coverage(coverage):
    """With 99 held-out bags, in 200 repeats; another model's errors have another distribution."""
    bags, y = labelled_bags(REPEATS * 199, most=3, seed=5)
    errors = np.abs(fitted("one target").predict(bags) - y).reshape(REPEATS, 199)
    margins = [Calibration(np.sort(row[:99])[:, None]).margins(coverage)[0] for row in errors]
    assert_promised((errors[:, 99:] <= np.array(margins)[:, None]).mean(axis=1), coverage)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.integers(1, 99))
def test_a_margin_is_the_least_error_that_enough_others_reach(errors, percent):
    """⌈(m + 1) · coverage⌉ of m errors do not exceed it; if m is too small, that is said."""
    calibration = Calibration(np.sort(errors)[:, None])
    enough = Fraction(percent, 100) * (len(errors) + 1)
    reached = [e for e in errors if sum(other <= e for other in errors) >= enough]
    if reached:
        assert calibration.margins(percent / 100) == [min(reached)]
    else:
        with pytest.raises(ParameterError, match="held-out bags"):
            calibration.margins(percent / 100)


@pytest.mark.long
def test_coverage_by_groups():
    """Large groups are easy, small ones hard: a bag of a new group is covered as promised, if one
    bag of each group counts, and much less often if all do."""
    rng = np.random.default_rng(1)
    model, shares = regressor().fit(BAGS, Y), {True: [], False: []}
    for _ in range(REPEATS):
        hard = rng.random(40) < 0.5
        sizes = np.where(hard, 1, 12)
        groups = np.repeat(np.arange(40), sizes)
        bags, y = labelled_bags(int(sizes.sum()), most=3, seed=int(rng.integers(2**31)))
        y = y + (rng.standard_normal(40) * np.where(hard, 5, 0.1))[groups]
        old = groups < 19  # ⌈20 · .9⌉ = 18 of 19: .9 exactly
        new = np.flatnonzero(np.diff(groups, prepend=-1) * (groups >= 19))  # one bag of each
        for counts, actual in shares.items():
            grouped = {"groups": groups[old]} if counts else {}
            known = [bag for bag, is_old in zip(bags, old, strict=True) if is_old]
            model.conformalize(known, y[old], **grouped)
            low, high = model.predict_interval([bags[i] for i in new], coverage=0.9)
            actual.append(((low <= y[new]) & (y[new] <= high)).mean())
    assert_promised(shares[True], 0.9)
    assert np.mean(shares[False]) < 0.8


@pytest.mark.long
def test_fit_with_a_holdout(tmp_path):
    """The errors of the bags held out, sorted; saved, of a store on a cluster, and in files."""
    table = np.stack([Y, 9 * Y], axis=1)
    table[::5] = np.nan
    store = stored(tmp_path / "s.zarr", BAGS, table, ["a", "b"], chunk_points=100)
    model = regressor().fit(store, target=["b", "a"], holdout=0.4)
    out = held_out(0.4, N) & ~np.isnan(table[:, 0])
    errors = np.abs(model.predict(BAGS) - table[:, ::-1])[out]
    np.testing.assert_allclose(model.calibration_.errors, np.sort(errors, axis=0), rtol=1e-9)
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    low, high = loaded.predict_interval(BAGS, coverage=0.5)
    widths = 2 * np.sort(errors, axis=0)[int(np.ceil((len(errors) + 1) / 2)) - 1]
    np.testing.assert_allclose(high - low, np.tile(widths, (N, 1)), rtol=1e-9)
    np.testing.assert_allclose((low + high) / 2, model.predict(BAGS), rtol=1e-9)
    with two_workers():
        again = regressor().fit(store, target=["b", "a"], holdout=0.4)
        np.testing.assert_allclose(again.calibration_.errors, np.sort(errors, axis=0), rtol=1e-9)
        for lazy, now in zip(
            loaded.predict_interval(store, coverage=0.5), (low, high), strict=True
        ):
            np.testing.assert_allclose(lazy.compute(), now, rtol=1e-9)
    asked = {"columns": ["upper", "lower"], "coverage": 0.5}
    write_predictions(loaded, store, tmp_path / "p", format="parquet", **asked)
    table = pd.read_parquet(tmp_path / "p")
    assert table.columns.tolist() == ["id", "b", "a", "upper_b", "upper_a", "lower_b", "lower_a"]
    np.testing.assert_allclose(table[["lower_b", "lower_a"]], low, rtol=1e-9)


def test_one_bag_of_each_group_held_out(tmp_path):
    """A holdout by groups calibrates by groups; `conformalize` takes a column, too."""
    days = np.arange(N) // 5
    store = stored(tmp_path / "s.zarr", BAGS, np.stack([Y, days], axis=1), ["y", "day"])
    model = regressor().fit(store, target="y", holdout={"fraction": 0.4, "groups": "day"})
    assert 5 * len(model.calibration_.errors) == model.report_["n_bags_held_out"]
    labels = np.stack([Y[::-1], days], axis=1)  # in another order: a copy would be known
    other = stored(tmp_path / "o.zarr", BAGS[::-1], labels, ["y", "day"])
    assert len(model.conformalize(other, groups="day").calibration_.errors) == N / 5
    assert len(model.conformalize(other).calibration_.errors) == N


def test_many_bags(monkeypatch):
    """No more errors than serve are kept, of bags and groups that a hash chooses."""
    monkeypatch.setattr(calibration, "MAX_COVERED_BAGS", 20)
    model = regressor().fit(BAGS[: N // 2], Y[: N // 2])
    everything = np.abs(model.predict(BAGS) - Y).round(9)
    for groups in (None, np.minimum(np.arange(N), 35)):
        selected = model.conformalize(BAGS, Y, groups=groups).calibration_.errors[:, 0]
        assert len(selected) == 20
        assert np.isin(selected.round(9), everything).all()


def test_a_refused_bag_does_not_take_the_fit_with_it(monkeypatch, warned):
    """The model is there, without intervals; a warning says why."""

    def refused(*_, **__):
        raise BagError(3, "it is odd")

    monkeypatch.setattr(calibration, "run_pass", refused)
    model = regressor().fit(BAGS, Y, holdout=0.3)
    assert model.calibration_ is None
    assert "the model has no intervals" in warned.text


def test_refusals(tmp_path):
    """What is missing is named, and what to do about it."""
    plain = regressor().fit(BAGS, Y)
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    with pytest.raises(ModelError, match="was fitted to these bags"):
        regressor().fit(store).conformalize(store)
    with pytest.raises(DataError, match="there are 2 targets, the model has 1"):
        plain.conformalize(BAGS[:-1], np.stack([Y, Y], axis=1)[:-1])
    with pytest.raises(DataError, match="no labelled bag"):
        plain.conformalize(BAGS[:-1], np.full(N - 1, np.nan))
    classes = classifier().fit(BAGS, Y > 0)
    with pytest.raises(ModelError, match="a model of classes has no column 'lower'"):
        write_predictions(classes, store, tmp_path / "p", columns=["lower"])
