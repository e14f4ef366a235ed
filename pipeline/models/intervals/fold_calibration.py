"""Intervals from folds of the bags that were fitted, none of which is lost: CV+.

Each of K folds is predicted by coefficients that the sums of the others give. With μ_f and r_j, the
predictions and the absolute errors of the m bags of fold f, the interval for a bag is from the
⌊α (m + 1)⌋-th smallest μ_f − r_j to the ⌈(1 − α) (m + 1)⌉-th smallest μ_f + r_j. It holds the label
with a probability of at least 1 − 2α less a term that falls with n / K, and of about 1 − α wherever
coefficients do not change much from fold to fold (Barber et al. 2021, Theorem 4).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ...data.labelled.column_splits import GroupFolds
from ...data.labelled.columns import Column
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.splits import Folds, IndexFolds
from ...data.labelled.weights import Weights
from ...execution.costs import SECONDS_PER_PRODUCT
from ...execution.lanes import lane
from ...execution.passes import Reduction, check_memory, run_pass
from ...execution.pool import even_edges, run_kernel
from ...execution.progress import Progress
from ..fitting.feature_map import FeatureMap
from ..fitting.plan import FitPlan
from ..model_state import OptionalPart
from ..outcomes.base import Outcome
from ..ridge.partial_regression import Rows, beside_linear
from ..ridge.ridge import RidgeSolution, rows_serve, solve, solve_bytes, targets_bytes
from ..ridge.statistics_kernels import linear_predictions
from ..ridge.summary import Summary
from ..ridge.sums import RidgeStatistics
from .calibration import choose_calibrating, join_rows, rank_of
from .interval_kernels import interval_ends

MOST_FOLDS = 100  # each has sums of its own
FEWER = "take fewer folds or random features"
SECONDS_PER_ERROR = 1e-9  # of a bag's interval: halving the bracket, of which a search is a part


@dataclass(frozen=True, eq=False)
class FoldCalibration(OptionalPart):
    """Coefficients without each fold, and absolute errors of the bags of that fold.

    Attributes
    ----------
    coef : float64, shape (K, k, D)
        Coefficients of the models that each lack one of K folds.
    intercept : float64, shape (K, k)
    errors : float64, shape (m, k)
        Errors of each of k targets, fold by fold, ascending within it; one bag per group where bags
        have groups.
    sizes : list of int
        Errors of each fold.
    """

    coef: Floats
    intercept: Floats
    errors: Floats
    sizes: Sequence[int] = field(default=())

    key: ClassVar[str] = "fold_calibration"
    arrays: ClassVar[tuple[str, ...]] = ("coef", "intercept", "errors")
    uses_fitted: ClassVar[bool] = True

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        shapes = self.coef.shape, self.intercept.shape
        n = len(self.sizes)
        if n < 2 or shapes != ((n, n_targets, n_features), (n, n_targets)):
            raise ValueError(f"the coefficients of {n} folds have shapes {shapes}")
        if self.errors.shape != (sum(self.sizes), n_targets) or not len(self.errors):
            raise ValueError(f"errors of {n} folds have shape {self.errors.shape}")

    @property
    def told(self) -> str:
        """Where the intervals come from, in words."""
        return f"the errors of {len(self.errors):,} bags over {len(self.sizes)} folds (CV+)"

    def rank(self, coverage: float) -> int:
        """See `rank_of`."""
        return rank_of(len(self.errors), coverage)

    def of_folds(self, features: NDArray[Any]) -> Floats:
        """Return predictions by the model of each fold, shape (n, k, K)."""
        n_folds, k, d = self.coef.shape
        out = np.empty((len(features), n_folds * k))
        coef, intercept = self.coef.reshape(-1, d), self.intercept.reshape(-1)
        edges = even_edges(len(out), SECONDS_PER_PRODUCT * coef.size)
        run_kernel(linear_predictions, edges, features, coef, intercept, out)
        return np.ascontiguousarray(out.reshape(-1, n_folds, k).transpose(0, 2, 1))

    def ends(self, rows: Floats, of_folds: Floats, coverage: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends for predictions (n, k), given those of folds (n, k, K)."""
        rank = self.rank(coverage)
        lower, upper = np.empty(rows.shape), np.empty(rows.shape)
        edges = even_edges(len(rows), SECONDS_PER_ERROR * max(1, self.errors.size))
        run_kernel(interval_ends, edges, of_folds, *self._ordered, rank, lower, upper)
        return lower, upper

    @cached_property
    def _ordered(self) -> tuple[Floats, Integers]:
        edges = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        return np.ascontiguousarray(self.errors.T), edges


