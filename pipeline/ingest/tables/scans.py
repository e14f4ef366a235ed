"""Queries of DuckDB over table files: their cells, and coordinates and targets made of them.

Consecutive files of one layout are one `Scan`. Within a query a column is named by its position,
because DuckDB ignores case in names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ...data.bags.ids import EXACT
from .database import Database
from .files import (
    FLOATS,
    INTEGERS,
    TEXTS,
    UNTYPED,
    TableFile,
    is_binary,
    is_decimal,
    is_number,
    is_time,
)
from .reading import NUMBER_TYPES
from .values import Columns, Value, alias, inputs_of, moment_of, quoted

FILES_PER_SCAN = 1_000  # DuckDB copies the list of their first rows for every 2,048 rows
# Rows of CSV that show the types of columns in expressions; DuckDB reads as many.
ROWS_TO_GUESS = 20_480
ROW = "file_row_number"
WRITTEN, ITEMS = "written", "items"  # for lists: the row of the file, and the length of its lists
# for columns that folders name, too: their cell, the folder's value, and whether they differ
CLAIM, FOLDER, UNLIKE = "claim", "folder", "unlike"
SECONDS_PER_DAY = 86400.0
# the first whole number that may be its neighbour, by Arrow's type: such ids are refused
EXACT_FLOATS = {"halffloat": 2**11, "float": 2**24, "double": EXACT}
SQL_TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "number": "BIGINT", "text": "VARCHAR"}
# of text in CSV: the first that all cells fit
GUESSES = {
    "DATE": "TRY_CAST({c} AS TIMESTAMP) IS NOT NULL AND length(trim({c})) <= 10",
    "TIMESTAMP": "TRY_CAST({c} AS TIMESTAMP) IS NOT NULL",
    "TIME": "TRY_CAST({c} AS TIME) IS NOT NULL",
    "BOOLEAN": "lower({c}) IN ('true', 'false')",
}


@dataclass(frozen=True)
class Coding:
    """How a table is stored: ids as "number" or "text".

    ``classes`` are the labels of targets that are text; they become the indices of their labels.
    """

    ids: str
    classes: dict[str, list[str]]


@dataclass(frozen=True)
class Scan:
    """Consecutive files of one layout in a table, or one piece of a file."""

    columns: Columns
    files: tuple[TableFile, ...]

    def values(self, starts: Sequence[int]) -> str:
        """Return the query of all rows: the cells of the files and the values made from them.

        Its columns are ``file``, the position in this scan; ``row``, counted from ``starts``, the
        numbers of the files' first rows; ``id``; the coordinates ``x0`` …; the targets as written,
        ``y0`` …, and as numbers, ``z0`` …. For each input there are also the cell and its value,
        under their `alias`; the value is NULL if the cell has none. For lists there are
        ``written``, the row of the file, and ``items``, its number of points.

        A missing value is NULL; a missing value of an expression is NaN. An expression that fails
        is NULL; for a target that fails, ``e0`` … is true.
        """
        made = ["*"]
        for j, column in enumerate(self.columns.coordinates):
            made.append(
                f"{_number_of(column.sql) if column.sql else column.of(column.text)} AS x{j}"
            )
        for j, column in enumerate(self.columns.targets):
            if column.sql:
                made += [
                    f"TRY({_text_of(column.sql)}) AS y{j}",
                    f"{_plain_number(f'y{j}')} AS z{j}",
                ]
                made.append(f"TRY(({column.sql}) IS NULL) IS NULL AS e{j}")
        return f"SELECT {', '.join(made)} FROM ({self.cells(starts)})"

    def cells(self, starts: Sequence[int]) -> str:
        """Return the query of `values` without the values of expressions."""
        cells = ["file_index AS file", f"{self._row(starts)} AS row", f"{self._id()} AS id"]
        columns = [target.text for target in self.columns.coordinates if not target.sql]
        typed = inputs_of(self.columns.expressions)
        cells += [f"{self._shown(name)} AS {alias('r', name)}" for name in (*columns, *typed)]
        cells += [f"{self._number(name)} AS {alias('n', name)}" for name in columns]
        cells += [f"{self._typed(name)} AS {alias('v', name)}" for name in typed]
        for j, target in enumerate(self.columns.targets):
            if not target.sql:
                cells += [
                    f"{self._cell(target.text)} AS y{j}",
                    f"{self._number(target.text)} AS z{j}",
                ]
        cells += self._claims()
        cells += [WRITTEN, ITEMS] if self.files[0].lists else []
        return f"SELECT {', '.join(dict.fromkeys(cells))} FROM {self._source()}"

    def coded(self, starts: Sequence[int], coding: Coding) -> str:
        """Return the query of all rows as they are stored: ``id``, ``row``, ``x0`` …, ``y0`` ….

        A missing target is NULL. A coordinate is NULL only if the file was changed meanwhile.
        """
        selected = [f"TRY_CAST(id AS {SQL_TYPES[coding.ids]}) AS id", "row"]
        kind, n_coordinates = SQL_TYPES[self.columns.dtype], len(self.columns.coordinates)
        for j, coordinate in enumerate(self.columns.coordinates):
            number = f"x{j}"
            if coordinate.name in self.columns.fills:
                median = float(self.columns.fills[coordinate.name])
                number = (
                    f"CASE WHEN {null_condition(number)} THEN '{median!r}'::DOUBLE ELSE x{j} END"
                )
            selected.append(f"TRY_CAST({number} AS {kind}) AS x{j}")
        for k, j in enumerate(self.columns.flagged, n_coordinates):
            selected.append(f"CAST(CAST({null_condition(f'x{j}')} AS INTEGER) AS {kind}) AS x{k}")
        for j, target in enumerate(self.columns.targets):
            value = f"z{j}"
            if target.name in coding.classes:
                labels = ", ".join(map(quoted, coding.classes[target.name])) or "''"
                value = f"enum_code(TRY_CAST({self.label(j)} AS ENUM({labels})))"
            selected.append(f"CAST({value} AS DOUBLE) AS y{j}")
        return f"SELECT {', '.join(selected)} FROM ({self.values(starts)})"

    def label(self, j: int) -> str:
        """Return target ``j`` of `values` as a class label; 1.0 becomes "1", as an integer does.

        pandas stores a column of integers as floats if a value is missing.
        """
        kind, text = self.kind_of(self.columns.targets[j]), f"CAST(y{j} AS VARCHAR)"
        if not is_number(kind) or kind in INTEGERS:
            return text
        whole = f"CAST(TRY_CAST(z{j} AS BIGINT) AS VARCHAR)"
        as_text = f"WHEN z{j} = trunc(z{j}) THEN coalesce({whole}, {text}) ELSE {text} END"
        return f"CASE WHEN {is_nan(f'z{j}')} THEN NULL {as_text}"

    def kind_of(self, target: Value) -> str:
        """Return Arrow's name of a target's type; `UNTYPED` for CSV and for expressions."""
        return UNTYPED if target.sql else self.type_of(target.text)

    def type_of(self, name: str) -> str:
        """Return Arrow's name of a column's type; `UNTYPED` in CSV."""
        return self.files[0].type_of(name)

    @property
    def id_type(self) -> str:
        """Arrow's name of the type of ids; ids of several columns are text."""
        if not self.columns.ids:
            return "null"
        kind = self.type_of(self.columns.ids[0])
        if len(self.columns.ids) > 1 or is_time(kind) or is_binary(kind):
            return "string"
        return "int64" if kind in FLOATS or is_decimal(kind) else kind

    def _id(self) -> str:
        if not self.columns.ids:  # a table whose ids were read before
            return "''"
        columns = [self._part_of_id(name) for name in self.columns.ids]
        if len(columns) == 1:
            return columns[0]
        return " || '/' || ".join(f"CAST({column} AS VARCHAR)" for column in columns)

    def _part_of_id(self, name: str) -> str:
        """Return a column of ids: whole numbers as integers, times at midnight as dates."""
        column, kind = self._column(name), self.type_of(name)
        if is_time(kind):
            day = f"CAST({column} AS DATE)"
            texts = f"CAST({day} AS VARCHAR) ELSE CAST({column} AS VARCHAR)"
            text = f"CASE WHEN {column} = {day} THEN {texts} END"
            if not self._is_fine(name):
                return text
            raw = f"c{self.files[0].positions[name]}"  # `_column` has whole microseconds
            return (
                f"CASE WHEN epoch_ns({raw}) % 1000 = 0 THEN {text} ELSE CAST({raw} AS VARCHAR) END"
            )
        if is_binary(kind):  # printable bytes as they are, others as \\x00
            return f"CAST({column} AS VARCHAR)"
        if kind in FLOATS:
            is_whole = f"abs({column}) < {EXACT_FLOATS[kind]} AND {column} = trunc({column})"
            return f"CASE WHEN {is_whole} THEN TRY_CAST({column} AS BIGINT) END"
        if is_decimal(kind):
            return f"CASE WHEN {column} = trunc({column}) THEN TRY_CAST({column} AS BIGINT) END"
        return column

    def _is_fine(self, name: str) -> bool:
        """Return whether a column of a file has instants of nanoseconds."""
        is_part = name in dict(self.files[0].parts)
        return not is_part and self.type_of(name).startswith("timestamp[ns, tz=")

    def _column(self, name: str) -> str:
        if name not in dict(self.files[0].parts):
            column = f"c{self.files[0].positions[name]}"
            is_fine = self._is_fine(name)  # few functions take these
            return f"CAST({column} AS TIMESTAMP WITH TIME ZONE)" if is_fine else column
        return _by_file([dict(file.parts)[name] for file in self.files])

    def _claims(self) -> list[str]:
        """Return, for each column that folders name, too, its value there and whether both differ.

        They agree as texts, numbers or times: "True" is true, "01" is 1.
        """
        selected = []
        for j, (name, _) in enumerate(self.files[0].claims):
            folder = _by_file([file.claims[j][1] for file in self.files])
            cell = f"CAST({self._column(name)} AS VARCHAR)"
            same = [f"lower({cell}) = lower({folder})"] + [
                f"TRY_CAST({cell} AS {kind}) = TRY_CAST({folder} AS {kind})"
                for kind in ("DOUBLE", "TIMESTAMP")
            ]
            both_missing = f"(nullif({cell}, '') IS NULL AND {folder} IS NULL)"
            are_same = " OR ".join(f"coalesce({condition}, false)" for condition in same)
            selected += [f"{cell} AS {CLAIM}{j}", f"{folder} AS {FOLDER}{j}"]
            selected.append(f"NOT ({are_same} OR {both_missing}) AS {UNLIKE}{j}")
        return selected

    def _cell(self, name: str) -> str:
        """Return a column without the values that count as missing."""
        column, kind = self._column(name), self.type_of(name)
        words = self.columns.missing_values
        numerals = [word for word in words if _isnumeral_of(word)]
        of_words = f"{column} IN ({', '.join(map(quoted, words))})"
        of_numbers = f"TRY_CAST({column} AS DOUBLE) IN ({', '.join(numerals)})"
        if kind == "float":  # in which -99.9 is another number than in double
            singles = (f"CAST({word} AS FLOAT)" for word in numerals)
            of_numbers = f"{column} IN ({', '.join(singles)})"
        if not words or not (kind == UNTYPED or kind in TEXTS or (is_number(kind) and numerals)):
            return column
        missing = of_numbers if is_number(kind) else of_words
        if kind == UNTYPED and numerals:
            missing = f"{of_words} OR coalesce({of_numbers}, false)"
        return f"CASE WHEN {missing} THEN NULL ELSE {column} END"

    def _shown(self, name: str) -> str:
        """Return a column's cells as messages show them; times with a zone as texts of UTC."""
        cell = self._cell(name)
        return f"CAST({cell} AS VARCHAR)" if "tz=" in self.type_of(name) else cell

    def _number(self, name: str) -> str:
        """Return a column's cells as numbers; dates are days since 1970-01-01."""
        cell, kind = self._cell(name), self.type_of(name)
        declared = self.columns.read.types.get(name) if kind == UNTYPED else None
        if is_time(kind) or declared in ("DATE", "TIMESTAMP"):
            moment = moment_of(cell, "TRY_CAST") if declared else cell
            return f"epoch({moment}) / {SECONDS_PER_DAY}"
        if declared == "BOOLEAN":
            return f"CAST(TRY_CAST(trim({cell}) AS BOOLEAN) AS DOUBLE)"
        if kind == UNTYPED:
            return self.numeral_of(cell)
        return _plain_number(cell) if kind in TEXTS else f"CAST({cell} AS DOUBLE)"

    def _typed(self, name: str) -> str:
        """Return a column's cells with its type, in CSV that of `Columns.types`."""
        cell, kind = self._cell(name), self.columns.types.get(name, "VARCHAR")
        if kind == "VARCHAR" or self.type_of(name) != UNTYPED:
            return cell
        value = self.numeral_of(cell) if kind in NUMBER_TYPES else f"trim({cell})"
        if kind == "TIMESTAMP":
            return moment_of(value, "TRY_CAST")
        return value if kind == "DOUBLE" else f"TRY_CAST({value} AS {kind})"

    def numeral_of(self, cell: str) -> str:
        """Return a cell of CSV as a number."""
        decimal, thousands = self.columns.read.decimal_separator, self.columns.read.thousands
        number = cell
        if thousands:
            group, rest = re.escape(thousands), re.escape(decimal)
            grouped = quoted(rf"\s*[+-]?\d{{1,3}}({group}\d{{3}})+({rest}\d*)?\s*")
            plain = f"replace({cell}, {quoted(thousands)}, '')"
            number = f"CASE WHEN regexp_full_match({cell}, {grouped}) THEN {plain} ELSE {cell} END"
        if decimal == ",":
            has_point = f"contains({number}, '.')"
            comma = f"replace({number}, ',', '.')"
            return f"CASE WHEN {has_point} THEN NULL ELSE {_plain_number(comma)} END"
        return _plain_number(number)

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
        read = self.columns.read
        types = ", ".join(f"{column}: 'VARCHAR'" for column in columns)
        nulls = ", ".join(map(quoted, read.nullstr))
        options = {"delim": first.delimiter, **read.sql()}
        dialect = [f"{name}={quoted(str(value))}" for name, value in options.items()]
        return (
            f"read_csv([{paths}], auto_detect=false, header={not first.start and not read.names}, "
            f"{', '.join(dialect)}, nullstr=[{nulls}], allow_quoted_nulls=false, "
            f"compression='{'gzip' if first.is_gzip else 'none'}', columns={{{types}}})"
        )

    def _items(self, source: str) -> str:
        """Return the query of one row per item of the lists; an empty list is a missing value."""
        lists = [self._column(name) for name in self.files[0].lists]
        of_file = [name for name in self.columns.names if name not in dict(self.files[0].parts)]
        names = dict.fromkeys(map(self._column, of_file))
        selected = ["file_index", *(column for column in names if column not in lists)]
        selected += [f"{ROW} AS {WRITTEN}", f"coalesce(len({lists[0]}), 0) AS {ITEMS}"]
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
        of_folders += ("", *(name for name, _ in file.claims))
        kind = file.names, file.types, [*file.lists], file.delimiter, of_folders
        piece = file.start, file.stop, file.index // FILES_PER_SCAN
        return (file.is_parquet, file.is_gzip, *kind, *piece)

    return [Scan(columns, tuple(group)) for _, group in groupby(files, layout)]


