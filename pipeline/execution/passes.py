"""`run_pass`: the only loop over batches of bags, here or on the open cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ..bags.plan import Range
from .costs import Cost, current_limits, plan_tasks
from .kept import Keeper
from .progress import Progress, Report
from .tasks import map_reduce, map_tasks

B_contra = TypeVar("B_contra", contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Source(Protocol):
    """What a pass goes over: `LabelledBags`, or rows that were made of them."""

    @property
    def start(self) -> int: ...
    @property
    def n_bags(self) -> int: ...
    @property
    def n_points(self) -> int: ...
    @property
    def n_dims(self) -> int: ...
    @property
    def in_memory(self) -> bool:
        """Whether its data lie in this process, where the pass has to run then."""
        ...

    def batches(
        self, start: int, stop: int, *, rows_per_block: int, max_bytes: int
    ) -> Iterator[Any]:
        """Batches in order; ``batch.stop`` is the position after the last bag that is done and
        ``batch.index`` the positions of its bags."""
        ...

    def naming(self, index: Any) -> AbstractContextManager[None]:
        """Re-raise refusals of bags by their positions."""
        ...


class Collector(Protocol[B_contra, R_co]):
    """The sums of one task: batches go in, one result comes out."""

    def add(self, batch: B_contra) -> None: ...
    def finish(self) -> R_co: ...


@dataclass(frozen=True)
class Reduction(Generic[R]):
    """A pass declared: what a batch gives, how results combine, what it costs.

    Attributes
    ----------
    collector : callable
        Makes the `Collector` of a task; picklable and pure, as is ``merge``.
    merge : callable
        (R, R) to R, associative up to rounding; leaves its arguments as they are.
    cost : Cost
    rows_per_block : int
        Bags in a batch, at most.
    """

    collector: Callable[[], Collector[Any, R]]
    merge: Callable[[R, R], R]
    cost: Cost
    rows_per_block: int = 4096


def run_pass(
    source: Source,
    reduction: Reduction[R],
    *,
    ranges: Sequence[Range] | None = None,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
) -> R:
    """The merged result of all tasks, on the open cluster or in this process.

    Parameters
    ----------
    ranges : sequence of (start, stop), optional
        Of the tasks; default what `plan_ranges` says.
    progress : callable (bags done, bags in all), optional
    keeper : Keeper, optional
        Keeps results of groups of tasks, and gives them to the same pass started again.
    """
    tasks = plan_ranges(source, reduction.cost) if ranges is None else list(ranges)
    return map_reduce(
        RangeTask(source, reduction, current_limits().partition_bytes),
        tasks,
        reduction.merge,
        sizes=[stop - start for start, stop in tasks],
        progress=progress,
        here=source.in_memory,
        keeper=keeper,
    )


def iter_pass(
    source: Source,
    reduction: Reduction[R],
    *,
    ranges: Sequence[Range],
    progress: Progress | None = None,
) -> Iterator[R]:
    """The result of each task as it is done, in any order; results should be small."""
    task = RangeTask(source, reduction, current_limits().partition_bytes)
    sizes = [stop - start for start, stop in ranges]
    for _, result in map_tasks(task, list(ranges), sizes=sizes, progress=progress):
        yield result


def plan_ranges(source: Source, cost: Cost) -> list[Range]:
    """The ranges of bags, as positions in the source, that a pass of this cost is cut into."""
    return plan_tasks(source.n_bags, source.n_points, source.n_dims, cost, source.start)


@dataclass(frozen=True)
class RangeTask(Generic[R]):
    """The result of a range of a source's bags: a pure function of its fields and the range."""

    source: Source
    reduction: Reduction[R]
    max_bytes: int

    def __call__(self, bag_range: Range, report: Report) -> R:
        start, stop = bag_range
        sums = self.reduction.collector()
        for batch in self.source.batches(
            start, stop, rows_per_block=self.reduction.rows_per_block, max_bytes=self.max_bytes
        ):
            with self.source.naming(batch.index):
                sums.add(batch)
            report(batch.stop - start)
        return sums.finish()


@dataclass
class Folded(Generic[R]):
    """A `Collector` that merges what a function makes of each batch."""

    per_batch: Callable[[Any], R]
    merge: Callable[[R, R], R]
    total: R

    def add(self, batch: Any) -> None:
        if len(batch):
            self.total = self.merge(self.total, self.per_batch(batch))

    def finish(self) -> R:
        return self.total
