"""What a pass over bags costs, and how it is cut into tasks: pure functions of numbers.

A plan depends only on the size of the data and the declared cost, never on workers or chunks. So
every machine cuts a pass in the same way. Within a task `run_parts` cuts the work by its shapes.
So the result has the same bits on any number of cores and workers, on one kind of processor.
Nothing here imports Dask, so that specs can declare their cost without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..core.sums import Sums
from ..data.labelled.labelled import ROWS_PER_BLOCK
from ..data.store.plan import Range, split_evenly
from ..data.store.reading import PARTITION_BYTES

# Seconds per product of two float32 numbers in a matrix product, on one core: the right order, not
# the right number.
SECONDS_PER_PRODUCT = 1e-11
SPLIT_EVERY = 16


@dataclass(frozen=True)
class Cost(Sums):
    """What one core and one worker spend on bags; the costs of consecutive steps add up.

    Attributes
    ----------
    seconds_per_point : float
    seconds_per_bag : float
        Besides its points. A plan needs the right order of both, not the right number.
    bytes_per_bag : int
        The most memory that a block of bags takes at once, per bag of it: what is written for
        the bag and what is needed besides, without the bag's own points.
    bytes_per_task : int
        The memory that a task holds however many bags it sees: sums, buffers, scratch per thread.
    """

    seconds_per_point: float = 0.0
    seconds_per_bag: float = 0.0
    bytes_per_bag: int = 0
    bytes_per_task: int = 0

    def seconds(self, n_bags: int, n_points: int) -> float:
        """Return the seconds that so many bags take one core, by the model."""
        points_per_bag = n_points / max(1, n_bags)
        return n_bags * (points_per_bag * self.seconds_per_point + self.seconds_per_bag)

    def bytes(self, n_bags: int) -> int:
        """Return the memory of a task with blocks of up to so many bags, without their points."""
        return self.bytes_per_task + n_bags * self.bytes_per_bag


@dataclass(frozen=True)
class PassLimits:
    """How passes are cut; the same limits on the same data give the same tasks.

    Attributes
    ----------
    task_seconds : float
        Seconds of work on one core in a task: what a lost worker costs, and what evens out
        stragglers.
    task_bytes : int
        Bytes of points, in float32, in a task: half a minute from a slow object store.
    small_task_seconds, small_tasks : float, int
        A pass shorter than some tasks is cut into up to ``small_tasks`` of this length, so that
        all workers have work.
    max_tasks : int
        Beyond it tasks get longer, so that the graph does not grow with the data.
    groups : int
        Least number of groups of tasks whose sums a `CheckpointStore` keeps, so that all workers
        have some.
    split_every : int
        Children of a node in the tree that merges tasks: a wider tree keeps fewer partial results
        alive, a narrower one merges with more parallelism.
    rows_per_block : int
        Bags worked on at a time, where a pass does not say otherwise.
    partition_bytes : int
        Bytes of points that are read at a time; a task holds two partitions, the one it works on
        and the next.
    block_seconds, block_bytes : float, int
        Seconds of work and bytes of memory of a block of a lazy array.
    """

    task_seconds: float = 60.0
    task_bytes: int = 2**30
    small_task_seconds: float = 4.0
    small_tasks: int = 16
    max_tasks: int = 4096
    groups: int = 64
    split_every: int = SPLIT_EVERY
    rows_per_block: int = ROWS_PER_BLOCK
    partition_bytes: int = PARTITION_BYTES
    block_seconds: float = 2.0
    block_bytes: int = 2**26


_limits = [PassLimits()]  # those in force last; of the process, as passes start in any thread


def current_limits() -> PassLimits:
    """Return the limits that a pass started now is cut by."""
    return _limits[-1]


@contextmanager
def pass_limits(**values: float) -> Iterator[PassLimits]:
    """Use other `PassLimits` for the passes that this process starts within the block."""
    _limits.append(replace(current_limits(), **values))  # type: ignore[arg-type]  # integers are
    try:
        yield current_limits()
    finally:
        _limits.pop()


def count_tasks(n_bags: int, n_points: int, n_dims: int, cost: Cost) -> int:
    """Count the tasks of a pass: each of at most about a minute and a GiB of points."""
    limits = current_limits()
    seconds = cost.seconds(n_bags, n_points)
    small = min(limits.small_tasks, math.ceil(seconds / limits.small_task_seconds))
    even = 2 ** math.ceil(math.log2(max(1, small)))  # shares alike among two or four workers
    by_bytes = -(-4 * n_points * n_dims // limits.task_bytes)
    wanted = max(math.ceil(seconds / limits.task_seconds), by_bytes, even)
    return min(limits.max_tasks, max(1, wanted))


def plan_tasks(n_bags: int, n_points: int, n_dims: int, cost: Cost, start: int = 0) -> list[Range]:
    """Return ranges of bags, starting at ``start``, for the tasks of a pass that adds up."""
    ranges = split_evenly(n_bags, count_tasks(n_bags, n_points, n_dims, cost))
    return [(start + a, start + b) for a, b in ranges]


def plan_blocks(n_bags: int, n_points: int, row_bytes: int, cost: Cost) -> list[Range]:
    """Cut bags into equal ranges: the blocks of an array with a row of ``row_bytes`` per bag."""
    limits = current_limits()
    seconds_per_bag = cost.seconds(n_bags, n_points) / max(1, n_bags)
    by_seconds = limits.block_seconds / seconds_per_bag if seconds_per_bag else n_bags
    step = max(1, int(min(by_seconds, limits.block_bytes / row_bytes)))
    return [(start, min(n_bags, start + step)) for start in range(0, n_bags, step)]
