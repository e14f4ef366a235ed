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

_T = TypeVar("_T")
_R = TypeVar("_R")


def shuffle_frames(
    read: Callable[[_T], pd.DataFrame],
    pieces: Sequence[_T],
    finish: Callable[[pd.DataFrame], _R],
    *,
    by: str,
    divisions: Sequence[Any],
    meta: pd.DataFrame,
    sizes: Sequence[int],
    progress: Progress,
) -> Generator[_R, None, None]:
    """Sort rows by a column on the cluster, and yield ``finish(frame)`` of each range in order.

    Dask's peer-to-peer shuffle moves the rows between the workers and keeps them in files. Results
    of ``finish`` stay on the workers until they are yielded, and are moved to disk if memory fills
    up. So the disks need room for the rows twice, but the memory does not.

    Parameters
    ----------
    read : callable
        Function that returns the frame of a piece, with the columns of ``meta``.
    pieces : sequence
        Arguments of ``read``. They should be small, because they travel in the graph.
    finish : callable
        Function of the rows of a range, which come in any order with the column as index.
    by : str
        Name of the column.
    divisions : sequence
        Smallest possible value, then the values at which ranges 1, 2, … begin, and the last value
        again. They must not decrease.
    meta : data frame
        Frame without rows that has the columns and dtypes.
    sizes : sequence of int
        Number of rows of each piece, for the progress.
    progress : callable
        Function that is called with the number of rows read and of all rows.

    Raises
    ------
    ClusterError
        If workers were lost, or their disks are full.
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


def _read(piece: _T, task: int, read: Callable[[_T], pd.DataFrame], topic: str) -> pd.DataFrame:
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
