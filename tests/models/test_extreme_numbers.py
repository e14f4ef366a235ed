"""Targets and parameters at the ends of what numbers hold: the same choice, or a named refusal."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bagbasis import (
    Bags,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    cross_val_score,
    evaluate,
    load_model,
)
from bagbasis.hypotheses import independence_test, two_sample_test
from bagbasis.models import permutation_importance, save_model
from bagbasis.models.fitting.accumulate import FitStatistics
from bagbasis.models.fitting.partials import read_partial, write_partial
from bagbasis.models.posterior import Posterior
from bagbasis.models.ridge.penalties import Penalties
from bagbasis.models.ridge.ridge import solve, solve_gcv, solve_validation
from tests.oracles.labelled import labelled, labelled_bags, stored
from tests.oracles.ridge_entries import collected, feature_rows

BAGS, _ = labelled_bags(60, most=9)
NOISE = np.random.default_rng(0).normal(size=60)
GRID = 10.0 ** np.arange(-6, 3)
SOLVERS = {
    "fixed": lambda rows, apart: solve(rows, 0.1, 1e-14),
    "least squares": lambda rows, apart: solve(rows, 0.0, 1e-14),
    "gcv": lambda rows, apart: solve_gcv(rows, Penalties(GRID)),
    "validation": lambda rows, apart: solve_validation(rows, apart, Penalties(GRID), 1e-14),
}

# A number that overflows on the way is refused by name, or is none of the caller's business.
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def small(kind=DoubleBasisRegressor, **params):
    return kind(ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=16), **params)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(
    solver=st.sampled_from(sorted(SOLVERS)),
    exponents=st.lists(st.integers(-950, 900), min_size=3, max_size=3),
    seed=st.integers(0, 9),
)
def test_a_power_of_two_changes_no_bit(solver, exponents, seed):
    """Solutions of targets times 2^e, each its own, are those of the targets times 2^e, and the
    same penalty with the same scores."""
    z, y = feature_rows(np.random.default_rng(seed), 90)

    def solved(targets):
        return SOLVERS[solver](collected(z[::2], targets[::2]), collected(z[1::2], targets[1::2]))

    once, times = solved(y), solved(np.ldexp(y, exponents))
    np.testing.assert_array_equal(times.coef, np.ldexp(once.coef, np.array(exponents)[:, None]))
    np.testing.assert_array_equal(times.intercept, np.ldexp(once.intercept, exponents))
    np.testing.assert_array_equal(times.scores, once.scores)
    assert times.alpha == once.alpha


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(exponents=st.lists(st.integers(-1000, 1000), min_size=2, max_size=4), seed=st.integers(0, 9))
def test_parts_of_any_size_are_merged(tmp_path_factory, exponents, seed):
    """Sums of parts in units of their own are those of all rows, in any order; a part that is
    subtracted leaves the others to the rounding of the largest; files keep the units."""
    rng = np.random.default_rng(seed)
    parts = [feature_rows(rng, 20) for _ in exponents]
    parts = [(z, np.ldexp(y, e)) for (z, y), e in zip(parts, exponents, strict=True)]
    whole = collected(*(np.concatenate(rows) for rows in zip(*parts, strict=True)))
    sums = [collected(*part) for part in parts]
    for order in (sums, sums[::-1]):
        merged = sum(order[1:], order[0])
        np.testing.assert_array_equal(merged.exponents, whole.exponents)
        for name in ("sum_y", "cross", "sum_yy"):
            np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=1e-9)
    without = whole - sums[0]
    rest = sum(sums[2:], sums[1]).in_units(whole.exponents)
    np.testing.assert_allclose(without.sum_yy, rest.sum_yy, atol=1e-12 * whole.sum_yy.max())
    path = tmp_path_factory.mktemp("sums") / "sums.npz"
    write_partial(path, FitStatistics(whole, None))
    np.testing.assert_array_equal(read_partial(path).train.exponents, whole.exponents)


@pytest.mark.parametrize("scale", [-1e160, 1e-310, 1e307])
@pytest.mark.parametrize("choice", ["gcv", "validation", "folds", "loo", "auto"])
def test_the_choice_does_not_see_the_unit(choice, scale):
    """Noise has a large penalty, or bandwidth, whatever its unit; predictions have that unit."""
    if choice == "loo":
        models = [
            KernelSmoother(ProjectionEmbedding(n_per_dim=3)).fit(BAGS, y)
            for y in (NOISE, NOISE * scale)
        ]
        chosen = [model.bandwidth_ for model in models]
    elif choice == "auto":
        models = [DoubleBasisRegressor().fit(BAGS, y) for y in (NOISE, NOISE * scale)]
        chosen = [model.report_["choice"]["chosen"] for model in models]
    else:
        models = [small(alpha=choice).fit(BAGS, y) for y in (NOISE, NOISE * scale)]
        chosen = [model.alpha_ for model in models]
    assert chosen[0] == chosen[1]
    once, times = (model.predict(BAGS) for model in models)
    rough = 1e-3 if abs(scale) < 1e-300 else 1e-6  # numbers so small have fewer digits
    np.testing.assert_allclose(times, once * scale, rtol=rough, atol=rough * abs(scale))


@pytest.mark.parametrize("origin", [1e6, 1e9])
def test_labels_far_from_zero(origin):
    """Numbers as of dates in seconds: predictions and scores of folds are those of small ones."""
    smoothers = [KernelSmoother(ProjectionEmbedding(n_per_dim=3)) for _ in range(2)]
    near, far = (
        smoother.fit(BAGS, NOISE + at).predict(BAGS) - at
        for smoother, at in zip(smoothers, (0.0, origin), strict=True)
    )
    np.testing.assert_allclose(far, near, atol=1e-5)
    near, far = (cross_val_score(small(alpha=0.1), BAGS, NOISE + at) for at in (0.0, origin))
    np.testing.assert_allclose(far, near, rtol=1e-4)


def test_many_targets_in_float32():
    """Targets that go through products in float32 need not be numbers of float32."""
    y = NOISE[:, None] * np.geomspace(1e-200, 1e200, 40)
    model = small(alpha=0.1).fit(BAGS, y)
    alone = small(alpha=0.1).fit(BAGS, NOISE).predict(BAGS)
    shares = model.predict(BAGS) / np.geomspace(1e-200, 1e200, 40)
    np.testing.assert_allclose(shares, alone[:, None] * np.ones(40), rtol=1e-3, atol=1e-4)


def test_a_solution_that_is_not_finite_is_refused(tmp_path):
    """Named by the target; so is a prediction, and an error that cannot be squared."""
    huge = np.where(np.arange(60) % 2, 1.7e308, -1.7e308)
    y = np.stack([NOISE, huge], axis=1)
    with pytest.raises(DataError, match="the solution of target 2 is not finite; its values"):
        small(alpha=1e-9, precision="float64").fit(BAGS, y)
    model = small(alpha=0.1).fit(BAGS, y * 1e-3)
    model.model_.solution.intercept[1] = np.inf
    with pytest.raises(DataError, match="a prediction of target 2 is not finite"):
        model.predict(BAGS)
    model = small(alpha=0.1).fit(BAGS, NOISE * 1e200)
    source = labelled(Bags.from_list(BAGS), NOISE)
    with pytest.raises(DataError, match="the squared error of y is not finite"):
        evaluate(model, source)


def test_features_that_are_not_finite_are_refused():
    """Before they are factored."""
    z, y = feature_rows(np.random.default_rng(0), 30)
    z[3, 5] = np.nan
    for solver in SOLVERS.values():
        with pytest.raises(DataError, match="features of the bags are not finite"):
            solver(collected(z, y), collected(z, y))


@pytest.mark.parametrize("scale", [1e-300, 1e-31, 1e31, 1e300])
def test_scales_that_float32_does_not_hold(scale):
    """A width whose frequencies are infinite, or all zero, is refused before any bag is read."""
    for alpha in (1.0, "gcv"):
        with pytest.raises(ParameterError, match="scale is 1e"):
            DoubleBasisRegressor(
                None, RandomFourierFeatures(n_features=16, scale=scale), alpha=alpha
            ).fit(BAGS, NOISE)
    with pytest.raises(ParameterError, match="bandwidth is 1e"):
        KernelSmoother(None, bandwidth=scale).fit(BAGS, NOISE)


LABELS = {
    "neighbours": np.array([2**60, 2**60 + 1, 5] * 20),
    "unsigned": np.array([2**63, 1, 5] * 20, dtype=np.uint64),
    "objects": np.array([2**60, None, 5] * 20, dtype=object),
    "objects beyond int64": np.array([2**80, 1, 5] * 20, dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
def test_integer_labels_that_would_merge_are_refused(name):
    """float64, which targets are, does not tell them from their neighbours."""
    with pytest.raises(DataError, match=r"the label \d+ is an integer beyond ±2\^53"):
        small(DoubleBasisClassifier, alpha=0.1).fit(BAGS, LABELS[name])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([1e30, 1.0], np.array([1.0, 1e30])),
        ([-(2.0**63), 0.5], np.array([-(2.0**63), 0.5])),
        ([2**53, -(2**53)], np.array([-(2**53), 2**53])),
        ([3.0, 1.0], np.array([1, 3])),
    ],
)
def test_labels_stay_themselves(labels, classes):
    """Numbers that leave the integers stay floats; whole numbers are integers."""
    model = small(DoubleBasisClassifier, alpha=0.1).fit(BAGS, np.array(labels * 30))
    np.testing.assert_array_equal(model.classes_, classes)
    assert model.classes_.dtype == classes.dtype
    assert set(model.predict(BAGS)) <= set(classes)


SCALES = [-1e160, 1e-200]
PRECISE = {"alpha": 0.1, "precision": "float64", "uncertainty": True}


@pytest.fixture(scope="module")
def pairs():
    """Bags in memory and in stores, whose labels say something, in any unit."""
    bags, _ = labelled_bags(200, most=9)
    y = np.array([bag[:, 0].mean() for bag in bags]) + np.random.default_rng(1).normal(0, 0.1, 200)
    return bags, y


def errors_of(bags, y, model):
    errors = evaluate(model, labelled(Bags.from_list(bags), y))
    values = errors.values()["y"]
    names = "rmse", "mae", "bias", "constant_rmse"
    return [values["r2"]], [errors.error, errors.constant_error, *(values[name] for name in names)]


@pytest.mark.long
@pytest.mark.parametrize("scale", SCALES)
def test_scores_do_not_see_the_unit(pairs, scale, tmp_path):
    """Neither R² nor importance does; deviations and errors have that unit, and so they are after
    the model was saved."""
    bags, y = pairs
    values = []
    for k, times in enumerate((1.0, scale)):
        labels = y * times
        store = stored(tmp_path / f"{k}.zarr", bags, labels)
        model = small(**PRECISE).fit(bags, labels)
        of_store = small(**PRECISE).fit(store, target="y")
        smoother = KernelSmoother(ProjectionEmbedding(n_per_dim=3)).fit(bags, labels)
        save_model(model, tmp_path / f"{k}.model")
        again = load_model(tmp_path / f"{k}.model")
        shares, errors = errors_of(bags, labels[:, None], model)
        importance = permutation_importance(model, bags, labels, n_repeats=2)
        shares += [
            model.score(bags, labels),
            model.score(bags, labels, sample_weight=np.arange(200) % 3),
            of_store.score(store),
            smoother.score(bags, labels),
            *importance.drop.ravel(),
            *importance.standard_error.ravel(),
            *importance.score,
        ]
        deviations = model.predict(bags, return_std=True)[1]
        np.testing.assert_array_equal(again.predict(bags, return_std=True)[1], deviations)
        values.append((shares, np.array([*errors[:4], abs(errors[4]), errors[5], *deviations])))
    (shares, errors), (others, times) = values
    np.testing.assert_allclose(others, shares, rtol=1e-6)
    np.testing.assert_allclose(times, errors * abs(scale), rtol=1e-6, atol=1e-12 * abs(scale))
    assert min(times) > 0


def compared_by_distances(statistic, null, scale):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(40, 2)), rng.normal(0.5, 1, (30, 2))
    options = {"statistic": statistic, "null": null, "n_permutations": 99, "standardize": False}
    if statistic == "energy":
        return two_sample_test(a * scale, b * scale, **options)
    return independence_test(a[:30] * scale, a[:30] + 0.3 * b, **options)


DISTANCES = [("energy", null) for null in ("permutation", "spectral", "gamma", "pearson")]
DISTANCES += [("dcov", null) for null in ("permutation", "spectral", "pearson", "shift")]


@pytest.mark.parametrize("scale", [1e-200, 1e307])
@pytest.mark.parametrize(("statistic", "null"), DISTANCES)
def test_distances_do_not_see_the_unit(statistic, null, scale):
    """p-value and effect are those of the unit 1, the statistic has the unit of the rows."""
    once, times = (compared_by_distances(statistic, null, s) for s in (1.0, scale))
    assert (times.p_value, times.effect) == pytest.approx((once.p_value, once.effect), rel=1e-6)
    for name in ("statistic", "standard_error", "null_distribution"):
        expected = getattr(once, name) * abs(scale)
        np.testing.assert_allclose(getattr(times, name), expected, rtol=1e-6)


def test_numbers_that_are_too_large_are_named(pairs):
    """By the target."""
    bags, y = pairs
    model = small(**PRECISE).fit(bags, y)
    ends = np.where(np.arange(200) % 2, 1e308, -1e308)
    with pytest.raises(DataError, match="the error of y is not finite"):
        model.score(bags, ends)
    with pytest.raises(DataError, match="the error of y is not finite"):
        errors_of(bags, ends[:, None], model)
    both = small(**PRECISE).fit(bags, np.stack([y, y * 1e300], axis=1))
    two = np.stack([y, y], axis=1)
    for refused in (both.score, partial(permutation_importance, both)):
        with pytest.raises(DataError, match=r"(R²|the squared error) of target 2 is not finite"):
            refused(bags, two)
    with pytest.raises(DataError, match="energy is too large or too small for numbers"):
        two_sample_test(ends[::2] * 1.5, ends[1::2] * 1.5, statistic="energy", n_permutations=9)
    for scale in (1e160, 1e-200):
        with pytest.raises(DataError, match="dcov is too large or too small for numbers"):
            independence_test(y * scale, y * scale, statistic="dcov", n_permutations=9)


def test_a_column_of_zeros_has_the_unit_of_what_is_predicted(pairs):
    """R² of constant labels is 0 unless they are predicted exactly, and errors are counted."""
    bags, y = pairs
    model = small(**PRECISE).fit(bags, y * 1e-200)
    zeros = np.zeros(200)
    assert model.score(bags, zeros) == 0
    [r2], (error, *_) = errors_of(bags, zeros[:, None], model)
    assert r2 == 0
    assert error == pytest.approx(1e-200 * np.sqrt(np.mean((model.predict(bags) * 1e200) ** 2)))


def test_noise_of_a_file_written_before_it_had_units():
    """It is σ² itself, of several targets, too."""
    posterior = small(**PRECISE).fit(BAGS, np.stack([NOISE, 2 * NOISE], axis=1)).model_.posterior
    state = posterior.state()
    del state.attributes["posterior"]["exponents"]
    result = Posterior.from_state(state, 2, len(posterior.mean)).deviations(
        np.ones(3), np.zeros((3, 2))
    )
    np.testing.assert_array_equal(result, posterior.deviations(np.ones(3), np.zeros((3, 2))))
    with pytest.raises(ValueError, match="exponents"):
        replace(posterior, exponents=[0, 0, 0]).check(2, len(posterior.mean))


@pytest.mark.parametrize("kind", [DoubleBasisRegressor, DoubleBasisClassifier])
@pytest.mark.parametrize("which", ["y", "sample_weight"])
def test_masked_values_are_not_scored(kind, which):
    """numpy drops masks, and would take what they hide for data."""
    labels = (NOISE > 0) * 1.0
    model = small(kind, alpha=0.1).fit(BAGS, labels)
    arguments = {"y": labels, "sample_weight": np.ones(60)}
    arguments[which] = np.ma.masked_less(NOISE, 0.5)
    with pytest.raises(DataError, match=f"{which}: 4[0-9] values are masked"):
        model.score(BAGS, **arguments)
