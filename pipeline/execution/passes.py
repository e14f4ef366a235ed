"""`run_pass`: the only loop over batches of bags, here or on the open cluster."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..core.errors import ParameterError
from ..data.labelled.labelled import Batch, LabelledBags, with_missing
from ..data.store.plan import Range
from .checkpoint_stores import CheckpointStore
from .costs import Cost, PassLimits, current_limits, pass_limits, plan_blocks, plan_tasks
from .lazy_dask import dask, dask_array
from .progress import Progress, Report
from .tasks import map_reduce, map_tasks, worker_memory
from .worker_threads import task_threads

if TYPE_CHECKING:
    from dask.array import Array

Index = Sequence[int] | NDArray[np.int64]
GIB = 2**30
FEWER_FEATURES = "take fewer features, or an embedding of fewer coefficients"
# Every worker has at least this much, so small passes need not ask Distributed.
AVAILABLE_BYTES = 2**28
PARTITIONS_HELD = 2  # the partition that is processed, and the next

B_contra = TypeVar("B_contra", contravariant=True)
_R = TypeVar("_R")
R_co = TypeVar("R_co", covariant=True)


class Source(Protocol):
    """Data of a pass: `LabelledBags`, or rows that were made from them."""

    @property
    def start(self) -> int:
        """Position of the first bag."""
        ...

    @property
    def n_bags(self) -> int:
        """Bags of the pass."""
        ...

    @property
    def n_points(self) -> int:
        """Points of the pass, from which it is planned."""
        ...

    @property
    def n_dims(self) -> int:
        """Coordinates of a point."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether the data are in this process, so that the pass has to run here."""
        ...

    def batches(
        self, start: int, stop: int, *, rows_per_block: int, max_bytes: int
    ) -> Iterator[Any]:
        """Yield batches in order.

        ``batch.stop`` is the position after the last finished bag. ``batch.index`` are the
        positions of the batch's bags.
        """
        ...

    def naming(self, index: Index) -> AbstractContextManager[None]:
        """Re-raise errors about bags, with the bags' positions."""
        ...


class RowsOfBags:
    """Base of sources that make their rows from `LabelledBags`, one row per bag."""

    bags: LabelledBags

    @property
    def start(self) -> int:
        """Position of the first bag."""
        return self.bags.start

    @property
    def n_bags(self) -> int:
        """Bags of the pass, labelled or not."""
        return self.bags.n_bags

    @property
    def n_points(self) -> int:
        """Points of the pass."""
        return self.bags.n_points

    @property
    def n_dims(self) -> int:
        """Coordinates of a point."""
        return self.bags.n_dims

    @property
    def in_memory(self) -> bool:
        """Whether the bags lie in this process."""
        return self.bags.in_memory

    def naming(self, index: Index) -> AbstractContextManager[None]:
        """Re-raise a `BagError` with the bag's position in the data and the store's URL."""
        return self.bags.naming(index)


class Collector(Protocol[B_contra, R_co]):
    """Accumulator of one task: it takes batches and returns one result."""

    def add(self, batch: B_contra) -> None:
        """Add a batch."""
        ...

    def finish(self) -> R_co:
        """Return the result of all batches."""
        ...


@dataclass(frozen=True)
class Reduction(Generic[_R]):
    """Declaration of a pass: its collector, how results are merged, and its cost.

    Attributes
    ----------
    collector : callable
        Function that makes the `Collector` of a task. It is picklable and pure, like ``merge``.
    merge : callable
        Function (R, R) → R, associative up to rounding. It does not change its arguments.
    cost : Cost
    rows_per_block : int, optional
        Largest number of bags in a batch, if it is smaller than in the current `PassLimits`.
    name : str
        Name of the tasks on the dashboard.
    """

    collector: Callable[[], Collector[Any, _R]]
    merge: Callable[[_R, _R], _R]
    cost: Cost
    rows_per_block: int | None = None
    name: str = "pass"


def run_pass(
    source: Source,
    reduction: Reduction[_R],
    *,
    ranges: Sequence[Range] | None = None,
    progress: Progress | None = None,
    checkpoint_store: CheckpointStore[_R] | None = None,
    preferred_workers: Sequence[str] = (),
    advice: str = FEWER_FEATURES,
) -> _R:
    """Run all tasks, on the open cluster or in this process, and merge their results.

    Parameters
    ----------
    ranges : sequence of (start, stop), optional
        Ranges of the tasks; by default those that `plan_ranges` returns.
    progress : callable (bags done, bags in all), optional
    checkpoint_store : CheckpointStore, optional
        Store for the results of groups of tasks, from which the same pass continues after a
        restart.
    preferred_workers : sequence of str, optional
        Workers that the tasks should run on, see `WorkerAffinity`.
    advice : str
        Advice if the memory of a task is not available.
    """
    tasks = plan_ranges(source, reduction.cost) if ranges is None else list(ranges)
    return map_reduce(
        RangeTask.of(source, reduction, tasks, advice),
        tasks,
        reduction.merge,
        sizes=[stop - start for start, stop in tasks],
        progress=progress,
        here=source.in_memory,
        checkpoint_store=checkpoint_store,
        preferred_workers=preferred_workers,
    )