def guess_types(columns: Columns, files: Sequence[TableFile], database: Database) -> Columns:
    """Return the columns with the types of the CSV columns that expressions read.

    The type is the given one, or the first type that fits all cells of the first rows.
    """
    types = {**columns.read.types}
    for scan in scans_of(columns, files):
        typed = inputs_of(columns.expressions)
        asked = [n for n in typed if scan.type_of(n) == UNTYPED and n not in types]
        if asked:
            rows = f"SELECT * FROM ({scan.cells([0] * len(scan.files))}) LIMIT {ROWS_TO_GUESS}"
            guesses = ", ".join(_guess(scan, alias("r", name)) for name in asked)
            [answer] = database.fetch(f"SELECT {guesses} FROM ({rows})")
            types |= zip(asked, answer.values(), strict=True)
    return replace(columns, types=types)


def _by_file(values: Sequence[str | None]) -> str:
    """Return the SQL of a text that each file of a scan has, or NULL."""
    texts = ", ".join("NULL" if value is None else quoted(value) for value in values)
    return f"CAST([{texts}] AS VARCHAR[])[CAST(file_index AS BIGINT) + 1]"


def _guess(scan: Scan, cell: str) -> str:
    """Return the SQL that asks for the first type that all texts of a column fit."""
    tests = {"DOUBLE": f"{scan.numeral_of(cell)} IS NOT NULL"}
    tests |= {kind: test.format(c=cell) for kind, test in GUESSES.items()}
    fit = f"WHEN bool_and({{}}) FILTER ({cell} IS NOT NULL) THEN '{{}}'"
    cases = " ".join(fit.format(test, kind) for kind, test in tests.items())
    return f"CASE {cases} ELSE 'VARCHAR' END AS {cell}"


