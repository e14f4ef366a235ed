"""The part of scikit-learn's contract that makes sense for bags."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

from bagbasis import (
    BagbasisWarning,
    Bags,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from tests.models.splits import held_out
from tests.oracles.labelled import labelled_bags, stored

BAGS, Y = labelled_bags(120, most=150)
GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
KINDS = (DoubleBasisRegressor, DoubleBasisClassifier)


def small(kind, **params):
    return kind(
        ProjectionEmbedding(n_per_dim=4, box=[(0, 1), (0, 1)]),
        RandomFourierFeatures(n_features=64),
        **{"alpha": 0.05, **params},
    )


def targets(kind):
    return Y if kind is DoubleBasisRegressor else np.where(Y > 0, "high", "low")


@pytest.mark.parametrize("kind", KINDS)
class TestEstimator:
    def test_constructor_only_stores(self, kind):
        """Every argument is a parameter, kept as it is, and nothing is fitted."""
        marks = {name: object() for name in inspect.signature(kind).parameters}
        model = kind(**marks)
        assert vars(model) == marks == model.get_params(deep=False)

    def test_clone_and_nested_parameters(self, kind):
        """clone copies parameters and no fit; the bases' parameters are reached by name."""
        model = small(kind).fit(BAGS, targets(kind))
        copy = clone(model)
        assert not hasattr(copy, "coef_")
        assert str(copy) == str(model)
        copy.set_params(embedding__n_per_dim=3, random_features__seed=9, alpha=1.0)
        assert copy.get_params()["embedding__n_per_dim"] == 3
        assert model.embedding.n_per_dim == 4
        with pytest.raises(ValueError, match="Invalid parameter 'beta'"):
            copy.set_params(beta=1)

    def test_kind(self, kind):
        """scikit-learn knows which of the two it has."""
        assert is_regressor(small(kind)) == (kind is DoubleBasisRegressor)
        assert is_classifier(small(kind)) == (kind is DoubleBasisClassifier)

    def test_not_fitted(self, kind, tmp_path):
        """Predicting before fit is scikit-learn's NotFittedError, for bags and for a store."""
        store = stored(tmp_path / "s.zarr", BAGS, None)
        methods = ["predict"] + ["predict_proba"] * (kind is DoubleBasisClassifier)
        for method in methods:
            for data in (BAGS, store):
                with pytest.raises(NotFittedError):
                    getattr(small(kind), method)(data)
        with pytest.raises(NotFittedError):
            check_is_fitted(small(kind))
        check_is_fitted(small(kind).fit(BAGS, targets(kind)))

    def test_fit_returns_self_and_leaves_parameters_alone(self, kind):
        """fit changes no parameter, nor the bases that were passed, nor its data."""
        model = small(kind)
        before = str(model.get_params())
        bags, y = Bags.from_list(BAGS), targets(kind)
        points, labels = bags.points.copy(), y.copy()
        assert model.fit(bags, y) is model
        assert str(model.get_params()) == before
        assert not hasattr(model.embedding, "spec_")
        assert not hasattr(model.random_features, "spec_")
        np.testing.assert_array_equal(bags.points, points)
        np.testing.assert_array_equal(y, labels)

    def test_pickle(self, kind):
        """An unfitted and a fitted estimator survive a pickle, bit by bit."""
        model = small(kind)
        assert str(pickle.loads(pickle.dumps(model))) == str(model)
        model.fit(BAGS, targets(kind))
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(BAGS), model.predict(BAGS))

    def test_fitting_again_forgets(self, kind):
        """A second fit is what a fresh estimator would be, in another dimension too, and also
        when the bases that were passed had been fitted to other data."""
        model = small(kind).set_params(embedding__box=None)
        model.fit(BAGS, targets(kind))
        other = [3 * bag[:, :1] + 10 for bag in BAGS]
        labels = targets(kind)[::-1]
        fresh = clone(model).fit(other, labels)
        model.embedding.fit(BAGS)
        model.random_features.fit(np.random.default_rng(0).random((9, 16)))
        np.testing.assert_array_equal(model.fit(other, labels).predict(other), fresh.predict(other))
        assert model.features_.embedding.n_dims == 1

    def test_fitting_twice_is_the_same(self, kind):
        """The same data and parameters give the same bits."""
        first, second = (small(kind, alpha="gcv").fit(BAGS, targets(kind)) for _ in range(2))
        np.testing.assert_array_equal(first.coef_, second.coef_)
        np.testing.assert_array_equal(first.intercept_, second.intercept_)

    def test_predictions_do_not_depend_on_company(self, kind):
        """A bag's prediction is its own: alone, in another order or in a subset."""
        model = small(kind, precision="float64").fit(BAGS, targets(kind))
        bags = Bags.from_list(BAGS)
        rows = model.model_.decision_rows
        whole = rows(bags)
        order = np.random.default_rng(0).permutation(len(bags))
        np.testing.assert_allclose(rows(bags[order]), whole[order], atol=1e-12)
        np.testing.assert_allclose(rows(bags[17:18]), whole[17:18], atol=1e-12)
        assert len(model.predict(bags[:0])) == 0

    def test_score(self, kind):
        """R² of a regressor, accuracy of a classifier."""
        model, y = small(kind).fit(BAGS[:80], targets(kind)[:80]), targets(kind)[80:]
        metric = r2_score if kind is DoubleBasisRegressor else accuracy_score
        assert model.score(BAGS[80:], y) == metric(y, model.predict(BAGS[80:])) > 0.5

    def test_score_of_one_bag(self, kind):
        """R² is NaN with a warning, as scikit-learn's; a fraction of one bag is 0 or 1."""
        model, y = small(kind).fit(BAGS[:80], targets(kind)[:80]), targets(kind)[80:81]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            score = model.score(BAGS[80:81], y)
            accuracy = kind is DoubleBasisClassifier
            expected = (accuracy_score if accuracy else r2_score)(y, model.predict(BAGS[80:81]))
        np.testing.assert_equal(score, expected)
        ours = [w for w in caught if issubclass(w.category, BagbasisWarning)]
        assert len(ours) == (not accuracy)

    def test_score_of_a_store(self, kind, tmp_path):
        """The lazy predictions of a store can be scored too."""
        model = small(kind).fit(BAGS, targets(kind))
        store = stored(tmp_path / "s.zarr", BAGS, None)
        assert model.score(store, targets(kind)) == pytest.approx(model.score(BAGS, targets(kind)))

    @pytest.mark.parametrize("container", [list, Bags.from_list])
    def test_grid_search(self, kind, container):
        """GridSearchCV splits bags, sets nested parameters and refits the best."""
        grid = {"alpha": [0.1, 1e5], "embedding__n_per_dim": [1, 5]}
        bags = container(BAGS)
        search = GridSearchCV(small(kind), grid, cv=3).fit(bags, targets(kind))
        assert search.best_params_ == {"alpha": 0.1, "embedding__n_per_dim": 5}
        assert search.predict(bags).shape == (120,)
        assert (cross_val_score(small(kind), bags, targets(kind), cv=3) > 0.3).all()


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_score_by_the_labels_of_a_store(kind, tmp_path):
    """That of the bags held out of the store it was fitted to, of all labelled bags of another."""
    y = Y.copy() if kind is DoubleBasisRegressor else (Y > 0).astype(float)
    y[::7] = np.nan
    store = stored(tmp_path / "s.zarr", BAGS, y)
    model = small(kind).fit(store, target="y", holdout=0.3)
    out, known = held_out(0.3, len(BAGS)), ~np.isnan(y)
    for url, rows in ((store.url, out & known), (tmp_path / "other.zarr", known)):
        if url != store.url:
            store = stored(url, BAGS[::-1], y[::-1])  # in the same order it is a copy
        bags = [BAGS[i] for i in np.flatnonzero(rows)]
        assert model.score(store) == pytest.approx(model.score(bags, y[rows]))
    with pytest.raises(DataError, match="sample_weight: bag 0 has none"):
        model.score(store, sample_weight=y)
    with pytest.raises(DataError, match="y is missing"):
        model.score(BAGS)
    with pytest.raises(DataError, match="no labelled bag among"):
        model.score(stored(tmp_path / "bare.zarr", BAGS, np.full(len(BAGS), np.nan)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_function(n_classes, tmp_path):
    """As scikit-learn has it, of bags and, lazily, of a store: its order is that of `predict`."""
    y = np.digitize(Y, np.quantile(Y, np.arange(1, n_classes) / n_classes))
    model = small(DoubleBasisClassifier).fit(BAGS, y)
    scores = model.decision_function(BAGS)
    lazy = model.decision_function(stored(tmp_path / "s.zarr", BAGS, None))
    assert lazy.shape == scores.shape == ((len(BAGS),) if n_classes == 2 else (len(BAGS), 3))
    np.testing.assert_allclose(lazy.compute(), scores, rtol=1e-12)
    chosen = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(BAGS), chosen)


def test_fitted_attributes_have_the_shapes_of_scikit_learn():
    """As in Ridge, one target has one row of coefficients and a number; a column has a matrix."""
    model = small(DoubleBasisRegressor).fit(BAGS, Y)
    assert model.coef_.shape == (64,)
    assert isinstance(model.intercept_, float)
    assert model.n_features_in_ == 2
    several = small(DoubleBasisRegressor).fit(BAGS, Y[:, None])
    assert several.coef_.shape == (1, 64)
    np.testing.assert_array_equal(several.coef_[0], model.coef_)
    np.testing.assert_array_equal(several.intercept_, [model.intercept_])


def test_attributes_before_a_fit():
    """There are none: `hasattr` says so, as scikit-learn's tools ask."""
    assert not hasattr(small(DoubleBasisRegressor), "n_features_in_")


def test_a_page_explains_each_attribute():
    """Our packages import what is public; the guide's table has all of it and no more."""
    fitted = small(DoubleBasisRegressor).fit(BAGS, Y)
    shown = {name for name in {*dir(fitted), *dir(type(fitted))} if not name.startswith("_")}
    section = GUIDE.read_text().partition("## What a regressor has")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    explained = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(explained) == sorted(shown)
