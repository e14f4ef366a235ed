"""DuckDB over table files. It can read only these files, and errors name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import duckdb
import pyarrow as pa

from ...core.errors import DataError, StoreError, refuse_exhaustion
from ...execution.memory import available_memory
from ...execution.worker_threads import worker_cores
from .bytes import DuckFiles
from .reading import MIXED_LINE_ENDS, OTHER_ENCODING
from .values import LOCKED

QueryReport = Callable[[float], None]  # the fraction of a query that is done

BATCH_ROWS = 2**17  # rows fetched from DuckDB at once: some MiB
VECTOR_ROWS, VECTORS = 2048, 4  # rows that DuckDB computes at once, and how often it holds them
MANY_COLUMNS = 500  # up to these, all optimizers save time
_SECONDS_BETWEEN_REPORTS = 0.5
MIN_BYTES = 2**28  # memory of DuckDB, however little is free: each thread needs some to sort
NO_MEMORY = "bad allocation"  # the system's message; beyond its own limit DuckDB spills, or says so
DISK_FULL = ("No space left", "max_temp_directory_size", "failed to offload")  # as DuckDB says it
# DuckDB takes both from the machine, and functions of a time with a zone follow them
CLOCK = {"TimeZone": "UTC", "Calendar": "gregorian"}
_WORDS = (r"Expected Number of Columns: (\d+) Found: (\d+)", r"Expected \1 columns, got \2")


class Database:
    """DuckDB with a memory limit of ``memory`` bytes or half the free memory; a context manager.

    Rows that do not fit go to files in the folder ``spill``. Without a folder, all rows have to fit
    in memory. Wide tables take more: `VECTOR_ROWS` rows of all ``n_columns`` are computed at once.
    """

    def __init__(self, memory: int, spill: str = "", n_columns: int = 0) -> None:
        self.files = DuckFiles()
        self._spill = spill
        memory = max(memory, VECTORS * 8 * VECTOR_ROWS * n_columns)
        memory = min(memory, max(MIN_BYTES, available_memory() // 2))
        limits = {"memory_limit": f"{memory}B", "temp_directory": spill}
        config = {**LOCKED, **limits, "threads": worker_cores()}
        self._connection = duckdb.connect(config=config)
        self._connection.register_filesystem(self.files)
        self._connection.execute(f"SET allowed_directories = ['{DuckFiles.protocol}://']")
        self._connection.execute("SET enable_external_access = false")
        for setting, value in CLOCK.items():
            self._connection.execute(f"SET GLOBAL {setting} = '{value}'")
        # of two TRY it would take out what they share, and fail there
        disabled = "common_subexpressions"
        if n_columns > MANY_COLUMNS:  # takes time by the square of them: 10 s of 12 for 6,000
            disabled += ", statistics_propagation"
        self._connection.execute(f"SET disabled_optimizers = '{disabled}'")

    def __enter__(self) -> Database:
        """Return the database itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection; a running query is stopped."""
        self._connection.unregister_filesystem(DuckFiles.protocol)
        self._connection.close()

    def fetch(self, query: str, report: QueryReport | None = None) -> list[dict[str, Any]]:
        """Return all rows of the result; call ``report`` with the finished fraction of the query.

        DataError names a file that cannot be read, StoreError a disk that is full.
        """
        with self._running(query) as cursor, _watching(cursor, report):
            answer = cursor.sql(query)
            names = answer.columns
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def stream(self, query: str, report: QueryReport | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the result in batches; ``report`` ends with the first. Raises as `fetch` does."""
        with self._running(query) as cursor:
            with _watching(cursor, report):
                batches = iter(cursor.sql(query).to_arrow_reader(BATCH_ROWS))
                first = next(batches, None)
            if first is not None:
                yield first
                yield from batches

    def complaint(self, query: str) -> str:
        """Return DuckDB's error message for a query; "" if the query succeeds."""
        try:
            self.fetch(query)
        except DataError as error:
            return _reason_of(str(error.__cause__))
        return ""

    @contextmanager
    def _running(self, query: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a new connection, because a query ends when its connection starts another one."""
        try:
            with self._connection.cursor() as cursor:
                yield cursor
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            reason = _reason_of(str(error))
            if NO_MEMORY in str(error):
                refuse_exhaustion("tables", MemoryError(reason))
            if any(words in str(error) for words in DISK_FULL):
                raise StoreError(
                    f"{self._spill}: no room to sort the table ({reason}); set TMPDIR to a folder "
                    "on a disk with room for all its rows"
                ) from error
            # DuckDB's message about a damaged Parquet file lacks the name of the file
            paths = re.findall(rf"{DuckFiles.protocol}://[^\s']+", f"{error} {query}")
            hint = OTHER_ENCODING if "not utf-8" in str(error) else ""
            if "state machine" in str(error):  # what DuckDB says of them
                hint = MIXED_LINE_ENDS
            file = DuckFiles.url_of(paths[0])
            raise DataError(f"{file}: cannot be read ({reason}){hint}") from error


@contextmanager
def _watching(cursor: duckdb.DuckDBPyConnection, report: QueryReport | None) -> Iterator[None]:
    """Report the finished fraction of a query, as estimated by DuckDB, and 1 at the end."""
    if report is None:
        yield
        return
    # `query_progress` stands still without a progress bar, which is not to be seen.
    cursor.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    over = Event()

    def watch() -> None:
        while not over.wait(_SECONDS_BETWEEN_REPORTS):
            report(max(0.0, cursor.query_progress() / 100))  # -1 before it begins

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    report(1.0)


def _reason_of(message: str) -> str:
    """Shorten the message of DuckDB, or a Python traceback within it, to one line."""
    head = re.split("\n(?:Possible|LINE|\\s*Candidate)", message)[0].splitlines()
    lines = [line.strip() for line in head if line.strip()]
    last = re.sub(*_WORDS, lines[-1])
    return last if len(lines) == 1 or lines[0].startswith("Traceback") else f"{lines[0]}: {last}"
