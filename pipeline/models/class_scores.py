"""Scores of classes by models that were not fitted to a bag, from the folds of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.arrays import Floats, Integers
from ..data.labelled.labelled import Batch, LabelledBags
from ..data.store.changes import ListedBags
from ..data.store.sampling import spread_rows
from ..execution.lanes import lane
from ..execution.passes import Reduction, run_pass
from .fitting.accumulate import FitStatistics
from .fitting.fit_parameters import FitParameters
from .fitting.plan import FitPlan
from .intervals.calibration import join_rows
from .intervals.fold_calibration import FoldCalibration, without_each
from .outcomes.class_probabilities import MOST_ROWS, ProbabilityMap
from .outcomes.classes import Classes
from .ridge.ridge import RidgeSolution, solve
from .ridge.rows import RidgeRows
from .ridge.summary import Summary
from .ridge_model import RidgeModel


def with_probabilities(
    model: RidgeModel, plan: FitPlan, sums: FitStatistics, parameters: FitParameters
) -> RidgeModel:
    """Return a model of classes whose probabilities are fitted to scores over the fit's folds.

    Without folds they are the positive parts of the scores, and none is 0. Other models are
    returned as they are.
    """
    outcome = model.outcome
    if not isinstance(outcome, Classes):
        return model
    parts = sums.folds.filled if sums.folds and model.features.beside is None else []
    if len(parts) < 2:
        return replace(
            model, outcome=replace(outcome, probability_map=ProbabilityMap(float(sums.train.n)))
        )
    with lane():
        share = model.solution.alpha / sums.train.weight
        solutions = [
            solve(left, share * left.weight, parameters.rounding) for left in without_each(parts)
        ]
    rows = _of_rows(parts, solutions) or _of_pass(model, plan, sums, solutions)
    return replace(model, outcome=replace(outcome, probability_map=ProbabilityMap.fitted(*rows)))


def _of_rows(
    parts: Sequence[Summary], solutions: Sequence[RidgeSolution]
) -> tuple[Floats, Floats, Floats] | None:
    """Return scores, targets and weights of rows that the fit has kept; None of sums."""
    found = []
    for part, solution in zip(parts, solutions, strict=True):
        if not isinstance(part, RidgeRows):
            return None
        scores = part.z.astype(np.float64) @ solution.coef.T + solution.intercept
        found.append((scores, part.y, np.ones(part.n) if part.weights is None else part.weights))
    scores, targets, weights = (np.concatenate(one) for one in zip(*found, strict=True))
    return scores, targets, weights


def _of_pass(
    model: RidgeModel, plan: FitPlan, sums: FitStatistics, solutions: Sequence[RidgeSolution]
) -> tuple[Floats, Floats, Floats]:
    """Return scores, targets and weights of some bags, from a pass over them."""
    assert sums.folds is not None
    known = np.flatnonzero([part.weight > 0 for part in sums.folds.parts])
    coef = np.array([one.coef for one in solutions])
    made = FoldCalibration(coef, np.array([one.intercept for one in solutions]), np.empty(0))
    reduction = Reduction(
        partial(_Scores, model, plan, made, known),
        join_rows,
        model.features.cost_in(model.precision),
        name="probabilities",
    )
    rows = run_pass(_some_of(plan.bags), reduction)
    k = model.outcome.n_targets
    return rows[:, :k], rows[:, k : 2 * k], rows[:, 2 * k]


def _some_of(bags: LabelledBags) -> LabelledBags:
    """Return evenly spread labelled bags, `MOST_ROWS` of them at most."""
    places = [start + some for (start, _), some, _ in bags.label_blocks()]
    chosen = spread_rows(np.sort(np.concatenate(places)), MOST_ROWS)
    return replace(bags, left_out=None, only=ListedBags(chosen))


class _Scores:
    """A `Collector` of rows: scores by the model of a bag's fold, targets, and the weight."""

    def __init__(
        self, model: RidgeModel, plan: FitPlan, made: FoldCalibration, known: Integers
    ) -> None:
        self._model, self._plan, self._made, self._known = model, plan, made, known
        self._found = [np.empty((0, 2 * model.outcome.n_targets + 1))]

    def add(self, batch: Batch) -> None:
        """Score the bags of a batch."""
        if not len(batch):
            return
        plan, folds = self._plan, self._plan.folds
        assert folds is not None
        targets, _ = plan.outcome.encode(batch.labels)
        weights = np.ones(len(batch))
        if plan.weights is not None:
            weights = plan.weights.of(batch.index, targets)
        own = np.searchsorted(self._known, folds.of(batch.index))
        scores = np.empty(targets.shape)
        for start, z, _ in self._model.features.blocks(batch.bags, self._model.precision):
            rows = slice(start, start + len(z))
            scores[rows] = self._made.of_folds(z)[np.arange(len(z)), :, own[rows]]
        self._found.append(np.column_stack([scores, targets, weights]))

    def finish(self) -> Floats:
        """Return the rows of all batches."""
        return join_rows(*self._found)
