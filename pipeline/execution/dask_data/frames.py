"""Data frames on a cluster, which Dask sorts into ranges of a column on the workers' disks."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import dask
import dask.dataframe as dd
import pandas as pd
from distributed import get_client

from ...core.errors import BagbasisError, ClusterError
from ..progress import Progress, ProgressTally, listening, worker_report
from ..tasks import RETRIES
from ..waiting import gathered

T = TypeVar("T")
R = TypeVar("R")


def shuffle_frames(
    read: Callable[[T], pd.DataFrame],
    pieces: Sequence[T],
    finish: Callable[[pd.DataFrame], R],
    *,
    by: str,
    divisions: Sequence[Any],
    meta: pd.DataFrame,
    sizes: Sequence[int],
    progress: Progress,
) -> Generator[R, None, None]:
    """Yield ``finish(frame)`` of each range of a column, in order, from the open client's workers.

    The rows travel between the workers by Dask's peer-to-peer shuffle, which keeps them in files.
    What ``finish`` returns stays with the workers until it is yielded; they move it to their
    disks as they fill up. So the disks must have room for the rows twice, the memory need not.

    Parameters
    ----------
    read : callable
        The frame of a piece, like ``meta``.
    pieces : sequence
        Small: they travel in the graph.
    finish : callable
        Is given the rows of a range in any order, with the column as index.
    by : str
        The column.
    divisions : sequence
        The least value there can be and those at which ranges 1, 2, … begin; not decreasing, and
        the last one twice.
    meta : data frame
        Without rows.
    sizes : sequence of int
        Rows in each piece, for the progress.
    progress : callable
        Called with the rows that were read and their number.

    Raises
    ------
    ClusterError
        Workers were lost, or their disks are full.
    """
    client = get_client()
    tally = ProgressTally(sizes, progress)
    with listening(client, tally) as topic, _quiet():
        tasks = range(len(pieces))
        frame = dd.from_map(_read, pieces, tasks, args=(read, topic), meta=meta, label="read")
        ranges = frame.set_index(by, divisions=list(divisions), shuffle_method="p2p").to_delayed()
        finished = [dask.delayed(finish)(part) for part in ranges]
        futures = deque(client.compute(finished, retries=RETRIES))
        try:
            while futures:
                try:
                    result = gathered(futures[0], tally.warn)
                except BagbasisError:
                    raise
                except (OSError, RuntimeError) as error:
                    raise ClusterError(
                        f"sorting the rows failed ({error}); see that the workers' disks have room "
                        "for them, and run it again"
                    ) from error
                futures.popleft().release()
                yield result
        finally:
            client.cancel(list(futures))


def _read(piece: T, task: int, read: Callable[[T], pd.DataFrame], topic: str) -> pd.DataFrame:
    frame = read(piece)
    worker_report(topic, task)(len(frame))
    return frame


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the scheduler's warning that a shuffle has begun, which tells nothing new."""
    logger = logging.getLogger("distributed.shuffle._scheduler_plugin")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