@dataclass(frozen=True)
class FoldedModel:
    """What is calibrated by folds: a model's features, outcome and penalties.

    Attributes
    ----------
    features : FeatureMap
    outcome : Outcome
    precision : {"float32", "float64"}
    rounding : float
        See `FitParameters.rounding`.
    alpha, baseline_alpha : float
        Per unit of weight, so that fewer bags have smaller ones.
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
    ) -> FoldCalibration:
        """Return what a pass of sums over labelled bags gives, and one for at most 10,000 errors.

        Raises
        ------
        DataError
            No labelled bags, all in one fold, or another number of targets than the model's.
        ParameterError
            The sums of all folds do not fit in memory.
        """
        chosen = choose_calibrating(bags, self.outcome.n_targets, groups)
        where = bags.url or "bags in memory"
        if chosen is None:
            raise DataError(f"{where}: no labelled bag to take errors of")
        made, folds, known = self.solve_without_each(bags, n_folds, groups, weights, progress)
        collector = partial(_FoldErrors, self, made, folds, known)
        cost = self.features.cost_in(self.precision)
        rows = run_pass(chosen, Reduction(collector, join_rows, cost, name="calibrate"))
        parts = [np.sort(rows[rows[:, 0] == j, 1:], axis=0) for j in range(len(known))]
        return replace(made, errors=np.concatenate(parts), sizes=[len(part) for part in parts])

    def solve_without_each(
        self,
        bags: LabelledBags,
        n_folds: int,
        groups: Column | None = None,
        weights: Weights | None = None,
        progress: Progress | None = None,
    ) -> tuple[FoldCalibration, Folds, Integers]:
        """Return coefficients without each fold, yet without errors, from one pass of sums.

        Also the folds, and the numbers of those that have bags.

        Raises
        ------
        DataError
            All labelled bags are in one fold.
        ParameterError
            The sums of all folds do not fit in memory.
        """
        folds: Folds = IndexFolds(n_folds)
        if groups is not None:
            folds = replace(GroupFolds.of_column(groups), n_folds=n_folds)
        plan = self._plan(bags, folds, weights)
        found = plan.run(progress).folds
        assert found is not None
        known = [j for j, part in enumerate(found.parts) if part.n]
        if len(known) < 2:
            where = bags.url or "bags in memory"
            raise DataError(f"{where}: all labelled bags are in one fold: there is one group")
        solved = list(self._solve([found.parts[j] for j in known]))
        coef = np.array([one.coef for one in solved])
        made = FoldCalibration(coef, np.array([one.intercept for one in solved]), np.empty(0))
        return made, folds, np.array(known)

    def _plan(self, bags: LabelledBags, folds: Folds, weights: Weights | None) -> FitPlan:
        n, d = bags.n_bags, self.features.n_features
        keeps_rows = rows_serve(n, d, False)
        needed = solve_bytes(d, False, n if keeps_rows else None)
        if not keeps_rows:
            needed += 4 * d * d * folds.n_folds
        k = self.outcome.n_targets
        needed += targets_bytes(d, k, folds.n_folds + 1, n if keeps_rows else None)
        needed += 8 * k * (d + 1) * folds.n_folds  # the coefficients of all folds are kept
        check_memory(f"the sums of {folds.n_folds} folds of {d:,} features", needed, FEWER)
        made = self.features, self.outcome, None, self.precision, keeps_rows, weights
        return FitPlan(bags, *made, folds=folds)

    def _solve(self, parts: Sequence[Summary]) -> Iterator[RidgeSolution]:
        with lane():
            for rows in without_each(parts):
                left = rows
                if self.features.beside is not None:
                    alpha = self.baseline_alpha * rows.weight
                    left = beside_linear(cast(Rows, rows), self.features.n_penalized, alpha)
                yield solve(left, self.alpha * rows.weight, self.rounding)


def without_each(parts: Sequence[Summary]) -> Iterator[Summary]:
    """Yield the sums over all rows except each part, by subtraction."""
    if isinstance(parts[0], RidgeStatistics):
        sums = cast(Sequence[RidgeStatistics], parts)
        whole = reduce(operator.add, sums)
        yield from (whole - part for part in sums)
        return
    for j in range(len(parts)):
        yield reduce(operator.add, [*parts[:j], *parts[j + 1 :]])


class _FoldErrors:
    """A `Collector` of rows: the place of a bag's fold, and its errors by that fold's model."""

    def __init__(
        self, model: FoldedModel, made: FoldCalibration, folds: Folds, known: Integers
    ) -> None:
        self._model, self._made, self._folds, self._known = model, made, folds, known
        self._found = [np.empty((0, 1 + model.outcome.n_targets))]

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        targets, _ = self._model.outcome.encode(batch.labels)
        places = np.searchsorted(self._known, self._folds.of(batch.index))
        blocks = self._model.features.blocks(batch.bags, self._model.precision)
        for start, features, _ in blocks:
            rows = slice(start, start + len(features))
            own = places[rows]
            predicted = self._made.of_folds(features)[np.arange(len(own)), :, own]
            errors = np.abs(predicted - targets[rows])
            self._found.append(np.column_stack([own, errors]))

    def finish(self) -> Floats:
        return join_rows(*self._found)
