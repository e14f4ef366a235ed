"""Intervals are wider for bags of larger errors: the scale is learnt, saved, and left out where
all bags have one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bagbasis import DoubleBasisRegressor, load_model
from bagbasis.models import RidgeModel
from bagbasis.models.intervals import error_scale, fold_calibration
from bagbasis.models.intervals.calibration import Calibration
from bagbasis.models.intervals.error_scale import ErrorRows, ErrorScale
from bagbasis.models.intervals.fold_calibration import FoldCalibration
from tests.models.predicting import bases, features_of, regressor
from tests.oracles.conformal import intervals_by_folds
from tests.oracles.labelled import stored
from tests.oracles.planned import Reals, folds_by_content

N = 160


def bags_of_unequal_noise(n, seed=0):
    """Labels are noisy means of bags of 2 to 200 points in the unit square."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(np.log(2), np.log(200), n)).astype(int)
    centres = rng.uniform(0.3, 0.7, n)
    bags = [np.clip(rng.normal(c, 0.2, (k, 2)), 0, 1) for c, k in zip(centres, sizes, strict=True)]
    return bags, centres + rng.normal(size=n) / sizes**0.5


BAGS, Y = bags_of_unequal_noise(N)
NEW, _ = bags_of_unequal_noise(30, 1)


def sizes_of(bags):
    return np.array([len(bag) for bag in bags])


def rows(scale_of, n=400, seed=0, n_targets=1):
    """Errors of normal labels whose deviation is a function of features (n, 3) and sizes (n,)."""
    rng = np.random.default_rng(seed)
    z, sizes = rng.normal(size=(n, 3)), rng.integers(2, 300, n)
    errors = np.abs(rng.normal(size=(n, n_targets))) * scale_of(z, sizes)[:, None]
    return ErrorRows(np.arange(n) % 5, errors, sizes.astype(float), z)


SCALES = {
    "sizes": lambda z, n: 1 / n**0.5,
    "a floor and sizes": lambda z, n: (0.01 + 1 / n) ** 0.5,
    "features": lambda z, n: np.exp(z[:, 0] - 0.5 * z[:, 2]),
    "both, in small units": lambda z, n: 1e-9 * np.exp(z[:, 1]) / n**0.5,
    "features, the more the larger": lambda z, n: np.exp(z[:, 1] * np.log(n / 2) / 3),
}


@pytest.mark.parametrize("scale_of", SCALES.values(), ids=SCALES)
def test_what_errors_depend_on(scale_of):
    """The scale follows the deviation, of which one scale for all bags explains nothing."""
    scale = ErrorScale.learnt(rows(scale_of), n_folds=2)
    new = rows(scale_of, seed=1)
    result = scale.of(new.features, new.sizes)
    assert result.shape == (400, 1, 2)
    true = np.log(scale_of(new.features, new.sizes))
    for logs in np.log(result[:, 0]).T:
        assert np.std(logs - true) < 0.45 * np.std(true)


def test_features_may_count_more_in_large_bags(monkeypatch):
    """Interactions are learnt and saved; a scale without them has the columns of before."""
    learnt, new = (rows(SCALES["features, the more the larger"], seed=seed) for seed in range(2))
    true = np.log(SCALES["features, the more the larger"](new.features, new.sizes))

    def spread_of(scale):
        logs = np.log(scale.of(new.features, new.sizes)[:, 0, 0])
        return np.std(logs - true) / np.std(true)

    scale = ErrorScale.learnt(learnt)
    assert scale.coef.shape == (1, 1, 3 + 2 + 3)
    part = Calibration(np.ones((9, 1)), scale=scale)
    again = Calibration.from_state(part.state(), 1, 3).scale
    np.testing.assert_array_equal(
        again.of(new.features, new.sizes), scale.of(new.features, new.sizes)
    )
    monkeypatch.setattr(error_scale, "INTERACTION_PENALTIES", ())
    without = ErrorScale.learnt(learnt)
    assert without.coef.shape == (1, 1, 3 + 2)
    assert spread_of(scale) < 0.7 * spread_of(without)


