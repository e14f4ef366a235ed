"""Targets and parameters at the ends of what numbers hold: the same choice, or a named refusal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ProjectionEmbedding,
    RandomFourierFeatures,
    evaluate,
)
from bagbasis.bags.labelled import LabelledBags
from bagbasis.bags.labels import Targets
from bagbasis.errors import DataError, ParameterError
from bagbasis.regression.accumulate import FitStatistics
from bagbasis.regression.partials import read_partial, write_partial
from bagbasis.regression.penalties import Penalties
from bagbasis.regression.ridge import solve, solve_gcv, solve_validation
from tests.oracles.labelled import labelled_bags
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


def small(kind=DoubleBasisRegressor, **params):
    return kind(ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(16), **params)


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


@pytest.mark.parametrize("scale", [1e160, -1e160, 1e-160, 1e-200, 1e-310, 1e307])
@pytest.mark.parametrize("choice", ["gcv", "validation", "loo"])
def test_the_choice_does_not_see_the_unit(choice, scale):
    """Noise has a large penalty, or bandwidth, whatever its unit; predictions have that unit."""
    if choice == "loo":
        models = [
            KernelSmoother(ProjectionEmbedding(n_per_dim=3)).fit(BAGS, y)
            for y in (NOISE, NOISE * scale)
        ]
        chosen = [model.bandwidth_ for model in models]
    else:
        models = [small(alpha=choice).fit(BAGS, y) for y in (NOISE, NOISE * scale)]
        chosen = [model.alpha_ for model in models]
    assert chosen[0] == chosen[1]
    once, times = (model.predict(BAGS) for model in models)
    rough = 1e-3 if abs(scale) < 1e-300 else 1e-6  # numbers so small have fewer digits
    np.testing.assert_allclose(times, once * scale, rtol=rough, atol=rough * abs(scale))


def test_many_targets_in_float32():
    """Targets that go through products in float32 need not be numbers of float32."""
    y = NOISE[:, None] * np.geomspace(1e-200, 1e200, 40)
    model = small(alpha=0.1).fit(BAGS, y)
    alone = small(alpha=0.1).fit(BAGS, NOISE).predict(BAGS)
    shares = model.predict(BAGS) / np.geomspace(1e-200, 1e200, 40)
    np.testing.assert_allclose(shares, alone[:, None] * np.ones(40), rtol=1e-3, atol=1e-4)


def test_a_solution_that_is_not_finite_is_refused(tmp_path):
    """Named by the target; so is a prediction, and an error that can not be squared."""
    huge = np.where(np.arange(60) % 2, 1.7e308, -1.7e308)
    y = np.stack([NOISE, huge], axis=1)
    with pytest.raises(DataError, match="the solution of target 2 is not finite; its values"):
        small(alpha=1e-9, precision="float64").fit(BAGS, y)
    model = small(alpha=0.1).fit(BAGS, y * 1e-3)
    model.intercept_[1] = np.inf
    with pytest.raises(DataError, match="a prediction of target 2 is not finite"):
        model.predict(BAGS)
    model = small(alpha=0.1).fit(BAGS, NOISE * 1e200)
    labelled = LabelledBags(Bags.from_list(BAGS), Targets((), NOISE[:, None] * 1e200))
    with pytest.raises(DataError, match="the squared error of target 1 is not finite"):
        evaluate(model, labelled)


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
            DoubleBasisRegressor(None, RandomFourierFeatures(16, scale=scale), alpha).fit(
                BAGS, NOISE
            )
    with pytest.raises(ParameterError, match="bandwidth is 1e"):
        KernelSmoother(None, scale).fit(BAGS, NOISE)


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
