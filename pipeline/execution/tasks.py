"""Run tasks in this process or on a cluster, and merge their results in a fixed tree.

The tree depends only on the number of tasks and ``split_every``, so the result is the same on any
number of workers. A node merges its children in order as they arrive. The tree is wide but shallow,
so only one partial result per level, and those in flight, exist at a time.

A `CheckpointStore` keeps merged results, and a run that is started again loads them. It stores one
result per group of consecutive tasks. A worker does the tasks of a group one after the other, and
stores the result as soon as the last one is merged. So if a worker, the scheduler or the driver is
lost, each worker loses at most the group it is working on. The tree over the groups is the same,
whether a group was computed or loaded.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..core.errors import ParameterError
from .checkpoint_stores import CheckpointStore
from .costs import current_limits
from .lazy_dask import dask, distributed
from .memory import memory_limit
from .notebook import watched
from .progress import (
    Progress,
    ProgressTally,
    Report,
    listening,
    log_finished,
    log_said,
    worker_report,
)
from .waiting import each_gathered, gathered
from .worker_threads import TURN, hearing_compilers, kernel_threads, task_threads

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from distributed import Client

_T = TypeVar("_T")
_R = TypeVar("_R")

_Result = Any
"""Result of a task, or of the root of a tree."""

RETRIES = 2  # of a failed task: workers come and go; errors of bagbasis are raised at once
LARGE_GRAPH = {"distributed.admin.large-graph-warning-threshold": "1 GiB"}


def current_client() -> Client | None:
    """Return the client that is open in this process, if any.

    A task has none: a pass within it runs in its process. The tasks of a cluster would wait for the
    place of the task that waits for them.
    """
    if "distributed" not in sys.modules or TURN.is_held_here():
        return None  # whoever opens a client imports it
    try:
        return distributed.get_client()
    except ValueError:
        return None


def worker_memory(here: bool = False) -> int:
    """Return the memory of this process or, on a cluster, of its smallest worker, in bytes.

    Limits of containers and of the process are respected. Workers without a limit are left out,
    because the memory of their machine is not known here.
    """
    client = None if here else current_client()
    if client is None:
        return memory_limit()
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [int(worker["memory_limit"]) for worker in workers if worker["memory_limit"]]
    return min(limits, default=sys.maxsize)


def map_reduce(
    function: Callable[[_T, Report], _R],
    tasks: Sequence[_T],
    merge: Callable[[_R, _R], _R],
    *,
    sizes: Sequence[int],
    progress: Progress | None = None,
    split_every: int | None = None,
    here: bool = False,
    checkpoint_store: CheckpointStore[_R] | None = None,
    preferred_workers: Sequence[str] = (),
) -> _R:
    """Merge ``function(task, report)`` over all tasks.

    Parameters
    ----------
    function : callable
        Pure function. It calls ``report(done)`` with the number of units of the task done so far.
    tasks : sequence
        Arguments of the function. They should be small, because they travel in the graph.
    merge : callable
        Pure function that merges two results, associative up to rounding.
    sizes : sequence of int
        Number of units of work in each task, for the progress.
    split_every : int
        Number of children of a node, at least two. Default: as in the current `PassLimits`.
    here : bool
        Whether to run in this process even if a cluster is connected, for data in its memory.
    checkpoint_store : CheckpointStore, optional
        Store for the results of groups of tasks, from which the same function and tasks continue
        after a restart. The groups are then the leaves of the tree.
    preferred_workers : sequence of str, optional
        Preferred worker of each task, see `WorkerAffinity`. Ignored with checkpoints.

    Raises
    ------
    ClusterError
        If the scheduler is gone, or workers died while running a task.
    """
    if split_every is None:
        split_every = current_limits().split_every
    if split_every < 2:
        raise ParameterError(f"split_every is {split_every}; expected at least 2")
    if checkpoint_store is not None:
        groups = _groups_of(tasks, sizes, checkpoint_store.every)
        return map_reduce(
            _Kept(function, merge, checkpoint_store),
            groups,
            merge,
            sizes=[sum(group.sizes) for group in groups],
            progress=progress,
            split_every=split_every,
            here=here,
        )
    client = None if here else current_client()
    tally = ProgressTally(sizes, watched(progress))
    if client is None:
        return fold_results(_run_here(function, tasks, tally), merge, split_every)
    with listening(client, tally) as topic:
        graph = task_graph(function, tasks, merge, topic, split_every, preferred_workers)
        merged: _R = _result(client, graph, tally)
    for i in range(len(tasks)):
        tally.finish(i)
    return merged


def map_tasks(
    function: Callable[[_T, Report], _R],
    tasks: Sequence[_T],
    *,
    sizes: Sequence[int],
    progress: Progress | None = None,
) -> Iterator[tuple[int, _R]]:
    """Yield ``(task index, result)`` as tasks finish; results should be small."""
    client = current_client()
    tally = ProgressTally(sizes, watched(progress))
    if client is None:
        yield from enumerate(_run_here(function, tasks, tally))
        return
    with listening(client, tally) as topic:
        leaves = delayed_leaves(function, tasks, topic)
        futures = _submitted(client, leaves)
        index = {future.key: i for i, future in enumerate(futures)}
        try:
            for future in each_gathered(futures, tally.warn):
                i = index[future.key]
                value = gathered(future)
                tally.finish(i)
                future.release()
                yield i, value
        finally:
            client.cancel(futures)


def task_graph(
    function: Callable[[_T, Report], _R],
    tasks: Sequence[_T],
    merge: Callable[[_R, _R], _R],
    topic: str,
    split_every: int,
    preferred_workers: Sequence[str] = (),
) -> Delayed:
    """Return the root of the graph that goes to a scheduler; ``topic`` is that of the progress."""
    leaves = delayed_leaves(function, tasks, topic, preferred_workers)
    return merge_tree(leaves, dask.delayed(merge, pure=False), split_every)


def _run_here(
    function: Callable[[_T, Report], _R], tasks: Sequence[_T], tally: ProgressTally
) -> Iterator[_R]:
    for i, task in enumerate(tasks):
        with kernel_threads(), hearing_compilers(tally.say) if tally.can_say else nullcontext():
            result = function(task, lambda done, i=i: tally.update(i, done))  # type: ignore[misc]
        tally.finish(i)
        yield result


def _run_in_worker(
    function: Callable[[_T, Report], _R], task: _Plain[_T], topic: str, index: int
) -> _R:
    with task_threads(), hearing_compilers(lambda text: log_said(topic, index, text)):
        result = function(task.value, worker_report(topic, index))
    log_finished(topic, index)
    return result


@dataclass(frozen=True)
class _Group(Generic[_T]):
    """A group of consecutive tasks, with their units of work."""

    index: int
    tasks: tuple[_T, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class _Kept(Generic[_T, _R]):
    """Task that loads a group's result, or computes and stores it."""

    function: Callable[[_T, Report], _R]
    merge: Callable[[_R, _R], _R]
    checkpoint_store: CheckpointStore[_R]

    def __call__(self, group: _Group[_T], report: Report) -> _R:
        value = self.checkpoint_store.load(group.index)
        if value is None:
            value = self._done(group, report)
            self.checkpoint_store.save(group.index, value)
        return value

    def _done(self, group: _Group[_T], report: Report) -> _R:
        values: list[_R] = []
        before = 0
        for task, size in zip(group.tasks, group.sizes, strict=True):
            result = self.function(task, lambda n, before=before: report(before + n))  # type: ignore[misc]
            values = [self.merge(values[0], result) if values else result]
            before += size
            report(before)
        return values[0]


