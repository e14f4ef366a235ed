"""Solving from statistics: intercept, several targets, singular products, choosing a penalty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from bagbasis import DataError
from bagbasis.models.ridge.penalties import Path, Penalties, search, warn_at_edge
from bagbasis.models.ridge.ridge import (
    solve,
    solve_folds,
    solve_gcv,
    solve_judged,
    solve_validation,
)
from tests.oracles import ridge
from tests.oracles.ridge_entries import collected, feature_rows, ridge_rows

pytestmark = pytest.mark.portable

NOISE = {np.float32: 1e-7, np.float64: 1e-14}
GRID = 10.0 ** np.arange(-6, 3)


@pytest.fixture(params=[collected, ridge_rows], ids=["statistics", "rows"])
def known(request):
    """How the solvers know the rows: by their sums, or as they are."""
    return request.param


@pytest.fixture(scope="module")
def rows():
    return feature_rows(np.random.default_rng(0), 250)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 15, 30])
def test_least_squares_with_fewer_rows_than_features(known, dtype, n):
    """alpha = 0 and a singular ZᵀZ: finite, of least norm, and through every row."""
    z, y = feature_rows(np.random.default_rng(1), n, dtype)
    ours = solve(known(z, y, dtype), 0.0, NOISE[dtype])
    truth = ridge.ridge(z, y, 0.0)
    size = np.abs(truth[0]).max()
    coarse = dtype == np.float32
    np.testing.assert_allclose(ours.coef, truth[0], atol=(2e-2 if coarse else 1e-8) * size + 1e-12)
    np.testing.assert_allclose(
        ridge.predict(z, (ours.coef, ours.intercept)), y, atol=1e-3 if coarse else 1e-6
    )


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_one_row_and_constant_features(known, alpha):
    """Nothing to learn from: the prediction is the mean."""
    z, y = np.ones((4, 6)), np.arange(8.0).reshape(4, 2)
    for rows in (1, 4):
        ours = solve(known(z[:rows], y[:rows]), alpha, 1e-14)
        np.testing.assert_allclose(ours.coef, 0, atol=1e-12)
        np.testing.assert_allclose(ours.intercept, y[:rows].mean(axis=0))


def test_penalty_below_the_rounding(warned):
    """float32 products of dependent rows have negative eigenvalues: a tiny penalty is then
    solved with them clipped, and says so, instead of failing or exploding."""
    z, y = feature_rows(np.random.default_rng(3), 20, np.float32)
    z, y = np.tile(z, (50, 1)), np.tile(y, (50, 1))
    ours = solve(collected(z, y, np.float32), 1e-12, 1e-7)
    assert "below the rounding" in warned.text
    assert np.isfinite(ours.coef).all()


@pytest.mark.parametrize("share", [1e-20, 1e-15, 1e-11, 1e-9])
@pytest.mark.parametrize(("n", "unit"), [(12, 1e5), (39, 1e-5), (40, 1e5), (250, 1e5), (250, 1e-5)])
def test_penalties_below_the_rounding_in_double(known, n, unit, share, warned):
    """As by singular values of the rows, in every way to choose a penalty, without a warning."""
    z, y = feature_rows(np.random.default_rng(4), n)
    z = np.hstack([z, z[:, :3]]) * unit
    alpha = share * (z**2).sum()
    mean, of_y = z.mean(axis=0), y.mean(axis=0)
    left, sigma, right = np.linalg.svd(z - mean, full_matrices=False)
    keep = sigma > 1e-7 * sigma[0]
    factors = (sigma / (sigma**2 + alpha))[keep, None]
    coef = right[keep].T @ (factors * (left[:, keep].T @ (y - of_y)))
    new = np.random.default_rng(5).normal(size=(50, z.shape[1])) @ (right[keep].T @ right[keep])
    grid, summary = Penalties(np.array([alpha])), known(z, y)
    parts = [known(z[i::2], y[i::2]) for i in (0, 1)]
    for ours in (
        solve(summary, alpha, 1e-14),
        solve_gcv(summary, grid, noise=1e-14),
        solve_folds(parts, grid, 1e-14),
        solve_validation(*parts, grid, 1e-14),
    ):
        expected = new @ coef
        assert np.abs(new @ ours.coef.T - expected).max() < 1e-4 * expected.std()
        np.testing.assert_allclose(mean @ ours.coef.T + ours.intercept, of_y, rtol=1e-6)
    assert warned.text == ""


@pytest.mark.parametrize("n", [30, 250])
def test_gcv_chooses_the_least_score(known, n):
    """Scores are those of the hat matrix, with fewer rows than features too, and the solution
    that of the best penalty."""
    z, y = feature_rows(np.random.default_rng(4), n)
    ours = solve_gcv(known(z, y), Penalties(GRID))
    scores = ridge.gcv_scores(z, y, GRID)
    np.testing.assert_allclose(ours.scores, scores, rtol=1e-6)
    assert ours.alpha == GRID[scores.argmin()]
    coef, intercept = ridge.ridge(z, y, ours.alpha)
    np.testing.assert_allclose(ours.coef, coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.intercept, intercept, rtol=1e-9)
    assert 0 < scores.argmin() < len(GRID) - 1


@pytest.mark.parametrize("seed", [0, 2, 9, 11, 13])
def test_gcv_of_few_rows_that_most_were_subtracted_from(seed):
    """The rounding of the many is not taken for a fit: errors are those of the few rows' own sums.

    Before, the residuals of small penalties were lost in it, and their scores were 0.
    """
    rng = np.random.default_rng(seed)
    n, D, many = 44, 48, 20_000
    X = rng.standard_normal((many, 2))
    waves = X @ rng.standard_normal((2, D)) + rng.uniform(0, 6, D)
    z = (np.sqrt(2 / D) * np.cos(waves)).astype(np.float32)
    y = np.sin(X[:, :1]) + 0.3 * rng.standard_normal((many, 1))
    few, all_rows, others = (
        collected(z[rows], y[rows], np.float32) for rows in (np.s_[:n], np.s_[:], np.s_[n:])
    )
    errors = []
    for summary in (few, all_rows - others):
        result = solve_gcv(summary, Penalties.default(n, "float32", is_summed=True))
        errors.append(np.mean((z @ result.coef.T + result.intercept - y) ** 2))
    assert errors[1] < 1.01 * errors[0]


@pytest.mark.parametrize("chooser", ["gcv", "validation"])
def test_constant_target(known, chooser):
    """A target without variance neither divides by zero nor decides."""
    z, y = feature_rows(np.random.default_rng(6), 200)
    y[:, 1] = 3.0

    def chosen(columns):
        if chooser == "gcv":
            return solve_gcv(known(z, y[:, columns]), Penalties(GRID))
        parts = (known(z[i::2], y[i::2][:, columns]) for i in (0, 1))
        return solve_validation(*parts, Penalties(GRID), 1e-14)

    both, alone = chosen([0, 1]), chosen([0])
    assert np.isfinite(both.scores).all()
    assert both.alpha == alone.alpha
    np.testing.assert_allclose(both.coef[1], 0, atol=1e-9)
    assert both.intercept[1] == pytest.approx(3.0)


def test_validation_path_equals_refitting(known):
    """Errors from the held-out rows' statistics are those of refits and predictions, and the
    final solution is fitted on all rows."""
    z, y = feature_rows(np.random.default_rng(7), 300)
    held = np.arange(300) % 7 == 0
    train, apart = known(z[~held], y[~held]), known(z[held], y[held])
    ours = solve_validation(train, apart, Penalties(GRID), 1e-14)
    scores = ridge.validation_scores(z, y, held, GRID)
    np.testing.assert_allclose(ours.scores, scores, rtol=1e-8)
    assert ours.alpha == GRID[scores.argmin()]
    coef, intercept = ridge.ridge(z, y, ours.alpha)
    np.testing.assert_allclose(ours.coef, coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.intercept, intercept, rtol=1e-9)


def test_nothing_to_fit_or_to_validate_on(known):
    """No rows, or no held-out rows, is an error that says which."""
    z, y = feature_rows(np.random.default_rng(8), 20)
    rows, nothing = known(z, y), known(z[:0], y[:0])
    for attempt in (
        lambda: solve(nothing, 1.0, 1e-14),
        lambda: solve_gcv(nothing, Penalties(GRID)),
        lambda: solve_validation(nothing, rows, Penalties(GRID), 1e-14),
        lambda: solve_folds([nothing, nothing], Penalties(GRID), 1e-14),
    ):
        with pytest.raises(DataError, match="no labelled bags to fit"):
            attempt()
    with pytest.raises(DataError, match="no labelled bag was held out"):
        solve_validation(rows, nothing, Penalties(GRID), 1e-14)


@pytest.mark.parametrize(
    ("precision", "is_summed", "least"),
    [
        ("float64", True, -12),
        ("float64", False, -12),
        ("float32", False, -9),
        ("float32", True, -7),
    ],
)
def test_default_penalties(precision, is_summed, least):
    """Two values a decade, from what the precision bears to n · 10²."""
    values = Penalties.default(1000, precision, is_summed).values
    np.testing.assert_allclose(np.diff(np.log10(values)), 0.5)
    np.testing.assert_allclose(values[[0, -1]], [1000 * 10.0**least, 1e5])


SEARCHED = Penalties.default(300, "float64", is_summed=True)
CHOICES = {
    "gcv": lambda train, held, penalties: solve_gcv(train, penalties),
    "validation": lambda train, held, penalties: solve_validation(train, held, penalties, 1e-14),
    "judged": lambda train, held, penalties: solve_judged(
        train,
        held,
        penalties,
        1e-14,
        lambda fitted: float(((fitted.coef - 1) ** 2).sum()),
    ),
}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("noise", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_what_the_spectrum_does(known, choice, noise, seed, monkeypatch):
    """The penalty, its neighbours' scores, and the solution are those of all penalties from one
    spectrum, from a few factors; also where it begins near the penalty of other rows."""
    rng = np.random.default_rng(seed)
    z, y = feature_rows(rng, 300)
    y += noise * rng.normal(size=y.shape)
    parts = known(z[::2], y[::2]), known(z[1::2], y[1::2])
    exact = CHOICES[choice](*parts, SEARCHED)
    assert len(exact.alphas) == len(SEARCHED)
    monkeypatch.setattr("bagbasis.models.ridge.ridge.PART_SIZE", 20)
    for near in (None, exact.alpha, 4 * exact.alpha):
        result = CHOICES[choice](*parts, replace(SEARCHED, near=near))
        same = np.isin(exact.alphas, result.alphas)
        assert 2 <= same.sum() < len(SEARCHED)
        assert near != exact.alpha or same.sum() <= 3
        np.testing.assert_allclose(result.scores, exact.scores[same], rtol=1e-4)
        assert result.alpha == exact.alpha
        np.testing.assert_allclose(result.coef, exact.coef, atol=1e-6 * np.abs(exact.coef).max())


def test_a_search_leaves_what_can_not_be_solved():
    """Penalties below the rounding of the products count as infinitely bad, from where they are."""
    path = search(Penalties(10.0 ** np.arange(-9, 1)), _score, 1)
    assert path.best == 1e-4
    np.testing.assert_array_equal(np.isinf(path.scores), path.alphas < 0.5e-5)
    assert search(Penalties(np.array([1.0, 2.0])), lambda alpha: np.inf, 0).best == 2.0
    assert len(search(Penalties(np.array([1.0])), lambda alpha: 1.0, 0).alphas) == 1


def _score(alpha):
    if alpha < 0.5e-5:
        raise np.linalg.LinAlgError
    return (np.log10(alpha) + 4) ** 2


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.5, 0.6, 0.9], "penalty, 1, is the smallest of the grid; try smaller ones"),
        ([0.9, 0.6, 0.5], "penalty, 100, is the largest of the grid; try larger ones"),
        ([np.inf, 0.6, 0.5], "penalty, 100, is the largest of the grid; try larger ones"),
        ([0.6, 0.5, 0.9], ""),
        ([0.5, 0.5001, 0.9], ""),  # level: smaller ones would be no better
        ([0.9, 0.5, 0.497], ""),
        ([0.5], ""),
        ([0.012, 0.014, 0.9], ""),  # of the labels' variance: nothing is left to gain
    ],
)
def test_a_penalty_at_the_edge_is_said(scores, message, warned):
    """With what to do; float32's limit where it is one."""
    alphas = 10.0 ** np.arange(len(scores))
    warn_at_edge(Path(alphas, np.array(scores)), Penalties(alphas), "float32", is_summed=True)
    assert (message in warned.text) if message else not warned.text
    assert ("precision='float64'" in warned.text) == ("smallest" in message)


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 10.0])
def test_equals_scikit_learn(known, rows, alpha):
    """scikit-learn's Ridge has the same penalty and the same intercept."""
    z, y = rows
    truth = Ridge(alpha=alpha, solver="cholesky").fit(z, y)
    ours = solve(known(z, y), alpha, 1e-14)
    np.testing.assert_allclose(ours.coef, truth.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept, truth.intercept_, rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
def test_a_large_feature_hides_no_small_one(alpha):
    """Weighted rows, too: rounding is in proportion to the features' own sizes."""
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(2, 60))
    z, y, weights = np.column_stack([1e8 * a, b, b]), (a + b)[:, None], rng.integers(0, 3, 60) * 1.0
    ours = solve(collected(z, y, np.float64, weights), alpha, 1e-14)
    twice = np.repeat(z, weights.astype(int), axis=0), np.repeat(y, weights.astype(int), axis=0)
    centred = twice[0] - twice[0].mean(axis=0)
    left, sigma, right = np.linalg.svd(centred, full_matrices=False)
    sigma, left, right = sigma[:2], left[:, :2], right[:2]
    expected = right.T @ ((sigma / (sigma**2 + alpha))[:, None] * (left.T @ twice[1]))
    np.testing.assert_allclose(ours.coef.T, expected, rtol=1e-6)


