"""The task of a fit: a range of bags to its statistics, and how a fit is cut into tasks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags
from ..bags.plan import Range, split_evenly
from ..bags.splits import Split
from ..execution import Keeper, Progress, Report, map_reduce
from .encoding import Encoding
from .feature_map import FeatureMap, naming
from .source import MemorySource, Source
from .statistics import RidgeStatistics, StatisticsBuilder

TASK_SECONDS = 60.0
TASK_BYTES = 2**30  # of points in float32: half a minute from a slow object store
SMALL_TASK_SECONDS = 4.0
SMALL_TASKS = 16
MAX_TASKS = 4096
ROWS_A_BLOCK = 4096
FLOPS_A_CORE = 1e11  # float32 products; the plan needs the right order, not the right number


@dataclass(frozen=True)
class FitStatistics:
    """What a pass over the data leaves: statistics to fit, held-out ones, and counts."""

    train: RidgeStatistics
    validation: RidgeStatistics | None
    n_unlabelled: int
    n_held_out: int
    n_points: int
    n_outside: int
    n_responses_outside: int = 0

    @property
    def mean_targets(self) -> NDArray[np.float64]:
        """Of the bags fitted, those of validation included; shape (k,)."""
        parts = [part for part in (self.train, self.validation) if part is not None]
        total: NDArray[np.float64] = np.sum([part.sum_y for part in parts], axis=0)
        return total / sum(part.n for part in parts)

    @property
    def n_bags(self) -> int:
        """Bags that were counted, whether or not they are fitted to."""
        n_validation = self.validation.n if self.validation else 0
        return self.train.n + n_validation + self.n_unlabelled + self.n_held_out

    def __add__(self, other: FitStatistics) -> FitStatistics:
        """The statistics of both sets of bags."""
        return self._combined(other, operator.add)

    def __sub__(self, other: FitStatistics) -> FitStatistics:
        """The statistics without bags that were counted before."""
        return self._combined(other, operator.sub)

    def _combined(self, other: FitStatistics, combine: Callable[[Any, Any], Any]) -> FitStatistics:
        values: list[Any] = []
        for field in fields(self):
            ours, theirs = getattr(self, field.name), getattr(other, field.name)
            values.append(None if ours is None or theirs is None else combine(ours, theirs))
        return FitStatistics(*values)


@dataclass(frozen=True)
class AccumulateTask:
    """Statistics of a range of bags: a pure function of its fields and the range.

    Bags in ``holdout`` are left out, those in ``validation`` counted apart, those without a
    label left out and counted.
    """

    source: Source
    features: FeatureMap
    encoding: Encoding
    holdout: Split | None
    validation: Split | None
    precision: str

    def __call__(self, bag_range: Range, report: Report) -> FitStatistics:
        start, stop = bag_range
        train = self._builder(None)
        held = self._builder(train.square) if self.validation else None
        n_unlabelled = n_held_out = n_points = n_outside = n_beyond = 0
        for (a, b), bags, labels in self.source.batches(start, stop):
            out = self._held_out(a, b)
            labelled = self.encoding.labelled(labels)
            n_held_out += int(out.sum())
            n_unlabelled += int((~labelled & ~out).sum())
            for rows in _blocks(np.flatnonzero(labelled & ~out)):
                chosen = _take(bags, rows)
                n_points += chosen.n_points
                with naming(self.source.url, a + rows):
                    targets, beyond = self.encoding.rows(labels, rows)
                n_beyond += beyond
                n_outside += self._add(chosen, a + rows, targets, train, held)
                report(a + int(rows[-1]) + 1 - start)
        return FitStatistics(
            train.finish(),
            held.finish() if held else None,
            n_unlabelled,
            n_held_out,
            n_points,
            n_outside,
            n_beyond,
        )

    def _add(
        self,
        bags: Bags,
        rows: NDArray[np.int64],
        y: NDArray[np.float64],
        train: StatisticsBuilder,
        held: StatisticsBuilder | None,
    ) -> int:
        with naming(self.source.url, rows):
            embeddings, n_outside = self.features.embed(bags, self.precision)
        if held is None or self.validation is None:
            self._fill(train, embeddings, y)
        else:
            apart = self.validation.members(int(rows[0]), int(rows[-1]) + 1)[rows - rows[0]]
            self._fill(train, embeddings[~apart], y[~apart])
            self._fill(held, embeddings[apart], y[apart])
        return n_outside

    def _fill(
        self, builder: StatisticsBuilder, embeddings: NDArray[Any], y: NDArray[np.float64]
    ) -> None:
        done = 0
        while done < len(embeddings):
            room = builder.room(len(embeddings) - done)
            stop = done + len(room)
            self.features.features_of(embeddings[done:stop], room)
            builder.commit(y[done:stop])
            done = stop

    def _builder(self, scratch: Any) -> StatisticsBuilder:
        return StatisticsBuilder(
            self.features.n_features, self.encoding.n_targets, self.precision, scratch
        )

    def _held_out(self, start: int, stop: int) -> NDArray[np.bool_]:
        if self.holdout is None:
            return np.zeros(stop - start, dtype=bool)
        return self.holdout.members(start, stop)


def _blocks(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for first in range(0, len(rows), ROWS_A_BLOCK):
        yield rows[first : first + ROWS_A_BLOCK]


def _take(bags: Bags, rows: NDArray[np.int64]) -> Bags:
    """The bags of ascending ``rows``, as a view when they are consecutive."""
    first, last = int(rows[0]), int(rows[-1])
    return bags[first : last + 1] if last - first + 1 == len(rows) else bags[rows]


def accumulate(
    task: AccumulateTask, progress: Progress | None = None, keeper: Keeper | None = None
) -> FitStatistics:
    """One pass over the source: on the open cluster, or in this process.

    ``keeper`` is for this very task: it gives what an earlier pass has kept, see `Checkpoints`.
    """
    ranges = ranges_of(task)
    return map_reduce(
        task,
        ranges,
        operator.add,
        sizes=[stop - start for start, stop in ranges],
        progress=progress,
        here=isinstance(task.source, MemorySource),
        keeper=keeper,
    )


def ranges_of(task: AccumulateTask) -> list[Range]:
    """The ranges of bags, as positions in the source, that a pass is cut into."""
    first = task.source.start
    ranges = task_ranges(task.source.n_bags, task.source.n_points, task.features)
    return [(first + start, first + stop) for start, stop in ranges]


def task_ranges(n_bags: int, n_points: int, features: FeatureMap) -> list[Range]:
    """Cut a fit into tasks of at most about a minute and a GiB of points; small fits into a few,
    so that lanes fill. At most `MAX_TASKS`, which are then longer.

    A function of the data's size and the features alone, never of workers or chunks: so the
    result is the same on any cluster and for any chunk size.
    """
    seconds = pass_seconds(n_bags, n_points, features)
    small = min(SMALL_TASKS, int(np.ceil(seconds / SMALL_TASK_SECONDS)))
    even = 2 ** int(np.ceil(np.log2(max(1, small))))  # shares alike among two or four lanes
    n_bytes = 4 * n_points * features.n_dims
    wanted = max(int(np.ceil(seconds / TASK_SECONDS)), -(-n_bytes // TASK_BYTES), even)
    return split_evenly(n_bags, min(MAX_TASKS, max(1, wanted)))


def pass_seconds(n_bags: int, n_points: int, features: FeatureMap) -> float:
    """What a pass takes one core, by the cost model: the right order, not the right number."""
    d, s = features.n_features, features.embedding.n_features
    seconds_a_bag = (
        n_points / max(1, n_bags) * features.embedding.cost.seconds_per_point
        + (d * d + s * d) / FLOPS_A_CORE
    )
    return n_bags * seconds_a_bag
