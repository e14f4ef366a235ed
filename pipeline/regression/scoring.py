"""The labels and predictions that `score` of the estimators compares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score
from sklearn.utils import check_array

from ..arrays import Floats
from ..bags import BagStore
from ..errors import BagbasisError, DataError
from ..params import refuse_masked
from ..units import in_units, units_of_labels
from .fitted_model import Array, FittedModel
from .outcome_base import Outcome
from .stored_predictions import predict_labelled
from .weights import SampleWeight, Weights

NO_SCORE = "it takes two bags, with labels that are not far smaller than what is predicted"


@contextmanager
def refusing_labels(y: ArrayLike | None, sample_weight: SampleWeight) -> Iterator[None]:
    """Re-raise scikit-learn's errors about labels and weights of bags in memory as ours."""
    if y is None:
        raise DataError("y is missing: bags in memory have no labels of their own")
    refuse_masked("y", y)
    refuse_masked("sample_weight", sample_weight)
    try:
        yield
    except BagbasisError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"y, or sample_weight, can not be scored against: {error}") from error


@np.errstate(over="ignore", invalid="ignore")  # refused by name
def r_squared(
    outcome: Outcome, labels: ArrayLike | None, predicted: Array, weights: SampleWeight = None
) -> float:
    """Return R², mean of the targets, as scikit-learn does, of labels of any size.

    Raises
    ------
    DataError
        An R² that is not finite; names the target.
    TypeError, ValueError
        What scikit-learn refuses.
    """
    both = (check_array(rows, ensure_2d=False, dtype=np.float64) for rows in (labels, predicted))
    truth, found = (rows.reshape(len(rows), -1) for rows in both)
    if truth.shape == found.shape:  # scikit-learn refuses others
        exponents = units_of_labels(truth, found)
        truth, found = in_units(truth, exponents), in_units(found, exponents)
        outcome.check_finite(found, "R²", NO_SCORE)
    scores = r2_score(truth, found, sample_weight=weights, multioutput="raw_values")
    outcome.check_finite(np.atleast_2d(scores), "R²", NO_SCORE)
    return float(np.mean(scores))


def predictions_of_store(
    model: FittedModel, store: BagStore, sample_weight: SampleWeight
) -> tuple[NDArray[Any], NDArray[Any], Floats | None]:
    """Return labels, predictions and weights of the store's bags that `predict_labelled` takes.

    Raises
    ------
    DataError
        Weights of which none is above 0.
    """
    given = Weights.of_bags(store, sample_weight)
    index, labels, predicted = predict_labelled(model, store)
    weights = None if given is None else given.of(index, labels)
    if weights is not None and not weights.any():
        raise DataError("sample_weight: the weights of all bags are 0")
    return labels, predicted, weights
