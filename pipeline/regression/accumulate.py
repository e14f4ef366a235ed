"""The pass of a fit: from bags to the statistics that its model is solved from."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Integers
from ..bags.labelled import Batch, LabelledBags
from ..bags.plan import Range
from ..bags.splits import Membership
from ..execution import Keeper, Progress
from ..execution.costs import Cost
from ..execution.passes import Reduction, plan_ranges, run_pass
from .feature_map import FeatureMap
from .outcomes import Outcome
from .rows import RowsBuilder, rows_cost
from .statistics import StatisticsBuilder, statistics_cost
from .summary import Summary
from .weights import Weights


@dataclass(frozen=True)
class FitStatistics:
    """What a pass over the data leaves: statistics to fit, statistics held out, and counts."""

    train: Summary
    validation: Summary | None
    n_unlabelled: int = 0
    n_held_out: int = 0
    n_points: int = 0
    n_outside: int = 0
    n_responses_outside: int = 0

    @property
    def mean_targets(self) -> Floats:
        """Of the bags fitted, those of validation included; shape (k,)."""
        parts = [part for part in (self.train, self.validation) if part is not None]
        exponents = np.max([part.exponents for part in parts], axis=0)
        total = np.sum([part.in_units(exponents).sum_y for part in parts], axis=0)
        mean: Floats = np.ldexp(total / self.weight, exponents)
        return mean

    @property
    def weight(self) -> float:
        """Of the bags fitted; their number where they have no weights."""
        return self.train.weight + (self.validation.weight if self.validation else 0)

    @property
    def n_bytes(self) -> int:
        """Of the large arrays."""
        parts = [part for part in (self.train, self.validation) if part is not None]
        return sum(part.n_bytes for part in parts)

    @property
    def n_bags(self) -> int:
        """Bags that were counted, whether or not they are fitted to."""
        n_validation = self.validation.n if self.validation else 0
        return self.train.n + n_validation + self.n_unlabelled + self.n_held_out

    def summed(self) -> FitStatistics:
        """Return the sums of rows that were kept."""
        held = self.validation.statistics() if self.validation else None
        return replace(self, train=self.train.statistics(), validation=held)

    def __add__(self, other: FitStatistics) -> FitStatistics:
        """Return the statistics of both sets of bags."""
        return self._combined(other, operator.add)

    def __sub__(self, other: FitStatistics) -> FitStatistics:
        """Return the statistics without some bags that were counted before."""
        return self._combined(other, operator.sub)

    def _combined(self, other: FitStatistics, combine: Callable[[Any, Any], Any]) -> FitStatistics:
        values: list[Any] = []
        for field in fields(self):
            ours, theirs = getattr(self, field.name), getattr(other, field.name)
            values.append(None if ours is None or theirs is None else combine(ours, theirs))
        return FitStatistics(*values)


class SplitSums:
    """The statistics of bags in two parts: those to fit, and those held out for validation."""

    def __init__(
        self,
        features: FeatureMap,
        n_targets: int,
        precision: str,
        has_held: bool,
        keeps_rows: bool = False,
    ) -> None:
        self._features = features
        # sums are completed at the end, rows are complete from the start
        self._write = features.features_of if keeps_rows else features.begin
        sizes = (features.n_features, n_targets, precision)
        self._train: StatisticsBuilder | RowsBuilder
        self._held: StatisticsBuilder | RowsBuilder | None = None
        if keeps_rows:
            self._train = RowsBuilder(*sizes)
            self._held = RowsBuilder(*sizes) if has_held else None
        else:
            self._train = sums = StatisticsBuilder(*sizes)
            # they take turns with the memory of products
            self._held = StatisticsBuilder(*sizes, sums.products) if has_held else None

    def add(
        self,
        embeddings: NDArray[Any],
        y: Floats,
        apart: NDArray[np.bool_] | None,
        weights: Floats | None = None,
    ) -> None:
        """Count bags by their embeddings (n, s) and targets (n, k); ``apart`` are held apart.

        ``weights`` (n,) are there for all bags or none.
        """
        if self._held is None or apart is None:
            self._fill(self._train, embeddings, y, weights)
            return
        for part, rows in ((self._train, ~apart), (self._held, apart)):
            self._fill(part, embeddings[rows], y[rows], None if weights is None else weights[rows])

    def finish(self, *counts: int) -> FitStatistics:
        """Return the statistics of all bags, with the counts of `FitStatistics`."""
        train, held = self._finished(self._train), None
        if self._held is not None:
            held = self._finished(self._held)
        return FitStatistics(train, held, *counts)

    def _finished(self, builder: StatisticsBuilder | RowsBuilder) -> Summary:
        if isinstance(builder, RowsBuilder):
            return builder.finish()
        return builder.finish().completed(self._features.completion)

    def _fill(
        self,
        builder: StatisticsBuilder | RowsBuilder,
        embeddings: NDArray[Any],
        y: Floats,
        weights: Floats | None,
    ) -> None:
        done = 0
        while done < len(embeddings):
            room = builder.room(len(embeddings) - done)
            stop = done + len(room)
            self._write(embeddings[done:stop], room)
            builder.commit(y[done:stop], None if weights is None else weights[done:stop])
            done = stop


class FitSums:
    """The `FitStatistics` of the batches of one task."""

    def __init__(
        self,
        features: FeatureMap,
        outcome: Outcome,
        validation: Membership | None,
        precision: str,
        keeps_rows: bool,
        weights: Weights | None = None,
    ) -> None:
        self._features = features
        self._outcome = outcome
        self._validation = validation
        self._precision = precision
        self._weights = weights
        self._keeps_rows = keeps_rows
        self._sums = self.new_sums()
        self._n_unlabelled = self._n_held_out = 0
        self._n_points = self._n_outside = self._n_beyond = 0

    def add(self, batch: Batch) -> None:
        """Count the bags of a batch."""
        self._n_held_out += batch.n_left_out
        self._n_unlabelled += batch.n_unlabelled
        if not len(batch):
            return
        y, beyond = self._outcome.encode(batch.labels)
        embeddings, n_outside = self._features.embed(batch.bags, self._precision)
        self._n_points += batch.bags.n_points
        self._n_beyond += beyond
        self._n_outside += n_outside
        apart = None if self._validation is None else self._validation.of(batch.index)
        weights = None if self._weights is None else self._weights.of(batch.index, y)
        self.count(batch.index, embeddings, y, apart, weights)

    def new_sums(self) -> SplitSums:
        """Return sums of no bags."""
        sizes = (self._features, self._outcome.n_targets, self._precision)
        return SplitSums(*sizes, self._validation is not None, self._keeps_rows)

    def count(
        self,
        index: Integers,
        embeddings: NDArray[Any],
        y: Floats,
        apart: NDArray[np.bool_] | None,
        weights: Floats | None,
    ) -> None:
        """Count bags by their positions; the others as `SplitSums.add` takes them."""
        self._sums.add(embeddings, y, apart, weights)

    def finish(self) -> FitStatistics:
        """Return the statistics of all batches."""
        return self._sums.finish(
            self._n_unlabelled, self._n_held_out, self._n_points, self._n_outside, self._n_beyond
        )


@dataclass(frozen=True)
class FitPass:
    """The pass over the bags of a fit: everything that its sums depend on.

    Attributes
    ----------
    source : LabelledBags
        Those it leaves out, and those without a label, are counted and not fitted to.
    features : FeatureMap
    outcome : Outcome
    validation : Membership, optional
        Bags with statistics of their own.
    precision : {"float32", "float64"}
    keeps_rows : bool
        Whether it leaves `RidgeRows`, for a fit to few bags; else `RidgeStatistics`, which can be
        subtracted and do not grow.
    weights : Weights, optional
        Of the bags.
    """

    source: LabelledBags
    features: FeatureMap
    outcome: Outcome
    validation: Membership | None
    precision: str
    keeps_rows: bool = False
    weights: Weights | None = None

    @property
    def given(self) -> tuple[Any, ...]:
        """The arguments of `FitSums`."""
        given = (self.features, self.outcome, self.validation, self.precision, self.keeps_rows)
        return *given, self.weights

    @property
    def sums(self) -> Callable[[], FitSums]:
        """The function that makes the collector of a task."""
        return partial(FitSums, *self.given)

    @property
    def cost(self) -> Cost:
        """What the pass takes one core, and how much memory of a lane."""
        n_parts = 2 if self.validation else 1
        n_features, n_targets = self.features.n_features, self.outcome.n_targets
        return self.features.cost_in(self.precision) + (
            rows_cost(n_features, n_targets, self.precision, self.source.n_bags)
            if self.keeps_rows
            else statistics_cost(n_features, n_targets, self.precision, n_parts)
        )

    @property
    def seconds(self) -> float:
        """Seconds that the pass takes one core, by the cost model."""
        return self.cost.seconds(self.source.n_bags, self.source.n_points)

    @cached_property
    def ranges(self) -> list[Range]:
        """The ranges of bags of its tasks, as positions in the data; one of no bags for none."""
        start = self.source.start
        return plan_ranges(self.source, self.cost) or [(start, start)]

    @property
    def reduction(self) -> Reduction[FitStatistics]:
        """What `run_pass` does with the bags."""
        return Reduction(self.sums, operator.add, self.cost, name="fit")

    def run(
        self, progress: Progress | None = None, keeper: Keeper[FitStatistics] | None = None
    ) -> FitStatistics:
        """Return the statistics: from the open cluster, or from this process.

        ``keeper`` belongs to this very pass: it loads what an earlier run has stored, see
        `Checkpoints`.
        """
        return run_pass(
            self.source, self.reduction, ranges=self.ranges, progress=progress, keeper=keeper
        )
