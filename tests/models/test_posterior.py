"""Uncertainty of predictions and strangeness of bags against dense Gaussian processes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given, strategies as st
from sklearn.covariance import OAS

from bagbasis import (
    DoubleBasisRegressor,
    ModelError,
    ParameterError,
    TripleBasisRegressor,
    load_model,
)
from bagbasis.models import write_predictions
from bagbasis.models.posterior import Posterior
from bagbasis.models.ridge.ridge import solve
from bagbasis.models.ridge.rows import RidgeRows
from tests.models.predicting import (
    BAGS,
    CODES,
    N,
    Y,
    bases,
    classifier,
    features_of,
    fitted,
    regressor,
)
from tests.oracles.labelled import stored
from tests.oracles.ridge import gp_variance, hat_matrix


@st.composite
def problems(draw):
    """Rows (n, D), some of whose columns repeat, targets (n, 2), and a penalty."""
    n, d = draw(st.integers(3, 30)), draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    z = rng.standard_normal((n, d)) + 3
    for _ in range(draw(st.integers(0, 3))):
        z[:, rng.integers(d)] = z[:, rng.integers(d)]
    return z, rng.standard_normal((n, 2)) * [1, 1e-3], 10.0 ** draw(st.floats(-3, 3)), rng


@pytest.mark.long
@given(problems(), st.booleans())
def test_gaussian_process_and_hat_matrix(problem, keeps_rows):
    """From rows and from sums: the predictive variance of a dense Gaussian process over bags, the
    diagonal of the hat matrix, the residuals' degrees of freedom, and OAS' Mahalanobis distance."""
    check_posterior(*problem, keeps_rows)


@pytest.mark.parametrize("keeps_rows", [False, True])
@pytest.mark.parametrize(("n", "d"), [(12, 1), (25, 4), (6, 20)])
def test_gaussian_process_of_some_rows(n, d, keeps_rows):
    rng = np.random.default_rng(d)
    z = rng.normal(3, 1, (n, d)) * np.linspace(0.01, 0.0025 * d, d)
    check_posterior(z, rng.standard_normal((n, 2)), 0.3, rng, keeps_rows)


def check_posterior(z, y, alpha, rng, keeps_rows):
    rows = RidgeRows.of(z, y)
    summary = rows if keeps_rows else rows.statistics()
    solution = solve(summary, alpha, 1e-14)
    result = Posterior.of(summary, solution, 1e-14)
    hat = hat_matrix(z, alpha)
    free = len(z) - np.trace(hat)
    noise = ((y - hat @ y) ** 2).sum(axis=0) / free
    # from sums, what is left of the labels is a difference of numbers as large as their squares
    rounding = 1e-14 * (y**2).sum(axis=0) / free
    assert (np.abs(result.noise - noise) <= 1e-6 * noise + rounding).all()
    scores = np.empty((len(z), 2))
    result.score(z, scores)
    np.testing.assert_allclose(scores[:, 0], np.diag(hat), rtol=1e-7)
    new = z.mean(axis=0) + 2 * rng.standard_normal((5, z.shape[1]))
    scores = np.empty((5, 2))
    result.score(new, scores)
    expected = np.sqrt(noise * (1 + gp_variance(z, new, alpha)[:, None]))
    np.testing.assert_allclose(
        result.deviations(scores[:, 0], np.zeros((5, 1))), expected, rtol=1e-6
    )
    squares = OAS().fit(z).mahalanobis(new) if z.shape[1] > 1 else (new - z.mean()) ** 2 / z.var()
    np.testing.assert_allclose(scores[:, 1] ** 2, np.ravel(squares), rtol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.1, "gcv", "validation"])
@pytest.mark.parametrize("n_features", [16, 200])
def test_of_an_estimator(alpha, n_features, tmp_path):
    """All bags count, those of validation too; saved, loaded, of a store, of several targets."""
    first, second = bases()
    second.set_params(n_features=n_features)
    params = {"alpha": alpha, "precision": "float64", "uncertainty": True}
    model = DoubleBasisRegressor(first, second, **params).fit(BAGS, np.stack([Y, 9 * Y], axis=1))
    plain = DoubleBasisRegressor(first, second, **{**params, "uncertainty": False})
    np.testing.assert_array_equal(model.coef_, plain.fit(BAGS, model_targets()).coef_)
    hat = hat_matrix(features_of(model, BAGS), model.alpha_)
    np.testing.assert_allclose(model.bag_scores(BAGS).leverage, np.diag(hat), rtol=1e-7)
    model.save(tmp_path / "m.zarr")
    loaded = load_model(tmp_path / "m.zarr")
    values, deviations = loaded.predict(BAGS, return_std=True)
    np.testing.assert_array_equal(values, model.predict(BAGS))
    squares = ((Y - values[:, 0]) ** 2).sum() / (N - np.trace(hat)) * (1 + np.diag(hat))
    np.testing.assert_allclose(deviations, np.sqrt(squares)[:, None] * [1, 9], rtol=1e-6)
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=100)
    for lazy, now in [
        *zip(loaded.predict(store, return_std=True), (values, deviations), strict=True),
        *zip(loaded.bag_scores(store), loaded.bag_scores(BAGS), strict=True),
    ]:
        np.testing.assert_allclose(lazy.compute(), now, rtol=1e-9)


def model_targets():
    """Two targets, of which one is nine times the other."""
    return np.stack([Y, 9 * Y], axis=1)


def test_other_estimators(tmp_path):
    """Classifiers and densities have scores, and no std."""
    sure = classifier(uncertainty=True).fit(BAGS, CODES)
    same = regressor(uncertainty=True).fit(BAGS, Y).bag_scores(BAGS)
    np.testing.assert_allclose(sure.bag_scores(BAGS), same)
    densities = TripleBasisRegressor(*bases(), uncertainty=True, alpha=0.1).fit(BAGS, BAGS)
    np.testing.assert_allclose(densities.bag_scores(BAGS), same, rtol=1e-4)
    store = stored(tmp_path / "s.zarr", BAGS, Y)
    with pytest.raises(ModelError, match="a model of classes has no column 'std'"):
        write_predictions(sure, store, tmp_path / "p", columns=["std"])
    columns = ["mahalanobis", "leverage"]
    write_predictions(sure, store, tmp_path / "p", format="parquet", columns=columns)


@pytest.mark.parametrize("format", ["parquet", "zarr"])
def test_share_outside_the_box(format, tmp_path, warned):
    """A column of any model; a fit warns from a hundredth of its points on."""
    bags = [np.array([[0.5, 0.5]] * (4 - k) + [[0.5, 7.0]] * k) for k in (0, 1, 4, 3)]
    for n_far, is_warned in ((0, False), (3, True)):
        warned.clear()
        bags_too = [*BAGS, *[np.full((40, 2), 3.0)] * n_far]
        labels = np.arange(N + n_far, dtype=float)
        unit = [(0, 1)] * 2
        regressor(alpha=0.1).fit(stored(tmp_path / f"{n_far}", bags_too, labels, box=unit))
        assert ("of the points lie outside the box" in warned.text) is is_warned
    model, store = fitted("one target"), stored(tmp_path / "s.zarr", bags, np.zeros(4))
    write_predictions(model, store, tmp_path / "p", format=format, columns=["outside"])
    if format == "parquet":
        values = pd.read_parquet(tmp_path / "p")["outside"]
    else:
        values = zarr.open_array(str(tmp_path / "p"), path="outside", mode="r")[:]
    np.testing.assert_allclose(values, [0, 0.25, 1, 0.75])


def test_refusals(tmp_path):
    """What is missing is named, and what to do about it."""
    plain = fitted("one target")
    for asked in (lambda: plain.predict(BAGS, return_std=True), lambda: plain.bag_scores(BAGS)):
        with pytest.raises(ModelError, match="fit it with uncertainty=True"):
            asked()
    exact = regressor(alpha=0.0, uncertainty=True)
    exact.random_features.set_params(n_features=200)
    assert (exact.fit(BAGS, Y).bag_scores(BAGS).leverage <= 1 + 1e-9).all()
    with pytest.raises(ModelError, match="noise of the labels is not known"):
        exact.predict(BAGS, return_std=True)
    with pytest.raises(ParameterError, match="solver='cg' keeps no sums"):
        regressor(solver="cg", uncertainty=True).fit(BAGS, Y)
    named = stored(tmp_path / "s.zarr", BAGS, Y, ["std"])
    model = regressor(uncertainty=True).fit(named)
    with pytest.raises(ParameterError, match="'std' is a target of the model"):
        write_predictions(model, named, tmp_path / "p", columns=["std"])
    with pytest.raises(ParameterError, match=r"columns is \['leverge'\] \(did you mean 'leverage'"):
        write_predictions(model, named, tmp_path / "p", columns=["leverge"])
