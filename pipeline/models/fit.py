"""`fit_ridge`: fits a model to a problem in four steps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import DataError, ParameterError, warn
from ..data.labelled.columns import Column
from ..data.labelled.labelled import LabelledBags
from ..data.labelled.labels import warn_of_alike, warn_of_few
from ..data.labelled.splits import N_FOLDS
from ..data.labelled.weights import Weights
from ..data.store.sampling import DISTANCE_SAMPLE
from ..execution.progress import Progress
from ..execution.worker_threads import kernel_threads
from .class_scores import with_probabilities
from .fitted_model import digest_of_fitted, take_subset
from .fitting.accumulate import FitStatistics
from .fitting.checkpoints import CheckpointsLike, checkpoints_of
from .fitting.feature_map import warn_of_outside, warn_of_scale
from .fitting.fit_parameters import FOLDED_BAGS, FitParameters, is_summed
from .fitting.label_limits import ignoring_outliers
from .fitting.plan import FitPlan
from .fitting.planning import plan_fit
from .fitting.problem import Problem
from .fitting.solver import choose_solver
from .fitting.solving import solve_fit
from .intervals.calibration import calibration_of
from .intervals.error_scale import MIN_SCALE_ROWS, ErrorScale
from .outcomes.densities import DensityOutcome
from .posterior import Posterior
from .predictions.outside import constants_of
from .ridge.penalties import Path, warn_at_edge
from .ridge.ridge import RidgeSolution
from .ridge_model import RidgeModel
from .stacking import with_trees

_TOO_LARGE = "its values are too large: divide them by a constant, as 1e100, and fit again"


def fit_ridge(
    problem: Problem,
    parameters: FitParameters,
    progress: Progress | None = None,
    checkpoints: CheckpointsLike = None,
) -> RidgeModel:
    """Return the model that is fitted to a problem.

    Checkpoints that are given by a URL are removed when the fit has ended.

    Raises
    ------
    DataError, ParameterError, StoreError
        In the same cases as ``fit`` of the estimators.
    """
    with checkpoints_of(checkpoints) as checkpoint_store:
        begun = time.perf_counter()
        problem = ignoring_outliers(problem, parameters)
        plan = plan_fit(problem, parameters, progress, checkpoint_store)
        planned = time.perf_counter()
        solver = choose_solver(plan, parameters, exact=checkpoint_store is not None)
        solved = solver.solve(plan, progress, checkpoint_store)
        sums = solved.sums
        model = make_model(solved.plan, sums, parameters, solved.solution, solver.choice)
    seconds = {
        "choose": planned - begun,
        "accumulate": solved.pass_seconds,
        "solve": time.perf_counter() - planned - solved.pass_seconds,
    }
    if parameters.head != "ridge":
        begun_trees = time.perf_counter()
        model = with_trees(model, problem, parameters, progress)
        seconds["trees"] = time.perf_counter() - begun_trees
    warn_of_labels(problem, sums)
    passes = {"n_passes": solved.n_passes, "n_bags_resumed": solved.n_bags_resumed}
    digest = digest_of_fitted(problem.source)
    model = replace(model, report={**model.report, **passes, **digest, "seconds": seconds})
    return calibrated(model, problem, parameters.rounding)


def warn_of_labels(problem: Problem, sums: FitStatistics) -> None:
    """Warn if nothing can be learnt from the labels: one or two bags, or all labels equal."""
    whole = sums.whole
    n = int(whole.n)
    if warn_of_few(n, problem.source.url):
        return
    if not problem.outcome.has_squared_losses or isinstance(problem.outcome, DensityOutcome):
        return
    if whole.weight:
        spread, mean = whole.centred_yy() / whole.weight, whole.sum_y / whole.weight
        warn_of_alike(n, spread, mean, problem.source.target_names)


def make_model(
    plan: FitPlan,
    sums: FitStatistics,
    parameters: FitParameters,
    solution: RidgeSolution | None = None,
    solver: str = "cholesky",
    near: float | None = None,
    for_scores: bool = False,
) -> RidgeModel:
    """Return the model that the sums of a plan give.

    The ridge is solved exactly, unless the ``solution`` of a ``solver`` is given. A search of
    penalties begins at ``near``, a penalty per bag. With ``for_scores``, the probabilities of
    classes are not calibrated.

    Raises
    ------
    DataError
        If there are no labelled bags, features are not finite, or labels are too large.
    """
    if solution is None:
        solution = solve_fit(plan, sums, parameters, near)
    _warn(plan, sums, parameters, solution)
    solved = np.column_stack([solution.coef, solution.intercept]).T
    plan.outcome.check_finite(solved, "the solution", _TOO_LARGE)
    posterior = None
    if parameters.uncertainty:
        with kernel_threads():
            posterior = Posterior.of(sums.whole, solution, parameters.rounding)
    model = RidgeModel(
        plan.features,
        plan.outcome,
        solution,
        plan.precision,
        report_fit(plan, sums, solver, solution.baseline_alpha),
        plan.holdout.saved,
        plan.weights.to_dict() if plan.weights else None,
        sums.mean_targets if plan.outcome.keeps_mean else None,
        posterior,
    )
    with kernel_threads():
        known = DISTANCE_SAMPLE.ranges(plan.bags.start, plan.bags.end)
        model = model.knowing_bags(plan.bags.batches_of(known), plan.weights)
    return model if for_scores else with_probabilities(model, plan, sums, parameters)


def report_fit(
    plan: FitPlan, sums: FitStatistics, solver: str, baseline_alpha: float | None
) -> dict[str, Any]:
    """Return the counts of a fit, in types that JSON knows."""
    optional: Mapping[str, Any] = {
        "weight_fitted": None if plan.weights is None else sums.weight,
        "baseline_alpha": baseline_alpha,
        "data_snapshot": plan.bags.snapshot,
        "choice": plan.choice,
        "coordinates": plan.bags.coordinate_names,
        "constant_coordinates": constants_of(plan.bags) or None,
    }
    return {
        "data_url": plan.bags.url,
        "solver": solver,
        "n_bags": plan.bags.n_bags,
        "n_points": plan.bags.n_points,
        "n_bags_fitted": sums.train.n + (sums.validation.n if sums.validation else 0),
        "n_bags_unlabelled": sums.n_unlabelled,
        "n_bags_held_out": sums.n_held_out,
        "n_points_seen": sums.n_points,
        "n_points_outside_box": sums.n_outside,
        **{name: value for name, value in optional.items() if value is not None},
        **plan.outcome.report_outside(sums.n_responses_outside),
    }


def _warn(
    plan: FitPlan, sums: FitStatistics, parameters: FitParameters, solution: RidgeSolution
) -> None:
    """Warn if the penalty is at the edge of its grid, or the scale or the box fits badly."""
    train = sums.train
    if np.isfinite(solution.scores).any():
        path = Path(solution.alphas, solution.scores)
        warn_at_edge(path, parameters.penalties(train), plan.precision, is_summed(train))
    if _gives_width(parameters) and not _chose_width(plan):
        warn_of_scale(plan.features, train.sum_z / train.weight, train.n)
    warn_of_outside(plan.features, sums.n_outside, sums.n_points)


def _gives_width(parameters: FitParameters) -> bool:
    """Return whether the width of the random features was given, and is not the default."""
    second = parameters.random_features
    if second is None or second is False:
        return False
    return not isinstance(second.scale, str) or second.scale_multiplier != 1


def _chose_width(plan: FitPlan) -> bool:
    """Return whether folds have chosen the width of the random features from several widths."""
    tried = plan.choice["tried"] if plan.choice else []
    return len({candidate["width"] for candidate in tried}) > 1


def calibrated(model: RidgeModel, problem: Problem, rounding: float) -> RidgeModel:
    """Return the model calibrated on its held-out bags, if its kind has intervals or sets.

    ``rounding``: see `FitParameters.rounding`.
    """
    has_sets = model.outcome.has_sets
    if not ((model.outcome.has_intervals or has_sets) and model.holdout):
        return model
    begun, groups, calibration = time.perf_counter(), problem.holdout.groups, None
    of_values = None if problem.holdout.mask is None else problem.grouped_by
    try:
        column = of_values
        if groups is not None:
            column = Column.of(problem.source.data, "groups", groups)
        held = take_subset(problem.source, model, "holdout")
        weights = problem.weights
        scale, is_known = learn_scale(model, problem.fitted, rounding, column, weights)
        # without progress, which would begin again at 0
        calibration = calibration_of(model, held, column, None, scale, not is_known)
    except DataError as error:  # a bag that is refused does not take the fit with it
        warn(f"the model has no {'prediction sets' if has_sets else 'intervals'}: {error}")
    seconds = {**model.report["seconds"], "calibrate": time.perf_counter() - begun}
    return replace(model, calibration=calibration, report={**model.report, "seconds": seconds})


def learn_scale(
    model: RidgeModel,
    fitted: LabelledBags,
    rounding: float,
    groups: Column | None = None,
    weights: Weights | None = None,
) -> tuple[ErrorScale | None, bool]:
    """Return the scale of errors, learnt from folds of the bags fitted, and whether it is known.

    It is not known with too few or too many bags, or if the folds do not fit in memory.
    """
    few_or_many = not MIN_SCALE_ROWS <= model.report["n_bags_fitted"] <= FOLDED_BAGS
    if few_or_many or not model.outcome.has_intervals:
        return None, False
    try:
        return model.folded(rounding).learn_scale(fitted, N_FOLDS, groups, weights), True
    except (DataError, ParameterError):  # one group, or too many features
        return None, False
