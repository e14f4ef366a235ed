"""Bringing the rows of a table together by ranges of ids, on the workers' disks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, Future

from ..bags.ingest_files import Piece, Table
from ..bags.ingest_rows import Decoder
from .map_reduce import RETRIES
from .progress import worker_report

BARRIER = "shuffle-barrier-"  # how distributed names the task all outputs of a shuffle wait for


class ShuffledTable:
    """The rows of a table by ranges of ids; a range is fetched from disk when it is asked for.

    The table is read and shuffled once, by dask.dataframe's peer-to-peer shuffle, which keeps
    the rows in files on the workers. Computing the shuffled frame as a whole would load all of
    them into the workers' memory as soon as the last row has arrived; so only the shuffle itself
    is computed and held, and then one output after the other.

    Parameters
    ----------
    client : Client
    table : Table
    decoder : Decoder
        With the ranges.
    first_rows : sequence of int
        The row in its file at which each piece begins.
    topic : str
        Where the workers report their progress, piece by piece.
    first_task : int
        The number of the first piece in these reports.
    """

    def __init__(
        self,
        client: Client,
        table: Table,
        decoder: Decoder,
        first_rows: Sequence[int],
        topic: str,
        first_task: int,
    ) -> None:
        self._client = client
        self._places = decoder.places
        frame = dd.from_map(
            _read,
            table.pieces,
            list(first_rows),
            range(first_task, first_task + len(table.pieces)),
            args=(decoder, topic),
            meta=decoder.empty(),
            label="ingest",
        )
        n_ranges = len(decoder.places)
        divisions = [*range(n_ranges), n_ranges - 1]
        shuffled = frame.set_index("range", divisions=divisions, shuffle_method="p2p").optimize()
        self._name = shuffled.__dask_keys__()[0][0]
        self._graph = dict(shuffled.__dask_graph__())
        barriers = [key for key in self._graph if str(key).startswith(BARRIER)]
        futures = client.get(self._graph, barriers, sync=False, retries=RETRIES)
        self._held = dict(zip(barriers, futures, strict=True))

    def rows(self, index: int) -> Future:
        """The data frame of one range of ids, in no particular order."""
        key = (self._name, self._places[index])
        graph: dict[Any, Any] = {}
        missing: list[Any] = [key]
        while missing:
            at = missing.pop()
            if at not in graph:
                graph[at] = self._held.get(at, self._graph[at])
                missing += [] if at in self._held else self._graph[at].dependencies
        return self._client.get(graph, [key], sync=False, retries=RETRIES)[0]

    def close(self) -> None:
        """Let the workers delete their files."""
        self._client.cancel(list(self._held.values()))
        self._held.clear()


def spread(n_ranges: int) -> tuple[int, ...]:
    """The partition of each range, such that ranges that follow each other are far apart.

    The shuffle puts neighbouring partitions on the same worker, and ranges are fetched in
    order: this way all workers take part. The multiples of the golden ratio are evenly spread.
    """
    position = np.arange(n_ranges) * 0.6180339887498949 % 1.0
    return tuple(np.argsort(np.argsort(position)).tolist())


@contextmanager
def quiet() -> Iterator[None]:
    """Without the scheduler's warning that a shuffle has begun, which is no news here."""
    logger = logging.getLogger("distributed.shuffle._scheduler_plugin")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _read(
    piece: Piece, first_row: int, task: int, decoder: Decoder, topic: str
) -> pd.DataFrame:
    frame = decoder.decode(piece, first_row)
    report: Callable[[int], None] = worker_report(topic, task)
    report(len(frame))
    return frame
