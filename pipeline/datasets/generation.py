"""`generate`: writes any number of a dataset's bags into a store.

Tasks make blocks of bags, on the cluster if one is open. Each block is made once, as it may be a
simulation of minutes. Only this process writes, in the order of the blocks, and it commits from
time to time, so that a killed run goes on after its last commit. The bags depend on the dataset
alone: not on the cluster, the tasks or the commits.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ..core import Boolean, Function, Instance, Integer, None_, Real, Url, checked
from ..core.errors import (
    DataError,
    InterruptedStoreError,
    ParameterError,
    StoreError,
    WriterBusyError,
)
from ..data.storage.urls import normalize_url
from ..data.storage.zarr_stores import exists
from ..data.store.store import BagStore
from ..data.store.writer import AppendSession
from ..execution.progress import Progress, Report, part_of
from ..execution.tasks import current_client, map_tasks
from ..execution.worker_threads import kernel_threads
from .base import Dataset, ResponseBlock, ResponseDataset

MAX_BAGS = 10**10  # a million tasks
COMMIT_SECONDS = 30.0  # work that a killed run may lose, in addition to the running tasks
TASKS_PER_WORKER = 4  # made before the first of them is written: they wait on the workers
BLOCKS_PER_TASK = 8  # without responses: 64 MiB of the largest, and 8 cores have one each

logger = logging.getLogger(__name__)


@checked(
    dataset=Instance("Dataset"),
    url=Url,
    n_bags=Integer() | None_,
    overwrite=Boolean,
    progress=Function | None_,
    chunk_points=Integer() | None_,
    commit_seconds=Real(ge=0),
)
def generate(
    dataset: Dataset,
    url: str | os.PathLike[str],
    n_bags: int | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    chunk_points: int | None = None,
    commit_seconds: float = COMMIT_SECONDS,
) -> BagStore:
    """Write the first ``n_bags`` bags of a dataset into a store, on the cluster if one is open.

    If it was killed and is called again, it goes on after the last committed bags. A complete store
    is left as it is. The store remembers the dataset in ``meta.source``.

    Parameters
    ----------
    dataset : Dataset
    url : str or path
        A local path, or ``icechunk+s3://BUCKET/PATH``.
    n_bags : int, optional
        Number of bags. Default: all bags of a finite dataset.
    overwrite : bool
        Replace what is there, even the unfinished store of the same dataset.
    progress : callable, optional
        Called with (bags done, bags in all).
    chunk_points : int, optional
        As in `BagStore.create`.
    commit_seconds : float
        Seconds between two commits, and so the work that a killed run can lose.

    Raises
    ------
    ParameterError
        ``n_bags`` is below 1, more than the dataset has, or missing for an endless one.
    DataError
        A block of another number of bags than the dataset says, or that cannot be stored.
    StoreError
        Something else is stored at the URL, or it cannot be written.
    WriterBusyError
        Somebody else appended in between.

    See Also
    --------
    make_dataset : Create a dataset by name.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> from bagbasis.datasets import GMMComponents, generate
    >>> store = generate(GMMComponents(n_points=20), 'bags.zarr', n_bags=30)
    >>> len(store)
    30
    """
    n_bags = _check_n_bags(dataset, n_bags)
    source = {"dataset": dataset.name, "params": dataset.params, "n_bags": n_bags}
    store = _open_or_create(dataset, normalize_url(url), source, chunk_points, overwrite)
    with closing(_make_blocks(dataset, store.n_bags, n_bags, progress)) as blocks:
        while store.n_bags < n_bags:
            with store.appending(source) as session:
                _check_ours(store, source, dataset.block_bags)
                _write_for_a_while(store, session, blocks, commit_seconds)
            logger.info("%s: %d of %d bags", store.url, store.n_bags, n_bags)
    return store


def _check_n_bags(dataset: Dataset, n_bags: int | None) -> int:
    there_are = dataset.n_bags
    if n_bags is None:
        if there_are is None:
            raise ParameterError(f"n_bags is missing: {dataset.name} has no end")
        return there_are
    return Integer(1, MAX_BAGS if there_are is None else there_are).check("n_bags", n_bags)


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
    """Open the store at the URL; None where there is none, or its creation was interrupted."""
    if not exists(url):
        return None
    try:
        return BagStore.open(url)
    except InterruptedStoreError:
        return None


def _check_ours(store: BagStore, source: dict[str, Any], block_bags: int) -> None:
    """Raise StoreError unless `generate` filled the store from the same source, or it is empty."""
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


def _write_for_a_while(
    store: BagStore,
    session: AppendSession,
    blocks: Iterator[tuple[int, ResponseBlock]],
    seconds: float,
) -> None:
    """Write whole blocks until the time is over or no blocks are left."""
    begun, end = time.monotonic(), store.n_bags
    for first, (bags, targets, responses) in blocks:
        if first != end:  # the session began behind bags that this run did not make
            raise WriterBusyError(
                f"{store.url}: somebody else appended meanwhile; run it again to go on from there"
            )
        session.write(bags, targets, responses=responses)
        end += len(bags)
        if time.monotonic() - begun >= seconds:
            return


@dataclass(frozen=True)
class BlocksTask:
    """Consecutive blocks of bags, for one task to make.

    Attributes
    ----------
    blocks : tuple of (index, n_bags)
        The number of each block, and how many of its first bags are wanted.
    """

    dataset: Dataset
    blocks: tuple[tuple[int, int], ...]

    @property
    def n_bags(self) -> int:
        """Bags in all blocks."""
        return sum(n_bags for _, n_bags in self.blocks)


def _make_blocks(
    dataset: Dataset, first: int, n_bags: int, progress: Progress | None
) -> Generator[tuple[int, ResponseBlock], None, None]:
    """Yield the blocks of bags ``first:n_bags`` in order, each with the number of its first bag.

    ``first`` is the first bag of a block. A few tasks per worker are under way or wait.
    """
    tasks = _plan_tasks(dataset, first, n_bags)
    client = current_client()
    wave = TASKS_PER_WORKER * (1 if client is None else max(1, len(client.nthreads())))
    for i in range(0, len(tasks), wave):
        part = tasks[i : i + wave]
        made: dict[int, list[ResponseBlock]] = {}
        at = 0
        sizes = [task.n_bags for task in part]
        for j, blocks in map_tasks(
            make_blocks, part, sizes=sizes, progress=progress and part_of(progress, first, n_bags)
        ):
            made[j] = blocks
            while at in made:  # tasks finish in any order, and are written in that of the dataset
                for block in made.pop(at):
                    yield first, block
                    first += len(block.bags)
                at += 1


def _plan_tasks(dataset: Dataset, first: int, n_bags: int) -> list[BlocksTask]:
    size = dataset.block_bags
    per_task = 1 if isinstance(dataset, ResponseDataset) else BLOCKS_PER_TASK
    blocks = [(bag // size, min(size, n_bags - bag)) for bag in range(first, n_bags, size)]
    return [
        BlocksTask(dataset, tuple(blocks[i : i + per_task]))
        for i in range(0, len(blocks), per_task)
    ]


def make_blocks(task: BlocksTask, report: Report) -> list[ResponseBlock]:
    """Make a task's bags, targets and responses, one block per core at a time."""
    if isinstance(task.dataset, ResponseDataset):  # a simulation takes all cores
        made = [_make_block(task.dataset, *block) for block in task.blocks]
        report(task.n_bags)
        return made
    made = []
    with kernel_threads() as cores, ThreadPoolExecutor(cores) as pool:
        done = 0
        for block in pool.map(lambda block: _make_block(task.dataset, *block), task.blocks):
            made.append(block)
            done += len(block.bags)
            report(done)
    return made


def _make_block(dataset: Dataset, index: int, n_bags: int) -> ResponseBlock:
    """Make the first ``n_bags`` bags of a block; DataError where it holds fewer."""
    if isinstance(dataset, ResponseDataset):
        bags, targets, responses = dataset.response_block(index)
    else:
        (bags, targets), responses = dataset.block(index), None
    if len(bags) < n_bags:
        raise DataError(f"{dataset.name}: block {index} holds {len(bags)} bags, expected {n_bags}")
    cut = None if responses is None else responses[:n_bags]
    return ResponseBlock(bags[:n_bags], targets[:n_bags], cut)
