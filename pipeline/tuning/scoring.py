"""The pass behind a score: blocks of bags to statistics of fitted and of held-out rows."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..bags.plan import Range, split_evenly
from ..bags.reading import partitions, prefetch
from ..bags.splits import Split
from ..execution import Progress, Report, map_reduce
from ..regression import FeatureMap, RidgeStatistics
from ..regression.accumulate import task_ranges
from ..regression.encoding import Encoding
from ..regression.feature_map import naming
from ..regression.source import StoreSource
from ..regression.statistics import StatisticsBuilder
from .cache import RowCache
from .order import RunOrder


@dataclass(frozen=True)
class ScoreStatistics:
    """Statistics of the rows fitted and of those held out."""

    train: RidgeStatistics
    held_out: RidgeStatistics

    def __add__(self, other: ScoreStatistics) -> ScoreStatistics:
        return ScoreStatistics(self.train + other.train, self.held_out + other.held_out)

    @property
    def n_bytes(self) -> int:
        return 2 * (self.train.gram.nbytes + self.train.cross.nbytes)


@dataclass(frozen=True)
class ScoreTask:
    """Statistics of a range of blocks: a pure function of its fields and the range.

    Coefficients and targets come from their caches; what is not there is computed and put there.
    So the first σ of an embedding fills the one, the first candidate the other, and all others
    only read, on any number of workers, and after a kill.
    """

    source: StoreSource
    order: RunOrder
    coefficients: RowCache
    targets: RowCache
    features: FeatureMap
    encoding: Encoding
    holdout: Split | None
    validation: Split
    precision: str

    def __call__(self, blocks: Range, report: Report) -> ScoreStatistics:
        train = self._builder(None)
        held = self._builder(train.square)
        targets, coefficients = self.targets.open(), self.coefficients.open()
        first = self.order.bags_before(blocks[0])
        for block in range(*blocks):
            runs = self.order.runs(block)
            y, rows = targets.read(block), coefficients.read(block)
            if y is None:
                y = self._encode(runs)
                targets.write(block, y)
            used = ~np.isnan(y[:, 0])
            if rows is None:
                rows = self._embed(runs, used)
                coefficients.write(block, rows)
            apart = _members(self.validation, runs)
            self._add(rows, y, used & ~apart, train)
            self._add(rows, y, used & apart, held)
            report(self.order.bags_before(block + 1) - first)
        return ScoreStatistics(train.finish(), held.finish())

    def _encode(self, runs: Sequence[Range]) -> NDArray[np.float64]:
        """Targets of the bags of some runs; NaN without a label, or kept out of fitting."""
        out = np.full((sum(b - a for a, b in runs), self.encoding.n_targets), np.nan)
        done = 0
        for (start, stop), labels in self.source.labels(runs):
            used = self.encoding.labelled(labels)
            if self.holdout is not None:
                used = used & ~self.holdout.members(start, stop)
            rows = np.flatnonzero(used)
            if len(rows):
                with naming(self.source.url, start + rows):
                    out[done + rows], _ = self.encoding.rows(labels, rows)
            done += stop - start
        return out

    def _embed(self, runs: Sequence[Range], used: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Coefficients of the bags of some runs; zeros where a bag is not used."""
        store = self.source.store
        out = np.zeros((len(used), self.features.embedding.n_features), dtype=np.float32)
        ranges = [part for run in runs for part in partitions(store, *run)]
        done = 0
        with closing(prefetch(lambda r: store.read(*r), ranges)) as loaded:
            for (start, stop), bags in zip(ranges, loaded, strict=True):
                rows = np.flatnonzero(used[done : done + stop - start])
                if len(rows):
                    with naming(store.url, start + rows):
                        chosen = bags if len(rows) == len(bags) else bags[rows]
                        out[done + rows] = self.features.embed(chosen, np.float32)[0]
                done += stop - start
        return out

    def _add(
        self,
        coefficients: NDArray[np.float32],
        targets: NDArray[np.float64],
        chosen: NDArray[np.bool_],
        builder: StatisticsBuilder,
    ) -> None:
        rows = np.flatnonzero(chosen)
        done = 0
        while done < len(rows):
            room = builder.room(len(rows) - done)
            part = rows[done : done + len(room)]
            self.features.features_of(coefficients[part], room)
            builder.commit(targets[part])
            done += len(part)

    def _builder(self, scratch: NDArray[np.float32] | None) -> StatisticsBuilder:
        n_features, n_targets = self.features.n_features, self.encoding.n_targets
        return StatisticsBuilder(n_features, n_targets, self.precision, scratch)


def score_statistics(
    task: ScoreTask, blocks: Range, progress: Progress | None = None
) -> ScoreStatistics:
    """One pass over a range of blocks: on the open cluster, or in this process."""
    first, stop = blocks
    before = task.order.bags_before
    n_bags = before(stop) - before(first)
    n_points = n_bags * task.source.n_points // max(1, task.source.n_bags)
    n_tasks = len(task_ranges(n_bags, n_points, task.features))
    ranges = [(first + a, first + b) for a, b in split_evenly(stop - first, n_tasks)]
    return map_reduce(
        task,
        ranges,
        operator.add,
        sizes=[before(b) - before(a) for a, b in ranges],
        progress=progress,
    )


def _members(split: Split, runs: Sequence[Range]) -> NDArray[np.bool_]:
    return np.concatenate([split.members(a, b) for a, b in runs])
