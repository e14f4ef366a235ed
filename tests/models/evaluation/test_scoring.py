"""Measures of classes and the scores of `cross_val_score` are scikit-learn's."""

from __future__ import annotations

import operator
from functools import reduce

import numpy as np
import pytest
from sklearn import metrics
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold

from bagbasis import (
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ParameterError,
    cross_val_score,
    evaluate,
)
from bagbasis.models.evaluation.scoring import OF_CLASSES, OF_NUMBERS, scorer_of
from bagbasis.models.outcomes import classes as classes_module
from tests.models.evaluation.judged import class_errors, real_errors
from tests.models.predicting import BAGS, CODES, NAMES, Y, bases, fitted

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(3, 1, (90, 2))
PREDICTED = NUMBERS + RNG.normal(0.2, 1, (90, 2)) * [1, 3]
TRUE = RNG.integers(0, 3, 90).astype(float)
SHARES = RNG.dirichlet([0.5] * 3, 90)


class Foreseen(BaseEstimator):
    """An estimator whose predictions are those that it is scored on."""

    def predict(self, X):
        return X


def of_parts(make, *arrays):
    """Return errors of three parts, one of them small."""
    parts = zip(*(np.split(array, [1, 40]) for array in arrays), strict=True)
    return reduce(operator.add, [make(*part) for part in parts])


def of_classes(true, shares):
    known = tuple(map(float, range(shares.shape[1])))
    return of_parts(lambda *part: class_errors(known, (), *part), true, shares)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_scores_of_numbers(name):
    """The mean of two targets, from sums."""
    expected = metrics.get_scorer(name)(Foreseen(), PREDICTED, NUMBERS)
    assert OF_NUMBERS[name](of_parts(real_errors, NUMBERS, PREDICTED)) == pytest.approx(expected)


@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes(name, n_classes):
    """From the confusion matrix, the sum of log losses, and the sample of bags."""
    shares = SHARES[:, :n_classes] / SHARES[:, :n_classes].sum(axis=1, keepdims=True)
    true = np.minimum(TRUE, n_classes - 1)
    errors = of_classes(true, shares)
    if name == "roc_auc" and n_classes == 3:
        with pytest.raises(ParameterError, match="takes two classes, and there are 3; use 'roc_a"):
            OF_CLASSES[name](errors)
        return
    hard, proba = shares.argmax(axis=1), shares[:, 1] if n_classes == 2 else shares
    expected = {
        "neg_log_loss": lambda: -metrics.log_loss(true, shares),
        "neg_brier_score": lambda: -metrics.brier_score_loss(true, proba),
        "roc_auc": lambda: metrics.roc_auc_score(true, proba),
        "roc_auc_ovr": lambda: metrics.roc_auc_score(true, proba, multi_class="ovr"),
    }
    of_labels = metrics.get_scorer(name)
    result = expected.get(name, lambda: of_labels(Foreseen(), hard, true))()
    assert OF_CLASSES[name](errors) == pytest.approx(result)


def test_evaluate_has_them_with_weights():
    """Log loss, AUC and balanced accuracy count bags by their weights."""
    model, labels, w = fitted("class names"), NAMES[CODES], RNG.uniform(0, 2, len(Y))
    values = evaluate(model, BAGS, labels, sample_weight=w).values()["y"]
    shares = model.predict_proba(BAGS)
    hard = model.predict(BAGS)
    expected = {
        "log_loss": metrics.log_loss(labels, shares, sample_weight=w),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, hard, sample_weight=w),
        "auc": np.mean(
            [
                metrics.roc_auc_score(labels == name, shares[:, j], sample_weight=w)
                for j, name in enumerate(model.classes_)
            ]
        ),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)


def test_what_is_not_defined(monkeypatch):
    """Bags of one class have no AUC, an unknown class no log loss; so for more classes than 50."""
    alone = of_classes(np.zeros(90), SHARES).values()["kind"]
    assert alone["auc"] is None
    assert alone["balanced_accuracy"] == pytest.approx(alone["accuracy"])
    other = of_classes(np.where(np.arange(90) < 4, 7.0, TRUE), SHARES)
    assert other.values()["kind"]["log_loss"] is None
    expected = metrics.roc_auc_score(TRUE[4:], SHARES[4:], multi_class="ovr")
    assert other.values()["kind"]["auc"] == pytest.approx(expected)
    with pytest.raises(DataError, match=r"log_loss of a fold is not defined .*take fewer folds"):
        OF_CLASSES["neg_log_loss"](other)
    sure = of_classes(np.array([0.0, 1.0] * 45), np.tile([1.0, 0.0], (90, 1)))
    assert sure.values()["kind"]["log_loss"] == pytest.approx(-np.log(np.finfo(float).eps) / 2)
    monkeypatch.setattr(classes_module, "SAMPLED_CLASSES", 2)
    many = of_classes(TRUE, SHARES)
    assert many.values()["kind"]["auc"] is None
    assert many.sample.predicted.shape == (90, 4)


