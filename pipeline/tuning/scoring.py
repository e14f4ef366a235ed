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
from ..execution import Progress, Report, map_reduce
from ..regression import FeatureMap, RidgeStatistics
from ..regression.accumulate import task_ranges
from ..regression.encoding import Reals
from ..regression.feature_map import naming
from ..regression.source import StoreSource
from ..regression.split import Split
from ..regression.statistics import StatisticsBuilder
from .cache import CoefficientCache, Rows
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
        return 2 * self.train.gram.nbytes


@dataclass(frozen=True)
class ScoreTask:
    """Statistics of a range of blocks: a pure function of its fields and the range.

    Coefficients come from the cache; those that are not there are computed and put there. So the
    first σ of an embedding fills it and the others only read, on any number of workers, and after
    a kill.
    """

    source: StoreSource
    order: RunOrder
    cache: CoefficientCache
    features: FeatureMap
    encoding: Reals
    holdout: Split | None
    validation: Split
    precision: str

    def __call__(self, blocks: Range, report: Report) -> ScoreStatistics:
        train = self._builder(None)
        held = self._builder(train.square)
        cache = self.cache.open()
        first = self.order.bags_before(blocks[0])
        for block in range(*blocks):
            runs = self.order.runs(block)
            rows = cache.read(block)
            if rows is None:
                rows = self._embed(runs)
                cache.write(block, *rows)
            self._add(rows, runs, train, held)
            report(self.order.bags_before(block + 1) - first)
        return ScoreStatistics(train.finish(), held.finish())

    def _embed(self, runs: Sequence[Range]) -> Rows:
        """Coefficients and targets of the bags of some runs; zeros where a bag is not used."""
        store, names = self.source.store, self.source.target_names
        targets = np.concatenate([store.targets(a, b, names) for a, b in runs])
        used = self._used(targets, runs)
        out = np.zeros((len(targets), self.features.embedding.n_features), dtype=np.float32)
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
        return out, targets

    def _add(
        self,
        block: Rows,
        runs: Sequence[Range],
        train: StatisticsBuilder,
        held: StatisticsBuilder,
    ) -> None:
        coefficients, targets = block
        used = np.flatnonzero(self._used(targets, runs))
        apart = _members(self.validation, runs)[used]
        for builder, rows in ((train, used[~apart]), (held, used[apart])):
            y, _ = self.encoding.rows(targets, rows)
            done = 0
            while done < len(rows):
                room = builder.room(len(rows) - done)
                stop = done + len(room)
                self.features.features_of(coefficients[rows[done:stop]], room)
                builder.commit(y[done:stop])
                done = stop

    def _used(self, targets: NDArray[np.float64], runs: Sequence[Range]) -> NDArray[np.bool_]:
        """Labelled bags that are not kept out of fitting."""
        labelled = self.encoding.labelled(targets)
        return labelled if self.holdout is None else labelled & ~_members(self.holdout, runs)

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
