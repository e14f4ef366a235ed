"""The kinds of outcomes: numbers, classes or densities.

An `Outcome` is made from the labels before a fit. It defines everything that depends on the kind of
label: the encoding of labels, predictions from raw scores, the names of predictions in files, the
error, and the entries of a saved model.
"""

from __future__ import annotations

from typing import Any

from .base import Outcome, Prediction
from .classes import Classes
from .densities import DensityOutcome
from .details import Rows
from .reals import Reals, refuse_labels_of_classes

__all__ = [
    "OUTCOMES",
    "Classes",
    "DensityOutcome",
    "Outcome",
    "Prediction",
    "Reals",
    "Rows",
    "identify_outcome",
    "refuse_labels_of_classes",
]

OUTCOMES: tuple[type[Outcome], ...] = (Reals, Classes, DensityOutcome)


def identify_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return all values on which encoded labels depend, in types that JSON knows."""
    k = outcome.n_targets
    return {"kind": type(outcome).__name__, "n_targets": k, **outcome.identify()}
