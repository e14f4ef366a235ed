"""Conjugate gradients: the solutions of dense matrices in double, and of the exact solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bagbasis import (
    Bags,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.models import Checkpoints
from bagbasis.models.fitting import feature_rows, matrix_free
from bagbasis.models.fitting.planning import plan_of
from bagbasis.models.fitting.solver import check_summable
from bagbasis.models.ridge import conjugate_gradients
from bagbasis.models.ridge.conjugate_gradients import ConjugateGradients, Preconditioner
from bagbasis.models.solvers.seconds import (
    seconds_of_gradients,
    seconds_of_rows,
    seconds_of_sums,
)
from tests.models.ridge.test_rows import problems
from tests.oracles import ridge
from tests.oracles.labelled import labelled_bags, stored
from tests.oracles.planned import FeatureMap, fit_parameters_of, planned, posed
from tests.passes import pass_limits

N = 150
BAGS, Y = labelled_bags(N, most=12)
Y = np.where(np.arange(N) % 11 == 0, np.nan, Y)
GRID = 10.0 ** np.arange(-3, 2, 0.5)
BASES = ProjectionEmbedding(n_per_dim=4), RandomFourierFeatures(n_features=48)


def regressor(alpha=0.1, kind=DoubleBasisRegressor, **params):
    return kind(*BASES, **{"alpha": alpha, "solver": "cg", "precision": "float64", **params})


@pytest.fixture
def exact_steps(monkeypatch):
    """Steps go on until nothing but rounding is left."""
    monkeypatch.setattr(conjugate_gradients, "TOLERANCE", 1e-20)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(problem=problems(), rank=st.integers(1, 30))
def test_any_rows(problem, rank):
    """For rows of any shape and rank, constant columns among them, and several penalties."""
    z, y, alpha = problem
    centred_z, centred_y = z - z.mean(axis=0), y - y.mean(axis=0)
    k, alphas = y.shape[1], alpha * np.array([1.0, 30.0, 1e4])
    rows = centred_z[: min(rank, len(z))].copy()
    precondition = Preconditioner(rows, len(z), alphas.min())
    gradients = ConjugateGradients(
        lambda p, _: (centred_z.T @ (centred_z @ p), None),
        precondition,
        np.repeat(alphas, k),
        np.tile(centred_z.T @ centred_y, 3),
        np.tile((centred_y**2).sum(axis=0), 3),
    )
    now = gradients.begin()
    while (now.product > 0).any() and now.step < 150:
        now = gradients.step(now, now.product > 0)
    for i, penalty in enumerate(alphas):
        psi = now.psi[:, i * k : (i + 1) * k]
        truth = ridge.ridge(z, y, penalty)[0].T
        residual = centred_z.T @ (centred_y - centred_z @ psi) - penalty * psi
        size = np.abs(centred_z.T @ centred_y).max() + 1e-12
        assert np.abs(residual).max() <= 1e-7 * size
        np.testing.assert_allclose(centred_z @ psi, centred_z @ truth, atol=1e-5)


KINDS = {
    "numbers": (DoubleBasisRegressor, Y),
    "several": (DoubleBasisRegressor, np.stack([Y, 1e200 * Y, Y**2], axis=1)),
    "classes": (DoubleBasisClassifier, np.where(np.isnan(Y), np.nan, np.digitize(Y, [-0.3, 0.4]))),
    "densities": (TripleBasisRegressor, [1 - bag for bag in BAGS]),
}


@pytest.mark.parametrize("alpha", [0.1, "validation"])
@pytest.mark.parametrize("kind", KINDS)
def test_models_are_those_of_the_exact_solver(kind, alpha, exact_steps):
    """The same penalty, predictions and counts for each kind of label."""
    estimator, labels = KINDS[kind]
    arguments = {"alphas": GRID, "validation_fraction": 0.3} if alpha != 0.1 else {}
    ours, exact = (
        regressor(alpha, estimator, solver=solver, **arguments).fit(BAGS, labels)
        for solver in ("cg", "cholesky")
    )
    assert ours.alpha_ == exact.alpha_
    sizes = np.abs(exact.coef_).max(axis=-1, keepdims=True)
    np.testing.assert_allclose(ours.coef_ / sizes, exact.coef_ / sizes, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, exact.intercept_, rtol=1e-5, atol=1e-7)
    best = exact.alpha_scores_.argmin() if len(arguments) else 0
    np.testing.assert_allclose(ours.alpha_scores_[best], exact.alpha_scores_[best], rtol=1e-3)
    assert {key: exact.report_[key] for key in exact.report_ if key.startswith("n_bags")} == {
        key: ours.report_[key] for key in ours.report_ if key.startswith("n_bags")
    }
    assert (ours.report_["solver"], exact.report_["solver"]) == ("cg", "cholesky")


def test_predictions_hardly_differ_where_it_stops():
    """In float32, and with its own tolerance."""
    ours, exact = (
        regressor(0.1, solver=solver, precision="float32").fit(BAGS, Y)
        for solver in ("cg", "cholesky")
    )
    known = ~np.isnan(Y)
    difference = (ours.predict(BAGS) - exact.predict(BAGS))[known]
    error = (exact.predict(BAGS) - Y)[known]
    assert np.mean(difference**2) < 1e-3 * np.mean(error**2)


@pytest.mark.long
def test_groups_of_penalties(monkeypatch, exact_steps):
    """A path in groups, each starting from the one before, is the path of all at once."""
    arguments = {"alphas": GRID, "validation_fraction": 0.3}
    once = regressor("validation", **arguments).fit(BAGS, Y)
    monkeypatch.setattr(matrix_free, "COLUMN_BYTES", 3 * 8 * 48)
    groups = regressor("validation", **arguments).fit(BAGS, Y)
    assert groups.alpha_ == once.alpha_
    assert groups.report_["n_passes"] > once.report_["n_passes"]
    np.testing.assert_allclose(groups.coef_, once.coef_, atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("memory", [0.0, 30_000.0, 45_000.0])
def test_what_is_kept_changes_no_bit(memory, monkeypatch, tmp_path):
    """Nothing, embeddings, or some features: the same model. What is kept is embedded once."""
    n_embedded, embed = [], FeatureMap.embed

    def counted(features, bags, *arguments):
        n_embedded.append(len(bags))
        return embed(features, bags, *arguments)

    monkeypatch.setattr(FeatureMap, "embed", counted)
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    with pass_limits(small_task_seconds=1e-9, small_tasks=8):
        whole = regressor("validation").fit(store)
        once = sum(n_embedded)
        n_embedded.clear()
        monkeypatch.setattr(feature_rows, "worker_memory", lambda here: memory)
        monkeypatch.setattr(feature_rows, "KEPT_FRACTION", 1.0)
        some = regressor("validation").fit(store)
    np.testing.assert_array_equal(some.coef_, whole.coef_)
    assert once <= 2 * N  # for the widths, and for all passes
    assert (sum(n_embedded) == once) == (memory > 0)
    assert not feature_rows.KEPT_ROWS  # of a fit that has ended nothing is left


class _Killed(BaseException):
    """The end of a process."""


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.1, "validation"])
def test_goes_on_from_a_checkpoint(alpha, monkeypatch, tmp_path):
    """A fit that is cut off after any pass does only the others, to the same bits."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    whole = regressor(alpha).fit(store)
    run, n_passes = matrix_free.run_pass, []

    def killed_in_pass(*args, **kwargs):
        n_passes.append(1)
        if len(n_passes) in (2, 4, 7):
            raise _Killed
        return run(*args, **kwargs)

    monkeypatch.setattr(matrix_free, "run_pass", killed_in_pass)
    checkpoints = Checkpoints(tmp_path / "kept", seconds=1e-9)
    for _ in range(3):
        with pytest.raises(_Killed):
            regressor(alpha).fit(store, checkpoints=checkpoints)
    again = regressor(alpha).fit(store, checkpoints=checkpoints)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert len(n_passes) == whole.report_["n_passes"] + 3


