"""Errors over folds against models that are fitted fold by fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bagbasis.models.fitting import fold_errors
from bagbasis.models.fitting.fold_errors import (
    EXPONENTS,
    FoldJudge,
    FoldRows,
    Repeat,
    assign_folds,
    median_of,
    squared_distances,
)


def rows_of(n=60, k=2, weighted=False, groups=None, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = np.column_stack([np.sin(x[:, 0]) + 0.1 * rng.normal(size=n), x[:, 1] ** 2])[:, :k]
    weights = rng.uniform(0.2, 2.0, n) if weighted else np.ones(n)
    clusters = np.arange(n) if groups is None else groups
    folds = assign_folds(n, groups=groups)
    return x, FoldRows(y, folds, y.var(axis=0), weights, clusters)


def kernel_ridge(kernel, y, weights, train, test, alpha):
    """Weighted kernel ridge with an intercept, by a dense solve of ψ = Z coefficients, Z = K^½."""
    values, vectors = np.linalg.eigh(kernel)
    z = vectors * np.sqrt(np.maximum(values, 0))
    w = weights[train][:, None]
    mean_z, mean_y = (w * z[train]).sum(0) / w.sum(), (w * y[train]).sum(0) / w.sum()
    zc, yc = z[train] - mean_z, y[train] - mean_y
    psi = np.linalg.solve(zc.T @ (w * zc) + alpha * w.sum() * np.eye(len(z)), zc.T @ (w * yc))
    return (z[test] - mean_z) @ psi + mean_y


def test_a_distant_start_costs_few_factors(monkeypatch):
    """Ever longer steps from the least penalty to the largest, which is best for noise."""
    x, rows = rows_of()
    rows = replace(rows, y=np.random.default_rng(5).normal(size=rows.y.shape))
    judged, losses = set(), Repeat.losses

    def recorded(repeat, alpha):
        judged.add(alpha)
        return losses(repeat, alpha)

    monkeypatch.setattr(Repeat, "losses", recorded)
    monkeypatch.setattr(fold_errors, "FIRST", 0)
    assert FoldJudge(rows).errors(x).alpha == 10.0 ** EXPONENTS[-1]
    assert len(judged) <= 10


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(15), 4)], ids=["bags", "groups"])
def test_errors_equal_models_fitted_fold_by_fold(weighted, groups):
    x, rows = rows_of(weighted=weighted, groups=groups)
    squares = squared_distances(x, rows.landmarks)
    width = median_of(squares)
    kernel = np.exp(-0.5 * squares / width**2)
    judge = FoldJudge(rows)
    judge.errors(np.ones(kernel.shape))  # of which the next one knows nothing
    result = judge.errors(judge.landmark_features(judge.gaussian([squares], width)))
    losses = np.zeros((len(EXPONENTS), len(rows)))
    for e, exponent in enumerate(EXPONENTS):
        for folds in rows.folds:
            for fold in np.unique(folds):
                test = folds == fold
                if groups is not None:
                    assert not set(groups[test]) & set(groups[~test])
                message = kernel_ridge(kernel, rows.y, rows.weights, ~test, test, 10.0**exponent)
                remaining = (message - rows.y[test]) ** 2 / rows.units
                losses[e, test] += remaining.mean(axis=1) / len(rows.folds)
    errors = losses @ rows.weights / rows.weights.sum()
    best = chosen = int(errors.argmin())
    while rows.mean(gaps := losses[chosen + 1] - losses[best]) <= rows.standard_error(gaps):
        chosen += 1  # of few rows the smoothest within one standard error
    assert result.alpha == 10.0 ** EXPONENTS[chosen]
    np.testing.assert_allclose(result.error, errors[chosen], rtol=1e-5)
    np.testing.assert_allclose(result.losses, losses[chosen], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("n", [30, 100, 101])
def test_few_noisy_rows_have_the_largest_penalty_that_is_as_good(n):
    """Labels that are noise: up to 100 rows the mean, and labels without noise: a small penalty."""
    rng = np.random.default_rng(n)
    x, noise = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    by_name = {}
    for name, y in {"noise": noise, "smooth": np.sin(x[:, :1])}.items():
        rows = FoldRows(y, assign_folds(n), y.var(axis=0), np.ones(n), np.arange(n))
        squares, judge = squared_distances(x, rows.landmarks), FoldJudge(rows)
        z = judge.landmark_features(judge.gaussian([squares], median_of(squares)))
        by_name[name] = judge.errors(z).alpha
    assert by_name["smooth"] <= 1e-4
    assert by_name["noise"] >= (10.0 ** EXPONENTS[-1] if n <= 100 else 1e-3)


@pytest.mark.parametrize(("others", "near"), [(0.0, None), (1.0, None), (1.0, 10.0)])
def test_a_feature_of_little_variance_is_met_beyond_flat_losses(others, near):
    """The loss is flat where the search begins or goes, and falls by far smaller penalties."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 4)) * [1.0, 1.0, 1.0, 5e-4]
    y = z[:, 3:] / 5e-4 + others * z[:, :1]
    rows = FoldRows(y, assign_folds(200), y.var(axis=0), np.ones(200), np.arange(200))
    result = FoldJudge(rows).errors(z, near)
    assert result.alpha == 10.0 ** EXPONENTS[0]
    assert result.error < 0.2


