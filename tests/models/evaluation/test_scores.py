"""One definition of a score: `score`, `evaluate`, folds and importance answer alike."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from bagbasis import (
    BagbasisWarning,
    Bags,
    BagStore,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    KernelSmoother,
    ParameterError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
    cross_val_score,
    evaluate,
)
from bagbasis.models import permutation_importance
from tests.oracles.labelled import labelled, labelled_bags, stored

BAGS, Y = labelled_bags(90, most=30)
NEW, NEW_Y = labelled_bags(40, seed=1, most=30)
BASES = {
    "embedding": ProjectionEmbedding(n_per_dim=3),
    "random_features": RandomFourierFeatures(n_features=24, seed=0),
}
EQUAL = np.full(40, 0.3)


def text(y):
    return np.where(y > 0, "high", "low")


@pytest.fixture(scope="module")
def models():
    """Return a model of each kind, with labels of new bags, and a slow score of these."""
    two = np.column_stack([Y, Y**2])
    return {
        "one": DoubleBasisRegressor(**BASES, alpha=0.01).fit(BAGS, Y),
        "two": DoubleBasisRegressor(**BASES, alpha=0.01).fit(BAGS, two),
        "classes": DoubleBasisClassifier(**BASES, alpha=0.01).fit(BAGS, text(Y)),
        "smoother": KernelSmoother(ProjectionEmbedding(n_per_dim=3)).fit(BAGS, Y),
        "densities": TripleBasisRegressor(
            **BASES, response_embedding=ProjectionEmbedding(n_per_dim=3), alpha=0.01
        ).fit(BAGS, list(BAGS)),
    }


def labels_of(name):
    two = np.column_stack([NEW_Y, NEW_Y**2])
    return {"two": two, "classes": text(NEW_Y), "densities": list(NEW)}.get(name, NEW_Y)


def slow_score(name, model, labels):
    predicted = model.predict(NEW)
    if name == "classes":
        return accuracy_score(labels, predicted)
    if name == "densities":
        truth = model.response_spec_
        rows = np.empty((len(NEW), truth.n_features))
        truth.embed(Bags.from_list(labels), rows)
        gaps = ((predicted - rows) ** 2).sum(), ((model.mean_coefficients_ - rows) ** 2).sum()
        return 1 - gaps[0] / gaps[1]
    return r2_score(labels, predicted)


@pytest.mark.parametrize("name", ["one", "two", "classes", "smoother", "densities"])
def test_score_evaluate_and_importance_in_memory(models, name):
    """All are scikit-learn's R², or accuracy, or the fraction of squared L2 distance explained."""
    model, labels = models[name], labels_of(name)
    expected = slow_score(name, model, labels)
    errors = evaluate(model, NEW, labels)
    assert errors.score == pytest.approx(expected, rel=1e-9)
    assert model.score(NEW, labels) == errors.score
    key = "accuracy" if name == "classes" else "r2"
    values = [item[key] for item in errors.values().values()]
    assert np.mean(values) == pytest.approx(expected, rel=1e-9)
    if name != "smoother":
        importance = permutation_importance(model, NEW, labels, n_repeats=1)
        assert importance.score.mean() == pytest.approx(expected, rel=1e-9)


def test_equal_labels(models, tmp_path):
    """Where they are predicted exactly the score is 1, else 0: by every way to ask."""
    model = models["one"]
    assert model.score(NEW, EQUAL) == r2_score(EQUAL, model.predict(NEW)) == 0
    assert evaluate(model, NEW, EQUAL).values()["y"]["r2"] == 0
    importance = permutation_importance(model, NEW, EQUAL, n_repeats=2)
    assert importance.score.tolist() == [0]
    assert not importance.drop.any()
    assert not importance.standard_error.any()
    store = stored(tmp_path / "s.zarr", NEW, EQUAL)
    assert DoubleBasisRegressor(**BASES, alpha=0.01).fit(BAGS, Y).score(NEW, EQUAL) == 0
    exact = DoubleBasisRegressor(**BASES, alpha=0.01).fit(store)
    assert exact.score(store) == evaluate(exact, store).score == 1
    np.testing.assert_array_equal(
        cross_val_score(DoubleBasisRegressor(**BASES, alpha=0.01), NEW, EQUAL, cv=4), 1
    )


