"""Intervals from folds of the bags fitted (CV+); no bag is lost to a holdout.

Each of K folds is predicted with coefficients from the sums of the other folds. Let μ_f be the
prediction for a new bag without fold f, and r_j the absolute error of bag j of fold f, of m bags in
all. The interval is from the ⌊α (m + 1)⌋-th smallest μ_f − r_j to the ⌈(1 − α) (m + 1)⌉-th smallest
μ_f + r_j. It contains the label with a probability of at least 1 − 2α less a term that falls with
n / K. The probability is about 1 − α if coefficients hardly differ between folds (Barber et al.
2021, Theorem 4).

Errors are in units of a scale that is learnt from the other folds, see `ErrorScale`: r_j is divided
by the scale of its own bag, and multiplied by that of the new bag (Gupta et al. 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core.arrays import Bools, Floats, Integers
from ...core.errors import DataError
from ...data.bags.bags import Bags
from ...data.labelled.column_splits import GroupFolds
from ...data.labelled.columns import Column
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.splits import Folds, IndexFolds
from ...data.labelled.weights import Weights
from ...data.store.changes import ListedBags
from ...data.store.sampling import spread_rows
from ...execution.costs import Cost
from ...execution.passes import check_memory, rows_of, run_pass
from ...execution.pool import even_edges, run_kernel
from ...execution.progress import Progress
from ...execution.worker_threads import kernel_threads
from ..fitted_model import ScoringModel
from ..fitting.accumulate import without_each
from ..fitting.choice.placing import place_folds
from ..fitting.feature_map import FeatureMap
from ..fitting.plan import FitPlan
from ..outcomes.base import Outcome
from ..ridge.partial_regression import RidgeSums, beside_linear
from ..ridge.ridge import RidgeSolution, rows_serve, solve, solve_bytes, targets_bytes
from ..ridge.summary import Summary
from .calibration import ScaledPart, can_have_scale, choose_calibrating, count_below, rank_of
from .error_scale import MIN_SCALE_ROWS, ErrorRows, ErrorScale, linear_rows, rows_to_learn
from .interval_kernels import interval_ends

_FEWER = "take fewer folds or random features"
MAX_POINTS = 2**22  # points of the bags from which a scale is learnt: seconds on one core
MAX_RECHOSEN = 100  # with more bags the choice hardly depends on one fold, and takes seconds
SECONDS_PER_ERROR = 1e-9  # of a bag's interval: halving the bracket, of which a search is a part

FitWithout = Callable[[LabelledBags], ScoringModel]
"""Fits a model to some of the bags."""


@dataclass(frozen=True, eq=False)
class FoldCalibration(ScaledPart):
    """Coefficients without each fold, and errors of the bags of that fold.

    Attributes
    ----------
    coef : float64, shape (K, k, D)
        Coefficients of the models that each lack one of K folds.
    intercept : float64, shape (K, k)
    errors : float64, shape (m, k)
        Absolute errors of each of k targets, in units of the scale, fold by fold, ascending within
        each fold. With groups, one bag per group.
    sizes : list of int
        Number of errors of each fold.
    scale : ErrorScale or None
        Scale of the errors, learnt without each fold; None: all bags have the scale 1.
    """

    coef: Floats
    intercept: Floats
    errors: Floats
    sizes: Sequence[int] = field(default=())

    key: ClassVar[str] = "fold_calibration"
    arrays: ClassVar[tuple[str, ...]] = ("coef", "intercept", "errors")
    uses_fitted: ClassVar[bool] = True
    is_of_sets: ClassVar[bool] = False  # then a bag has one error, whatever the number of classes

    @classmethod
    def of(cls, solutions: Sequence[RidgeSolution]) -> Self:
        """Return the coefficients of solutions without each fold, and no errors."""
        intercept = np.array([solution.intercept for solution in solutions])
        return cls(np.array([solution.coef for solution in solutions]), intercept, np.empty(0))

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        shapes = self.coef.shape, self.intercept.shape
        n, n_errors = len(self.sizes), 1 if self.is_of_sets else n_targets
        if n < 2 or shapes != ((n, n_targets, n_features), (n, n_targets)):
            raise ValueError(f"the coefficients of {n} folds have shapes {shapes}")
        if self.errors.shape != (sum(self.sizes), n_errors) or not len(self.errors):
            raise ValueError(f"errors of {n} folds have shape {self.errors.shape}")

    @property
    @override
    def n_scales(self) -> int:
        return len(self.sizes)

    @property
    def description(self) -> str:
        """Source of the intervals, in words."""
        return f"the errors of {len(self.errors):,} bags over {len(self.sizes)} folds (CV+)"

    def rank(self, coverage: float) -> int:
        """Return the rank of the error, in ascending order, that bounds intervals of a coverage."""
        return rank_of(len(self.errors), coverage)

    def of_folds(self, features: NDArray[Any]) -> Floats:
        """Return predictions by the model of each fold, shape (n, k, K)."""
        n_folds, k, d = self.coef.shape
        out = linear_rows(features, self.coef.reshape(-1, d), self.intercept.reshape(-1))
        return np.ascontiguousarray(out.reshape(-1, n_folds, k).transpose(0, 2, 1))

    def of_own_folds(
        self, features: FeatureMap, precision: str, bags: Bags, places: Integers
    ) -> Floats:
        """Return out-of-fold predictions (n, k) of bags, given the places of their folds."""
        predicted = np.empty((len(bags), self.coef.shape[1]))
        for start, rows, _ in features.blocks(bags, precision):
            own = places[start : start + len(rows)]
            predicted[start : start + len(rows)] = self.of_folds(rows)[np.arange(len(own)), :, own]
        return predicted

    def ends(
        self, rows: Floats, of_folds: Floats, coverage: float, scales: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return lower and upper ends of intervals, from predictions of the folds (n, k, K).

        ``scales`` (n, k, K) are the scales of the bags; None: 1.
        """
        rank = self.rank(coverage)
        scales = np.ones(of_folds.shape) if scales is None else scales
        lower, upper = np.empty(rows.shape), np.empty(rows.shape)
        edges = even_edges(len(rows), SECONDS_PER_ERROR * max(1, self.errors.size))
        run_kernel(interval_ends, edges, of_folds, scales, *self._ordered, rank, lower, upper)
        return lower, upper

    @cached_property
    def _ordered(self) -> tuple[Floats, Integers]:
        edges = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        return np.ascontiguousarray(self.errors.T), edges


