"""`scorer_of`: the scores of `cross_val_score`, by their names in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from sklearn import metrics

from ...core.errors import DataError, ParameterError, closest, shown
from ..errors import Errors
from ..outcomes.base import Outcome
from ..outcomes.classes import Classes
from ..outcomes.densities import DensityOutcome
from ..outcomes.details import ClassDetails

Scorer = Callable[[Errors], float]


def _mean_of(key: str, sign: float, power: float, errors: Errors) -> float:
    """Return the mean of a measure over targets; higher is better."""
    return sign * float(np.mean([measures[key] ** power for measures in errors.values().values()]))


def _explained_variance(errors: Errors) -> float:
    """Return 1 minus the ratio of the variance of the errors to the variance of the labels."""
    fractions = []
    for measures in errors.values().values():
        variance = measures["constant_rmse"] ** 2
        residual = measures["rmse"] ** 2 - measures["bias"] ** 2
        fractions.append(1 - residual / variance if variance > 0 else float(residual <= 0))
    return float(np.mean(fractions))


def _of_counts(score: Callable[..., float], options: Mapping[str, object], errors: Errors) -> float:
    """Return a score of scikit-learn that needs only labels, from the confusion matrix."""
    details = errors.details
    assert isinstance(details, ClassDetails)
    true, predicted = np.meshgrid(details.codes, details.codes, indexing="ij")
    counted = details.matrix > 0
    weights = details.matrix[counted]
    return float(score(true[counted], predicted[counted], sample_weight=weights, **options))


def _balanced_accuracy(errors: Errors) -> float:
    return float(_only(errors)["balanced_accuracy"])


def _log_loss(errors: Errors) -> float:
    return -_defined(errors, "log_loss", "a class that was not among the bags fitted")


def _auc(errors: Errors) -> float:
    return _defined(errors, "auc", "bags of one class only, or more classes than are remembered")


def _binary_auc(errors: Errors) -> float:
    n = errors.outcome.n_targets
    if n != 2:
        raise ParameterError(
            f"scoring='roc_auc' takes two classes, and there are {n}; use 'roc_auc_ovr'"
        )
    return _auc(errors)


def _brier(errors: Errors) -> float:
    """Return the negative Brier score; for two classes half of it, as in scikit-learn."""
    mean = ClassDetails.brier(errors.sample)
    return -mean / 2 if errors.outcome.n_targets == 2 else -mean


def _only(errors: Errors) -> dict[str, float]:
    return next(iter(errors.values().values()))


def _defined(errors: Errors, key: str, why: str) -> float:
    value = _only(errors)[key]
    if value is None:
        raise DataError(f"{key} of a fold is not defined ({why}); take fewer folds")
    return float(value)


OF_NUMBERS: dict[str, Scorer] = {
    "r2": partial(_mean_of, "r2", 1.0, 1.0),
    "explained_variance": _explained_variance,
    "neg_mean_squared_error": partial(_mean_of, "rmse", -1.0, 2.0),
    "neg_root_mean_squared_error": partial(_mean_of, "rmse", -1.0, 1.0),
    "neg_mean_absolute_error": partial(_mean_of, "mae", -1.0, 1.0),
}
AVERAGES = ("macro", "micro", "weighted")
OF_CLASSES: dict[str, Scorer] = {
    "accuracy": lambda errors: errors.score,
    "balanced_accuracy": _balanced_accuracy,
    "neg_log_loss": _log_loss,
    "neg_brier_score": _brier,
    "roc_auc": _binary_auc,
    "roc_auc_ovr": _auc,
    "matthews_corrcoef": partial(_of_counts, metrics.matthews_corrcoef, {}),
    **{
        f"{name}_{average}": partial(_of_counts, score, {"average": average, "zero_division": 0})
        for name, score in (
            ("f1", metrics.f1_score),
            ("precision", metrics.precision_score),
            ("recall", metrics.recall_score),
        )
        for average in AVERAGES
    },
}
OTHER_WORDS = {
    "rmse": "neg_root_mean_squared_error",
    "mse": "neg_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "auc": "roc_auc",
    "brier": "neg_brier_score",
    "mcc": "matthews_corrcoef",
    "f1": "f1_macro",
}
OF_PROBABILITIES = ("neg_log_loss", "neg_brier_score", "roc_auc", "roc_auc_ovr")
OF_DENSITIES: dict[str, Scorer] = {"r2": lambda errors: errors.score}


def scorer_of(outcome: Outcome | type[Outcome], scoring: str) -> Scorer:
    """Return the function that computes the score of this name from errors; higher is better.

    Raises
    ------
    ParameterError
        If this kind of outcome has no score of this name; the nearest name is suggested.
    """
    kind = outcome if isinstance(outcome, type) else type(outcome)
    known = OF_NUMBERS
    if issubclass(kind, Classes):
        known = OF_CLASSES
    elif issubclass(kind, DensityOutcome):
        known = OF_DENSITIES
    if scoring not in known:
        meant = OTHER_WORDS.get(scoring.casefold())
        hint = closest(meant if meant in known else scoring, known)
        raise ParameterError(
            f"scoring is {shown(scoring)}{hint}; for a model of {kind.kind} it is one of "
            f"{list(known)}"
        )
    return known[scoring]
