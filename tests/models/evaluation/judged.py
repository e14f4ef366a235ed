"""Errors of predictions that are given, as `evaluate` counts those of a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags
from bagbasis.data.labelled.labelled import Batch
from bagbasis.models import Errors
from bagbasis.models.judging import Judge
from bagbasis.models.outcomes.classes import Classes
from tests.oracles.labelled import labelled
from tests.oracles.planned import Reals


def real_errors(true: NDArray[Any], predicted: NDArray[Any], first: int = 0) -> Errors:
    """Errors of targets y1, y2, …, both of shape (n, k), of bags from ``first`` on."""
    names = tuple(f"y{j + 1}" for j in range(true.shape[1]))
    return _judged(Reals(len(names), False, names), true, predicted, first=first)


def class_errors(
    known: tuple[float, ...], names: tuple[str, ...], true: NDArray[Any], predicted: NDArray[Any]
) -> Errors:
    """Errors of the target "kind" with classes ``names``; predicted: classes, or scores."""
    hard = predicted if predicted.ndim == 2 else predicted[:, None] == np.array(known)
    scores = hard.astype(float)
    return _judged(Classes(known, ("kind",)), true[:, None], scores, names)


def _judged(
    outcome: Any,
    true: NDArray[Any],
    scores: NDArray[Any],
    class_names: tuple[str, ...] = (),
    first: int = 0,
) -> Errors:
    bags = Bags.trusted(np.zeros((len(true), 1)), np.arange(len(true) + 1))
    model: Any = SimpleNamespace(
        outcome=outcome, mean_targets=None, decision_rows=lambda bags: scores
    )
    judge = Judge(model, labelled(bags, true))
    judge.class_names = class_names
    batch = Batch(first + np.arange(len(true)), bags, true, len(true))
    return judge.judge(batch, outcome.encode(true)[0])
