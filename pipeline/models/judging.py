"""`evaluate`: the errors of models on labelled bags, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeVar

import numpy as np

from ..core import Subset, checked
from ..core.arrays import Floats
from ..core.errors import DataError, ModelError, warn
from ..core.units import in_units
from ..data.bags.frames import is_groups
from ..data.labelled.frame_columns import FromFrame, from_frame
from ..data.labelled.holdout import Holdout
from ..data.labelled.inputs import BagsLike, LabelsLike
from ..data.labelled.labelled import Batch, LabelledBags
from ..data.labelled.weights import SampleWeight, Weights
from ..data.store.store import BagStore
from ..execution.costs import SECONDS_PER_PRODUCT, Cost
from ..execution.passes import Reduction, run_pass
from ..execution.progress import Progress
from .errors import Errors, ErrorSample
from .fitted_model import (
    FRAME_COLUMNS,
    JUDGED_ON_FITTED,
    MODEL_FITTED_ON,
    FittedEstimator,
    JudgedModel,
    ScoringModel,
    check_predictable,
    is_fitted_to,
    model_of,
    names_fitted,
    natural_subsets,
    take_subset,
)
from .outcomes.base import Outcome
from .outcomes.details import ClassDetails, Judged, RealDetails, weighted_sum
from .predictions.outside import counting_outside

_T = TypeVar("_T")

TOO_LARGE = "the predictions or the labels are too large: divide the labels by a constant"
JUDGED_ROWS = 2048  # bags whose features, coefficients and encoded labels are held at a time


@checked
def evaluate(
    model: FittedEstimator[JudgedModel],
    X: BagsLike | LabelledBags,
    y: LabelsLike = None,
    *,
    subset: Annotated[str, Subset] | None = None,
    sample_weight: SampleWeight = None,
    progress: Progress | None = None,
) -> Errors:
    """Measure the errors of a model on labelled bags, on the open cluster or in this process.

    One pass over the bags computes all errors and scores. On the data of the fit, the held-out bags
    are judged by default; on other data, all bags.

    Parameters
    ----------
    model : fitted estimator
    X : BagStore, LabelledBags, Bags, or list of arrays (n_i, n_dims)
        A store with the targets that the model was fitted to, or with responses; or bags in memory.
    y : optional
        Labels of bags in memory: targets, classes, or responses. For a store, targets or classes
        that replace those in the store; all of its bags are then judged. Bags without a label are
        left out.
    subset : {"all", "holdout", "train"}, optional
        Bags on which errors are measured: all bags, the bags held out, or the bags of the fit.
        Default: for the data of the fit, the bags held out; for other data, all bags. If the fit
        held out no bags, all of its bags are judged, with a warning that the errors are too
        small. `Errors.subset` says which bags were judged. A copy of the store that was fitted
        counts as this store, also after bags were added.
    sample_weight : str or array, shape (n_bags,), optional
        Weights of the bags in every mean: a column of the store, or one number ≥ 0 per bag.
    progress : callable (bags done, bags in all), optional

    Raises
    ------
    DataError
        If the store lacks a target of the model, no bag of the subset is labelled, the labels do
        not fit the bags or the model, or weights are missing, negative or all 0.
    ParameterError
        If responses are given for a store, or y for LabelledBags.
    ModelError
        If the bags have another dimension than the bags fitted, or ``subset="holdout"`` is given
        and no bags were held out.

    See Also
    --------
    cross_val_score : Scores over folds, without a holdout.
    bagbasis.models.permutation_importance : What the score depends on.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, evaluate
    >>> model = DoubleBasisRegressor('moments').fit(X[:60], y[:60])
    >>> errors = evaluate(model, X[60:], y[60:])
    >>> errors.n
    20
    """
    fitted = model_of(model)
    errors, bags = judge_model(fitted, X, y, subset, sample_weight, progress)
    _warn_of_judged(fitted, bags, subset, errors)
    return errors


def score_of(
    model: JudgedModel,
    X: BagsLike | LabelledBags,
    y: LabelsLike = None,
    sample_weight: SampleWeight = None,
) -> float:
    """Return the score of a model on labelled bags, `Errors.score`, for ``score`` methods.

    R² of one bag is NaN, as in scikit-learn, with a warning: folds of one bag each, as of
    `LeaveOneOut`, would else have a mean of 0, as of a model that has learnt nothing.
    """
    errors, bags = judge_model(model, X, y, None, sample_weight, None)
    _warn_of_judged(model, bags, None, errors)
    if errors.n == 1 and isinstance(errors.details, RealDetails):
        warn(
            "R² of one bag is not defined, and is NaN: a constant fits it exactly; score two bags "
            'or more, or use the error of each bag (scoring="neg_mean_squared_error")'
        )
        return float("nan")
    return errors.score


def _warn_of_judged(
    model: JudgedModel, bags: LabelledBags, subset: str | None, errors: Errors
) -> None:
    """Warn of errors on the bags fitted, unless a subset was asked for, and of new classes."""
    if isinstance(errors.details, ClassDetails):
        errors.details.warn_of_new()
    if subset is None and errors.subset == "all" and is_fitted_to(model, bags):
        warn(
            f"{JUDGED_ON_FITTED} Give other bags, fit with holdout=0.1, or use cross_val_score "
            '(subset="all" asks for these errors)'
        )


def judge_model(
    fitted: JudgedModel,
    X: BagsLike | LabelledBags,
    y: LabelsLike,
    subset: str | None,
    sample_weight: SampleWeight,
    progress: Progress | None,
) -> tuple[Errors, LabelledBags]:
    """Return the errors as `evaluate` does, and the labelled bags.

    No warning is issued if the model was fitted to these bags.
    """
    taken = judged_data(fitted, X, y, sample_weight=sample_weight)
    X, y, sample_weight = taken.X, taken.y, taken.values["sample_weight"]
    bags = labelled_for(fitted, X, y, subset)
    weights = Weights.of_bags(bags.data, sample_weight)

    def judge(chosen: LabelledBags) -> Errors | None:
        errors = evaluate_together([fitted], chosen, progress, weights)[0]
        if errors.n and not errors.weight:
            raise DataError(f"{bags.url or 'bags in memory'}: the weights of all bags are 0")
        return errors if errors.n else None

    if (
        subset in ("holdout", "train")
        and _is_by_position(fitted)
        and not is_fitted_to(fitted, bags)
    ):
        warn(
            f"{bags.url or 'these bags'}: the model was fitted to other bags, so that "
            f"subset={subset!r} takes bags by their positions alone; judge all of them, without "
            "subset="
        )
    if y is not None and subset is None and not bags.in_memory:
        subset = "all"
    name, errors = find_subset(fitted, bags, subset, judge)
    errors.outside.warn(bags.data)
    return replace(errors, subset=name), bags


def _is_by_position(model: JudgedModel) -> bool:
    """Return whether the holdout is of no use for other bags: it has neither groups nor a time."""
    holdout = Holdout.of(model.holdout)
    return bool(holdout.fraction) and holdout.groups is None


def judged_data(
    model: JudgedModel,
    X: BagsLike | LabelledBags,
    y: LabelsLike = None,
    **arguments: Any,  # noqa: ANN401
) -> FromFrame:
    """Return the bags, labels and other values on which a model is judged.

    Columns of a grouped frame that the model did not see are left out. Labels that are not given
    come from the columns that the fit used. ``arguments`` that name a column have its values.
    """
    columns = model.report.get(FRAME_COLUMNS, ())
    target: Any = None
    if y is None and columns and is_groups(X):
        names = model.outcome.names
        target = names[0] if model.outcome.single or len(names) == 1 else names
    return from_frame(X, y, target, columns, **arguments)


def labelled_for(
    model: JudgedModel,
    X: BagsLike | LabelledBags,
    y: LabelsLike = None,
    subset: str | None = None,
) -> LabelledBags:
    """Return the bags that a model is judged on, with their labels; see `evaluate`."""
    X, y, *_ = judged_data(model, X, y)
    if isinstance(X, (BagStore, LabelledBags)):
        check_predictable(model, X, subset or "all")
        return in_order(model.outcome.take_labelled(X, y), model.report)
    bags = model.outcome.take_labelled(X, y)
    check_predictable(model, bags, subset or "all")
    return in_order(bags, model.report)


def in_order(bags: LabelledBags, report: Mapping[str, Any]) -> LabelledBags:
    """Return bags with their coordinates in the order of the bags fitted; see `check_names`."""
    return bags.in_order_of(names_fitted(report), MODEL_FITTED_ON, error=ModelError)


def find_subset(
    model: JudgedModel,
    bags: LabelledBags,
    subset: str | None,
    use: Callable[[LabelledBags], _T | None],
) -> tuple[str, _T]:
    """Return the subset of bags to judge a model on, and the result of ``use`` on its bags.

    Without a given subset, the first of `natural_subsets` with a labelled bag is used.

    Raises
    ------
    DataError
        If no bag of the subset is labelled.
    """
    subsets = (subset,) if subset else natural_subsets(model, bags)
    for name in subsets if bags.n_bags else ():
        value = use(take_subset(bags, model, name))
        if value is not None:
            return name, value
    where = bags.url or "bags in memory"
    raise DataError(f"{where}: no labelled bag among the {subsets[-1]} bags; nothing to measure")


def evaluate_together(
    models: Sequence[ScoringModel],
    bags: LabelledBags,
    progress: Progress | None = None,
    weights: Weights | None = None,
) -> list[Errors]:
    """Return the errors of several models of one kind on the same bags, which are read once.

    Each model is judged by its own outcome: a class that the model does not know is an error.

    Parameters
    ----------
    models : fitted estimators
    bags : LabelledBags
        At least one bag.
    weights : Weights, optional
        Weights of the bags.
    """
    reduction = Reduction(
        name="errors",
        collector=partial(_Judges, [Judge(model, bags, weights) for model in models]),
        merge=add_each,
        cost=sum((judging_cost(model) for model in models), Cost()),
        rows_per_block=JUDGED_ROWS,
    )
    totals = run_pass(bags, reduction, progress=progress)
    for errors in totals:
        errors.outcome.check_finite(errors.losses[None], "the squared error", TOO_LARGE)
        if isinstance(errors.details, RealDetails):
            errors.outcome.check_finite(errors.details.absolute[None], "the error", TOO_LARGE)
    return totals


class Judge:
    """Computes the errors of one model batch by batch; it is sent to workers with its model.

    Parameters
    ----------
    model : fitted estimator
    bags : LabelledBags
        All bags that the model is judged on; their class names and their box are looked up once.
    weights : Weights, optional
    """

    def __init__(
        self, model: ScoringModel, bags: LabelledBags, weights: Weights | None = None
    ) -> None:
        self.model, self.weights = model, weights
        self.outcome = model.outcome
        self.names = self.outcome.target_labels
        of_store = bags.class_names.get(self.names[0], ())
        self.class_names = self.outcome.names_by_code or tuple(of_store)
        self.box = bags.box

    @np.errstate(over="ignore", invalid="ignore")  # refused by name when all is added
    def judge(self, batch: Batch, targets: Floats) -> Errors:
        """Return the errors on a batch, whose encoded labels are ``targets``."""
        with counting_outside(batch.index) as counted:
            scores = self.model.decision_rows(batch.bags)
        w = None if self.weights is None else self.weights.of(batch.index, targets)
        mean = self.model.mean_targets
        judged = self.outcome.details(
            Judged(batch, scores, targets, w, self.names, self.class_names, self.box, mean)
        )
        exponents = self.outcome.exponents(targets, scores)
        targets, scores = in_units(targets, exponents), in_units(scores, exponents)
        n = float(len(batch) if w is None else w.sum())
        least = n or 1.0
        # The mean in two steps: a long sum of numbers far from zero loses its last digits,
        # which the sum of the small gaps restores.
        first = weighted_sum(targets, w) / least
        gaps = targets - first
        rest = weighted_sum(gaps, w) / least
        return Errors(
            outcome=self.outcome,
            n=len(batch),
            n_unlabelled=batch.n_unlabelled,
            exponents=exponents,
            losses=weighted_sum(self.outcome.losses(scores, targets), w),
            mean=first + rest,
            scatter=np.maximum(0.0, weighted_sum(gaps**2, w) - n * rest**2),
            details=judged.details,
            sample=ErrorSample(batch.index, judged.true, judged.predicted),
            weights=None if w is None else n,
            outside=counted.outside,
        )


class ErrorTotals:
    """Base of a `Collector` of errors: one total for each of several models."""

    _total: list[Errors] | None = None

    def count(self, errors: list[Errors]) -> None:
        """Add the errors on a batch, one item per model."""
        self._total = errors if self._total is None else add_each(self._total, errors)

    def finish(self) -> list[Errors]:
        """Return the errors in the order of the models."""
        assert self._total is not None  # each range of bags has a batch, maybe an empty one
        return self._total


class _Judges(ErrorTotals):
    """A `Collector` of the errors of several models."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self.judges = judges

    def add(self, batch: Batch) -> None:
        """Add the errors on a batch; labels are encoded once for models with equal outcomes."""
        encoded: dict[Outcome, Floats] = {}
        errors = []
        for judge in self.judges:
            if judge.outcome not in encoded:
                encoded[judge.outcome] = judge.outcome.encode(batch.labels)[0]
            errors.append(judge.judge(batch, encoded[judge.outcome]))
        self.count(errors)


def add_each(ours: list[Any], theirs: list[Any]) -> list[Any]:
    """Return the sums of two lists of sums, item by item."""
    return [a + b for a, b in zip(ours, theirs, strict=True)]


def judging_cost(model: ScoringModel) -> Cost:
    """Return the cost of predicting bags and of the rows that are compared."""
    features, k = model.features, model.outcome.n_targets
    rows = 8 * (features.n_features + 4 * k)
    return model.prediction_cost + Cost(0.0, features.n_features * k * SECONDS_PER_PRODUCT, rows)