NO_SCALES = {
    "one deviation": rows(lambda z, n: np.ones(len(n))),
    "few errors": rows(SCALES["sizes"], 99),
    "no errors": rows(lambda z, n: np.zeros(len(n))),
    "infinite errors": rows(lambda z, n: np.full(len(n), np.inf)),
    "many targets": rows(SCALES["sizes"], n_targets=error_scale.MAX_SCALED_TARGETS + 1),
    "nothing to depend on": ErrorRows(
        np.arange(200) % 5, np.arange(200.0)[:, None], np.full(200, 7.0), np.ones((200, 4))
    ),
}


@pytest.mark.parametrize("value", NO_SCALES.values(), ids=NO_SCALES)
def test_one_scale_serves(value):
    """It is then left out."""
    assert ErrorScale.learnt(value) is None


def test_each_target_has_its_own():
    """Errors of one target depend on the size, those of the other on nothing."""
    first, second = rows(SCALES["sizes"]), rows(lambda z, n: np.ones(len(n)), seed=3)
    errors = np.hstack([first.errors, second.errors])
    scale = ErrorScale.learnt(ErrorRows(first.folds, errors, first.sizes, first.features))
    values = scale.of(first.features, first.sizes)[:, :, 0]
    assert np.ptp(np.log(values[:, 0])) > 1
    assert np.ptp(values[:, 1]) == 0


def straight(scale):
    """The scale without its curve."""
    return replace(scale, knots=scale.knots[:, :, :0], bends=np.zeros_like(scale.bends[:, :, :2]))


def test_no_bag_goes_beyond_those_known():
    """Neither a size nor features that no bag had make an interval endless."""
    known = rows(SCALES["both, in small units"])
    scale = ErrorScale.learnt(known)
    far = np.array([[0.0, 1e9, 0.0], [0.0, -1e9, 0.0]]), np.array([1, 10**9])
    least, most = np.exp(scale.limits[0, 0])
    np.testing.assert_allclose(straight(scale).of(*far).ravel(), [most, least])
    scales = scale.of(known.features, known.sizes)
    assert scales.min() * (1 - 1e-9) <= scale.of(*far).min()
    assert scale.of(*far).max() <= scales.max() * (1 + 1e-9)


def noise_at_once(z, n):
    """Twenty times the noise beyond a value of a feature."""
    return np.where(z[:, 0] > 0.4, 1.0, 0.05)


def test_noise_that_begins_at_once():
    """A curve is added to a scale that would be too even; it is of straight pieces."""
    scale = ErrorScale.learnt(rows(noise_at_once), n_folds=2)
    assert scale.is_curved
    new = rows(noise_at_once, seed=1)
    arguments, true = (new.features, new.sizes), np.log(noise_at_once(new.features, new.sizes))
    logs, without = np.log(scale.of(*arguments)[:, 0]), np.log(straight(scale).of(*arguments)[:, 0])
    for fold in range(2):
        assert np.std(logs[:, fold] - true) < 0.95 * np.std(without[:, fold] - true)
        intercept, slope, *bends = scale.bends[fold, 0]
        for log, before in zip(logs[:, fold], without[:, fold], strict=True):
            pieces = zip(bends, scale.knots[fold, 0], strict=True)
            added = sum(bend * (before - knot) for bend, knot in pieces if before > knot)
            assert log == pytest.approx(before + intercept + slope * before + added, abs=1e-9)


def rows_near_a_threshold(seed):
    """Errors, loud beyond a threshold, of bags whose features tell roughly where they are."""
    rng = np.random.default_rng(seed)
    hidden, sizes = rng.normal(size=1000), np.full(1000, 50.0)
    is_loud = hidden > 0.4
    errors = np.where(is_loud, 1.0, 0.05) * np.abs(rng.normal(size=1000))
    z = hidden[:, None] + rng.normal(0, 0.2, (1000, 2))
    return is_loud, ErrorRows(np.arange(1000) % 5, errors[:, None], sizes, z)


@pytest.mark.parametrize(("power", "least", "most"), [(1, 0, 0.848), (6, 0.852, 0.9)])
def test_bags_that_may_be_loud_count_as_loud(power, least, most, monkeypatch):
    """Intervals of .9 hold more labels of loud bags than if the scale were the mean error."""
    monkeypatch.setattr(error_scale, "POWER", power)
    shares = []
    for seed in range(5):
        _, learnt = rows_near_a_threshold(seed)
        is_loud, new = rows_near_a_threshold(100 + seed)
        scaled = new.errors[:, 0] / ErrorScale.learnt(learnt).of(new.features, new.sizes)[:, 0, 0]
        shares.append((scaled <= np.quantile(scaled, 0.9))[is_loud].mean())
    assert least < np.mean(shares) < most


