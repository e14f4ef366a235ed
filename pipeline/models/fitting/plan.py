"""`FitPlan`: the pass over the bags of a fit, with everything that its sums depend on."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...data.labelled.holdout import NO_HOLDOUT, Holdout
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.splits import Folds, Membership
from ...data.labelled.weights import Weights
from ...data.store.plan import Range
from ...execution.checkpoint_stores import CheckpointStore
from ...execution.costs import Cost
from ...execution.passes import FEWER_FEATURES, Reduction, plan_ranges, run_pass
from ...execution.progress import Progress
from ..outcomes.base import Outcome
from ..ridge.rows import rows_cost
from ..ridge.sums import statistics_cost
from .accumulate import FitStatistics, FoldSums, SplitSums
from .feature_map import FeatureMap
from .fit_parameters import FEWER_TARGETS


@dataclass(frozen=True)
class FitPlan:
    """A fit with all choices made, ready for the pass over its bags.

    Attributes
    ----------
    bags : LabelledBags
        Bags of the fit. Bags that are left out, or have no label, are only counted.
    features : FeatureMap
    outcome : Outcome
    validation : Membership, optional
        Bags for validation, which have separate statistics.
    precision : {"float32", "float64"}
    keeps_rows : bool
        Whether the pass returns `RidgeRows`, for a fit to few bags. Otherwise it returns
        `RidgeStatistics`, which can be subtracted and have a fixed size.
    weights : Weights, optional
        Weights of the bags.
    holdout : Holdout
        Bags that are left out.
    choice : dict, optional
        Candidates of ``embedding="auto"``.
    folds : Folds, optional
        Folds that choose the penalty or give intervals. Each fold has separate statistics.
    """

    bags: LabelledBags
    features: FeatureMap
    outcome: Outcome
    validation: Membership | None
    precision: str
    keeps_rows: bool = False
    weights: Weights | None = None
    holdout: Holdout = NO_HOLDOUT
    choice: dict[str, Any] | None = field(default=None, compare=False)
    folds: Folds | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without the ranges, so that tasks are pickled without all ranges."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_parts(self) -> int:
        """Number of parts of the bags with separate statistics, plus one for all with folds."""
        return 2 if self.validation else self.folds.n_folds + 1 if self.folds else 1

    @property
    def cost(self) -> Cost:
        """Cost of the pass: seconds of one core, and memory of a worker."""
        n_features, n_targets = self.features.n_features, self.outcome.n_targets
        return self.features.cost_in(self.precision) + (
            rows_cost(n_features, n_targets, self.precision, self.bags.n_bags)
            if self.keeps_rows
            else statistics_cost(n_features, n_targets, self.precision, self.n_parts)
        )

    @property
    def seconds(self) -> float:
        """Seconds of the pass on one core, by the cost model."""
        return self.cost.seconds(self.bags.n_bags, self.bags.n_points)

    @cached_property
    def ranges(self) -> list[Range]:
        """Ranges of bags of the tasks, as positions in the data; one empty range without bags."""
        start = self.bags.start
        return plan_ranges(self.bags, self.cost) or [(start, start)]

    @property
    def reduction(self) -> Reduction[FitStatistics]:
        """The reduction that `run_pass` applies to the bags."""
        return Reduction(partial(FitSums, self), operator.add, self.cost, name="fit")

    def run(
        self,
        progress: Progress | None = None,
        checkpoint_store: CheckpointStore[FitStatistics] | None = None,
    ) -> FitStatistics:
        """Return the statistics: from the open cluster, or from this process.

        ``checkpoint_store`` belongs to this pass. It loads the sums that an earlier run has stored,
        see `Checkpoints`.
        """
        has_many = self.outcome.n_targets > self.features.n_features
        return run_pass(
            self.bags,
            self.reduction,
            ranges=self.ranges,
            progress=progress,
            checkpoint_store=checkpoint_store,
            advice=FEWER_TARGETS if has_many else FEWER_FEATURES,
        )


class FitSums:
    """The `FitStatistics` of the batches of one task."""

    def __init__(self, plan: FitPlan) -> None:
        self._plan = plan
        self._sums = self.new_sums()
        self._n_unlabelled = self._n_held_out = 0
        self._n_points = self._n_outside = self._n_beyond = 0

    def add(self, batch: Batch) -> None:
        """Count the bags of a batch."""
        plan = self._plan
        self._n_held_out += batch.n_left_out
        self._n_unlabelled += batch.n_unlabelled
        if not len(batch):
            return
        y, beyond = plan.outcome.encode(batch.labels)
        embeddings, n_outside = plan.features.embed(batch.bags, plan.precision)
        self._n_points += batch.bags.n_points
        self._n_beyond += beyond
        self._n_outside += n_outside
        apart = None if plan.validation is None else plan.validation.of(batch.index)
        weights = None if plan.weights is None else plan.weights.of(batch.index, y)
        self.count(batch.index, embeddings, y, apart, weights)

    def new_sums(self) -> SplitSums | FoldSums:
        """Return sums of no bags."""
        plan = self._plan
        if plan.folds is not None:
            sizes = plan.outcome.n_targets, plan.precision
            return FoldSums(plan.features, *sizes, plan.folds, plan.keeps_rows)
        return SplitSums(
            plan.features,
            plan.outcome.n_targets,
            plan.precision,
            has_held=plan.validation is not None,
            keeps_rows=plan.keeps_rows,
        )

    def count(
        self,
        index: Integers,
        embeddings: NDArray[Any],
        y: Floats,
        apart: NDArray[np.bool_] | None,
        weights: Floats | None,
    ) -> None:
        """Count bags; the arguments are those of `SplitSums.add`."""
        self._sums.add(index, embeddings, y, apart, weights)

    def finish(self) -> FitStatistics:
        """Return the statistics of all batches."""
        return self._sums.finish(
            self._n_unlabelled, self._n_held_out, self._n_points, self._n_outside, self._n_beyond
        )
