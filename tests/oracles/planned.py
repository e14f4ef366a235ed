"""The steps of a fit for a test: problem, features and plan; and models that are changed.

Tests take the classes of these steps from here, so that one file knows where the library has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bagbasis import DoubleBasisRegressor
from bagbasis.models.base import fit_parameters_of
from bagbasis.models.fitting.choice.placing import place_folds
from bagbasis.models.fitting.feature_map import FeatureMap
from bagbasis.models.fitting.plan import FitPlan
from bagbasis.models.fitting.planning import choose_features, plan_fit
from bagbasis.models.fitting.problem import Problem, pose_problem
from bagbasis.models.outcomes.reals import Reals

__all__ = [
    "FeatureMap",
    "FitPlan",
    "Problem",
    "Reals",
    "chosen_features",
    "fit_parameters_of",
    "folds_by_content",
    "plan_of",
    "planned",
    "posed",
    "set_solution",
]


def posed(model: Any, X: Any, labels: Any = None, target: Any = None, **arguments: Any) -> Problem:
    """Return what the estimator would be fitted to."""
    return pose_problem(fit_parameters_of(model), X, labels, target, **arguments)


def chosen_features(model: Any, problem: Problem) -> FeatureMap:
    """Return both bases of a fit of the estimator to a problem."""
    return choose_features(problem, fit_parameters_of(model))


def planned(model: Any, problem: Problem) -> FitPlan:
    """Return the plan of a fit of the estimator to a problem."""
    return plan_fit(problem, fit_parameters_of(model))


def plan_of(
    bags: Any, features: FeatureMap, validation: Any = None, precision: str = "float32"
) -> FitPlan:
    """Return the plan of a fit of one number with both bases."""
    return FitPlan(bags, features, Reals(1), validation, precision)


def folds_by_content(bags: Any, labels: Any, n_folds: int, model: Any = None) -> np.ndarray:
    """Return the fold of each bag that penalties, intervals and heads are judged by."""
    problem = posed(model or DoubleBasisRegressor(), bags, labels)
    placed = place_folds(problem.fitted, problem.outcome, n_folds)
    assert placed is not None
    return placed.of(np.arange(len(bags)))


def set_solution(model: Any, **parts: Any) -> None:
    """Give a fitted estimator another ``coef`` or ``intercept``."""
    solution = replace(model.model_.solution, **parts)
    model.model_ = replace(model.model_, solution=solution)
