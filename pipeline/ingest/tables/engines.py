"""Where tables are checked and sorted: in DuckDB in this process, or on a cluster's workers.

Both give the same rows in the same order: by the bag's id, and within a bag by file and row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from ...core.errors import DataError
from ...data.storage.temporary import temporary_folder
from ...execution.dask_data.frames import shuffle_frames
from ...execution.progress import Progress, Report, silent
from ...execution.tasks import map_tasks
from .database import Database
from .files import TableFile
from .scans import Coding, Scan, scans_of
from .surveys import (
    SAMPLED_CELLS,
    CheckedTable,
    SortedLabels,
    Survey,
    find_labels,
    sample_ids,
    survey_scan,
)
from .values import Columns

SORT_BYTES = 2**30  # memory that DuckDB may use for a table; the rest is sorted on disk
_PIECE_BYTES = 2**25  # bytes of a decoded table, or of CSV text, that a worker reads at once
RANGE_BYTES = 2**25  # rows that a worker sorts at once
ID_BYTES = 32  # approximate size of a text id
_SPILL_PREFIX = "bagbasis-ingest-"

_R = TypeVar("_R")


class LocalEngine:
    """DuckDB in this process; rows that do not fit in memory are sorted on disk."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def survey(
        self, columns: Columns, files: Sequence[TableFile], progress: Progress
    ) -> list[Survey]:
        """Check all rows; return the surveys of the files, or of their pieces, in order."""
        surveys: list[Survey] = []
        n_rows = sum(file.n_rows for file in files)  # an estimate for CSV files
        done = 0
        for scan in scans_of(columns, files):
            in_scan = sum(file.n_rows for file in scan.files)

            def report(share: float, done: int = done, in_scan: int = in_scan) -> None:
                progress(done + int(share * in_scan), n_rows)

            surveys += survey_scan(scan, self._database, report)
            done += in_scan
        return surveys

    def find_labels(self, table: CheckedTable, targets: Sequence[str]) -> list[SortedLabels]:
        """Return the texts of each target, in any number of parts."""
        return [find_labels(scan, targets, self._database) for scan, _ in table.scans()]

    def sort(
        self, table: CheckedTable, coding: Coding, progress: Progress
    ) -> Generator[pa.Table, None, None]:
        """Yield all rows as `Scan.coded` gives them, sorted by id and row."""
        query = " UNION ALL ".join(scan.coded(starts, coding) for scan, starts in table.scans())
        batches = self._database.stream(
            f"{query} ORDER BY id, row",
            lambda share: progress(int(share * table.n_rows), table.n_rows),
        )
        for batch in batches:
            yield pa.Table.from_batches([batch])