@dataclass(frozen=True, eq=False)
class FoldSetCalibration(FoldCalibration):
    """Coefficients without each fold, and nonconformity scores of the true classes of its bags.

    Attributes
    ----------
    coef, intercept, sizes
        As in `FoldCalibration`.
    errors : float64, shape (m, 1)
        1 minus the probability of the true class, fold by fold, ascending within each fold.
    """

    key: ClassVar[str] = "fold_set_calibration"
    is_of_sets: ClassVar[bool] = True

    def sets(self, unlikely: Floats, of_folds: Floats, coverage: float) -> Bools:
        """Return which classes are in the set of each bag, shape (n, n_classes).

        ``of_folds`` is 1 minus the probability of each class by the model of each fold, shape
        (n, n_classes, K).
        """
        edges = np.cumsum([0, *self.sizes])
        below = [
            count_below(self.errors[start:stop, 0], of_folds[:, :, j])
            for j, (start, stop) in enumerate(pairwise(edges.tolist()))
        ]
        sets: Bools = np.sum(below, axis=0) < self.rank(coverage)
        return sets


@dataclass(frozen=True)
class FoldedModel:
    """The features, outcome and penalties of a model that is calibrated by folds.

    Attributes
    ----------
    features : FeatureMap
    outcome : Outcome
    precision : {"float32", "float64"}
    rounding : float
        See `FitParameters.rounding`.
    alpha, baseline_alpha : float
        Penalties per unit of weight, so that they are smaller with fewer bags.
    """

    features: FeatureMap
    outcome: Outcome
    precision: str
    rounding: float
    alpha: float
    baseline_alpha: float

    def calibrate(
        self,
        bags: LabelledBags,
        n_folds: int,
        groups: Column | None = None,
        weights: Weights | None = None,
        progress: Progress | None = None,
        choose_anew: FitWithout | None = None,
    ) -> FoldCalibration:
        """Return the calibration: one pass for the sums, and one or two for up to 10,000 errors.

        ``choose_anew`` fits a model to some of the bags, with embedding and width chosen from these
        bags alone. The errors are then those of such models.

        Raises
        ------
        DataError
            If there are no labelled bags, all are in one fold, or the number of targets is not that
            of the model.
        ParameterError
            If the sums of all folds do not fit in memory.
        """
        chosen = choose_calibrating(bags, self.outcome.n_labels, groups)
        where = bags.url or "bags in memory"
        if chosen is None:
            raise DataError(f"{where}: no labelled bag to take errors of")
        made, folds, known = self.solve_without_each(bags, n_folds, groups, weights, progress)
        scale = None
        if choose_anew is not None:
            rows = self._chosen_anew(chosen, bags, folds, known, choose_anew)
        else:
            scale = self._learnt_scale(chosen, made, folds, known, len(known))
            made = replace(made, scale=scale)
            errors = partial(_fold_errors, self, made, folds, known, False)
            cost, k = self.features.cost_in(self.precision), self.outcome.n_labels
            rows = run_pass(chosen, rows_of("calibrate", errors, cost, 1 + k))
        parts = [np.sort(rows[rows[:, 0] == j, 1:], axis=0) for j in range(len(known))]
        kind = FoldSetCalibration if self.outcome.has_sets else FoldCalibration
        sizes = [len(part) for part in parts]
        return kind(made.coef, made.intercept, np.concatenate(parts), sizes, scale=scale)

    def learn_scale(
        self,
        bags: LabelledBags,
        n_folds: int,
        groups: Column | None = None,
        weights: Weights | None = None,
    ) -> ErrorScale | None:
        """Return the scale of errors by folds of the labelled bags fitted, or None; see `learnt`.

        If the bags have many points in all, evenly spread bags are used. Two passes read the bags.

        Raises
        ------
        DataError
            If all labelled bags are in one fold.
        ParameterError
            If the sums of all folds do not fit in memory.
        """
        bags = _few_points(bags)
        chosen = choose_calibrating(bags, self.outcome.n_targets, groups)
        if chosen is None or not self._can_learn(chosen):
            return None
        folded = self.solve_without_each(bags, n_folds, groups, weights)
        return self._learnt_scale(chosen, *folded)

    def _can_learn(self, chosen: LabelledBags) -> bool:
        assert isinstance(chosen.only, ListedBags)
        return len(chosen.only.index) >= MIN_SCALE_ROWS and can_have_scale(self.outcome)

    def _learnt_scale(
        self,
        chosen: LabelledBags,
        made: FoldCalibration,
        folds: Folds,
        known: Integers,
        n_scales: int | None = None,
    ) -> ErrorScale | None:
        """Return the scale from errors of some bags, learnt without each of ``n_scales`` folds."""
        if not self._can_learn(chosen):
            return None
        assert isinstance(chosen.only, ListedBags)
        d, k = self.features.n_features, self.outcome.n_targets
        index = spread_rows(chosen.only.index, rows_to_learn(d))
        errors_of = partial(_fold_errors, self, made, folds, known, True)
        cost = self.features.cost_in(self.precision) + Cost(bytes_per_bag=8 * (1 + d))
        columns = rows_of("scale of errors", errors_of, cost, 2 + k + d)
        rows = run_pass(replace(chosen, only=ListedBags(index)), columns)
        own, errors, sizes = rows[:, 0].astype(np.int64), rows[:, 1 : 1 + k], rows[:, 1 + k]
        return ErrorScale.learnt(ErrorRows(own, errors, sizes, rows[:, 2 + k :]), n_scales)

    def _chosen_anew(
        self,
        chosen: LabelledBags,
        bags: LabelledBags,
        folds: Folds,
        known: Integers,
        choose_anew: FitWithout,
    ) -> Floats:
        """Return rows as from `_fold_errors`, of models that are chosen without each fold."""
        assert isinstance(chosen.only, ListedBags)
        every = bags.labelled_positions()
        of_every, of_chosen = folds.of(every), folds.of(chosen.only.index)
        blocks = []
        for place, fold in enumerate(known):
            own = chosen.only.index[of_chosen == fold]
            if not len(own):
                continue
            rest = replace(bags, left_out=None, only=ListedBags(every[of_every != fold]))
            model = choose_anew(rest)
            for batch in replace(chosen, only=ListedBags(own)).batches():
                if len(batch):
                    targets, _ = self.outcome.encode(batch.labels)
                    scores = model.decision_rows(batch.bags)
                    errors = self.outcome.nonconformity(scores, targets)
                    blocks.append(np.column_stack([np.full(len(errors), place), errors]))
        return np.concatenate(blocks)

    def solve_without_each(
        self,
        bags: LabelledBags,
        n_folds: int,
        groups: Column | None = None,
        weights: Weights | None = None,
        progress: Progress | None = None,
    ) -> tuple[FoldCalibration, Folds, Integers]:
        """Return coefficients without each fold, the folds, and the numbers of folds with bags.

        One pass computes the sums. The calibration has no errors yet.

        Raises
        ------
        DataError
            If all labelled bags are in one fold.
        ParameterError
            If the sums of all folds do not fit in memory.
        """
        folds: Folds
        if groups is not None:
            folds = replace(GroupFolds.of_column(groups), n_folds=n_folds)
        else:
            folds = place_folds(bags, self.outcome, n_folds) or IndexFolds(n_folds)
        plan = self._plan(bags, folds, weights)
        fold_sums = plan.run(progress).folds
        assert fold_sums is not None
        known = [j for j, part in enumerate(fold_sums.parts) if part.n]
        if len(known) < 2:
            where = bags.url or "bags in memory"
            raise DataError(f"{where}: all labelled bags are in one fold: there is one group")
        solved = list(self._solve([fold_sums.parts[j] for j in known]))
        return FoldCalibration.of(solved), folds, np.array(known)

    def _plan(self, bags: LabelledBags, folds: Folds, weights: Weights | None) -> FitPlan:
        n, d = bags.n_bags, self.features.n_features
        keeps_rows = rows_serve(n, d, False)
        needed = solve_bytes(d, False, n if keeps_rows else None)
        if not keeps_rows:
            needed += 4 * d * d * folds.n_folds
        k = self.outcome.n_targets
        needed += targets_bytes(d, k, folds.n_folds + 1, n if keeps_rows else None)
        needed += 8 * k * (d + 1) * folds.n_folds  # the coefficients of all folds are kept
        check_memory(f"the sums of {folds.n_folds} folds of {d:,} features", needed, _FEWER)
        made = self.features, self.outcome, None, self.precision, keeps_rows, weights
        return FitPlan(bags, *made, folds=folds)

    def _solve(self, parts: Sequence[Summary]) -> Iterator[RidgeSolution]:
        with kernel_threads():
            for rows in without_each(parts):
                residual = rows
                if self.features.beside is not None:
                    alpha = self.baseline_alpha * rows.weight
                    residual = beside_linear(
                        cast(RidgeSums, rows), self.features.n_penalized, alpha
                    )
                yield solve(residual, self.alpha * rows.weight, self.rounding)