def _groups_of(tasks: Sequence[_T], sizes: Sequence[int], every: int) -> list[_Group[_T]]:
    """Return the groups, in order."""
    return [
        _Group(index, tuple(tasks[start : start + every]), tuple(sizes[start : start + every]))
        for index, start in enumerate(range(0, len(tasks), every))
    ]


class _Plain(Generic[_T]):
    """An argument that Dask does not look into, and that is not a node of the graph.

    The scheduler queues tasks without dependencies of their own and gives them to workers in
    their order, also to workers that join late. It assigns all other tasks immediately: a worker
    that joins later would then take tasks from anywhere in the tree, and finished sums would wait
    for their neighbours.
    """

    def __init__(self, value: _T) -> None:
        self.value = value


def delayed_leaves(
    function: Callable[[_T, Report], Any],
    tasks: Sequence[_T],
    topic: str,
    preferred_workers: Sequence[str] = (),
) -> list[Delayed]:
    """Make one leaf per task; leaves share the function's node, which each worker gets once.

    Priorities follow the order of the tasks: Dask's own order of a wide tree may start anywhere.
    """
    run = dask.delayed(_run_in_worker, pure=False)
    token = uuid.uuid4().hex
    name = _name_of(function)
    shared = dask.delayed(function, traverse=False, pure=False, name=f"function-{token}")
    leaves = []
    for i, task in enumerate(tasks):
        preferred = (
            {"workers": [preferred_workers[i]], "allow_other_workers": True}
            if preferred_workers
            else {}
        )
        with dask.annotate(priority=-i, **preferred):
            leaves.append(run(shared, _Plain(task), topic, i, dask_key_name=f"{name}-{token}-{i}"))
    return leaves


