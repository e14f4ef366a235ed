"""What `score` of the estimators compares: labels of a store, and what is predicted for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bags import BagStore
from ..errors import BagbasisError, DataError
from .base import DoubleBasis
from .stored_predictions import predict_labelled
from .weights import SampleWeight, Weights


@contextmanager
def refusing_labels(y: ArrayLike | None) -> Iterator[None]:
    """Re-raise what scikit-learn refuses of labels and weights of bags in memory."""
    if y is None:
        raise DataError("y is missing: bags in memory have no labels of their own")
    try:
        yield
    except BagbasisError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"y, or sample_weight, can not be scored against: {error}") from error


def predictions_of_store(
    model: DoubleBasis, store: BagStore, sample_weight: SampleWeight
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
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
