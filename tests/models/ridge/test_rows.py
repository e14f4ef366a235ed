"""Few bags: solved from their rows, N × N, as from sums, and as dense matrices in double."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone

from bagbasis import (
    Bags,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.data.store.plan import split_evenly
from bagbasis.models.fitting.fit_parameters import FitParameters
from bagbasis.models.fitting.planning import plan_of
from bagbasis.models.ridge import ridge as solvers
from bagbasis.models.ridge.penalties import Penalties
from bagbasis.models.ridge.rows import RidgeRows
from tests.oracles import ridge
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.planned import fit_parameters_of, planned, posed
from tests.oracles.ridge_entries import collected, ridge_rows
from tests.passes import pass_limits
from tests.traced import peak_of

BAGS, Y = labelled_bags(40, most=12)
D = 64
NEW = labelled_bags(20, seed=1, most=12)[0]


@st.composite
def problems(draw):
    """Rows of every shape: one, two, as many as features and one more or less; of full rank or
    not, with columns that are constant or repeated."""
    d = draw(st.integers(1, 12))
    n = draw(st.one_of(st.sampled_from([1, 2, max(1, d - 1), d, d + 1]), st.integers(1, 30)))
    k = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    rank = draw(st.integers(1, d))
    z = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    kind = draw(st.sampled_from(["as it is", "constant", "repeated"]))
    if kind == "constant":
        z[:, 0] = 3.0
    elif kind == "repeated":
        z[:, -1] = z[:, 0]
        z = np.repeat(z[: -(-n // 2)], 2, axis=0)[:n]
    return z, rng.normal(size=(n, k)) + 5, 10.0 ** draw(st.integers(-4, 3))


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(problem=problems(), known=st.sampled_from([collected, ridge_rows]))
def test_any_rows_at_one_penalty(problem, known):
    """The solution of a dense matrix, from rows and from sums."""
    z, y, alpha = problem
    ours, truth = solvers.solve(known(z, y), alpha, 1e-14), ridge.ridge(z, y, alpha)
    size = 1e-12 * np.abs(z).max() ** 2 * len(z) / alpha + 1e-9
    np.testing.assert_allclose(ours.coef, truth[0], rtol=1e-7, atol=size)
    np.testing.assert_allclose(
        ridge.predict(z, (ours.coef, ours.intercept)), ridge.predict(z, truth), atol=1e-6
    )


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(problem=problems(), known=st.sampled_from([collected, ridge_rows]))
def test_any_rows_on_a_path(problem, known):
    """Scores by cross-validation and on held-out rows are those of the direct formulas."""
    z, y, alpha = problem
    grid = alpha * 10.0 ** np.arange(0, 4, 0.5)
    if len(z) > 3 and np.linalg.matrix_rank(z - z.mean(axis=0)) < len(z) - 2:
        scores = solvers.solve_gcv(known(z, y), Penalties(grid)).scores
        np.testing.assert_allclose(scores, ridge.gcv_scores(z, y, grid), rtol=1e-5)
    held = np.arange(len(z)) % 3 == 0
    if len(z) > 4:
        ours = solvers.solve_validation(
            known(z[~held], y[~held]), known(z[held], y[held]), Penalties(grid), 0
        )
        np.testing.assert_allclose(
            ours.scores, ridge.validation_scores(z, y, held, grid), rtol=1e-5, atol=1e-9
        )


def test_rows_become_sums():
    """In any pieces, they are the rows and the sums of all."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(50, 7)), rng.normal(size=(50, 2)) * [1e200, 1.0]
    parts = [ridge_rows(z[a:b], y[a:b]) for a, b in split_evenly(50, 4)]
    whole = sum(parts[1:], parts[0])
    np.testing.assert_array_equal(whole.z, z)
    np.testing.assert_array_equal(whole.exponents, ridge_rows(z, y).exponents)
    sums = whole.statistics()
    for name in ("n", "sum_z", "gram", "sum_y", "cross", "sum_yy", "exponents"):
        np.testing.assert_array_equal(getattr(sums, name), getattr(collected(z, y), name))


SOLVED = {
    "one penalty": (lambda whole, parts, few: solvers.solve(whole, 0.1, 1e-14), False, 1),
    "least squares": (lambda whole, parts, few: solvers.solve(whole, 0.0, 1e-14), True, 1),
    "gcv": (lambda whole, parts, few: solvers.solve_gcv(whole, few), True, 1),
    "validation": (lambda whole, p, few: solvers.solve_validation(p[0], p[1], few, 1e-14), True, 2),
    "folds": (lambda whole, parts, few: solvers.solve_folds(parts, few, 1e-14), True, 6),
}


