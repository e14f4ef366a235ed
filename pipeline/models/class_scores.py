"""Out-of-fold scores of classes, to which the map to probabilities is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.arrays import Floats, Integers
from ..data.labelled.labelled import Batch, LabelledBags
from ..data.store.changes import ListedBags
from ..data.store.sampling import spread_rows
from ..execution.passes import rows_of, run_pass
from ..execution.worker_threads import kernel_threads
from .fitting.accumulate import FitStatistics, without_each
from .fitting.fit_parameters import FitParameters
from .fitting.plan import FitPlan
from .intervals.fold_calibration import FoldCalibration
from .outcomes.class_probabilities import MAX_CALIBRATION_ROWS, ProbabilityMap
from .outcomes.classes import Classes
from .ridge.ridge import RidgeSolution, solve
from .ridge.rows import RidgeRows
from .ridge.summary import Summary
from .ridge_model import RidgeModel


def with_probabilities(
    model: RidgeModel, plan: FitPlan, sums: FitStatistics, parameters: FitParameters
) -> RidgeModel:
    """Return a model of classes with probabilities calibrated on the folds of the fit.

    Without folds, the probabilities come from the positive parts of the scores, and none is 0.
    Models of other outcomes are returned unchanged.
    """
    outcome = model.outcome
    if not isinstance(outcome, Classes):
        return model
    parts = sums.folds.filled if sums.folds and model.features.beside is None else []
    if len(parts) < 2:
        return replace(
            model, outcome=replace(outcome, probability_map=ProbabilityMap(float(sums.train.n)))
        )
    with kernel_threads():
        share = model.solution.alpha / sums.train.weight
        solutions = [
            solve(statistics, share * statistics.weight, parameters.rounding)
            for statistics in without_each(parts)
        ]
    rows = _of_rows(parts, solutions) or _of_pass(model, plan, sums, solutions)
    return replace(model, outcome=replace(outcome, probability_map=ProbabilityMap.fitted(*rows)))


def _of_rows(
    parts: Sequence[Summary], solutions: Sequence[RidgeSolution]
) -> tuple[Floats, Floats, Floats] | None:
    """Return scores, targets and weights of the rows that the fit kept; None if it kept sums."""
    blocks = []
    for part, solution in zip(parts, solutions, strict=True):
        if not isinstance(part, RidgeRows):
            return None
        scores = part.z.astype(np.float64) @ solution.coef.T + solution.intercept
        blocks.append((scores, part.y, np.ones(part.n) if part.weights is None else part.weights))
    scores, targets, weights = (np.concatenate(columns) for columns in zip(*blocks, strict=True))
    return scores, targets, weights


def _of_pass(
    model: RidgeModel, plan: FitPlan, sums: FitStatistics, solutions: Sequence[RidgeSolution]
) -> tuple[Floats, Floats, Floats]:
    """Return scores, targets and weights of some bags, from a pass over them."""
    assert sums.folds is not None
    known = np.flatnonzero([part.weight > 0 for part in sums.folds.parts])
    made = FoldCalibration.of(solutions)
    k = model.outcome.n_targets
    scoring = rows_of(
        "probabilities",
        partial(_score_rows, model, plan, made, known),
        model.features.cost_in(model.precision),
        2 * k + 1,
    )
    rows = run_pass(_some_of(plan.bags), scoring)
    return rows[:, :k], rows[:, k : 2 * k], rows[:, 2 * k]


def _some_of(bags: LabelledBags) -> LabelledBags:
    """Return at most `MAX_CALIBRATION_ROWS` labelled bags, evenly spread."""
    chosen = spread_rows(np.sort(bags.labelled_positions()), MAX_CALIBRATION_ROWS)
    return replace(bags, left_out=None, only=ListedBags(chosen))


def _score_rows(
    model: RidgeModel, plan: FitPlan, made: FoldCalibration, known: Integers, batch: Batch
) -> Floats:
    """Return a row per bag: out-of-fold scores, targets and weight."""
    folds = plan.folds
    assert folds is not None
    targets, _ = plan.outcome.encode(batch.labels)
    weights = np.ones(len(batch))
    if plan.weights is not None:
        weights = plan.weights.of(batch.index, targets)
    places = np.searchsorted(known, folds.of(batch.index))
    scores = made.of_own_folds(model.features, model.precision, batch.bags, places)
    return np.column_stack([scores, targets, weights])