def iter_pass(
    source: Source,
    reduction: Reduction[_R],
    *,
    ranges: Sequence[Range],
    progress: Progress | None = None,
) -> Iterator[_R]:
    """Yield the result of each task when it finishes, in any order; results should be small."""
    task = RangeTask.of(source, reduction, ranges)
    sizes = [stop - start for start, stop in ranges]
    for _, result in map_tasks(task, list(ranges), sizes=sizes, progress=progress):
        yield result


def plan_ranges(source: Source, cost: Cost) -> list[Range]:
    """Return the ranges of bags, as positions in the source, of the tasks of a pass."""
    return plan_tasks(source.n_bags, source.n_points, source.n_dims, cost, source.start)


@dataclass(frozen=True)
class RangeTask(Generic[_R]):
    """A task that computes the result of a range of bags, as a pure function."""

    source: Source
    reduction: Reduction[_R]
    rows_per_block: int
    limits: PassLimits

    @classmethod
    def of(
        cls,
        source: Source,
        reduction: Reduction[_R],
        ranges: Sequence[Range],
        advice: str = FEWER_FEATURES,
    ) -> RangeTask[_R]:
        """Make the task with the current limits, which travel with it to workers.

        Passes within the task use the same limits, and are thus cut alike wherever the task runs.
        ``ranges`` are all ranges of the pass; no batch has more bags than the longest range.

        Raises
        ------
        ParameterError
            If a worker has less memory than the pass declares.
        """
        limits = current_limits()
        rows = min(reduction.rows_per_block or limits.rows_per_block, limits.rows_per_block)
        longest = max((stop - start for start, stop in ranges), default=0)
        needed = reduction.cost.bytes(min(rows, longest))
        needed += 0 if source.in_memory else PARTITIONS_HELD * limits.partition_bytes
        check_memory("a task of this pass", needed, advice, source.in_memory)
        return cls(source, reduction, rows, limits)

    @property
    def __name__(self) -> str:
        """Name of the task on the dashboard."""
        return self.reduction.name

    def __call__(self, bag_range: Range, report: Report) -> _R:
        """Process the batches of a range, and report the number of bags done."""
        start, stop = bag_range
        sums = self.reduction.collector()
        rows, max_bytes = self.rows_per_block, self.limits.partition_bytes
        with pass_limits(**asdict(self.limits)):
            for batch in self.source.batches(start, stop, rows_per_block=rows, max_bytes=max_bytes):
                with self.source.naming(batch.index):
                    sums.add(batch)
                report(batch.stop - start)
            return sums.finish()


def check_memory(what: str, needed: int, advice: str, here: bool = True) -> None:
    """Raise an error if a computation needs more memory than there is, before it begins.

    Parameters
    ----------
    what : str
        Name of the computation in the message.
    needed : int
        Number of bytes that are needed.
    advice : str
        Advice, for the message.
    here : bool
        Whether this process needs the memory, and not a worker of the open cluster.

    Raises
    ------
    ParameterError
        If there is too little memory. The message has both numbers and the advice.
    """
    if needed <= AVAILABLE_BYTES:
        return
    there = worker_memory(here)
    if needed > there:
        numbers = f"needs {needed / GIB:.3g} GiB and has {there / GIB:.3g} GiB"
        raise ParameterError(f"{what} {numbers}: {advice}, or a machine with more memory")


@dataclass
class Folded(Generic[_R]):
    """A `Collector` that merges the results of a function of each batch."""

    per_batch: Callable[[Batch], _R]
    merge: Callable[[_R, _R], _R]
    total: _R

    def add(self, batch: Batch) -> None:
        """Merge the result of a batch, unless the batch is empty."""
        if len(batch):
            self.total = self.merge(self.total, self.per_batch(batch))

    def finish(self) -> _R:
        """Return the merged result."""
        return self.total


class InPlace(Generic[_R]):
    """A `Collector` of sums that are too large for a copy per batch: they are changed in place."""

    def __init__(self, zeros: Callable[[], _R], add_batch: Callable[[_R, Batch], None]) -> None:
        self._total, self._add_batch = zeros(), add_batch

    def add(self, batch: Batch) -> None:
        """Add a batch, unless it is empty."""
        if len(batch):
            self._add_batch(self._total, batch)

    def finish(self) -> _R:
        """Return the sums."""
        return self._total


