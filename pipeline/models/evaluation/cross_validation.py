"""`cross_val_score`: the models of all folds from one pass, by subtracting sums of bags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold
from typing_extensions import override

from ...core import Instance, Integer, checked
from ...core.errors import DataError, ParameterError, one_warning_each
from ...core.units import units_of
from ...data.bags.bags import take_rows
from ...data.labelled.columns import Column
from ...data.labelled.frame_columns import from_frame
from ...data.labelled.inputs import LabelsLike
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.weights import SampleWeight, Weights
from ...data.store.changes import ListedBags
from ...execution.passes import Reduction, run_pass
from ...execution.progress import Progress
from ..base import DoubleBasis, fit_parameters_of
from ..fit import fit_ridge, make_model
from ..fitting.accumulate import FitStatistics, without_each
from ..fitting.fit_parameters import FitParameters
from ..fitting.label_limits import ignoring_outliers
from ..fitting.plan import FitPlan, FitSums
from ..fitting.planning import plan_fit
from ..fitting.problem import MAX_FOLDS, Problem, TrainingBags, pose_problem
from ..fitting.solver import check_summable
from ..judging import JUDGED_ROWS, ErrorTotals, Judge, add_each, judging_cost
from ..outcomes.base import Target
from ..outcomes.details import determination
from ..outcomes.reals import Reals
from ..ridge.summary import Summary
from ..ridge_model import RidgeModel
from .scoring import OF_PROBABILITIES, Scorer, scorer_of

_FOLD_SEED = 4  # differs from the seeds of the splits in `bags`
_SQUARES_ROUNDING = 1e-14  # relative to sums of squares
_MIN_RELATIVE_VARIANCE = 1e-10  # of labels, relative to their mean's square, to be judged by sums


@dataclass(frozen=True, eq=False)
class _Folds:
    """The fold of each bag of the data, int16, and all folds; −1 for bags that are never tested."""

    of_bags: NDArray[np.int16]
    numbers: range


@checked
@one_warning_each()
def cross_val_score(
    estimator: Annotated[DoubleBasis, Instance(example="DoubleBasisRegressor()")],
    X: TrainingBags,
    y: LabelsLike = None,
    *,
    target: Target = None,
    cv: Annotated[int, Integer(2, MAX_FOLDS)] = 5,
    groups: str | ArrayLike | None = None,
    time: str | ArrayLike | None = None,
    sample_weight: SampleWeight = None,
    scoring: str | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Return the scores of cross-validation, one score per fold.

    One pass computes the sums of every fold. The model for a fold is solved from the sums of all
    other folds. Numeric targets are scored from the same sums; classes and densities are predicted
    in a second pass. If random features learn from labels, or calibrated probabilities are
    scored, the model is fitted anew for each fold.

    Parameters
    ----------
    estimator : DoubleBasisRegressor, DoubleBasisClassifier or TripleBasisRegressor
        Estimator to score. It is cloned, and not fitted itself. Choices that use no labels, such
        as a scale, are made once, from a sample of all bags.
    X : BagStore, Bags, or list of arrays (n_i, n_dims)
    y, target
        Labels of bags in memory, or names of the targets of a store, as in ``fit``.
    cv : int from 2 to 100
        Number of folds, which have equally many bags.
    groups : str or array, shape (n_bags,), optional
        Groups of bags, such as patients or days: a target of the store, or one value per bag. All
        bags of a group are in one fold.
    time : str or array, shape (n_bags,), optional
        Time of each bag: a target of the store, or one value per bag. The bags are divided into
        cv + 1 consecutive parts. Each part but the first is a fold, predicted from all earlier
        bags.
    sample_weight : str or array, shape (n_bags,), optional
        Weights as in ``fit``, which also weight the scores.
    scoring : str, optional
        Name of a score in scikit-learn; higher is better. For numeric targets: "r2",
        "explained_variance", "neg_mean_squared_error", "neg_root_mean_squared_error" or
        "neg_mean_absolute_error", averaged over the targets. For classes: "accuracy",
        "balanced_accuracy", "neg_log_loss", "neg_brier_score", "roc_auc" (two classes),
        "roc_auc_ovr", "matthews_corrcoef", and "f1", "precision" or "recall" with "_macro",
        "_micro" or "_weighted". Default: "r2", or "accuracy" for classes.
    progress : callable (bags done, bags in all), optional

    Returns
    -------
    float64, shape (cv,)
        Score of each fold. The default is R², averaged over the targets, for a regressor, and the
        accuracy for a classifier. For densities, it is 1 minus the ratio of the squared L2 distance
        of the predicted density to that of the average density.

    Raises
    ------
    DataError
        If a fold has no labelled bag, its score is not defined, there are fewer groups than folds,
        or a bag has no group or time.
    ParameterError
        If groups and time are given together, ``scoring`` does not apply to these labels, or
        ``alpha="projected"`` is set, which would need a pass per fold.

    See Also
    --------
    evaluate : Errors on bags that were held out.
    tune : Compares embeddings, widths and heads.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisRegressor, cross_val_score
    >>> scores = cross_val_score(DoubleBasisRegressor('moments'), X, y, cv=5)
    >>> scores.shape
    (5,)
    >>> bool(scores.mean() > 0.7)
    True
    """
    parameters = fit_parameters_of(estimator)
    if parameters.alpha == "projected":
        raise ParameterError("alpha='projected' takes a pass per fold; use 'gcv' or 'validation'")
    score = None if scoring is None else scorer_of(parameters.learns, scoring)
    X, y, target, columns, *_ = from_frame(
        X, y, target, groups=groups, time=time, sample_weight=sample_weight
    )
    groups, time, sample_weight = columns["groups"], columns["time"], columns["sample_weight"]
    problem = pose_problem(parameters, X, y, target, sample_weight=sample_weight)
    bags = problem.source
    folds = _Folds(choose_folds(bags, cv, groups, time), range(0 if time is None else -1, cv))
    if isinstance(problem.outcome, Reals) and scoring in (None, "r2", "explained_variance"):
        _require_two(bags, folds)
    weights = Weights.of_bags(bags.data, sample_weight)
    if groups is not None:
        problem = replace(problem, grouped_by=Column.of(bags.data, "groups", groups))
    has_outliers = ignoring_outliers(problem, parameters) is not problem
    if learns_from_labels(parameters) or scoring in OF_PROBABILITIES or has_outliers:
        models = list(_fit_folds(parameters, problem, folds, time is not None, progress))
        return np.array(_judge_folds(models, bags, folds, progress, weights, score))
    plan = plan_fit(problem, parameters)
    check_summable(plan, parameters)
    parts = _sum_folds(plan, folds, progress)
    models, scores, near = [], [], None
    # a fold is predicted from all other folds, in time from all earlier ones
    training = without_each(parts) if time is None else accumulate(parts[:-1])
    for j, train in enumerate(training):
        rows = parts[j - cv].whole
        if not rows.weight:
            raise DataError(f"fold {j} has no labelled bag; take fewer folds (cv=)")
        models.append(make_model(plan, train, parameters, near=near, for_scores=True))
        near = models[-1].solution.alpha / train.train.weight or None  # folds differ little
        if problem.outcome.has_squared_losses and scoring in (None, "r2"):
            scores.append(_score_of_sums(models[-1], rows))
    if any(_loses_digits(part.whole) for part in parts):
        scores = []  # of predictions instead
    return np.array(scores or _judge_folds(models, bags, folds, progress, weights, score))