def test_standard_errors_are_those_of_a_mean_over_clusters():
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(20), 5)
    effects, spread = rng.normal(size=(2000, 20)), rng.normal(size=(2000, 100))
    y = np.zeros((100, 1))
    rows = FoldRows(y, np.zeros((1, 100), int), np.ones(1), np.ones(100), clusters)
    losses = effects[:, clusters] + spread
    message = np.mean([rows.standard_error(item) ** 2 for item in losses[:300]]) ** 0.5
    np.testing.assert_allclose(message, losses.mean(axis=1).std(), rtol=0.06)


def test_folds_have_equal_shares_of_classes():
    classes = np.array([0] * 90 + [1] * 10)
    for folds in assign_folds(100, classes):
        assert {int((classes[folds == j] == 1).sum()) for j in range(5)} == {2}


def test_folds_of_groups_are_even_and_whole():
    groups = np.repeat(np.arange(12), [30, 1, 1, 8, 8, 8, 8, 8, 8, 8, 8, 4])
    for folds in assign_folds(len(groups), groups=groups):
        assert all(len(set(folds[groups == g])) == 1 for g in range(12))
        assert np.bincount(folds).max() == 30


def test_equal_rows_have_features():
    rows = np.zeros((6, 2))
    squares = squared_distances(rows, np.arange(6))
    assert median_of(squares) == 1.0
    rows = FoldRows(np.zeros((6, 1)), assign_folds(6), np.ones(1), np.ones(6), np.arange(6))
    z = FoldJudge(rows).landmark_features(np.exp(-squares))
    np.testing.assert_allclose(z @ z.T, np.ones((6, 6)), atol=1e-4)


def test_distances_of_features_of_other_sizes():
    """No digits are lost to where a feature lies."""
    rows, landmarks = np.random.default_rng(0).normal(size=(30, 3)), np.arange(0, 30, 4)
    squares = ((rows[:, None] - rows[landmarks]) ** 2).sum(axis=2)
    shifted = squared_distances(rows + np.array([1e6, -1e3, 0.0]), landmarks)
    np.testing.assert_allclose(shifted, squares, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_are_derivatives_of_the_losses(weighted):
    x, rows = rows_of(weighted=weighted)
    judge = FoldJudge(rows)
    squares = squared_distances(x, rows.landmarks)
    repeat = judge.repeats[0]
    repeat.take(judge.landmark_features(judge.gaussian([squares], median_of(squares))))
    step = 1e-5
    for alpha in (1e-5, 1e-2, 10.0):
        high, low = (repeat.losses(alpha * np.exp(way)).losses for way in (step, -step))
        slopes = repeat.losses(alpha).slopes
        np.testing.assert_allclose(slopes, (high - low) / (2 * step), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("n", [60, 120])  # few bags, and more
def test_a_search_finds_the_best_penalty_from_any_start(n):
    x, rows = rows_of(n=n)
    judge = FoldJudge(rows)
    squares = squared_distances(x, rows.landmarks)

    def features():
        return judge.landmark_features(judge.gaussian([squares], median_of(squares)))

    from_near = judge.errors(features())
    for start in (1e-7, 1e-4, 10.0):
        result = judge.errors(features(), near=start)
        assert result.alpha == from_near.alpha
        assert result.error == pytest.approx(from_near.error, rel=1e-12)


def test_kernels_are_averaged_by_weights():
    x, rows = rows_of()
    squares = [squared_distances(part, rows.landmarks) for part in np.split(x, [1], axis=1)]
    judge, each = FoldJudge(rows), [np.exp(-part / 2 / 0.7**2) for part in squares]
    for weights, expected in (((), (0.5, 0.5)), ((0.9, 0.1), (0.9, 0.1))):
        mean = sum(w * kernel for w, kernel in zip(expected, each, strict=True))
        np.testing.assert_allclose(judge.gaussian(squares, 0.7, weights), mean, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_few_features_are_judged_as_their_kernel(weighted):
    """Features that are fewer than landmarks have the errors of landmarks of their kernel."""
    x, rows = rows_of(weighted=weighted)
    judge = FoldJudge(rows)
    of_kernel = judge.errors(judge.landmark_features(x @ x[rows.landmarks].T))
    result = judge.errors(x)
    assert result.alpha == of_kernel.alpha
    np.testing.assert_allclose(result.losses, of_kernel.losses, rtol=1e-4, atol=1e-6)
    assert result.error == pytest.approx(of_kernel.error, rel=1e-6)


def test_a_kernel_that_is_far_behind_costs_one_penalty(monkeypatch):
    """No other penalty, and no other repeat, is judged of features that know nothing."""
    x, rows = rows_of(n=120)
    judge = FoldJudge(rows)
    squares = squared_distances(x, rows.landmarks)
    rival = judge.errors(judge.landmark_features(judge.gaussian([squares], median_of(squares))))
    noise = np.random.default_rng(1).normal(size=(120, 2))
    penalties = []
    losses = Repeat.losses

    def counted(self, alpha):
        penalties.append(alpha)
        return losses(self, alpha)

    monkeypatch.setattr(Repeat, "losses", counted)
    assert judge.errors(noise, rival=rival).error > 1.25 * rival.error
    assert len(penalties) == 1
    judge.errors(noise)
    assert len(penalties) > 3
