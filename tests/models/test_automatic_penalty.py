"""`alpha="auto"`: folds for few bags, whatever the embedding, and GCV for many."""

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    DoubleBasisRegressor,
    MomentsEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.operations import Retraining
from bagbasis.operations.retraining.sums import ModelSequence
from tests.oracles.planned import fit_parameters_of

SECOND = RandomFourierFeatures(n_features=64, seed=1)
FOLDED_BAGS = "bagbasis.models.fitting.{}.FOLDED_BAGS"


def drawn(n, seed=0, n_points=30):
    """Bags of normal distributions, with their standard deviations."""
    rng = np.random.default_rng(seed)
    spreads = rng.uniform(0.5, 3, n)
    return [rng.normal(0, s, (n_points, 2)) for s in spreads], spreads


BAGS, Y = drawn(60)


def stored(url):
    """A store of these bags, and as many without a label."""
    store = BagStore.create(url, n_dims=2, target_names=["s"])
    store.append([*BAGS, *BAGS], targets={"s": np.append(Y, np.full(len(Y), np.nan))})
    return store


def few(monkeypatch, most):
    for module in ("fit_parameters", "choice.sample"):
        monkeypatch.setattr(FOLDED_BAGS.format(module), most)


@pytest.mark.parametrize("embedding", ["moments", "js", None, MomentsEmbedding()])
@pytest.mark.parametrize("second", [SECOND, False])
def test_every_embedding_takes_folds(embedding, second):
    default = DoubleBasisRegressor(embedding, second).fit(BAGS, Y)
    by_folds = DoubleBasisRegressor(embedding, second, alpha="folds").fit(BAGS, Y)
    np.testing.assert_array_equal(default.coef_, by_folds.coef_)
    assert default.alpha_ == by_folds.alpha_


def test_a_named_embedding_is_not_worse_than_the_mean():
    """GCV's error with these moments is up to ten times that of folds."""
    bags, y = drawn(150, 1, 50)
    new, truth = drawn(300, 2, 50)
    errors = {
        alpha: np.mean(
            (DoubleBasisRegressor("moments", alpha=alpha).fit(bags, y).predict(new) - truth) ** 2
        )
        for alpha in ("auto", "gcv")
    }
    assert errors["auto"] < 0.05 * np.var(truth) < errors["gcv"]


@pytest.mark.long
def test_labelled_bags_are_counted(tmp_path, monkeypatch):
    """Bags without a label and those held out are not fitted."""
    store = stored(str(tmp_path / "bags.zarr"))
    few(monkeypatch, len(Y))
    by = {
        a: DoubleBasisRegressor("moments", SECOND, alpha=a).fit(store)
        for a in ("auto", "folds", "gcv")
    }
    np.testing.assert_array_equal(by["auto"].alpha_scores_, by["folds"].alpha_scores_)
    few(monkeypatch, len(Y) - 1)
    of_many = DoubleBasisRegressor("moments", SECOND).fit(store)
    np.testing.assert_array_equal(of_many.alpha_scores_, by["gcv"].alpha_scores_)
    held = DoubleBasisRegressor("moments", SECOND).fit(store, holdout=0.2)
    folds = DoubleBasisRegressor("moments", SECOND, alpha="folds").fit(store, holdout=0.2)
    np.testing.assert_array_equal(held.alpha_scores_, folds.alpha_scores_)


def test_gcv_that_is_asked_for_is_kept(monkeypatch):
    model = DoubleBasisRegressor("moments", SECOND, alpha="gcv").fit(BAGS, Y)
    few(monkeypatch, 1)
    default = DoubleBasisRegressor("moments", SECOND).fit(BAGS, Y)
    np.testing.assert_array_equal(default.coef_, model.coef_)


def test_densities_and_baselines_take_gcv():
    responses = [bag[:9] for bag in BAGS]
    made = [
        TripleBasisRegressor(ProjectionEmbedding(n_per_dim=3), SECOND, alpha=alpha).fit(
            BAGS, responses
        )
        for alpha in ("auto", "gcv")
    ]
    np.testing.assert_array_equal(made[0].coef_, made[1].coef_)
    made = [
        DoubleBasisRegressor("moments", SECOND, baseline="linear", alpha=alpha).fit(BAGS, Y)
        for alpha in ("auto", "gcv")
    ]
    np.testing.assert_array_equal(made[0].coef_, made[1].coef_)


def test_rounds_of_retraining_choose_as_the_first(tmp_path):
    store = stored(str(tmp_path / "bags.zarr"))
    line = ModelSequence.begin(DoubleBasisRegressor("moments", SECOND), store, (0, 60), None, 0.1)
    assert line.estimator.alpha == "folds"
    sums = line.statistics(store, (0, 60))
    assert len(sums.folds.parts) == 5
    model = line.model(sums, store, (0, 60))
    assert np.isfinite(model.alpha_scores_).any()
    value = ModelSequence.begin(
        DoubleBasisRegressor("moments", alpha="gcv"), store, (0, 60), None, 0.1
    )
    assert value.estimator.alpha == "gcv"


def test_an_old_line_goes_on_with_the_penalty_that_it_had():
    """States of earlier versions leave out alpha="gcv", which was the default."""
    folder = {"data_url": "bags.zarr", "registry_url": "models"}
    old = Retraining(**folder, estimator=DoubleBasisRegressor("moments", alpha="gcv"))
    assert "alpha" not in old.all_settings["estimator"]
    new = Retraining(**folder, estimator=DoubleBasisRegressor("moments"))
    assert new.all_settings["estimator"]["alpha"] == "auto"
    assert fit_parameters_of(new.estimator).has_automatic_penalty
