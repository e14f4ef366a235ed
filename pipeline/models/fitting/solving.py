"""Solves the sums of a plan: with what a baseline leaves, by the way that its parameters choose."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from ...core.errors import ModelError
from ...execution.worker_threads import kernel_threads
from ..outcomes.base import Outcome
from ..outcomes.densities import DensityOutcome
from ..ridge.linear_columns import LINEAR
from ..ridge.partial_regression import (
    PartialSummary,
    RidgeSums,
    beside_linear,
    beside_own,
    choose_linear,
)
from ..ridge.penalties import Penalties
from ..ridge.ridge import (
    RidgeSolution,
    solve,
    solve_folds,
    solve_gcv,
    solve_judged,
    solve_validation,
)
from .accumulate import FitStatistics
from .feature_map import FeatureMap
from .fit_parameters import FitParameters, is_summed
from .plan import FitPlan
from .projected_score import ProjectedScore


def solve_fit(
    plan: FitPlan, sums: FitStatistics, parameters: FitParameters, near: float | None = None
) -> RidgeSolution:
    """Return the solution of a plan's sums.

    Parameters
    ----------
    plan : FitPlan
    sums : FitStatistics
        Result of the plan's pass, or sums of other bags with its features.
    parameters : FitParameters
    near : float, optional
        Where the search of penalties begins, per bag.

    Raises
    ------
    DataError
        If there are no labelled bags, or features are not finite.
    """
    with kernel_threads():
        residual = leave_baseline(sums, plan.features, plan.outcome, parameters)
        solution = _solve(plan, residual, parameters, near)
    if parameters.baseline == LINEAR and isinstance(residual.train, PartialSummary):
        return replace(solution, baseline_alpha=residual.train.alpha)
    return solution


def _solve(
    plan: FitPlan, statistics: FitStatistics, parameters: FitParameters, near: float | None
) -> RidgeSolution:
    train, units = statistics.train, plan.outcome.units()
    penalties = parameters.penalties(train)
    if near is None and statistics.folds is not None:
        near = _alpha_of_choice(plan)
    if near is not None:
        penalties = replace(penalties, near=near * train.weight)
    if parameters.is_judged:
        if statistics.validation is None:
            raise ModelError("no validation statistics")
        if parameters.alpha == "projected":
            score = ProjectedScore.of(plan, cast(DensityOutcome, plan.outcome).spec)
            return solve_judged(train, statistics.validation, penalties, parameters.rounding, score)
        return solve_validation(train, statistics.validation, penalties, parameters.rounding, units)
    is_chosen = len(penalties) > 1 or isinstance(parameters.alpha, str)
    if is_chosen and statistics.folds is not None:
        filled = statistics.folds.filled
        if len(filled) > 1:  # one group cannot be left out
            return solve_folds(filled, penalties, parameters.rounding, units)
    if is_chosen:
        return solve_gcv(train, penalties, units, parameters.rounding)
    return solve(train, float(penalties.values[0]), parameters.rounding)


def _alpha_of_choice(plan: FitPlan) -> float | None:
    """Return the penalty per bag that a choice of the embedding has found best by its own folds.

    None without a choice, and of models that are linear: their features are of other sizes there.
    """
    tried = plan.choice["tried"] if plan.choice else []
    return tried[0]["alpha"] if tried and plan.features.second is not None else None


def leave_baseline(
    sums: FitStatistics, features: FeatureMap, outcome: Outcome, parameters: FitParameters
) -> FitStatistics:
    """Return the statistics to solve from: what the baseline leaves, if there is one."""
    if features.beside is None:
        return sums
    train, held_out = cast(RidgeSums, sums.train), cast(RidgeSums | None, sums.validation)
    if features.beside.spec is not None:
        return replace(sums, train=beside_own(train, features.n_penalized))
    penalties = Penalties.default(train.weight, parameters.precision, is_summed(train))
    alpha = choose_linear(train, held_out, features.n_penalized, penalties, outcome.units())
    return replace(sums, train=beside_linear(train, features.n_penalized, alpha))
