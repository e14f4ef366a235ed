"""`generate`: write any number of bags of a dataset into a store.

Tasks make blocks of bags, on the cluster if one is open. Each block is made once, because it may be
a simulation that takes minutes. Only this process writes to the store, in the order of the blocks.
It commits regularly, so that a new call after an interruption continues after the last commit. The
bags depend on the dataset only, not on the cluster, the tasks or the commits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any

from ..core import Instance, Integer, Real, UrlOrPath, checked
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

_MAX_BAGS = 10**10  # a million tasks
COMMIT_SECONDS = 30.0  # work that an interruption may lose, in addition to running tasks
TASKS_PER_WORKER = 4  # tasks in a wave; finished tasks wait on the workers to be written
BLOCKS_PER_TASK = 8  # blocks without responses: at most 64 MiB, and one for each of 8 cores

logger = logging.getLogger(__name__)


@checked
def generate(
    dataset: Annotated[Dataset, Instance()],
    url: UrlOrPath,
    *,
    n_bags: Annotated[int, Integer(1)] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    chunk_points: Annotated[int, Integer(1)] | None = None,
    commit_seconds: Annotated[float, Real(ge=0)] = COMMIT_SECONDS,
) -> BagStore:
    """Write the first ``n_bags`` bags of a dataset into a store, on the cluster if one is open.

    A call after an interruption continues after the last committed bags. A complete store is not
    changed. The store records the dataset in ``meta.source``.

    Parameters
    ----------
    dataset : Dataset
        Dataset whose bags are written.
    url : str or path
        A local path, or ``icechunk+s3://BUCKET/PATH``.
    n_bags : int, optional
        Number of bags; by default all of a finite dataset.
    overwrite : bool
        Whether to replace a store at ``url``, even an unfinished store of the same dataset.
    progress : callable, optional
        Function that is called with (bags done, bags in all).
    chunk_points : int, optional
        Number of points in a chunk; see `BagStore.create`.
    commit_seconds : float
        Seconds between two commits; an interruption loses at most this much work.

    Returns
    -------
    BagStore
        The store with all bags.

    Raises
    ------
    ParameterError
        If ``n_bags`` is below 1, exceeds the number of bags of the dataset, or is missing for a
        dataset without end.
    DataError
        If a block has fewer bags than the dataset states, or cannot be stored.
    StoreError
        If other data are stored at ``url``, or the store cannot be written.
    WriterBusyError
        If another process appended to the store at the same time.

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
    return Integer(1, _MAX_BAGS if there_are is None else there_are).check("n_bags", n_bags)


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
        target_names=dataset.target_names,
        box=dataset.box,
        response_dims=dataset.response_dims,
        response_box=dataset.response_box,
        class_names=dataset.class_names,
        chunk_points=chunk_points,
        overwrite=overwrite,
    )


def _existing(url: str) -> BagStore | None:
    """Open the store at the URL; None if there is no store or its creation was interrupted."""
    if not exists(url):
        return None
    try:
        return BagStore.open(url)
    except InterruptedStoreError:
        return None


def _check_ours(store: BagStore, source: dict[str, Any], block_bags: int) -> None:
    """Raise StoreError unless the store is empty or `generate` filled it from this source."""
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
    """Write whole blocks until the time is over or all blocks are written."""
    begun, end = time.monotonic(), store.n_bags
    for first, (bags, targets, responses) in blocks:
        if first != end:  # the session starts after bags of another process
            raise WriterBusyError(
                f"{store.url}: somebody else appended meanwhile; run it again to go on from there"
            )
        session.write(bags, targets, responses=responses)
        end += len(bags)
        if time.monotonic() - begun >= seconds:
            return


@dataclass(frozen=True)
class BlocksTask:
    """Consecutive blocks of bags that one task makes.

    Attributes
    ----------
    dataset : Dataset
        Dataset of the blocks.
    blocks : tuple of (index, n_bags)
        Index of each block, and the number of its first bags to return.
    """

    dataset: Dataset
    blocks: tuple[tuple[int, int], ...]

    @property
    def n_bags(self) -> int:
        """Number of bags in all blocks."""
        return sum(n_bags for _, n_bags in self.blocks)


def _make_blocks(
    dataset: Dataset, first: int, n_bags: int, progress: Progress | None
) -> Generator[tuple[int, ResponseBlock], None, None]:
    """Yield the blocks of bags ``first:n_bags`` in order, each with the index of its first bag.

    ``first`` must be the first bag of a block. A few tasks per worker run or wait at a time.
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
            while at in made:  # tasks finish in any order; blocks are written in order
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
    """Return the bags, targets and responses of a task; each core makes one block at a time."""
    if isinstance(task.dataset, ResponseDataset):  # a simulation uses all cores
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
    """Return the first ``n_bags`` bags of a block; DataError if the block has fewer."""
    if isinstance(dataset, ResponseDataset):
        bags, targets, responses = dataset.response_block(index)
    else:
        (bags, targets), responses = dataset.block(index), None
    if len(bags) < n_bags:
        raise DataError(f"{dataset.name}: block {index} holds {len(bags)} bags, expected {n_bags}")
    cut = None if responses is None else responses[:n_bags]
    return ResponseBlock(bags[:n_bags], targets[:n_bags], cut)