def test_seconds_that_solvers_take():
    """A path takes longer than one penalty, and gradients serve where sums are large."""
    for seconds in (seconds_of_sums, seconds_of_rows, seconds_of_gradients):
        assert seconds(20_000, 8_192, True) > seconds(20_000, 8_192, False)
    assert seconds_of_gradients(2_000, 256, False) > seconds_of_sums(2_000, 256, False)
    for sizes in ((200_000, 16_384, False), (1_000_000, 65_536, True)):
        assert seconds_of_gradients(*sizes) < seconds_of_sums(*sizes)
    assert seconds_of_gradients(1_257, 3_000, True) > seconds_of_rows(1_257, 3_000, True)


@pytest.mark.long
def test_automatic_choice(tmp_path, monkeypatch):
    """Sums are kept where checkpoints or a sequence of models need them."""
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    monkeypatch.setattr(
        "bagbasis.models.solvers.gradients.seconds_of_gradients", lambda *sizes: 0.0
    )
    for alpha, checkpoints, solver in (
        (1.0, None, "cg"),
        ("validation", None, "cg"),
        ("gcv", None, "cholesky"),
        (1e-9, None, "cholesky"),
        (1.0, tmp_path / "kept", "cholesky"),
    ):
        model = regressor(alpha, solver="auto").fit(store, checkpoints=checkpoints)
        assert model.report_["solver"] == solver
    assert not plan_of(posed(model, store), fit_parameters_of(model), model.features_).keeps_rows


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (DoubleBasisRegressor, {"alpha": "gcv"}, "give alpha='validation', or a number"),
        (DoubleBasisRegressor, {"alpha": [1.0, 2.0]}, "give alpha='validation', or a number"),
        (TripleBasisRegressor, {"alpha": "projected"}, "give alpha='validation'"),
        (DoubleBasisRegressor, {"alpha": 0.0}, "needs alpha > 0"),
        (DoubleBasisRegressor, {"rank": N + 1}, f"rank is {N + 1}, and there are {N} bags"),
        (DoubleBasisRegressor, {"rank": N}, "bags are fitted: lower it"),
    ],
)
def test_what_it_can_not_do(kind, params, message):
    labels = KINDS["densities"][1] if kind is TripleBasisRegressor else Y
    with pytest.raises(ParameterError, match=message):
        regressor(kind=kind, **params).fit(BAGS, labels)


def test_bytes_and_bags_that_are_not_there(monkeypatch, tmp_path):
    """Both numbers of bytes; no label; a sequence of models, which adds sums up."""
    with pytest.raises(DataError, match="no labelled bags"):
        regressor().fit(BAGS, np.full(N, np.nan))
    model = regressor()
    plan = planned(model, posed(model, Bags.from_list(BAGS), Y))
    with pytest.raises(ParameterError, match="keeps no sums"):
        check_summable(plan, fit_parameters_of(model))
    monkeypatch.setattr("bagbasis.execution.passes.AVAILABLE_BYTES", 0)
    monkeypatch.setattr("bagbasis.execution.passes.worker_memory", lambda here: 1000)
    with pytest.raises(ParameterError, match=r"needs .* GiB and has 9.31e-07 GiB"):
        regressor().fit(BAGS, Y)
