"""Fits with many target columns: what they take is declared, and refused before they begin."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bagbasis import (
    DoubleBasisRegressor,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.execution import passes
from bagbasis.models.fitting import fold_errors
from bagbasis.models.fitting.fit_parameters import MAX_TARGETS
from bagbasis.models.fitting.fold_errors import (
    MAX_PLAIN_COLUMNS,
    FoldJudge,
    FoldRows,
    assign_folds,
)
from bagbasis.models.ridge.penalties import HIGHEST, LOWEST
from bagbasis.models.ridge.ridge import targets_bytes

RNG = np.random.default_rng(0)
BAGS = [RNG.random((3, 2)) for _ in range(40)]


class Read(AssertionError):
    """A bag was read."""


@pytest.fixture
def unread(monkeypatch):
    """Embeddings that must not begin."""

    def refuse(*_, **__):
        raise Read

    monkeypatch.setattr("bagbasis.models.fit.plan_fit", refuse)


@pytest.mark.parametrize(
    "estimator",
    [
        DoubleBasisRegressor(),
        DoubleBasisRegressor(embedding=None, alpha=0.1),
        DoubleBasisRegressor(ProjectionEmbedding(), RandomFourierFeatures(n_features=64)),
        DoubleBasisRegressor(ProjectionEmbedding(), False),
    ],
)
def test_too_many_targets_are_refused(estimator, unread):
    """Before anything is read, with the memory and with what to do."""
    y = np.broadcast_to(RNG.random((len(BAGS), 1)), (len(BAGS), MAX_TARGETS + 1))
    what = r"65,537 target columns to 40 bags needs at least [\d.]+ GiB: fit .*target=\[...\]"
    with pytest.raises(ParameterError, match=what):
        estimator.fit(BAGS, y)


@pytest.mark.parametrize("embedding", ["auto", None])
def test_targets_beyond_the_memory(embedding, unread, monkeypatch):
    """Fewer columns are refused where this process has less memory, and are fitted otherwise."""
    y = RNG.random((len(BAGS), 2000))
    monkeypatch.setattr(passes, "AVAILABLE_BYTES", 0)
    monkeypatch.setattr(passes, "worker_memory", lambda here: 2**20)
    what = "2,000 target columns to 40 bags needs .* GiB and has 0.000977 GiB: fit"
    with pytest.raises(ParameterError, match=re.escape(what).replace(r"\.\*", r".*")):
        DoubleBasisRegressor(embedding).fit(BAGS, y)
    monkeypatch.setattr(passes, "worker_memory", lambda here: 2**30)
    with pytest.raises(Read):
        DoubleBasisRegressor(embedding).fit(BAGS, y)


@pytest.mark.parametrize("alpha", ["folds", "validation", "gcv", 0.1])
@pytest.mark.parametrize("n_features", [16, 64])
def test_targets_enter_the_memory_of_solving(alpha, n_features, monkeypatch):
    """Sums, or rows, of every part count: what 1 column has room for, 6,000 have not."""
    model = DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim=2), RandomFourierFeatures(n_features=n_features), alpha=alpha
    )
    y = RNG.random((len(BAGS), 6000))
    monkeypatch.setattr(passes, "AVAILABLE_BYTES", 2**22)
    n_rows = len(BAGS) if len(BAGS) <= n_features else None
    least = targets_bytes(n_features, 6000, 1, n_rows)
    monkeypatch.setattr(passes, "worker_memory", lambda here: least + 2**10)
    model.fit(BAGS, y[:, :1])
    with pytest.raises(ParameterError, match=rf"{n_features} features and 6,000 target columns"):
        model.fit(BAGS, y)


def test_sums_of_the_choice_without_products_of_labels(monkeypatch):
    """Errors of kernels for more labels than landmarks are those of some labels at a time."""
    n, m, k = 30, 8, 20
    rng = np.random.default_rng(1)
    y, z = rng.normal(size=(n, k)), rng.normal(size=(n, m))
    folds, weights = assign_folds(n), rng.random(n)

    def errors(columns):
        units = np.ones(len(columns))
        judge = FoldJudge(FoldRows(y[:, columns], folds, units, weights, np.arange(n)))
        assert judge.repeats[0].sums[0].shape == fold_errors.sizes_of_sums(m, len(columns))
        return judge.errors(z).losses * len(columns)

    monkeypatch.setattr(fold_errors, "N_LANDMARKS", m)
    monkeypatch.setattr(fold_errors, "EXPONENTS", np.full(2, -3.0))  # one penalty for all
    monkeypatch.setattr(fold_errors, "FIRST", 0)
    assert fold_errors.sizes_of_sums(m, k) == (m + 1, m + k + 1)
    assert fold_errors.sizes_of_sums(m, m) == (2 * m + 1, 2 * m + 1)
    parts = sum(errors(np.arange(start, start + 5)) for start in range(0, k, 5))
    np.testing.assert_allclose(errors(np.arange(k)), parts, rtol=1e-9)


@pytest.mark.parametrize("k", [65, 300])
def test_components_of_labels_have_the_errors_of_all_columns(k):
    """Labels of a few causes: errors of a kernel by components are those by all columns."""
    n = m = 100  # all are landmarks
    rng = np.random.default_rng(2)
    y = rng.normal(size=(n, 5)) @ rng.normal(size=(5, k)) + 3
    z, weights = rng.normal(size=(n, m)), rng.random(n)
    mean = weights @ y / weights.sum()
    units = weights @ (y - mean) ** 2 / weights.sum()
    rows = FoldRows(y, assign_folds(n), units, weights, np.arange(n))
    few = rows.of_components()
    assert few.y.shape == (n, MAX_PLAIN_COLUMNS)
    for alpha in (1e-4, 1e-1):
        of_all, of_few = (_losses(each, z, alpha) for each in (rows, few))
        np.testing.assert_allclose(of_few, of_all, rtol=1e-6)
    assert rows.mean(_losses(few, 0 * z, 1.0)) == pytest.approx(1, rel=0.2)  # of the mean


def _losses(rows, z, alpha):
    """Return the losses of rows with one penalty."""
    repeat = FoldJudge(rows).repeats[0]
    repeat.take(z)
    return repeat.losses(alpha).losses


def test_the_choice_takes_as_long_for_many_targets_as_for_some(monkeypatch):
    """The choice solves for 64 columns, whatever their number."""
    solved = []
    solve = fold_errors.dposv

    def counted(gram, right, **options):
        solved.append(right.shape[1])
        return solve(gram, right, **options)

    monkeypatch.setattr(fold_errors, "dposv", counted)
    means = np.array([b.mean(axis=0) for b in BAGS])
    y = means @ RNG.normal(size=(2, 3000)) + 0.1 * RNG.normal(size=(len(BAGS), 3000))
    model = DoubleBasisRegressor().fit(BAGS, y)
    assert 0 < max(solved) <= MAX_PLAIN_COLUMNS
    assert model.coef_.shape[0] == 3000


@pytest.mark.parametrize("k", [3, 40])
def test_a_search_finds_the_best_penalty_of_the_grid(k):
    """With more targets than features penalties are searched, as each costs its solution."""
    y = np.stack([np.array([b.mean() for b in BAGS]) * (j + 1) for j in range(k)], axis=1)
    y += 0.1 * np.random.default_rng(3).normal(size=y.shape)
    parameters = {"random_features": False, "alpha": "folds"}
    searched = DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=2), **parameters).fit(BAGS, y)
    least, most, n = LOWEST["float32 sums"], HIGHEST, len(BAGS)
    grid = n * 10.0 ** np.arange(least, most + 0.25, 0.5)
    parameters["alphas"] = grid
    whole = DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=2), **parameters).fit(BAGS, y)
    assert len(whole.model_.solution.alphas) == len(grid)
    n_features = whole.coef_.shape[1]
    assert (len(searched.model_.solution.alphas) < len(grid)) == (k > n_features)
    assert searched.alpha_ == pytest.approx(whole.alpha_)