def test_gcv_does_not_see_the_unit_of_a_target(known):
    """A target in millionths weighs as much in the choice as one in millions."""
    z, y = feature_rows(np.random.default_rng(5), 200)
    ours = solve_gcv(known(z, y), Penalties(GRID))
    scaled = solve_gcv(known(z, y * [1e6, 1.0, 1e-6]), Penalties(GRID))
    np.testing.assert_allclose(ours.scores, scaled.scores, rtol=1e-6)


def test_memory_that_is_not_set_is_not_read(monkeypatch):
    """Only one triangle of the products is computed: whatever the other holds, nothing changes."""
    z, y = feature_rows(np.random.default_rng(9), 60)
    train, apart = collected(z[:40], y[:40]), collected(z[40:], y[40:])

    def all_coefficients():
        solutions = [solve(train, alpha, 1e-14) for alpha in (0.0, 0.1)]
        solutions += [
            solve_gcv(train, Penalties(GRID)),
            solve_validation(train, apart, Penalties(GRID), 1e-14),
        ]
        return np.stack([solution.coef for solution in solutions])

    expected = all_coefficients()
    empty = np.empty
    monkeypatch.setattr(np, "empty", lambda *a, **kw: np.full_like(empty(*a, **kw), np.nan))
    np.testing.assert_array_equal(all_coefficients(), expected)
