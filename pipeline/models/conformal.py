"""Calibration of a fitted model on bags that it has not seen, or on folds of the bags fitted."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ..core.errors import BagbasisWarning, DataError, ModelError, ParameterError, shown, warn
from ..data.labelled.columns import Column
from ..data.labelled.holdout import Holdout
from ..data.labelled.labelled import LabelledBags
from ..data.labelled.weights import SampleWeight, Weights
from ..data.store.store import BagStore
from ..execution.progress import Progress
from .base import DoubleBasis, fit_parameters_of
from .fit import fit_ridge, learn_scale
from .fitted_model import is_fitted_to, take_subset
from .fitting.fit_parameters import FitParameters
from .fitting.problem import Problem, TrainingBags
from .intervals.calibration import calibration_of
from .intervals.fold_calibration import MAX_RECHOSEN, FoldCalibration
from .judging import in_order, judged_data
from .outcomes.base import Outcome
from .outcomes.reals import Reals

if TYPE_CHECKING:
    from .ridge_model import RidgeModel


def conformalized(
    estimator: DoubleBasis,
    X: TrainingBags,
    y: ArrayLike | None,
    cv: int | None,
    groups: str | ArrayLike | None,
    sample_weight: SampleWeight,
    progress: Progress | None,
) -> RidgeModel:
    """Return the calibrated model of an estimator; see `DoubleBasisRegressor.conformalize`."""
    model = estimator.model_
    X, y, _, columns, *_ = judged_data(model, X, y, groups=groups, sample_weight=sample_weight)
    groups, sample_weight = columns["groups"], columns["sample_weight"]
    if isinstance(X, BagStore):
        source = model.outcome.take_labels(X)
    elif model.outcome.has_sets:
        source = model.outcome.take_labelled(X, y)
    else:
        source = Reals.label(X, y, None)
    source = in_order(source, model.report)
    if len(model.outcome.find_new(labels for *_, labels in source.label_blocks())):
        warn(
            f"{source.url or 'y'}: some bags have a class that the model was not fitted to, and "
            "make sets larger, up to all classes: write classes as the model's, "
            f"{shown(list(model.outcome.columns_in_words))}, or leave these bags out"
        )
    is_fitted = is_fitted_to(model, source)
    if cv is not None:
        if model.trees is not None:
            raise ParameterError(
                "cv makes folds of the ridge alone, and the model has trees: fit it with "
                "holdout=.1, or give bags that it was not fitted to"
            )
        source = take_subset(source, model, "train") if is_fitted else source
        if groups is None and is_fitted:
            groups = Holdout.of(model.holdout).groups
        made = _by_folds(estimator, source, cv, groups, sample_weight, progress)
        return replace(model, calibration=made)
    if sample_weight is not None:
        raise ParameterError(
            "sample_weight is used with cv alone: errors of bags held out count alike"
        )
    if is_fitted and not model.holdout:
        raise ModelError(
            f"{source.url or 'bags in memory'}: the model was fitted to these bags, whose errors "
            "are too small to promise by; give cv=10, fit with holdout=, or give other bags"
        )
    column = None if groups is None else Column.of(source.data, "groups", groups)
    scale, is_known = None, False
    if is_fitted:
        rounding, weights = fit_parameters_of(estimator).rounding, _weights(model, source, None)
        fitted = take_subset(source, model, "train")
        scale, is_known = learn_scale(model, fitted, rounding, column, weights)
        source = take_subset(source, model, "holdout")
    calibration = calibration_of(model, source, column, progress, scale, not is_known)
    if calibration is None:
        raise DataError(f"{source.url or 'bags in memory'}: no labelled bag to take errors of")
    return replace(model, calibration=calibration)


def _by_folds(
    estimator: DoubleBasis,
    source: LabelledBags,
    n_folds: int,
    groups: str | ArrayLike | None,
    sample_weight: SampleWeight,
    progress: Progress | None,
) -> FoldCalibration:
    """Return the coefficients and errors of the folds."""
    model, parameters = estimator.model_, fit_parameters_of(estimator)
    weights = _weights(model, source, sample_weight)
    column = None if groups is None else Column.of(source.data, "groups", groups)
    anew, has_chosen = None, model.report.get("choice", {}).get("tried")
    if has_chosen and len(source.labelled_positions()) <= MAX_RECHOSEN:
        anew = partial(_fitted_anew, parameters, model.outcome, column, weights)
    folded = model.folded(parameters.rounding)
    return folded.calibrate(source, n_folds, column, weights, progress, anew)


def _weights(
    model: RidgeModel, source: LabelledBags, sample_weight: SampleWeight
) -> Weights | None:
    """Return the weights of bags; by default those of the fit, if a column has them."""
    fitted = None if model.weights is None else Weights.from_dict(model.weights)
    if sample_weight is None and model.weights is not None and not source.in_memory:
        sample_weight = model.weights["column"]
    weights = Weights.of_bags(source.data, sample_weight)
    if fitted is not None and (fitted.by_class is not None or fitted.limits is not None):
        weights = replace(weights or Weights(), by_class=fitted.by_class, limits=fitted.limits)
    return weights


def _fitted_anew(
    parameters: FitParameters,
    outcome: Outcome,
    groups: Column | None,
    weights: Weights | None,
    bags: LabelledBags,
) -> RidgeModel:
    """Return a model with embedding and width chosen from these bags alone."""
    problem = Problem(bags, outcome, weights, grouped_by=groups)
    with warnings.catch_warnings():  # those of the fit itself were issued
        warnings.simplefilter("ignore", BagbasisWarning)
        return fit_ridge(problem, replace(parameters, uncertainty=False))
