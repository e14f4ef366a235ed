"""Labels far outside all others: ignored where bags do not predict them, and nowhere else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from bagbasis import (
    BagbasisWarning,
    BagStore,
    DoubleBasisRegressor,
    MomentsEmbedding,
    cross_val_score,
    load_model,
    tune,
)
from bagbasis.embeddings import ShrunkEmbedding
from bagbasis.models import Search
from bagbasis.operations.retraining.sums import ModelSequence

N = 120
SEARCH = Search([MomentsEmbedding()], scale_multipliers=(1.4,), first_bags=N, heads=["ridge"])


def make_bags(n: int = N, seed: int = 0) -> tuple[list[Any], Any]:
    """Bags of normal numbers, and their standard deviations with a little noise."""
    rng = np.random.default_rng(seed)
    spreads = rng.uniform(0.5, 2.0, n)
    return [rng.normal(0, s, (30, 1)) for s in spreads], spreads + 0.05 * rng.standard_normal(n)


def model_of(**more: Any) -> DoubleBasisRegressor:
    """Return an estimator whose embedding is not chosen."""
    return DoubleBasisRegressor(MomentsEmbedding(), False, **more)


BAGS, CLEAN = make_bags()
NEW, TRUE = make_bags(200, 1)


def with_outliers(kind: str) -> Any:
    """Return labels of which six are outliers."""
    rng, y = np.random.default_rng(5), CLEAN.copy()
    places = rng.choice(N, 6, replace=False)
    if kind == "noise":
        y[places] += 20 * rng.standard_normal(6)
    elif kind == "one":
        y[places[0]] = 1e6
    elif kind == "units":
        y[places] *= 100
    else:
        y[places] = -999
    return y


def error_of(model: DoubleBasisRegressor) -> float:
    """Return the RMSE on new bags."""
    return float(np.sqrt(np.mean((model.predict(NEW) - TRUE) ** 2)))


@pytest.mark.parametrize("kind", ["noise", "one", "units", "code"])
def test_outliers_do_not_move_a_fit(kind: str) -> None:
    """The error is near that of clean labels, and the warning counts the labels ignored."""
    y = with_outliers(kind)
    with pytest.warns(BagbasisWarning, match="of 120 labels are outliers.*alpha='folds'"):
        model = model_of().fit(BAGS, y)
    assert error_of(model) < 1.15 * error_of(model_of().fit(BAGS, CLEAN))
    assert error_of(model_of(alpha="folds").fit(BAGS, y)) > error_of(model)


def test_labels_without_outliers_keep_their_bits() -> None:
    """Clean labels are fitted as by alpha='folds'."""
    model, folds = model_of().fit(BAGS, CLEAN), model_of(alpha="folds").fit(BAGS, CLEAN)
    assert model.weights_ is None
    np.testing.assert_array_equal(model.coef_, folds.coef_)


def _far_and_predicted() -> tuple[list[Any], Any]:
    """Return bags of which some, with other points, have labels far away."""
    bags, y = make_bags()
    for i in range(0, N, 20):
        bags[i], y[i] = bags[i] + 8, y[i] + 40
    return bags, y


def _long_tail() -> tuple[list[Any], Any]:
    """Return labels of lognormal noise, whose mean is what is asked for."""
    return BAGS, CLEAN + np.exp(1.2 * np.random.default_rng(3).standard_normal(N))


def _many_equal() -> tuple[list[Any], Any]:
    """Return labels of which most are 0: there is no range to measure by."""
    return BAGS, np.where(np.arange(N) % 10 == 0, 50.0, 0.0)


@pytest.mark.parametrize("make", [_far_and_predicted, _long_tail, _many_equal])
def test_labels_that_are_far_for_a_reason_are_fitted(make: Any) -> None:
    """Far labels that bags predict, long tails, and labels of rare events stay."""
    bags, y = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagbasisWarning)
        model = model_of().fit(bags, y)
    assert model.weights_ is None


def test_only_the_columns_with_outliers_have_limits() -> None:
    """A bag is left out of all columns by its outlier in one; the warning names the target."""
    y = np.column_stack([CLEAN, with_outliers("noise")])
    with pytest.warns(BagbasisWarning, match="target 2: "):
        model = model_of().fit(BAGS, y)
    low, high = model.weights_["limits"]
    assert low[0] is None
    assert high[0] is None
    assert -3 < low[1] < 0.5 < 2 < high[1] < 6


@pytest.mark.filterwarnings("ignore::bagbasis.core.errors.BagbasisWarning")
def test_stores_saved_models_and_intervals(tmp_path: Any) -> None:
    """A store gives the same model; a saved one its limits; intervals and deviations remain."""
    y = with_outliers("noise")
    store = BagStore.create(str(tmp_path / "bags.zarr"), n_dims=1, target_names=["y"], dtype="f8")
    store.append(BAGS, y)
    arguments = {"uncertainty": True, "precision": "float64"}
    model = model_of(**arguments).fit(store, target="y", holdout=0.2)
    memory = model_of(**arguments).fit(BAGS, y, holdout=0.2)
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-6)
    model.save(str(tmp_path / "model.zarr"))
    again = load_model(str(tmp_path / "model.zarr"))
    assert again.weights_ == model.weights_
    mean, std = again.predict(NEW, return_std=True)
    assert np.median(std) < 0.3
    assert np.mean(np.abs(mean - TRUE) < 2 * std) > 0.85
    lower, upper = model.predict_interval(NEW, coverage=0.8)
    assert np.mean((lower <= TRUE) & (upper >= TRUE)) > 0.7
    model.conformalize(store, cv=5)


@pytest.mark.filterwarnings("ignore::bagbasis.core.errors.BagbasisWarning")
def test_cross_validation_counts_outliers_in_its_scores() -> None:
    """Folds are fitted without outliers, and judged on all labels."""
    y = with_outliers("one")
    y[y > 1e5] = 60.0
    scores = cross_val_score(model_of(), BAGS, y, cv=3)
    assert sorted((scores > 0.5).tolist()) == [False, True, True]


def test_standard_deviations_do_not_know_outliers() -> None:
    """Far labels of small bags are not taken for the noise of small bags."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(5, 60, N)
    bags = [rng.random((n, 1)) ** rng.uniform(0.5, 2) for n in sizes]
    y = np.array([bag.mean() for bag in bags]) + 0.05 * rng.standard_normal(N)
    wrong = y.copy()
    wrong[np.argsort(sizes)[:4]] = -50, 50, 50, -50
    shrunk = {"embedding": ShrunkEmbedding(MomentsEmbedding()), "uncertainty": True}
    clean = model_of().set_params(**shrunk).fit(bags, y)
    with pytest.warns(BagbasisWarning, match="4 of 120 labels are outliers"):
        model = model_of().set_params(**shrunk).fit(bags, wrong)
    ratios = model.predict(bags, return_std=True)[1] / clean.predict(bags, return_std=True)[1]
    np.testing.assert_allclose(ratios, 1, atol=0.1)


