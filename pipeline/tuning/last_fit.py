"""The last fit of a tune: its penalty, and what the winner has to beat on bags kept out."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from ..errors import DataError, warn
from ..evaluation import judge_fit
from ..execution import Progress
from ..fitting import Problem
from ..models import DoubleBasis, parameters_of
from ..store import BagStore
from .records import Score

LARGEST_GAP = 10.0  # between two penalties; one decade is little where the error is level
LEAST_LOSS = 0.02  # of the least error: what a penalty may cost on the bags held out

logger = logging.getLogger(__name__)


def keep_groups_whole(problem: Problem, made: DoubleBasis) -> DoubleBasis:
    """Return an estimator whose fit leaves groups out to choose the penalty, if there are any.

    Folds do so, but where a baseline stands beside; there the groups that have compared the
    candidates choose it.
    """
    parameters = parameters_of(made)
    by_gcv = parameters.is_path and not parameters.is_judged
    if problem.groups is None or not by_gcv or problem.folds(parameters) is not None:
        return made
    grid = made.alphas if isinstance(made.alpha, str) else made.alpha
    made.set_params(alpha="validation", alphas=grid)
    return made


def warn_of_penalty(score: Score, model: DoubleBasis) -> None:
    """Warn if the last fit has a penalty that costs much on the bags held out while tuning."""
    if np.size(score.alphas) < 2 or not score.alpha or not model.alpha_:
        return
    gap = max(score.alpha / model.alpha_, model.alpha_ / score.alpha)
    nearest = int(np.abs(np.log(np.array(score.alphas) / model.alpha_)).argmin())
    loss = score.errors[nearest] / score.error - 1
    if gap <= LARGEST_GAP or not loss > LEAST_LOSS:
        return
    which = "smaller" if model.alpha_ < score.alpha else "larger"
    warn(
        f"the penalty of the last fit, {model.alpha_:.3g}, is {gap:,.0f} times {which} than the "
        f"best one for the bags held out while tuning, {score.alpha:.3g}, where it costs "
        f"{loss:.0%} of the error: if bags come in groups, name their column "
        "(groups= or holdout={'groups': column}), or take alpha='validation'"
    )


def judge_winner(model: DoubleBasis, store: BagStore, progress: Progress) -> dict[str, Any] | None:
    """Return the winner's error beside its baselines; None where it is not known."""
    try:
        return judge_fit(model, store, progress, forest=True)
    except DataError as error:  # a bag that is refused does not take the tune with it
        logger.warning("the winner is not judged: %s", error)
        return None
