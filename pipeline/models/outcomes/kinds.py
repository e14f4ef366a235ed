"""What a model learns: numbers, classes or densities.

An `Outcome` is decided from the labels before a fit. Everything that depends on the kind of label
asks it: the numbers to regress on, what raw scores predict, the names of predictions in files, the
definition of the error, and what a saved model stores.
"""

from __future__ import annotations

from typing import Any

from .base import Outcome, Prediction, Rows
from .classes import Classes
from .densities import DensityOutcome
from .reals import Reals, refuse_classes

__all__ = [
    "OUTCOMES",
    "Classes",
    "DensityOutcome",
    "Outcome",
    "Prediction",
    "Reals",
    "Rows",
    "identify_outcome",
    "refuse_classes",
]

OUTCOMES: tuple[type[Outcome], ...] = (Reals, Classes, DensityOutcome)


def identify_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return everything that encoded labels depend on, in types that JSON knows."""
    k = outcome.n_targets
    return {"kind": type(outcome).__name__, "n_targets": k, **outcome.identify()}