class ClusterEngine(LocalEngine):
    """The workers of the open client; each holds a piece of a table, or a range of its ids.

    A ``.csv.gz`` file is one piece. A CSV file is one piece, too, if a cut would lie within quotes.
    """

    def __init__(self, piece_bytes: int = _PIECE_BYTES, range_bytes: int = RANGE_BYTES) -> None:
        self._piece_bytes = piece_bytes
        self._range_bytes = range_bytes

    def survey(
        self, columns: Columns, files: Sequence[TableFile], progress: Progress
    ) -> list[Survey]:
        """Check all rows; return the surveys of the pieces of the files, in order."""
        whole: set[str] = set()  # the files that cannot be cut
        size = self._piece_bytes
        while True:
            pieces = [
                piece
                for file in files
                for piece in ([file] if file.url in whole else file.cut(size, len(columns.names)))
            ]
            tasks = [(Scan(columns, (piece,)),) for piece in pieces]
            surveys = _run(_survey_piece, tasks, [piece.n_rows for piece in pieces], progress)
            torn = {
                piece.url for piece, answers in zip(pieces, surveys, strict=True) if not answers
            }
            if not torn:
                return [survey for survey in surveys if survey is not None]
            whole |= torn

    def find_labels(self, table: CheckedTable, targets: Sequence[str]) -> list[SortedLabels]:
        """Return the texts of each target, in as many parts as the table has pieces."""
        tasks = [(scan, targets) for scan, _ in table.scans()]
        return _run(find_labels, tasks, [1] * len(tasks), silent)

    def sort(
        self, table: CheckedTable, coding: Coding, progress: Progress
    ) -> Generator[pa.Table, None, None]:
        """Yield all rows as `Scan.coded` gives them, sorted by id and row."""
        schema = _schema_of(table.columns, coding)
        row_bytes = 16 + np.dtype(table.columns.dtype).itemsize * len(table.columns.stored_names)
        row_bytes += 8 * len(table.columns.targets) + (ID_BYTES if coding.ids == "text" else 0)
        n_ranges = -(-row_bytes * table.n_rows // self._range_bytes)
        samples = ((survey.n_rows, survey.sample) for survey in table.surveys)
        starts = range_starts(samples, n_ranges, coding.ids)
        least = "" if coding.ids == "text" else -(2**63)
        return shuffle_frames(
            partial(_read_piece, coding=coding),
            table.scans(),
            partial(_sort_frame, schema=schema),
            by="id",
            divisions=[least, *starts, *(starts or [least])[-1:]],
            meta=_to_frame(schema.empty_table()),
            sizes=[survey.n_rows for survey in table.surveys],
            progress=progress,
        )


def range_starts(
    samples: Iterable[tuple[int, Sequence[Any]]], n_ranges: int, ids: str
) -> list[Any]:
    """Return the first ids of ranges 1, 2, … with about the same number of rows each.

    They are strictly increasing. If one bag fills a range, there are fewer than ``n_ranges - 1``.

    Parameters
    ----------
    samples : iterable of (n_rows, ids)
        Number of rows of each piece of a table, and the ids of some of these rows.
    n_ranges : int
    ids : {"number", "text"}
    """
    read = int if ids == "number" else str
    sample = sorted((read(value), n_rows / len(of)) for n_rows, of in samples for value in of)
    if not sample:
        return []
    rows = np.cumsum([weight for _, weight in sample])
    ends = np.searchsorted(rows, rows[-1] * np.arange(1, n_ranges) / n_ranges)
    return sorted({sample[k][0] for k in ends.tolist()} - {sample[0][0]})


def spill_folder() -> AbstractContextManager[str]:
    """Yield a new folder for rows that do not fit in memory; see `temporary_folder`."""
    return temporary_folder(_SPILL_PREFIX)


def _run(
    function: Callable[..., _R],
    tasks: Sequence[tuple[Any, ...]],
    sizes: Sequence[int],
    progress: Progress,
) -> list[_R]:
    """Run a function of a task and a database on the workers; return the results in order."""
    results: dict[int, _R] = {}
    run = partial(_in_database, function)
    for i, result in map_tasks(run, tasks, sizes=sizes, progress=progress):
        if isinstance(result, DataError):
            raise result
        results[i] = result
    return [results[i] for i in range(len(tasks))]


def _in_database(
    function: Callable[..., _R], task: tuple[Any, ...], report: Report
) -> _R | DataError:
    """Return a DataError instead of raising it, so that Dask does not run the task again."""
    try:
        with Database(SORT_BYTES, n_columns=len(task[0].columns.coordinates)) as database:
            return function(*task, database)
    except DataError as error:
        return error


def _survey_piece(scan: Scan, database: Database) -> Survey | None:
    """Survey a piece; return None if the piece may have been cut within quotes.

    The whole file is then read at once. The first piece of a file that ends within quotes has an
    odd number of quotes.
    """
    texts = database.files.texts
    try:
        [survey] = survey_scan(scan, database)
        survey = replace(survey, sample=sample_ids(scan, SAMPLED_CELLS, database))
    except DataError:
        if texts:
            return None
        raise
    quote = scan.columns.read.quote.encode()
    is_torn = quote and any(text.count(quote) % 2 for text in texts.values())
    return None if is_torn else survey


def _read_piece(piece: tuple[Scan, Sequence[int]], coding: Coding) -> pd.DataFrame:
    scan, starts = piece
    with Database(SORT_BYTES, n_columns=len(scan.columns.coordinates)) as database:
        batches = list(database.stream(scan.coded(starts, coding)))
    schema = _schema_of(scan.columns, coding)
    return _to_frame(
        pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()
    )


def _sort_frame(frame: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    rows = pa.Table.from_pandas(frame.reset_index(), schema=schema, preserve_index=False)
    return rows.sort_by([("id", "ascending"), ("row", "ascending")])


def _schema_of(columns: Columns, coding: Coding) -> pa.Schema:
    """Return the columns that `Scan.coded` gives."""
    types = {"id": pa.int64() if coding.ids == "number" else pa.string(), "row": pa.int64()}
    coordinate = pa.from_numpy_dtype(columns.dtype)
    types |= {f"x{j}": coordinate for j in range(len(columns.stored_names))}
    return pa.schema(types | {f"y{j}": pa.float64() for j in range(len(columns.targets))})


def _to_frame(rows: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = rows.to_pandas(types_mapper={pa.string(): pd.StringDtype("pyarrow")}.get)
    return frame
