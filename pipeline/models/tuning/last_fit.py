"""The last fit of a search: its penalty, and the baselines of the winner."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.errors import DataError, ParameterError, warn
from ...data.store.store import BagStore
from ...execution.progress import Progress
from ..base import DoubleBasis, fit_parameters_of, with_model
from ..evaluation.baselines import judge_fit, judge_labelled
from ..fit import calibrated, fit_ridge
from ..fitting.problem import Problem
from ..stacking import choose_head, with_trees
from .records import Score

LARGEST_GAP = 10.0  # between two penalties; one decade is little where the error is level
_RIDGE = "ridge"
MAX_LOSS = 0.02  # fraction of the least error: what a penalty may cost on the held-out bags
ERRORS_OF_COST = 2.0  # standard errors: few bags held out have their own best penalty by chance

logger = logging.getLogger(__name__)


def keep_groups_whole(problem: Problem, made: DoubleBasis) -> DoubleBasis:
    """Return an estimator whose fit keeps groups whole when it chooses the penalty.

    Folds of groups choose the penalty. With a baseline, the held-out groups that compared the
    candidates choose it.
    """
    parameters = fit_parameters_of(made)
    by_gcv = parameters.is_path and not parameters.is_judged
    if problem.groups is None or not by_gcv or problem.folds(parameters) is not None:
        return made
    grid = made.alphas if isinstance(made.alpha, str) else made.alpha
    made.set_params(alpha="validation", alphas=grid)
    return made


def fit_winner(
    problem: Problem,
    made: DoubleBasis,
    heads: Collection[str] | None,
    progress: Progress,
    report: Mapping[str, Any] | None = None,
) -> DoubleBasis:
    """Return the last fit of an estimator, with the head that has the least error by folds.

    If the rows for trees do not fit in memory, the ridge is used, and the entry "head" of the
    report gives the reason. The entries of ``report`` are added to the report of the model.
    """
    parameters = fit_parameters_of(made)
    model = fit_ridge(problem, parameters, progress)
    model = replace(model, report={**model.report, **(report or {})})
    if heads and {*heads} != {_RIDGE} and parameters.learns.has_heads and parameters.head == _RIDGE:
        stacked = replace(parameters, head="stack")
        try:
            stacked.check(problem.holdout.saved)
            model, head = choose_head(with_trees(model, problem, stacked, progress), heads)
        except (DataError, ParameterError) as error:
            logger.warning("no trees were grown: %s", error)
            refused = {"head": _RIDGE, "refused": str(error)}
            return with_model(made, replace(model, report={**model.report, "head": refused}))
        if head != _RIDGE:
            made.set_params(head=head)
        if head != _RIDGE or model.outcome.has_sets:  # each head has probabilities of its own
            model = calibrated(model, problem, parameters.rounding)
    return with_model(made, model)


def penalty_that_costs(score: Score, model: DoubleBasis) -> float | None:
    """Return the penalty on the path of a score that is nearest to the penalty of the last fit.

    None if it is near the best penalty, or its error on the held-out bags is hardly larger.
    """
    if np.size(score.alphas) < 2 or not score.alpha or not model.alpha_:
        return None
    nearest = int(np.abs(np.log(np.array(score.alphas) / model.alpha_)).argmin())
    gap = max(score.alpha / model.alpha_, model.alpha_ / score.alpha)
    is_level = score.errors[nearest] <= (1 + MAX_LOSS) * score.error
    return None if gap <= LARGEST_GAP or is_level else float(score.alphas[nearest])


def warn_of_penalty(score: Score, model: DoubleBasis, cost: float, standard_error: float) -> None:
    """Warn if the penalty of the last fit has a significantly larger error on held-out bags.

    ``cost`` is the increase of the error, and ``standard_error`` its standard error.
    """
    if not cost > ERRORS_OF_COST * standard_error:
        return
    gap = max(score.alpha / model.alpha_, model.alpha_ / score.alpha)
    which = "smaller" if model.alpha_ < score.alpha else "larger"
    warn(
        f"the penalty of the last fit, {model.alpha_:.3g}, is {gap:,.0f} times {which} than the "
        f"best one for the bags held out while tuning, {score.alpha:.3g}, where it costs "
        f"{cost / score.error:.0%} of the error: if bags come in groups, name their column "
        "(groups= or holdout={'groups': column}), or take alpha='validation'"
    )


def judge_winner(model: DoubleBasis, problem: Problem, progress: Progress) -> dict[str, Any] | None:
    """Return the error of the winner and of its baselines; None if it is not known."""
    data, weights = problem.source.data, problem.weights
    try:
        if isinstance(data, BagStore):
            return judge_fit(model, data, progress=progress, forest=True)
        by_column = replace(weights, by_class=None) if weights and weights.column else None
        return judge_labelled(model, problem.source, by_column, progress, forest=True)[0]
    except DataError as error:  # a bag that is refused does not take the tune with it
        logger.warning("the winner is not judged: %s", error)
        return None