@pytest.mark.parametrize("scoring", [None, "r2", "explained_variance"])
def test_a_fold_of_one_bag_has_no_r2(scoring):
    """Such folds had the score 0, which counted in the mean."""
    with pytest.raises(DataError, match=r"R² of fold \d is not defined, .* take fewer folds"):
        cross_val_score(DoubleBasisRegressor(*bases()), BAGS[:7], Y[:7], scoring=scoring)
    of_each = "neg_mean_squared_error"
    scores = cross_val_score(DoubleBasisRegressor(*bases()), BAGS[:7], Y[:7], scoring=of_each)
    assert (scores < 0).all()


def test_folds_are_scored_by_name():
    """Each fold by its own model; of probabilities by a model whose map has not seen the fold."""
    model = DoubleBasisClassifier(*bases(), alphas=[0.01, 0.1, 1.0, 10.0])
    labels = NAMES[CODES].astype(object)
    scores = {
        name: cross_val_score(model, BAGS, labels, cv=3, scoring=name)
        for name in ("accuracy", "recall_micro", "neg_log_loss")
    }
    np.testing.assert_allclose(scores["accuracy"], scores["recall_micro"])
    fold = np.random.default_rng(4).permutation(len(Y)) % 3
    for j in range(3):
        single = model.fit(BAGS, np.where(fold == j, None, labels))
        shares = single.predict_proba([b for b, f in zip(BAGS, fold, strict=True) if f == j])
        loss = metrics.log_loss(labels[fold == j].tolist(), shares, labels=single.classes_.tolist())
        assert scores["neg_log_loss"][j] == pytest.approx(-loss, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "scoring", "message"),
    [
        (DoubleBasisRegressor, "rmse", "did you mean 'neg_root_mean_squared_error'"),
        (DoubleBasisRegressor, "accuracy", "for a model of numbers it is one of"),
        (DoubleBasisClassifier, "log_loss", "did you mean 'neg_log_loss'"),
        (DoubleBasisClassifier, "AUC", "did you mean 'roc_auc'"),
        (DoubleBasisClassifier, "balanced_acuracy", "did you mean 'balanced_accuracy'"),
        (DoubleBasisClassifier, "mae", "for a model of classes it is one of"),
        (DoubleBasisClassifier, max, "scoring is .*expected a string or None"),
    ],
)
def test_refused(kind, scoring, message):
    with pytest.raises(ParameterError, match=message):
        cross_val_score(kind(*bases()), BAGS, Y, scoring=scoring)


def test_a_splitter_is_refused_with_its_number_of_folds():
    with pytest.raises(ParameterError, match=r"did you mean 3\? scikit-learn's cross_val_score"):
        cross_val_score(DoubleBasisRegressor(*bases()), BAGS, Y, cv=KFold(3))


def test_densities_have_one_score():
    """It is R² against the average density."""
    from bagbasis.models.outcomes.densities import DensityOutcome

    with pytest.raises(ParameterError, match=r"for a model of densities it is one of \['r2'\]"):
        scorer_of(DensityOutcome, "neg_mean_squared_error")


@pytest.mark.long
@pytest.mark.parametrize("n_classes", [2, 3])
def test_standard_errors_are_the_spread_over_samples(n_classes):
    """Coverage over 100 samples of 120 bags, whose probabilities are right."""
    rng, values, spreads = np.random.default_rng(3), [], []
    for _ in range(100):
        shares = rng.dirichlet([1.0] * n_classes, 120)
        true = (rng.random(120)[:, None] > shares.cumsum(axis=1)).sum(axis=1).astype(float)
        errors = class_errors(tuple(map(float, range(n_classes))), (), true, shares)
        values.append(errors.values()["kind"])
        spreads.append(errors.spreads["kind"])
    for key in ("accuracy", "balanced_accuracy", "log_loss", "auc"):
        spread = np.std([item[key] for item in values])
        assert np.mean([item[key] for item in spreads]) == pytest.approx(spread, rel=0.1), key
