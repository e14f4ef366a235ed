"""`generate`: a dataset's bags, any number of them, straight into a store and in parallel.

Rows of points are dealt out to tasks in whole shards of the store, so that no two tasks write
one object; a block of bags that lies across a border is made by both. Which bag a row belongs to
is known beforehand from the blocks' sizes. Waves of tasks are committed one after the other, so
that a killed run goes on at its last wave. The bags depend on the dataset alone: not on the
cluster, the shards or the waves. Bags with responses, and those of a store kept by Icechunk, come
as whole blocks, see `generate_blocks`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import BagStore
from ..bags.append import AppendSession
from ..bags.bags import offsets_of
from ..errors import InterruptedStoreError, ParameterError, StoreError
from ..execution import Progress, Report, current_client, lane, map_tasks
from ..storage.urls import is_transactional, normalize_url
from ..storage.zarr_stores import exists
from .base import Dataset, ResponseDataset
from .generate_blocks import append_blocks

WAVE_TASKS = 32  # at least: between two commits
TASKS_A_WORKER = 8  # at least: workers wait for the slowest task of a wave
WAVE_BAGS = 2**22  # at most, about: their sizes and targets are held in this process
TASK_VALUES = 2**22  # coordinates, at least: two of the largest blocks, for one is made twice

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RowsTask:
    """Rows ``start:stop`` of the stored points, for one task to write.

    Attributes
    ----------
    blocks : tuple of (index, row)
        The blocks of bags that overlap the rows, and the row at which each begins.
    """

    dataset: Dataset
    store: BagStore
    start: int
    stop: int
    blocks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Wave:
    """Bags between two commits.

    Attributes
    ----------
    sizes : int64, shape (n_bags,)
    blocks : list of (index, row)
        All blocks of the wave, and the row of the stored points at which each begins.
    """

    sizes: NDArray[np.int64]
    blocks: list[tuple[int, int]]


def generate(
    dataset: Dataset,
    url: str | os.PathLike[str],
    n_bags: int | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    chunk_points: int | None = None,
) -> BagStore:
    """Write the first ``n_bags`` bags of a dataset into a store, on the cluster if one is open.

    Run again after it was killed, it goes on behind the last wave it committed; a store that is
    complete is left as it is. The store remembers the dataset in ``meta.source``. A task holds
    the points of one stored object, 32 MiB, and a block of bags for each core.

    Parameters
    ----------
    dataset : Dataset
    url : str or path
        A local path or any URL fsspec knows.
    n_bags : int, optional
        Default all bags of a finite dataset.
    overwrite : bool
        Replace what is there, even the unfinished store of the same dataset.
    progress : callable, optional
        Called with (bags done, bags in all).
    chunk_points : int, optional
        As in `BagStore.create`.

    Raises
    ------
    ParameterError
        ``n_bags`` is below 1, more than the dataset has, or missing for an endless one.
    StoreError
        Something else is stored at the URL, or it can not be written.
    """
    n_bags = _checked_n_bags(dataset, n_bags)
    source = {"dataset": dataset.name, "params": dataset.params, "n_bags": n_bags}
    store = _open_or_create(dataset, normalize_url(url), source, chunk_points, overwrite)
    session = partial(_session, store, source, dataset.block_bags)
    if isinstance(dataset, ResponseDataset) or is_transactional(store.url):
        append_blocks(dataset, store, n_bags, session, progress)
    while store.n_bags < n_bags:
        with session() as writer:
            _write_wave(dataset, store, writer, n_bags, progress)
    return store


@contextmanager
def _session(store: BagStore, source: dict[str, Any], block_bags: int) -> Iterator[AppendSession]:
    """A session behind bags of the same source, committed when it ends."""
    with store.appending(source) as session:
        _check_ours(store, source, block_bags)
        yield session
    logger.info("%s: %d of %d bags", store.url, store.n_bags, source["n_bags"])


def _checked_n_bags(dataset: Dataset, n_bags: int | None) -> int:
    there_are = dataset.n_bags
    if n_bags is None:
        if there_are is None:
            raise ParameterError(f"n_bags is missing: {dataset.name} has no end")
        return there_are
    if n_bags < 1 or (there_are is not None and n_bags > there_are):
        most = "" if there_are is None else f" and at most the {there_are} of {dataset.name}"
        raise ParameterError(f"n_bags is {n_bags}; expected at least 1{most}")
    return int(n_bags)


def _open_or_create(
    dataset: Dataset, url: str, source: dict[str, Any], chunk_points: int | None, overwrite: bool
) -> BagStore:
    store = None if overwrite else _existing(url)
    if store is not None and store.n_bags:
        _check_ours(store, source, dataset.block_bags)
        if chunk_points not in (None, store.chunk_points):
            raise StoreError(
                f"{url}: has chunks of {store.chunk_points} points, not {chunk_points}; "
                "leave chunk_points out or pass overwrite=True"
            )
        return store
    return BagStore.create(
        url,
        dataset.n_dims,
        dataset.target_names,
        dataset.box,
        response_dims=dataset.response_dims,
        response_box=dataset.response_box,
        class_names=dataset.class_names,
        chunk_points=chunk_points,
        overwrite=overwrite,
    )


def _existing(url: str) -> BagStore | None:
    """The store at the URL; None where there is none, or one whose making was killed."""
    if not exists(url):
        return None
    try:
        return BagStore.open(url)
    except InterruptedStoreError:
        return None


def _check_ours(store: BagStore, source: dict[str, Any], block_bags: int) -> None:
    """A store without bags, or one that `generate` filled from the same source."""
    if store.n_bags == 0:
        return
    if store.meta.source != source:
        raise StoreError(
            f"{store.url}: holds other bags ({store.meta.source or 'of unknown source'}); choose "
            "another URL or pass overwrite=True"
        )
    if store.n_bags != source["n_bags"] and store.n_bags % block_bags:
        raise StoreError(
            f"{store.url}: bags were appended that `generate` did not make; pass overwrite=True"
        )


def _write_wave(
    dataset: Dataset,
    store: BagStore,
    session: AppendSession,
    n_bags: int,
    progress: Progress | None,
) -> None:
    array = store.array("points")
    shard = (array.shards or array.chunks)[0]
    span = shard * -(-TASK_VALUES // (shard * dataset.n_dims))
    wave = plan_wave(dataset, store.n_bags, n_bags, store.n_points, span * _wave_tasks())
    offsets = store.n_points + offsets_of(wave.sizes)
    session.reserve_points(int(wave.sizes.sum()))
    tasks = plan_tasks(dataset, store, wave.blocks, int(offsets[-1]), span)
    starting = np.diff(np.searchsorted(offsets[:-1], [t.start for t in tasks] + [offsets[-1]]))
    before = store.n_bags
    results = map_tasks(
        write_rows,
        tasks,
        sizes=starting.tolist(),
        progress=progress and (lambda done, total: progress(before + done, n_bags)),
    )
    targets = dict(results)
    session.register(wave.sizes, np.concatenate([targets[i] for i in range(len(tasks))]))


def _wave_tasks() -> int:
    client = current_client()
    return (
        WAVE_TASKS if client is None else max(WAVE_TASKS, TASKS_A_WORKER * len(client.nthreads()))
    )


def plan_wave(dataset: Dataset, first: int, n_bags: int, row: int, max_points: int) -> Wave:
    """The whole blocks from bag ``first`` on that make up one wave, or the rest of ``n_bags``.

    Parameters
    ----------
    first : int
        The first bag of a block.
    row : int
        Where its points go.
    max_points : int
        No further block is added once the wave holds as many.
    """
    sizes: list[NDArray[np.int64]] = []
    blocks: list[tuple[int, int]] = []
    bag, end = first, row
    while bag < n_bags and end - row < max_points and bag - first < WAVE_BAGS:
        index = bag // dataset.block_bags
        block = dataset.block_sizes(index)[: n_bags - bag]
        blocks.append((index, end))
        sizes.append(block)
        bag += len(block)
        end += int(block.sum())
    return Wave(np.concatenate(sizes), blocks)


def plan_tasks(
    dataset: Dataset, store: BagStore, blocks: Sequence[tuple[int, int]], stop: int, span: int
) -> list[RowsTask]:
    """The rows from the first block to ``stop``, cut at multiples of ``span``."""
    rows = np.array([row for _, row in blocks])
    cuts = [int(rows[0]), *range((rows[0] // span + 1) * span, stop, span), stop]
    tasks = []
    for a, b in pairwise(cuts):
        first = int(np.searchsorted(rows, a, side="right")) - 1
        last = int(np.searchsorted(rows, b, side="left"))
        tasks.append(RowsTask(dataset, store, a, b, tuple(blocks[first:last])))
    return tasks


def write_rows(task: RowsTask, report: Report) -> NDArray[np.float64]:
    """Write a task's points; the targets of the bags that begin in its rows, in order."""
    points = np.empty((task.stop - task.start, task.dataset.n_dims), dtype=np.float32)

    def fill(block: tuple[int, int]) -> NDArray[np.float64]:
        index, row = block
        bags, targets = task.dataset.block(index)
        a, b = max(task.start, row), min(task.stop, row + bags.n_points)
        points[a - task.start : b - task.start] = bags.points[a - row : b - row]
        begins = row + bags.offsets[:-1]
        return targets[(task.start <= begins) & (begins < task.stop)]

    targets = []
    with lane() as cores, ThreadPoolExecutor(cores) as pool:
        done = 0
        for part in pool.map(fill, task.blocks):
            targets.append(part)
            done += len(part)
            report(done)
    task.store.write_points(task.start, points)
    return np.concatenate(targets)
