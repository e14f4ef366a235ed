"""The pass of a score: statistics of fitted and held-out rows from blocks of bags."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...data.bags.bags import take_rows
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.splits import Membership
from ...data.labelled.weights import Weights
from ...data.store.plan import Range, ranges_of, split_evenly
from ...execution.costs import Cost, count_tasks
from ...execution.passes import Index, Reduction, RowsOfBags, run_pass
from ...execution.progress import Progress
from ..fitting.accumulate import FitStatistics, SplitSums
from ..fitting.feature_map import FeatureMap
from ..outcomes.base import Outcome
from ..ridge.rows import rows_cost
from ..ridge.sums import statistics_cost
from .cache import OpenCache, RowCache
from .order import MAX_BLOCK_BYTES, RunOrder

# Points of small blocks that are read, embedded and counted together: about 1 s.
_POINTS_AT_ONCE = 2**21


@dataclass(frozen=True)
class CachedBatch:
    """The labelled bags of some blocks.

    Attributes
    ----------
    index : int64, shape (n,)
        Positions of the bags in the store.
    coefficients : float32, shape (n, s)
    targets : float64, shape (n, k)
    stop : int
        Position in tuning's order after the blocks.
    """

    index: Integers
    coefficients: NDArray[np.float32]
    targets: Floats
    stop: int


@dataclass(frozen=True)
class CachedBags(RowsOfBags):
    """The labelled bags of a store in the order of the search, as coefficients of an embedding.

    Coefficients and targets come from their caches; missing values are computed and cached. The
    first σ of an embedding fills the cache of coefficients, and the first candidate the cache of
    targets. All other candidates only read, on any number of workers, also after a kill.
    """

    bags: LabelledBags
    order: RunOrder
    coefficients: RowCache
    targets: RowCache
    features: FeatureMap
    outcome: Outcome

    def batches(
        self, start: int, stop: int, *, rows_per_block: int, max_bytes: int
    ) -> Iterator[CachedBatch]:
        """Yield batches of whole blocks; ``start`` is the beginning of a block."""
        caches, length = (self.targets.open(), self.coefficients.open()), self.order.block_length
        first, last = start // length, -(-stop // length)
        points = max(1, self.n_points * length // max(1, self.n_bags))
        row_bytes = 4 * self.features.n_embedded + 8 * self.outcome.n_targets
        limits = (rows_per_block // length, _POINTS_AT_ONCE // points)
        step = max(1, min(*limits, MAX_BLOCK_BYTES // (row_bytes * length)))
        for block in range(first, last, step):
            yield self._batch(range(block, min(block + step, last)), *caches, max_bytes)

    def naming(self, index: Index) -> AbstractContextManager[None]:
        """Do nothing: bags are refused, and named, where they are embedded."""
        return nullcontext()

    def _batch(
        self, blocks: range, targets: OpenCache, coefficients: OpenCache, max_bytes: int
    ) -> CachedBatch:
        """Return consecutive blocks as one batch; missing bags are read together."""
        runs = [run for block in blocks for run in self.order.runs(block)]
        index = np.concatenate([np.arange(*run) for run in runs])
        y = targets.filled(blocks, lambda rows: self._encode(index[rows]))
        used = ~np.isnan(y[:, 0])
        rows = coefficients.filled(
            blocks, lambda rows: self._embed(index[rows], used[rows], max_bytes)
        )
        stop = self.order.bags_before(blocks.stop)
        return CachedBatch(index[used], rows[used], y[used], stop)

    def _encode(self, index: Integers) -> Floats:
        """Return the targets of some bags; NaN without a label, or if left out of the fit."""
        out = np.full((len(index), self.outcome.n_targets), np.nan)
        order = np.argsort(index)
        places = index[order]
        for (start, _), rows, labels in self.bags.label_blocks(ranges_of(places)):
            if len(rows):
                with self.bags.naming(start + rows):
                    encoded, _ = self.outcome.encode(labels)
                out[order[np.searchsorted(places, start + rows)]] = encoded
        return out

    def _embed(
        self, index: Integers, used: NDArray[np.bool_], max_bytes: int
    ) -> NDArray[np.float32]:
        """Return the coefficients of some bags; zeros if a bag is not used."""
        out = np.zeros((len(index), self.features.n_embedded), dtype=np.float32)
        order = np.argsort(index)
        places, every = (
            index[order],
            replace(self.bags, labels=None, start=0, stop=None, left_out=None, only=None),
        )
        for batch in every.batches_of(ranges_of(places), max_bytes=max_bytes):
            at = order[np.searchsorted(places, batch.index)]
            rows = np.flatnonzero(used[at])
            if len(rows):
                with self.bags.naming(batch.index[rows]):
                    chosen = take_rows(batch.bags, rows)
                    out[at[rows]] = self.features.embed(chosen, np.float32)[0]
        return out


class ScoreSums:
    """The statistics of the blocks of one task; ``validation`` bags have separate statistics."""

    def __init__(
        self,
        features: FeatureMap,
        n_targets: int,
        validation: Membership,
        precision: str,
        keeps_rows: bool,
        weights: Weights | None,
    ) -> None:
        self._sums = SplitSums(features, n_targets, precision, has_held=True, keeps_rows=keeps_rows)
        self._validation, self._weights = validation, weights

    def add(self, batch: CachedBatch) -> None:
        """Count the bags of a block."""
        apart, weights = self._validation.of(batch.index), None
        if self._weights is not None:
            weights = self._weights.of(batch.index, batch.targets)
        self._sums.add(batch.index, batch.coefficients, batch.targets, apart, weights)

    def finish(self) -> FitStatistics:
        """Return the statistics of all blocks."""
        return self._sums.finish()


def score_statistics(
    source: CachedBags,
    validation: Membership,
    precision: str,
    blocks: Range,
    progress: Progress | None = None,
    keeps_rows: bool = False,
    weights: Weights | None = None,
) -> FitStatistics:
    """Return the statistics of a range of blocks: on the open cluster, or in this process.

    ``keeps_rows`` as in `FitPlan`.
    """
    n_targets, before = source.outcome.n_targets, source.order.bags_before
    sums = partial(
        ScoreSums, source.features, n_targets, validation, precision, keeps_rows, weights
    )
    n_bags = before(blocks[1]) - before(blocks[0])
    sizes = (source.features.n_features, n_targets, precision)
    cost = source.features.cost_in(precision)
    cost += rows_cost(*sizes, n_bags) if keeps_rows else statistics_cost(*sizes, n_parts=2)
    scoring: Reduction[FitStatistics] = Reduction(sums, operator.add, cost, name="score")
    ranges = block_ranges(source, blocks, cost)
    return run_pass(source, scoring, ranges=ranges, progress=progress)


def block_ranges(source: CachedBags, blocks: Range, cost: Cost) -> list[Range]:
    """Return the tasks of a pass over a range of blocks, as bags in tuning's order."""
    before, (first, stop) = source.order.bags_before, blocks
    n_bags = before(stop) - before(first)
    n_points = n_bags * source.n_points // max(1, source.n_bags)
    n_tasks = count_tasks(n_bags, n_points, source.n_dims, cost)
    return [(before(first + a), before(first + b)) for a, b in split_evenly(stop - first, n_tasks)]
