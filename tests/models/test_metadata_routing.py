"""Weights and groups go through scikit-learn's own tools to `fit` and `score`, bag by bag."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from bagbasis import DoubleBasisRegressor, MomentsEmbedding

ALPHAS = (1e-3, 1.0)


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def data():
    """Bags, labels, weights and groups, whose labels differ between groups."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 5)
    spread = rng.uniform(0.5, 2, 60) + 0.05 * groups
    bags = [rng.normal(0, item, (20, 1)) for item in spread]
    return bags, spread, rng.uniform(0.1, 5, 60), groups


def routed(alpha="gcv"):
    """An estimator that asks for weights and groups."""
    model = DoubleBasisRegressor(MomentsEmbedding(), random_features=False, alpha=alpha)
    model.set_fit_request(sample_weight=True, groups=True)
    return model.set_score_request(sample_weight=True)


def by_hand(model, data, n_folds):
    """The score of each fold, its weights and groups taken apart here."""
    bags, y, weights, groups = data
    scores = []
    for train, test in GroupKFold(n_folds).split(bags, y, groups):
        fitted = clone(model).fit(
            [bags[i] for i in train], y[train], sample_weight=weights[train], groups=groups[train]
        )
        result = fitted.score([bags[i] for i in test], y[test], sample_weight=weights[test])
        scores.append(result)
    return scores


def test_cross_validate(data):
    """Each fold gets its bags' weights and groups; without them the scores are others."""
    bags, y, weights, groups = data
    value = {"sample_weight": weights, "groups": groups}
    values = cross_validate(routed(), bags, y, cv=GroupKFold(3), params=value)["test_score"]
    np.testing.assert_array_equal(values, by_hand(routed(), data, 3))
    value["sample_weight"] = np.ones(60)
    assert (
        cross_validate(routed(), bags, y, cv=GroupKFold(3), params=value)["test_score"] != values
    ).all()


def test_grid_search(data):
    """The scores of candidates, and the last fit, are weighted ones."""
    bags, y, weights, groups = data
    grid = GridSearchCV(routed(), {"alpha": ALPHAS}, cv=GroupKFold(3))
    grid.fit(bags, y, sample_weight=weights, groups=groups)
    expected = [np.mean(by_hand(routed(alpha), data, 3)) for alpha in ALPHAS]
    np.testing.assert_allclose(grid.cv_results_["mean_test_score"], expected, rtol=1e-14)
    best = clone(grid.best_estimator_).fit(bags, y, sample_weight=weights, groups=groups)
    np.testing.assert_array_equal(grid.predict(bags), best.predict(bags))


def test_pipeline(data):
    """A pipeline hands them on to its last step."""
    bags, y, weights, groups = data
    inside = make_pipeline(routed()).fit(bags, y, sample_weight=weights, groups=groups)
    alone = routed().fit(bags, y, sample_weight=weights, groups=groups)
    np.testing.assert_array_equal(inside.predict(bags), alone.predict(bags))
    assert inside.score(bags, y, sample_weight=weights) == alone.score(
        bags, y, sample_weight=weights
    )


def test_weights_that_nobody_asked_for(data):
    """They are not dropped in silence."""
    bags, y, weights, _ = data
    model = DoubleBasisRegressor(MomentsEmbedding(), random_features=False, alpha=1.0)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(model, bags, y, cv=3, params={"sample_weight": weights})