def test_equal_labels_of_one_fold():
    """A fold whose labels are equal, and other than those of its training bags, scores 0."""
    y = np.repeat([0.0, 1.0, 2.0, 3.0], 10)
    scores = cross_val_score(
        DoubleBasisRegressor(**BASES, alpha=0.01), NEW, y, cv=4, groups=np.arange(40) // 10
    )
    assert scores.tolist() == [0, 0, 0, 0]


def test_one_bag(models):
    """One number has no R², one class is right or wrong, and one pair is scored as equal ones."""
    with pytest.warns(BagbasisWarning, match="R² of one bag is not defined"):
        assert np.isnan(models["one"].score(NEW[:1], labels_of("one")[:1]))
    assert models["classes"].score(NEW[:1], labels_of("classes")[:1]) in (0, 1)
    pair = TripleBasisRegressor(**BASES, response_embedding=ProjectionEmbedding(n_per_dim=3))
    assert pair.set_params(alpha=0.01).fit(NEW[:1], [NEW[0]]).score(NEW[:1], [NEW[0]]) == 1


def test_what_does_not_fit_is_refused(models, tmp_path):
    """Another number of targets, text for numbers, labels for a store, and none at all."""
    with pytest.raises(DataError, match="y has 2 targets, the model predicts 1"):
        evaluate(models["one"], NEW, np.column_stack([NEW_Y, NEW_Y]))
    with pytest.raises(DataError, match="responses, not targets"):
        evaluate(models["one"], NEW, list(NEW))
    store: BagStore = stored(tmp_path / "s.zarr", NEW, NEW_Y)
    with pytest.raises(DataError, match=r"evaluate\(model, store, y\)"):
        evaluate(models["one"], store)
    with pytest.raises(DataError, match="y has 39 values for 40 bags"):
        evaluate(models["one"], store, NEW_Y[:-1])
    with pytest.raises(ParameterError, match="pass the store alone"):
        evaluate(models["densities"], store, list(NEW))
    with pytest.raises(ParameterError, match="y is given"):
        evaluate(models["one"], labelled(Bags.from_list(NEW), NEW_Y), NEW_Y)


@pytest.mark.parametrize("name", ["one", "two", "classes"])
def test_labels_beside_a_store(models, name, tmp_path):
    """They stand for the store's columns, of all bags that were not removed."""
    store = stored(tmp_path / "s.zarr", NEW, None)
    labels = labels_of(name)
    assert models[name].score(store, labels) == pytest.approx(models[name].score(NEW, labels))
    store.remove(store.ids()[:5].tolist())
    expected = models[name].score(NEW[5:], labels[5:])
    errors = evaluate(models[name], store, labels)
    assert errors.score == pytest.approx(expected)
    assert errors.n == 35


def test_classes_in_memory_are_called_by_their_names(models):
    """The confusion matrix of text and of booleans; a label that is not a class is an error."""
    values = evaluate(models["classes"], NEW, text(NEW_Y)).values()["y"]
    assert set(values["per_class"]) == {"high", "low"}
    other = text(NEW_Y).astype(object)
    other[:3] = "other"
    other[3] = None
    errors = evaluate(models["classes"], NEW, other)
    assert (errors.n, errors.n_unlabelled) == (39, 1)
    truth, predicted = other[other != None], models["classes"].predict(NEW)  # noqa: E711
    expected = np.mean(predicted[np.arange(40) != 3] == truth)
    assert errors.score == pytest.approx(expected)
    booleans = DoubleBasisClassifier(**BASES, alpha=0.01).fit(BAGS, Y > 0)
    assert set(evaluate(booleans, NEW, NEW_Y > 0).values()["y"]["per_class"]) == {
        "False",
        "True",
    }