def merge_tree(
    leaves: Sequence[Delayed], merging: Callable[..., Delayed], split_every: int
) -> Delayed:
    """Return the root; each merge goes before the leaves that come after its own."""
    level, last = list(leaves), list(range(len(leaves)))
    while len(level) > 1:
        starts = range(0, len(level), split_every)
        chains = [slice(start, start + split_every) for start in starts]
        level = [_chain(merging, level[chain], last[chain]) for chain in chains]
        last = [last[chain][-1] for chain in chains]
    return level[0]


def _name_of(function: object) -> str:
    """Return the name of a function's tasks on the dashboard."""
    function = getattr(function, "function", function)
    return str(getattr(function, "__name__", type(function).__name__))


def _chain(
    merging: Callable[..., Delayed], children: Sequence[Delayed], last: Sequence[int]
) -> Delayed:
    node = children[0]
    for child, leaf in zip(children[1:], last[1:], strict=True):
        with dask.annotate(priority=-leaf):
            node = merging(node, child)
    return node


def fold_results(results: Iterator[_R], merge: Callable[[_R, _R], _R], split_every: int) -> _R:
    """Merge results that come in order, in the same tree as on a cluster."""
    nodes: list[list[_R]] = []  # a level's open node: its fold so far, and …
    counts: list[int] = []  # … how many children it has
    for result in results:
        value = result
        for level in range(len(nodes) + 1):
            if level == len(nodes):
                nodes.append([])
                counts.append(0)
            value = merge(nodes[level].pop(), value) if nodes[level] else value
            counts[level] += 1
            if counts[level] < split_every:
                nodes[level] = [value]
                break
            counts[level] = 0
    carry: list[_R] = []
    for node in nodes:
        if node:
            carry = [merge(node[0], carry[0])] if carry else node
    return carry[0]


def _result(client: Client, root: Delayed, tally: ProgressTally) -> Any:
    future = _submitted(client, root)
    try:
        return gathered(future, tally.warn)
    finally:
        client.cancel(future)


def _submitted(client: Client, graph: Delayed | list[Delayed]) -> Any:
    """Submit a graph, or several graphs, and return the futures.

    Dask's warning about large graphs is suppressed: a graph holds a plan with its landmarks, which
    can take tens of MB.
    """
    with dask.config.set(LARGE_GRAPH):
        return client.compute(graph, retries=RETRIES, optimize_graph=False)
