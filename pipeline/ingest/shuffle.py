"""Bringing the rows of a table together by ranges of ids, on the workers' disks."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, Future

from ..errors import BagbasisError, ClusterError, DataError
from ..execution.progress import Progress, Tally, listening, worker_report
from ..execution.tasks import RETRIES, gathered
from .survey import Survey, first_rows
from .table_files import Piece, Table
from .table_rows import Decoder, Group, group, label, respond

P = ParamSpec("P")
R = TypeVar("R")

BARRIER = "shuffle-barrier-"  # how distributed names the task all outputs of a shuffle wait for


def groups_of_bags(
    client: Client,
    tables: Mapping[str, Table],
    surveys: Mapping[str, Sequence[Survey]],
    decoders: Mapping[str, Decoder],
    progress: Progress,
) -> Generator[Group, None, None]:
    """The bags of one range of ids after the other; a few ranges are in memory at a time.

    Parameters
    ----------
    client : Client
    tables : mapping from role to Table
        "points", and "targets" and "responses" if there are such tables.
    surveys, decoders : mapping
        Of each table, the surveys of its pieces, and how it is read.
    progress : callable
        Called with the points shuffled, those of responses among them, and their number.

    Raises
    ------
    DataError
        See `group`, `label` and `respond`.
    ClusterError
        Workers were lost, or their disks are full.
    """
    sizes = [
        survey.n_rows if table.columns.coordinates else 0
        for role, table in tables.items()
        for survey in surveys[role]
    ]
    files = {role: table.files for role, table in tables.items() if role != "points"}
    ahead = max(2, len(client.scheduler_info(n_workers=-1)["workers"]))
    pending: deque[Future] = deque()
    with ExitStack() as stack:
        topic = stack.enter_context(listening(client, Tally(sizes, progress)))
        shuffled: list[ShuffledTable] = []
        first_task = 0
        for role, table in tables.items():
            rows = first_rows(table, surveys[role])
            shuffled.append(ShuffledTable(client, table, decoders[role], rows, topic, first_task))
            stack.callback(shuffled[-1].close)
            first_task += len(table.pieces)
        stack.callback(lambda: [future.release() for future in pending])
        for i in range(len(decoders["points"].places)):
            frames = [rows.rows(i) for rows in shuffled]
            pending.append(client.submit(_bags, *frames, decoders, files, pure=False))
            if len(pending) > ahead:
                yield _result(pending.popleft())
        while pending:
            yield _result(pending.popleft())


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
        for future in self._held.values():
            future.release()


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


def returning_refusals(function: Callable[P, R]) -> Callable[P, R | DataError]:
    """The task returns a DataError instead of raising it.

    Bad data stays bad: a worker would run the task again, and log each failure at length.
    """

    @wraps(function)
    def task(*args: P.args, **kwargs: P.kwargs) -> R | DataError:
        try:
            return function(*args, **kwargs)
        except DataError as error:
            return error

    return task


def raised(result: R | DataError) -> R:
    """What a task returned; a DataError is raised."""
    if isinstance(result, DataError):
        raise result
    return result


@returning_refusals
def _bags(*arguments: Any) -> Group:
    *frames, decoders, files = arguments
    rows = dict(zip(decoders, frames, strict=True))
    found = group(rows["points"], decoders["points"])
    for role, join in (("targets", label), ("responses", respond)):
        if role in rows:
            found = join(found, rows[role], decoders[role], files[role])
    return found


def _result(future: Future) -> Group:
    try:
        bags: Group | DataError = gathered(future)
    except BagbasisError:
        raise
    except (OSError, RuntimeError) as error:
        raise ClusterError(
            f"bringing the rows of each bag together failed ({error}); see that the workers' disks "
            "have room for the points, and run it again"
        ) from error
    return raised(bags)


def _read(piece: Piece, first_row: int, task: int, decoder: Decoder, topic: str) -> pd.DataFrame:
    frame = decoder.decode(piece, first_row)
    report: Callable[[int], None] = worker_report(topic, task)
    report(len(frame))
    return frame