def _require_two(bags: LabelledBags, folds: _Folds) -> None:
    """Raise DataError for a fold with one labelled bag, which has no R²."""
    counts = Counter(folds.of_bags[bags.labelled_positions()].tolist())
    sizes = [counts[j] for j in folds.numbers if j >= 0]
    if min(sizes) == 1:  # empty folds are refused by themselves
        raise DataError(
            f"R² of fold {sizes.index(1)} is not defined, because it has one labelled bag; take "
            'fewer folds (cv=), or the error of each bag (scoring="neg_mean_squared_error")'
        )


def learns_from_labels(parameters: FitParameters) -> bool:
    """Return whether more than the ridge depends on labels, so that each fold is fitted anew."""
    second = parameters.random_features
    return parameters.is_automatic or parameters.head != "ridge" or bool(second and second.learns)


def choose_folds(
    bags: LabelledBags, cv: int, groups: str | ArrayLike | None, time: str | ArrayLike | None
) -> NDArray[np.int16]:
    """Return the fold of each bag: of whole groups, of spans of time, or drawn at random."""
    n = len(bags.data)
    if groups is not None and time is not None:
        raise ParameterError("groups and time are given; folds follow one of them")
    if groups is not None:
        known: dict[Any, int] = {}  # by their first bags: GroupKFold's ties follow it
        members = Column.of(bags.data, "groups", groups).members(0, n)
        codes = np.array([known.setdefault(member, len(known)) for member in members.tolist()])
        if len(known) < cv:
            raise DataError(f"there are {len(known)} groups, fewer than the {cv} folds")
        folds = np.empty(n, dtype=np.int16)
        for j, (_, test) in enumerate(GroupKFold(cv).split(codes, groups=codes)):
            folds[test] = j
        return folds
    if time is not None:
        times = Column.of(bags.data, "time", time).members(0, n)
        if times.dtype.kind not in "iufM":
            raise DataError(f"time has dtype {times.dtype}; expected numbers or dates")
        edges = np.sort(times)[[n * j // (cv + 1) for j in range(1, cv + 1)]]
        return (np.searchsorted(edges, times, side="right") - 1).astype(np.int16)
    return (np.random.default_rng(_FOLD_SEED).permutation(n) % cv).astype(np.int16)


# -------------------------------------------------------------------------- one pass


def _sum_folds(plan: FitPlan, folds: _Folds, progress: Progress | None) -> list[FitStatistics]:
    reduction = Reduction(
        partial(_FoldSums, plan, folds),
        add_each,
        replace(plan.cost, bytes_per_task=len(folds.numbers) * plan.cost.bytes_per_task),
        name="folds",
    )
    return run_pass(plan.bags, reduction, progress=progress)


class _FoldSums(FitSums):
    """The `FitStatistics` of each fold: a bag is embedded once, among those of its batch."""

    def __init__(self, plan: FitPlan, folds: _Folds) -> None:
        super().__init__(plan)
        self._folds = folds.of_bags
        self._of_folds = {j: self.new_sums() for j in folds.numbers}

    @override
    def count(
        self,
        index: NDArray[np.int64],
        embeddings: NDArray[Any],
        y: NDArray[np.float64],
        apart: NDArray[np.bool_] | None,
        weights: NDArray[np.float64] | None,
    ) -> None:
        folds = self._folds[index]
        for j, sums in self._of_folds.items():
            rows = np.flatnonzero(folds == j)
            of_validation = None if apart is None else apart[rows]
            weighed = None if weights is None else weights[rows]
            sums.add(index[rows], embeddings[rows], y[rows], of_validation, weighed)

    def finish(self) -> list[FitStatistics]:  # type: ignore[override]  # one of each fold
        """Return the statistics of each fold, in their order, without counts of points."""
        return [sums.finish() for sums in self._of_folds.values()]


def _fit_folds(
    parameters: FitParameters,
    problem: Problem,
    folds: _Folds,
    in_time: bool,
    progress: Progress | None,
) -> Iterator[RidgeModel]:
    """Yield the model of each fold, fitted to the others by passes of its own."""
    for j in range(folds.numbers.stop):
        fitted = folds.of_bags < j if in_time else folds.of_bags != j
        source = replace(problem.source, only=ListedBags(np.flatnonzero(fitted)))
        yield fit_ridge(replace(problem, source=source), parameters, progress)


# -------------------------------------------------------------------------- scores


def _loses_digits(rows: Summary) -> bool:
    """Return whether labels are so far from 0 that differences of sums of squares are rough."""
    mean, variances = rows.sum_y / rows.weight, rows.centred_yy() / rows.weight
    return bool(((variances > 0) & (variances < _MIN_RELATIVE_VARIANCE * mean**2)).any())


def _score_of_sums(model: RidgeModel, rows: Summary) -> float:
    """Return the score of a model whose losses are squared, from the sums of the bags judged."""
    solution = model.solution
    rows = rows.in_units(np.maximum(rows.exponents, units_of(solution.intercept[None])))
    squares = rows.judge()(*solution.in_units(rows.exponents))
    mean, variances = rows.sum_y / rows.weight, rows.centred_yy() / rows.weight
    rounding = _SQUARES_ROUNDING * (mean**2 + variances)  # of differences of sums
    return float(np.mean(determination(squares, variances, rounding)))


def _judge_folds(
    models: Sequence[RidgeModel],
    bags: LabelledBags,
    folds: _Folds,
    progress: Progress | None,
    weights: Weights | None,
    score: Scorer | None,
) -> list[float]:
    """Return a score of each fold, whose bags are predicted by the fold's model."""
    judges = [Judge(model, bags, weights) for model in models]
    reduction = Reduction(
        partial(_JudgedFolds, judges, folds),
        add_each,
        judging_cost(models[0]),
        rows_per_block=JUDGED_ROWS,
        name="errors",
    )
    errors_by_fold = run_pass(bags, reduction, progress=progress)[-len(models) :]
    return [errors.score if score is None else score(errors) for errors in errors_by_fold]


class _JudgedFolds(ErrorTotals):
    """A `Collector` of the errors of each fold's model on the bags of its fold."""

    def __init__(self, judges: Sequence[Judge], folds: _Folds) -> None:
        self._judges, self._folds = judges, folds

    def add(self, batch: Batch) -> None:
        """Count the bags of a batch by their folds."""
        folds, errors = self._folds.of_bags[batch.index], []
        for j in self._folds.numbers:
            rows, judge = np.flatnonzero(folds == j), self._judges[j]
            bags, labels = take_rows(batch.bags, rows), batch.labels[rows]
            part = Batch(batch.index[rows], bags, labels, batch.stop)
            errors.append(judge.judge(part, judge.outcome.encode(labels)[0]))
        self.count(errors)
