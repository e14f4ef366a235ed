"""Cost model of passes over bags, and rules for cutting passes into tasks.

A plan depends only on the size of the data and the declared cost, never on workers or chunks.
Within a task, `run_parts` cuts the work by its shapes. Results therefore have the same bits on any
number of cores and workers, on one kind of processor. Nothing here imports Dask, so that specs can
declare their cost without it.
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

# Seconds per product of two float32 numbers in a matrix product, on one core; order of magnitude.
SECONDS_PER_PRODUCT = 1e-11
SPLIT_EVERY = 16


@dataclass(frozen=True)
class Cost(Sums):
    """Time and memory that one core and one worker spend on bags; costs of steps add up.

    Attributes
    ----------
    seconds_per_point, seconds_per_bag : float
        Time per point, and per bag without its points. Orders of magnitude suffice for a plan.
    bytes_per_bag : int
        Peak memory of a block of bags, per bag: its results and temporary arrays, without the bag's
        own points.
    bytes_per_task : int
        Memory of a task that does not depend on the number of bags: sums, buffers, scratch space
        per thread.
    """

    seconds_per_point: float = 0.0
    seconds_per_bag: float = 0.0
    bytes_per_bag: int = 0
    bytes_per_task: int = 0

    def seconds(self, n_bags: int, n_points: int) -> float:
        """Return the estimated seconds of one core for so many points and bags."""
        points_per_bag = n_points / max(1, n_bags)
        return n_bags * (points_per_bag * self.seconds_per_point + self.seconds_per_bag)

    def bytes(self, n_bags: int) -> int:
        """Return the memory of a task with blocks of up to so many bags, without their points."""
        return self.bytes_per_task + n_bags * self.bytes_per_bag


@dataclass(frozen=True)
class PassLimits:
    """Limits by which passes are cut; equal limits on equal data give equal tasks.

    Attributes
    ----------
    task_seconds : float
        Seconds of work on one core in a task. This is the loss if a worker dies, and it limits the
        wait for the last task.
    task_bytes : int
        Bytes of points of a task, in float32: half a minute of reading from a slow object store.
    small_task_seconds, small_tasks : float, int
        Length and largest number of the tasks of a short pass, which is cut finer so that all
        workers have work.
    max_tasks : int
        Largest number of tasks. Beyond it tasks get longer, so that the graph does not grow with
        the data.
    groups : int
        Smallest number of groups of tasks whose sums a `CheckpointStore` keeps, so that every
        worker has groups.
    split_every : int
        Children of a node in the tree that merges tasks: a wider tree keeps fewer partial results
        alive, a narrower one merges with more parallelism.
    rows_per_block : int
        Number of bags that are processed at a time, unless a pass declares another number.
    partition_bytes : int
        Bytes of points that are read at a time. A task holds two partitions: the current one and
        the next.
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


_limits = [PassLimits()]  # the current limits are last; shared by all threads of the process


def current_limits() -> PassLimits:
    """Return the limits for passes that are started now."""
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
    even: int = 2 ** math.ceil(math.log2(max(1, small)))  # so that 2 or 4 workers get equal numbers
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