@pytest.mark.parametrize("of_rows", [60, 1000, None])
@pytest.mark.parametrize("way", SOLVED)
def test_solving_takes_what_it_declares(way, of_rows, monkeypatch):
    """The statistics or rows of all parts, and what is made of them; folds keep their solvers."""
    rng, d, n = np.random.default_rng(0), 1000, of_rows or 2000
    call, is_path, n_parts = SOLVED[way]
    known = collected if of_rows is None else ridge_rows
    z, y = rng.normal(size=(n, d)), rng.normal(size=(n, 1))
    parts = [known(z[i :: n_parts - 1], y[i :: n_parts - 1]) for i in range(n_parts - 1)]
    if n_parts == 2:
        held = np.arange(n) % 5 == 0
        parts = [known(z[~held], y[~held]), known(z[held], y[held])]
    few = Penalties(10.0 ** np.arange(-4, 3))
    if of_rows == 60:  # also below the rounding
        few = Penalties(np.append(1e-20, few.values))
    inputs = 8 * n * d if of_rows else max(1, len(parts)) * 4 * d * d
    for folds_bytes in (solvers.FOLD_BYTES, 0) if n_parts > 2 else (0,):
        monkeypatch.setattr(solvers, "FOLD_BYTES", folds_bytes)
        most = solvers.solve_bytes(d, is_path, of_rows, n_parts)
        most += solvers.targets_bytes(d, 1, n_parts, of_rows)
        buffers = 2**20
        taken = inputs + peak_of(partial(call, known(z, y), parts, few), enough=most - inputs)
        assert most / 2 < taken <= most + buffers


KINDS = {
    "numbers": (DoubleBasisRegressor, Y),
    "several": (DoubleBasisRegressor, np.stack([Y, -Y, Y**2], axis=1)),
    "classes": (DoubleBasisClassifier, np.digitize(Y, [-0.3, 0.4])),
    "densities": (TripleBasisRegressor, [1 - bag for bag in BAGS]),
}


@pytest.mark.parametrize("alpha", [0.01, "gcv", "validation"])
@pytest.mark.parametrize("kind", KINDS)
def test_models_are_those_of_sums(kind, alpha, monkeypatch):
    """The same penalty and predictions, for each kind of label, whether rows are kept or not."""
    estimator, labels = KINDS[kind]

    def fitted():
        bases = ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=D)
        model = estimator(*bases, alpha=alpha, precision="float64")
        if alpha != 0.01:
            model.set_params(alphas=10.0 ** np.arange(-4, 2, 0.5), validation_fraction=0.3)
        return model.fit(BAGS, labels)

    rows = fitted()
    monkeypatch.setattr(FitParameters, "keeps_rows", lambda *sizes: False)
    sums = fitted()
    assert rows.alpha_ == sums.alpha_
    np.testing.assert_allclose(rows.coef_, sums.coef_, atol=1e-7 * np.abs(sums.coef_).max())
    np.testing.assert_allclose(rows.alpha_scores_, sums.alpha_scores_, rtol=1e-6)
    if kind == "densities":
        np.testing.assert_array_equal(rows.mean_coefficients_, sums.mean_coefficients_)


@pytest.mark.long
def test_rows_are_kept_of_few_bags_alone(tmp_path):
    """Up to as many as features; in any number of tasks, and with checkpoints, the same model."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    bases = ProjectionEmbedding(n_per_dim=3), RandomFourierFeatures(n_features=D)
    model = DoubleBasisRegressor(*bases, alpha=0.1, precision="float64")
    problem = posed(model, store)
    for n, kind in ((D, True), (D + 1, False)):
        bags = Bags.from_list((BAGS * 2)[:n])
        plan = planned(model, posed(model, bags, np.zeros(n)))
        assert plan.keeps_rows is kind
        few = replace(problem, source=plan.bags)
        assert not plan_of(few, fit_parameters_of(model), plan.features).keeps_rows
    assert isinstance(planned(model, problem).run().train, RidgeRows)
    model.fit(store)
    with pass_limits(small_task_seconds=1e-9):
        assert len(planned(model, problem).ranges) > 1
        parts = clone(model).fit(store, checkpoints=tmp_path / "kept")
    np.testing.assert_allclose(parts.coef_, model.coef_, rtol=1e-10)
