"""Tables as DuckDB reads them: one query over many files, their values and their bytes.

Consecutive files of one layout are one `Scan`. Within a query a column is named by its position,
because DuckDB ignores case in names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from threading import Event, Thread
from typing import Any

import duckdb
import pyarrow as pa

from ..errors import DataError, StoreError
from ..execution.lanes import lane_cores
from .csv_dialects import OTHER_ENCODING
from .table_bytes import DuckFiles
from .table_columns import Columns, quoted
from .table_files import FLOATS, INTEGERS, TEXTS, UNTYPED, TableFile, is_number, is_time

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")  # unquoted, no value in CSV
FILES_PER_SCAN = 1_000  # DuckDB copies the list of their first rows for every 2,048 rows
TRUTHS = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")  # whatever their case
Report = Callable[[float], None]  # the share of a query that is done

ROW = "file_row_number"
SECONDS_PER_DAY = 86400.0
BATCH_ROWS = 2**17  # that leave DuckDB at once: some MiB
SECONDS_BETWEEN_REPORTS = 0.5
DISK_FULL = ("No space left", "max_temp_directory_size", "failed to offload")  # as DuckDB says it
SQL_TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "number": "BIGINT", "text": "VARCHAR"}


@dataclass(frozen=True)
class Coding:
    """How the values of a table are stored.

    Attributes
    ----------
    ids : {"number", "text"}
    dtype : {"float32", "float64"}
        Of the coordinates.
    classes : dict from target to its labels
        A target that is text becomes the index of its label.
    """

    ids: str
    dtype: str
    classes: dict[str, list[str]]


@dataclass(frozen=True)
class Scan:
    """Consecutive files of one layout in a table, or one piece of a file."""

    columns: Columns
    files: tuple[TableFile, ...]

    def values(self, starts: Sequence[int]) -> str:
        """Return the query of all rows as they are in the files.

        It gives ``file``, the position in this scan; ``row``, counted on from ``starts``, the
        numbers of the files' first rows; ``id``; each coordinate as it is, ``r0`` …, and as a
        number, ``x0`` …; each target as it is, ``y0`` …, and as a number, ``z0`` …. What counts
        as missing is NULL.
        """
        selected = ["file_index AS file", f"{self._row(starts)} AS row"]
        selected += [f"{self._id()} AS id"]
        for j, one in enumerate(self.columns.coordinates):
            value = self._value(one.column)
            made = one.sql(value, self._number(one.column))
            selected += [f"{value} AS r{j}", f"{made} AS x{j}"]
        for j, name in enumerate(self.columns.targets):
            selected += [f"{self._value(name)} AS y{j}", f"{self._number(name)} AS z{j}"]
        return f"SELECT {', '.join(selected)} FROM {self._source()}"

    def coded(self, starts: Sequence[int], coding: Coding) -> str:
        """Return the query of all rows as they are stored: ``id``, ``row``, ``x0`` …, ``y0`` ….

        A target is NULL where there is none, a coordinate where the file was changed meanwhile.
        """
        selected = [f"TRY_CAST(id AS {SQL_TYPES[coding.ids]}) AS id", "row"]
        for j in range(len(self.columns.coordinates)):
            selected.append(f"TRY_CAST(x{j} AS {SQL_TYPES[coding.dtype]}) AS x{j}")
        for j, name in enumerate(self.columns.targets):
            value = f"z{j}"
            if name in coding.classes:
                labels = ", ".join(quoted(label) for label in coding.classes[name]) or "''"
                label = f"TRY_CAST({self.label(j)} AS ENUM({labels}))"
                value = f"CAST(enum_code({label}) AS DOUBLE)"
            selected.append(f"{value} AS y{j}")
        return f"SELECT {', '.join(selected)} FROM ({self.values(starts)})"

    def label(self, j: int) -> str:
        """Return target ``j`` of `values` as a class label; 1.0 becomes "1", as an integer does.

        pandas stores a column of integers as floats if a value is missing.
        """
        kind, text = self.type_of(self.columns.targets[j]), f"CAST(y{j} AS VARCHAR)"
        if not is_number(kind) or kind in INTEGERS:
            return text
        whole = f"CAST(TRY_CAST(z{j} AS BIGINT) AS VARCHAR)"
        as_text = f"WHEN z{j} = trunc(z{j}) THEN coalesce({whole}, {text}) ELSE {text} END"
        return f"CASE WHEN {is_nan(f'z{j}')} THEN NULL {as_text}"

    def type_of(self, name: str) -> str:
        """Return Arrow's name of a column's type; `UNTYPED` in CSV."""
        return self.files[0].types[self.columns.names.index(name)]

    @property
    def id_type(self) -> str:
        """Arrow's name of the type of ids; those of several columns are text."""
        kind = self.type_of(self.columns.ids[0])
        if len(self.columns.ids) > 1 or is_time(kind):
            return "string"
        return "int64" if kind in FLOATS else kind

    def _id(self) -> str:
        columns = [self._part_of_id(name) for name in self.columns.ids]
        if len(columns) == 1:
            return columns[0]
        return " || '/' || ".join(f"CAST({column} AS VARCHAR)" for column in columns)

    def _part_of_id(self, name: str) -> str:
        """Return a column of ids: whole floats as integers, midnights as their days."""
        column, kind = self._column(name), self.type_of(name)
        if is_time(kind):
            day = f"CAST({column} AS DATE)"
            texts = f"CAST({day} AS VARCHAR) ELSE CAST({column} AS VARCHAR)"
            return f"CASE WHEN {column} = {day} THEN {texts} END"
        if kind in FLOATS:
            is_whole = f"isfinite({column}) AND {column} = trunc({column})"
            return f"CASE WHEN {is_whole} THEN TRY_CAST({column} AS BIGINT) END"
        return column

    def _column(self, name: str) -> str:
        if name not in dict(self.files[0].parts):
            return f"c{self.files[0].names.index(name)}"
        values = [dict(file.parts)[name] for file in self.files]
        texts = ", ".join("NULL" if value is None else quoted(value) for value in values)
        return f"CAST([{texts}] AS VARCHAR[])[CAST(file_index AS BIGINT) + 1]"

    def _value(self, name: str) -> str:
        """Return a column without the values that count as missing."""
        column, kind = self._column(name), self.type_of(name)
        words = self.columns.missing_values
        numbers = ", ".join(word for word in words if _is_numeral(word))
        of_words = f"{column} IN ({', '.join(map(quoted, words))})"
        of_numbers = f"TRY_CAST({column} AS DOUBLE) IN ({numbers})"
        if kind == "float":  # in which -99.9 is another number than in double
            singles = (f"CAST({word} AS FLOAT)" for word in words if _is_numeral(word))
            of_numbers = f"{column} IN ({', '.join(singles)})"
        if not words or not (kind == UNTYPED or kind in TEXTS or (is_number(kind) and numbers)):
            return column
        missing = of_numbers if is_number(kind) else of_words
        if kind == UNTYPED and numbers:
            missing = f"{of_words} OR coalesce({of_numbers}, false)"
        return f"CASE WHEN {missing} THEN NULL ELSE {column} END"

    def _number(self, name: str) -> str:
        column, kind = self._value(name), self.type_of(name)
        if is_time(kind):
            return f"epoch({column}) / {SECONDS_PER_DAY}"
        if kind not in (UNTYPED, *TEXTS):
            return f"CAST({column} AS DOUBLE)"
        if name in self.columns.booleans:
            told = f"lower(trim({column}))"
            yes, no = (f"{told} IN ({', '.join(map(quoted, words))})" for words in TRUTHS)
            return f"CASE WHEN {yes} THEN 1.0 WHEN {no} THEN 0.0 END"
        if name in self.columns.dates:
            return f"epoch(TRY_CAST({column} AS TIMESTAMP)) / {SECONDS_PER_DAY}"
        decimal, thousands = self.columns.decimal, self.columns.csv.thousands
        number = column
        if kind == UNTYPED and thousands:
            group, rest = re.escape(thousands), re.escape(decimal)
            grouped = quoted(rf"\s*[+-]?\d{{1,3}}({group}\d{{3}})+({rest}\d*)?\s*")
            plain = f"replace({column}, {quoted(thousands)}, '')"
            is_grouped = f"regexp_full_match({column}, {grouped})"
            number = f"CASE WHEN {is_grouped} THEN {plain} ELSE {column} END"
        # DuckDB reads 1_000 as a number, which elsewhere is text, such as the label of a class.
        wrong = f"contains({number}, '_')"
        if kind == UNTYPED and decimal == ",":
            wrong, number = f"{wrong} OR contains({number}, '.')", f"replace({number}, ',', '.')"
        return f"CASE WHEN {wrong} THEN NULL ELSE TRY_CAST({number} AS DOUBLE) END"

    def _row(self, starts: Sequence[int]) -> str:
        if not self.files[0].is_parquet or self.files[0].lists:
            return f"row_number() OVER () + {starts[0] - 1}"
        firsts = [start - file.start for start, file in zip(starts, self.files, strict=True)]
        return f"CAST({firsts} AS BIGINT[])[CAST(file_index AS BIGINT) + 1] + file_row_number"

    def _source(self) -> str:
        first = self.files[0]
        paths = ", ".join(quoted(file.path) for file in self.files)
        columns = [f"c{j}" for j in range(len(first.names))]
        if first.is_parquet:
            source = f"read_parquet([{paths}]) AS t({', '.join(columns)})"
            if first.stop is not None:
                source += f" WHERE file_row_number BETWEEN {first.start} AND {first.stop - 1}"
            return f"({self._items(source)})" if first.lists else source
        types = ", ".join(f"{column}: 'VARCHAR'" for column in columns)
        nulls = ", ".join(quoted(word) for word in MISSING)
        told = {"delim": first.delimiter, **self.columns.csv.options()}
        dialect = [f"{name}={quoted(str(value))}" for name, value in told.items()]
        has_header = first.start == 0 and self.columns.csv.columns is None
        return (
            f"read_csv([{paths}], auto_detect=false, header={has_header}, {', '.join(dialect)}, "
            f"nullstr=[{nulls}], allow_quoted_nulls=false, "
            f"compression='{'gzip' if first.is_gzip else 'none'}', columns={{{types}}})"
        )

    def _items(self, source: str) -> str:
        """Return the query of a row per item of the lists; one without items is a missing value."""
        lists = [self._column(name) for name in self.files[0].lists]
        of_file = [name for name in self.columns.names if name not in dict(self.files[0].parts)]
        names = dict.fromkeys(map(self._column, of_file))
        selected = ["file_index", *(column for column in names if column not in lists)]
        differs = f"error('lists of coordinates differ in length in row ' || {ROW})"
        for column in lists:
            items = f"CASE WHEN len({column}) > 0 THEN {column} ELSE [NULL] END"
            if column != lists[0]:  # DuckDB would fill the shorter one up
                unlike = f"len({column}) IS DISTINCT FROM len({lists[0]})"
                items = f"CASE WHEN {unlike} THEN {differs} ELSE {items} END"
            selected.append(f"unnest({items}) AS {column}")
        return f"SELECT {', '.join(selected)} FROM {source}"