def test_many_columns_with_outliers_are_fitted() -> None:
    """A forest for each of thousands of targets would take hours."""
    y = np.random.default_rng(0).random((N, 17))
    y[0] = 1000
    assert model_of().fit(BAGS, y).weights_ is None


def test_rounds_of_retraining_count_all_labels(tmp_path: Any) -> None:
    """Labels of later rounds may be where the first round had outliers."""
    store = BagStore.create(tmp_path / "s.zarr", 1, target_names=["y"])
    store = store.append(BAGS, targets=with_outliers("one")[:, None])
    line = ModelSequence.begin(model_of(), store, (0, N), "y", 0.0)
    assert line.statistics(store, (0, N)).train.n == N
    with pytest.warns(BagbasisWarning, match="outliers"):
        fitted = model_of().fit(store, target="y")
    assert ModelSequence.of(fitted).weights.limits is None


@pytest.mark.parametrize("search", [None, SEARCH])
def test_tune_ignores_the_labels_that_fit_ignores(search: Search | None) -> None:
    """By the folds of a few bags, and by rungs: the last fit has the limits of ``fit``."""
    y = with_outliers("noise")
    with pytest.warns(BagbasisWarning, match="of 120 labels are outliers"):
        plain = model_of().fit(BAGS, y)
    with pytest.warns(BagbasisWarning, match="of 120 labels are outliers"):
        tuned = tune(DoubleBasisRegressor(validation_fraction=0.3), BAGS, y, search=search)
    assert tuned.model.weights_["limits"] == plain.weights_["limits"]
    assert error_of(tuned.model) < 1.15 * error_of(model_of().fit(BAGS, CLEAN))
    assert tuned.scores[-1][tuned.winner].error < 0.5  # outliers among them have ten times the mean