def test_outliers_do_not_widen_intervals(monkeypatch):
    """Twenty errors of a thousand are ten times as large; the widths are hardly larger."""
    _, learnt = rows_near_a_threshold(0)
    _, new = rows_near_a_threshold(100)

    def mean_width(n_outliers):
        errors = learnt.errors.copy()
        errors[np.random.default_rng(1).permutation(1000)[:n_outliers]] *= 10
        scale = ErrorScale.learnt(replace(learnt, errors=errors))
        scales = scale.of(new.features, new.sizes)[:, 0, 0]
        return np.quantile(new.errors[:, 0] / scales, 0.9) * scales.mean()

    assert mean_width(20) < 1.1 * mean_width(0)
    monkeypatch.setattr(error_scale, "MAX_RATIO", np.inf)
    assert mean_width(20) > 1.3 * mean_width(0)


def test_a_curve_is_saved():
    """Under a name of its own: a version that knows no curve finds no intervals."""
    scale = ErrorScale.learnt(rows(noise_at_once), n_folds=2)
    part = FoldCalibration(np.zeros((2, 1, 3)), np.zeros((2, 1)), np.ones((9, 1)), [4, 5])
    for its_scale, name in ((scale, "curved"), (straight(scale), "scaled")):
        state = replace(part, scale=its_scale).state()
        key = f"{name}_fold_calibration"
        assert list(state.attributes) == [key]
        assert set(FoldCalibration.array_names(state.attributes)) == set(state.arrays)
        again = FoldCalibration.from_state(state, 1, 3).scale
        value = rows(noise_at_once, seed=1)
        expected = its_scale.of(value.features, value.sizes)
        np.testing.assert_array_equal(again.of(value.features, value.sizes), expected)
    damaged = replace(part, scale=replace(scale, knots=scale.knots[:, :, 1:])).state()
    with pytest.raises(ValueError, match="bends of the scale has shape"):
        FoldCalibration.from_state(damaged, 1, 3)


@pytest.mark.parametrize("cv", [2, 7])
def test_by_the_definition(cv, tmp_path):
    """Errors are in units of the scale of their fold, in memory, saved, and of a store."""
    y = np.stack([Y, 9 * Y**2], axis=1)
    model = regressor().fit(BAGS, y).conformalize(BAGS, y, cv=cv)
    scale, (z, z_new) = model.calibration_.scale, (features_of(model, b) for b in (BAGS, NEW))
    scales = scale.of(z, sizes_of(BAGS)), scale.of(z_new, sizes_of(NEW))
    folds = folds_by_content(BAGS, y, cv)
    ends = intervals_by_folds(z, y, z_new, folds, model.alpha_ / N, 0.8, scales=scales)
    result = np.stack(model.predict_interval(NEW, coverage=0.8))
    np.testing.assert_allclose(result, ends, rtol=1e-6, atol=1e-8)
    widths = (result[1] - result[0])[:, 0]
    assert np.corrcoef(np.log(widths), np.log(sizes_of(NEW)))[0, 1] < -0.8
    model.save(tmp_path / "m.zarr")
    store = stored(tmp_path / "s.zarr", NEW, np.zeros(30), chunk_points=100)
    loaded = load_model(tmp_path / "m.zarr")
    np.testing.assert_array_equal(np.stack(loaded.predict_interval(NEW, coverage=0.8)), result)
    lazy = np.stack([np.asarray(end) for end in loaded.predict_interval(store, coverage=0.8)])
    np.testing.assert_allclose(lazy, result, rtol=1e-9)


def test_of_bags_held_out():
    """The bags fitted teach the scale, those held out give the errors in its units."""
    model = regressor().fit(BAGS, Y, holdout=0.3)
    calibration, n_held = model.calibration_, model.report_["n_bags_held_out"]
    assert len(calibration.errors) == n_held
    low, high = model.predict_interval(NEW, coverage=0.8)
    scales = calibration.scale.of(features_of(model, NEW), sizes_of(NEW))[:, 0, 0]
    np.testing.assert_allclose((high - low) / 2, calibration.margins(0.8) * scales)
    again = model.conformalize(BAGS, Y).calibration_
    np.testing.assert_array_equal(again.errors, calibration.errors)
    np.testing.assert_array_equal(again.scale.coef, calibration.scale.coef)