def scans_of(columns: Columns, files: Sequence[TableFile]) -> list[Scan]:
    """Return the files of a table in order, as many in a scan as one query can read."""

    def layout(file: TableFile) -> tuple[object, ...]:
        of_folders = tuple(name for name, _ in file.parts)
        kind = file.names, file.types, file.lists, file.delimiter, of_folders
        piece = file.start, file.stop, file.index // FILES_PER_SCAN
        return (file.is_parquet, file.is_gzip, *kind, *piece)

    return [Scan(columns, tuple(group)) for _, group in groupby(files, layout)]


class Database:
    """DuckDB over table files, within ``memory`` bytes; a context manager.

    Rows that do not fit go to files in the folder ``spill``; without a folder they have to fit.
    """

    def __init__(self, memory: int, spill: str = "") -> None:
        self.files = DuckFiles()
        self._spill = spill
        self._connection = duckdb.connect(
            config={
                "threads": lane_cores(),
                "memory_limit": f"{memory}B",
                "temp_directory": spill,
                "autoinstall_known_extensions": False,  # nothing is downloaded …
                "autoload_known_extensions": False,  # … and what is installed is left alone
            }
        )
        self._connection.register_filesystem(self.files)

    def __enter__(self) -> Database:
        """Return the database itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Forget everything; a query that is not over ends."""
        self._connection.unregister_filesystem(DuckFiles.protocol)
        self._connection.close()

    def fetch(self, query: str, report: Report | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of the answer; call ``report`` with the share that is done.

        Raises
        ------
        DataError
            A file can not be read; names it.
        StoreError
            The disk is full.
        """
        with self._running(query) as cursor, _watching(cursor, report):
            return cursor.sql(query).fetchall()

    def stream(self, query: str, report: Report | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the answer in batches; ``report`` ends with the first. Raises what `fetch` does."""
        with self._running(query) as cursor:
            with _watching(cursor, report):
                batches = iter(cursor.sql(query).to_arrow_reader(BATCH_ROWS))
                first = next(batches, None)
            if first is not None:
                yield first
                yield from batches

    @contextmanager
    def _running(self, query: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection of its own, as a query ends with the next one of its connection."""
        try:
            with self._connection.cursor() as cursor:
                yield cursor
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            reason = _reason(str(error))
            if any(words in str(error) for words in DISK_FULL):
                raise StoreError(
                    f"{self._spill}: no room to sort the table ({reason}); set TMPDIR to a folder "
                    "on a disk with room for all its rows"
                ) from error
            paths = re.findall(rf"{DuckFiles.protocol}://[^\s']+", f"{error} {query}")
            file = DuckFiles.url_of(
                paths[0]
            )  # damage in a Parquet file DuckDB tells without its name
            hint = OTHER_ENCODING if "not utf-8" in str(error) else ""
            raise DataError(f"{file}: can not be read ({reason}){hint}") from error


@contextmanager
def _watching(cursor: duckdb.DuckDBPyConnection, report: Report | None) -> Iterator[None]:
    """Report the share of a query that is done, as DuckDB estimates it, and at last all of it."""
    if report is None:
        yield
        return
    # `query_progress` stands still without a progress bar, which is not to be seen.
    cursor.execute("SET enable_progress_bar = true")
    cursor.execute("SET enable_progress_bar_print = false")
    over = Event()

    def watch() -> None:
        while not over.wait(SECONDS_BETWEEN_REPORTS):
            report(max(0.0, cursor.query_progress() / 100))  # -1 before it begins

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    report(1.0)


def is_nan(number: str) -> str:
    """Return the condition that a number is NaN.

    DuckDB answers ``isnan`` from the least and the largest value that a Parquet file states, and
    these leave NaN out.
    """
    return f"(NOT isfinite({number}) AND NOT isinf({number}))"


def _is_numeral(word: str) -> bool:
    """Return whether a text is a finite number, as Python and SQL both write it."""
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word, re.ASCII) is not None


def _reason(message: str) -> str:
    """Shorten the message of DuckDB, or a Python traceback within it, to one line."""
    lines = [line.strip() for line in message.split("\nPossible")[0].splitlines() if line.strip()]
    last = re.sub(
        r"Expected Number of Columns: (\d+) Found: (\d+)", r"Expected \1 columns, got \2", lines[-1]
    )
    return last if len(lines) == 1 or lines[0].startswith("Traceback") else f"{lines[0]}: {last}"