def is_nan(number: str) -> str:
    """Return the condition that a number is NaN.

    DuckDB answers ``isnan`` from the minimum and maximum that a Parquet file states, which ignore
    NaN.
    """
    return f"(NOT isfinite({number}) AND NOT isinf({number}))"


def null_condition(number: str) -> str:
    """Return the condition that a number is NULL or NaN."""
    return f"coalesce({is_nan(number)}, true)"


def _number_of(expression: str) -> str:
    """Return an expression as a number, NaN if it is NULL, and NULL if it fails."""
    return f"TRY(coalesce(CAST({expression} AS DOUBLE), CAST('NaN' AS DOUBLE)))"


def _text_of(expression: str) -> str:
    """Return an expression as a CSV file would write it; booleans are 1 and 0."""
    text = f"CAST({expression} AS VARCHAR)"
    truth = f"CAST(CAST({text} = 'true' AS INTEGER) AS VARCHAR)"
    return f"CASE WHEN typeof({expression}) = 'BOOLEAN' THEN {truth} ELSE {text} END"


def _plain_number(text: str) -> str:
    """Return a text as a number; 1_000 is not a number but text, such as a class label."""
    return f"CASE WHEN contains({text}, '_') THEN NULL ELSE TRY_CAST({text} AS DOUBLE) END"


def _isnumeral_of(word: str) -> bool:
    """Return whether a text is a finite number, as Python and SQL both write it."""
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word, re.ASCII) is not None