def test_of_bags_with_many_points(monkeypatch):
    """Evenly spread ones teach the scale, and never fewer than it takes."""
    model, source = regressor().fit(BAGS, Y), Reals.label(BAGS, Y, None)
    folded, n_points = model.model_.folded(1e-9), sum(map(len, BAGS))
    every = folded.learn_scale(source, 5)
    monkeypatch.setattr(fold_calibration, "MAX_POINTS", int(0.8 * n_points))
    some = folded.learn_scale(source, 5)
    assert (some.coef != every.coef).any()
    assert some.sizes != every.sizes
    monkeypatch.setattr(fold_calibration, "MAX_POINTS", 1)
    assert folded.learn_scale(source, 5) is not None


def test_of_other_bags():
    """A third of 300 bags or more teaches the scale, and is left out of the errors."""
    model = DoubleBasisRegressor("moments", False, alpha=1.0).fit(BAGS, Y)
    for n, n_errors, is_scaled in ((300, 200, True), (297, 297, False)):
        calibration = model.conformalize(*bags_of_unequal_noise(n, 2)).calibration_
        assert len(calibration.errors) == n_errors
        assert (calibration.scale is not None) == is_scaled


def test_saved_under_another_name():
    """A version that knows no scale finds no intervals, where it would find wrong ones."""
    model = regressor().fit(BAGS, Y).conformalize(BAGS, Y, cv=4)
    attributes = model.model_.state().attributes
    assert "curved_fold_calibration" in attributes
    assert "fold_calibration" not in attributes
    names = RidgeModel.array_names(attributes, Reals)
    assert {"fold_calibration_errors", "fold_calibration_scale_coef"} <= set(names)
    plain = Calibration(np.array([[1.0], [2.0]]))
    assert plain.state().attributes == {"calibration": {}}
    damaged = model.model_.state()
    damaged.arrays["fold_calibration_scale_coef"] = np.zeros((3, 1, 4))
    with pytest.raises(ValueError, match="coef of the scale has shape"):
        type(model.calibration_).from_state(damaged, 1, model.features_.n_features)


class _Constant:
    """A model that says 7 of each bag."""

    def decision_rows(self, bags):
        return np.full((len(bags), 1), 7.0)


def test_errors_of_models_that_choose_anew():
    """Each fold's errors are of a model that was chosen and fitted without the fold."""
    model = regressor().fit(BAGS[:30], Y[:30])
    source, seen = Reals.label(BAGS[:30], np.where(np.arange(30) == 4, np.nan, Y[:30]), None), []

    def fit(bags):
        seen.append(np.concatenate([batch.index for batch in bags.batches()]))
        return _Constant()

    made = model.model_.folded(1e-9).calibrate(source, 4, choose_anew=fit)
    labelled = np.arange(30) != 4
    folds = folds_by_content(BAGS[:30], np.where(labelled, Y[:30], np.nan), 4)
    for j, index in enumerate(seen):
        np.testing.assert_array_equal(index, np.flatnonzero((folds != j) & labelled))
    expected = [np.sort(np.abs(7 - Y[:30][(folds == j) & labelled])) for j in range(4)]
    np.testing.assert_array_equal(made.errors[:, 0], np.concatenate(expected))
    assert made.sizes == [len(part) for part in expected]
    assert made.scale is None


def test_few_bags_choose_anew():
    """Where the embedding was chosen, errors are larger than those of folds that all had a say."""
    bags, y = BAGS[:16], Y[:16]
    automatic = DoubleBasisRegressor(random_features=False).fit(bags, y)
    fixed = automatic.model_.folded(1e-9).calibrate(Reals.label(bags, y, None), 2)
    chosen = automatic.conformalize(bags, y, cv=2).calibration_
    np.testing.assert_array_equal(chosen.coef, fixed.coef)
    assert (chosen.errors != fixed.errors).any()
    named = DoubleBasisRegressor(*bases(), alpha=1.0).fit(bags, y)
    fixed = named.model_.folded(1e-7).calibrate(Reals.label(bags, y, None), 2)
    chosen = named.conformalize(bags, y, cv=2).calibration_
    np.testing.assert_array_equal(chosen.errors, fixed.errors)