def in_place_reduction(
    name: str, zeros: Callable[[], _R], add_batch: Callable[[_R, Batch], None], cost: Cost
) -> Reduction[_R]:
    """Declare a pass that adds each batch to sums, in place; ``zeros`` makes those of a task."""
    return Reduction(partial(InPlace, zeros, add_batch), operator.add, cost, name=name)


def batch_reduction(
    name: str,
    per_batch: Callable[[Batch], _R | None],
    cost: Cost,
    merge: Callable[[_R, _R], _R] = operator.add,
) -> Reduction[_R | None]:
    """Declare a pass that merges the results of a function of each batch.

    None is the result of a batch without bags that count, and of a pass without such batches.
    """
    merge_some = partial(_merge_some, merge)
    return Reduction(partial(Folded, per_batch, merge_some, None), merge_some, cost, name=name)


def _merge_some(merge: Callable[[_R, _R], _R], first: _R | None, second: _R | None) -> _R | None:
    if first is None or second is None:
        return second if first is None else first
    return merge(first, second)


@dataclass
class StackedRows(Generic[_R]):
    """A `Collector` that stacks the rows that a function makes of each batch.

    ``join`` concatenates rows. ``no_rows`` are the rows of an empty batch, if the function does not
    accept one.
    """

    per_batch: Callable[[Any], _R]
    no_rows: _R | None = None
    join: Callable[[Sequence[_R]], _R] = np.concatenate  # type: ignore[assignment]  # of arrays
    parts: list[_R] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Append the rows of a batch."""
        if self.no_rows is None or len(batch):
            self.parts.append(self.per_batch(batch))
        elif not self.parts:
            self.parts.append(self.no_rows)

    def finish(self) -> _R:
        """Return all rows."""
        return self.parts[0] if len(self.parts) == 1 else self.join(self.parts)


def rows_of(
    name: str,
    per_batch: Callable[[Any], NDArray[Any]],
    cost: Cost,
    n_columns: int | None = None,
) -> Reduction[NDArray[Any]]:
    """Declare a pass that keeps a row per bag, in order.

    ``n_columns`` is the number of columns, if the function does not accept an empty batch.
    """
    no_rows = None if n_columns is None else np.empty((0, n_columns))
    return Reduction(partial(StackedRows, per_batch, no_rows), _stack, cost, name=name)


def lazy_pass(
    source: LabelledBags,
    rows: Reduction[NDArray[Any]],
    ranges: Sequence[Range],
    tail: tuple[int, ...],
    dtype: DTypeLike,
) -> Array:
    """Return a dask.array with a row of shape ``tail`` per bag, and a block per range.

    Removed bags have the rows of `with_missing`. All blocks share one node of the graph, which is
    the task. Arrays of equal tasks have equal names, so that Dask computes them once.
    """
    task = RangeTask.of(source, rows, ranges)
    token = _token(task, list(ranges), tail, np.dtype(dtype).str)
    shared = dask.delayed(task, traverse=False, pure=False, name=f"rows-{token}")
    compute = dask.delayed(_rows_in_task, pure=True)
    blocks = [
        dask_array.from_delayed(
            compute(shared, start, stop, dask_key_name=f"{rows.name}-{token}-{i}"),
            shape=(stop - start, *tail),
            dtype=dtype,
        )
        for i, (start, stop) in enumerate(ranges)
    ]
    if not blocks:
        blocks = [dask_array.zeros((0, *tail), dtype=dtype)]
    array: Array = dask_array.concatenate(blocks, axis=0)
    return array


def lazy_features(
    source: LabelledBags,
    per_batch: Callable[[Batch], NDArray[Any]],
    cost: Cost,
    n_features: int,
    dtype: DTypeLike,
) -> Array:
    """Return the features that a function makes of each batch, a row per bag, as `lazy_pass`."""
    row_bytes = n_features * np.dtype(dtype).itemsize
    ranges = plan_blocks(source.n_bags, source.n_points, row_bytes, cost)
    return lazy_pass(source, rows_of("features", per_batch, cost), ranges, (n_features,), dtype)


def _token(*what: object) -> str:
    """Return a name that depends only on the values; a new name if they cannot be compared."""
    try:
        return str(dask.base.tokenize(*what, ensure_deterministic=True))
    except RuntimeError:  # Dask's TokenizationError
        return uuid.uuid4().hex


def _rows_in_task(task: RangeTask[NDArray[Any]], start: int, stop: int) -> NDArray[Any]:
    with task_threads():
        rows = task((start, stop), _unheard)
    assert isinstance(task.source, LabelledBags)
    return with_missing(rows, task.source.present([(start, stop)]))


def _unheard(done: int) -> None:
    """Ignore the progress of one block of an array."""


def _stack(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([a, b])