def _few_points(bags: LabelledBags) -> LabelledBags:
    """Return the labelled bags, or some of them with about `MAX_POINTS` points in all."""
    share = MAX_POINTS / max(1, bags.n_points)
    if share >= 1:
        return bags
    places = bags.labelled_positions()
    few = spread_rows(np.sort(places), max(MIN_SCALE_ROWS, int(share * len(places))))
    return replace(bags, left_out=None, only=ListedBags(few))


def _fold_errors(
    model: FoldedModel,
    made: FoldCalibration,
    folds: Folds,
    known: Integers,
    keeps_features: bool,
    batch: Batch,
) -> Floats:
    """Return a row per bag: the place of its fold, and its out-of-fold errors.

    Errors are in units of the scale of the fold, if there is a scale. The number of points and the
    features follow if they are kept.
    """
    targets, _ = model.outcome.encode(batch.labels)
    places, sizes = np.searchsorted(known, folds.of(batch.index)), batch.bags.sizes
    blocks = []
    for start, features, _ in model.features.blocks(batch.bags, model.precision):
        rows = slice(start, start + len(features))
        own = places[rows]
        each = np.arange(len(own)), slice(None), own
        errors = model.outcome.nonconformity(made.of_folds(features)[each], targets[rows])
        if made.scale is not None:
            errors = errors / made.scale.of(features, sizes[rows])[each]
        more = [sizes[rows], features] if keeps_features else []
        blocks.append(np.column_stack([own, errors, *more]))
    return np.concatenate(blocks)
