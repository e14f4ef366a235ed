"""Generating whole blocks of bags, each made once, written by this process.

So it is with responses: how many points one has is known only when it is made, so rows can not be
dealt out beforehand; and a block may be a simulation of minutes, which must not be made twice. So
it is in a store kept by Icechunk, too, whose transactions are of one process. Tasks send their
blocks here, where they are written in order. The bags depend on the dataset alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass

from ..bags import BagStore
from ..bags.append import AppendSession
from ..errors import DataError, WriterBusyError
from ..execution import Progress, Report, current_client, map_tasks
from .base import Dataset, ResponseBlock, ResponseDataset

COMMIT_SECONDS = 30.0  # of work that a killed run may lose, and the blocks under way
BLOCKS_A_WORKER = 4  # made before the first of them is written: they wait on the workers


@dataclass(frozen=True)
class BlockTask:
    """One block, of which the first ``n_bags`` bags are wanted."""

    dataset: Dataset
    index: int
    n_bags: int


def append_blocks(
    dataset: Dataset,
    store: BagStore,
    n_bags: int,
    session: Callable[[], AbstractContextManager[AppendSession]],
    progress: Progress | None,
) -> None:
    """Append blocks until the store holds ``n_bags``, committing every `COMMIT_SECONDS`.

    Parameters
    ----------
    store : BagStore
        With whole blocks so far.
    session : callable
        Opens a session of the store that commits when it ends.

    Raises
    ------
    DataError
        A block of another number of bags than the dataset says, or that can not be stored.
    WriterBusyError
        Somebody else appended in between.
    """
    with closing(made_blocks(dataset, store.n_bags, n_bags, progress)) as blocks:
        while store.n_bags < n_bags:
            with session() as writer:
                _write_for_a_while(store, writer, blocks)


def _write_for_a_while(
    store: BagStore, writer: AppendSession, blocks: Iterator[tuple[int, ResponseBlock]]
) -> None:
    begun, end = time.monotonic(), store.n_bags
    for first, (bags, targets, responses) in blocks:
        if first != end:
            raise WriterBusyError(
                f"{store.url}: somebody else appended meanwhile; run it again to go on from there"
            )
        writer.write(bags, targets, responses=responses)
        end += len(bags)
        if time.monotonic() - begun >= COMMIT_SECONDS:
            return


def made_blocks(
    dataset: Dataset, first: int, n_bags: int, progress: Progress | None
) -> Generator[tuple[int, ResponseBlock], None, None]:
    """The blocks of bags ``first:n_bags`` in order, each with the number of its first bag.

    A few blocks a worker are under way or wait; ``first`` is the first bag of a block.
    """
    client = current_client()
    wave = BLOCKS_A_WORKER * (1 if client is None else max(1, len(client.nthreads())))
    size = dataset.block_bags
    starts = range(first, n_bags, size)
    for i in range(0, len(starts), wave):
        tasks = [
            BlockTask(dataset, start // size, min(size, n_bags - start))
            for start in starts[i : i + wave]
        ]
        sizes = [task.n_bags for task in tasks]
        made = map_tasks(
            make_block, tasks, sizes=sizes, progress=_behind(starts[i], n_bags, progress)
        )
        waiting: dict[int, ResponseBlock] = {}
        at = 0
        for j, block in made:
            waiting[j] = block
            while at in waiting:
                yield starts[i + at], waiting.pop(at)
                at += 1


def _behind(before: int, n_bags: int, progress: Progress | None) -> Progress | None:
    """Progress of tasks that come after ``before`` bags."""
    if progress is None:
        return None
    return lambda done, total: progress(before + done, n_bags)


def make_block(task: BlockTask, report: Report) -> ResponseBlock:
    """A task's bags, targets and responses."""
    block = _block(task.dataset, task.index)
    if len(block.bags) < task.n_bags:
        raise DataError(
            f"{task.dataset.name}: block {task.index} holds {len(block.bags)} bags, expected "
            f"{task.n_bags}"
        )
    report(task.n_bags)
    bags, targets, responses = block
    n = task.n_bags
    return ResponseBlock(bags[:n], targets[:n], None if responses is None else responses[:n])


def _block(dataset: Dataset, index: int) -> ResponseBlock:
    if isinstance(dataset, ResponseDataset):
        return dataset.response_block(index)
    return ResponseBlock(*dataset.block(index), None)
