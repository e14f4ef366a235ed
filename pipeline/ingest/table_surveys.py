"""The first look at a long table: every row is checked, every column measured.

A column holds numbers or text. CSV does not say which: there a column of numerals is "either",
and what the other files hold decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from math import inf, isinf
from typing import Any, NamedTuple

import numpy as np

from ..bags.box import Box
from ..errors import DataError
from .table_files import INTEGERS, TEXTS, UNTYPED, Columns, TableFile, check_pages
from .table_scans import SQL_TYPES, Database, Report, Scan, scans_of

MAX_CLASSES = 2**14  # a text target with more labels than any classifier has is the wrong column
SAMPLE = 512  # ids of each piece of a table, of which the ranges of a shuffle are made


Labels = dict[str, set[str]]  # the texts of each target


class Kind(NamedTuple):
    """What a column holds in one file: "number", "text" or "either", with a text found in it."""

    kind: str
    file: str
    example: str | None = None


@dataclass(frozen=True)
class Survey:
    """One file, or one piece of a file, in small.

    ``lo`` and ``hi`` are the range of each coordinate in the units of the data. ``problem`` is
    the first row that can not be used, and what is wrong with it; ``sample`` the ids of random
    rows.
    """

    file: TableFile
    n_rows: int
    lo: tuple[float, ...]
    hi: tuple[float, ...]
    id_kind: Kind
    target_kinds: tuple[Kind, ...]
    problem: tuple[int, str] | None = None
    sample: tuple[Any, ...] = ()


@dataclass(frozen=True)
class CheckedTable:
    """A table whose rows can all be used: the surveys of its files, or pieces, in their order."""

    columns: Columns
    surveys: tuple[Survey, ...]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.starts[-1]

    @cached_property
    def starts(self) -> list[int]:
        """Return the number of each file's or piece's first row in the table, and of all rows."""
        return [0, *accumulate(survey.n_rows for survey in self.surveys)]

    def place_of(self, row: int) -> str:
        """Return the file of a row and its number there, for messages."""
        at = bisect_right(self.starts, row) - 1
        file = self.surveys[at].file
        before = sum(s.n_rows for s in self.surveys[:at] if s.file.url == file.url)
        return f"{file.url}, row {row - self.starts[at] + before}"

    def scans(self) -> list[tuple[Scan, list[int]]]:
        """Return what one query reads together, with the number of the first row of each file."""
        scans = scans_of(self.columns, [survey.file for survey in self.surveys])
        starts = iter(self.starts)
        return [(scan, list(islice(starts, len(scan.files)))) for scan in scans]

    def box(self) -> Box:
        """Return the range of the points, widened by the margin of `Box.around`."""
        lo = np.min([survey.lo for survey in self.surveys], axis=0)
        return Box.around(lo, np.max([survey.hi for survey in self.surveys], axis=0))

    def text_targets(self) -> list[str]:
        """Return the targets that are text.

        Raises
        ------
        DataError
            Numbers in one file and text in another.
        """
        kinds = zip(*(survey.target_kinds for survey in self.surveys), strict=True)
        named = zip(self.columns.targets, kinds, strict=True)
        return [name for name, of in named if resolve_kinds(f"target {name!r}", of) == "text"]


def check_table(columns: Columns, surveys: Iterable[Survey]) -> CheckedTable:
    """Return the table that was surveyed.

    Raises
    ------
    DataError
        The first row that can not be used, with its file and its number there, counted from 0
        without the header; or a table without rows.
    """
    table = CheckedTable(columns, tuple(surveys))
    for start, survey in zip(table.starts, table.surveys, strict=False):
        if survey.problem is not None:
            row, what = survey.problem
            raise DataError(f"{table.place_of(start + row)}: {what}")
    if not table.n_rows:
        raise DataError(f"{table.surveys[0].file.url}: the table has no rows")
    return table


def resolve_kinds(what: str, kinds: Iterable[Kind]) -> str:
    """Return "number" or "text" for a column of several files; numerals in CSV follow the others.

    Raises
    ------
    DataError
        Numbers in one file and text in another; ``what`` names the column.
    """
    first: dict[str, Kind] = {}
    for kind in kinds:
        first.setdefault(kind.kind, kind)
    if "number" in first and "text" in first:
        raise DataError(
            f"{what} holds numbers in {first['number'].file} and text in {first['text'].file} "
            f"(such as {first['text'].example!r}); write them alike"
        )
    return "text" if "text" in first else "number"


def survey_scan(
    scan: Scan, dtype: str, database: Database, report: Report | None = None
) -> list[Survey]:
    """Look at every value of each file; points will be stored as ``dtype``.

    Raises
    ------
    DataError
        A file can not be read, has a page unlike its checksum, or holds ids beyond int64.
    """
    for file in scan.files:
        check_pages(file, scan.columns)
    asked = _questions(scan, dtype)
    values = scan.values([0] * len(scan.files))
    query = f"SELECT file, {', '.join(asked.values())} FROM ({values}) GROUP BY file"
    try:
        rows = database.fetch(query, report)
    except DataError:
        if len(scan.files) > 1:  # DuckDB does not always say which of them it is
            for file in scan.files:
                survey_scan(Scan(scan.columns, (file,)), dtype, database)
        raise
    found = {row[0]: dict(zip(asked, row[1:], strict=True)) for row in rows}
    surveys = [
        _survey(scan, file, found.get(i, dict.fromkeys(asked))) for i, file in enumerate(scan.files)
    ]
    infinite = [
        f"isinf(z{j})"
        for j in range(len(scan.columns.targets))
        if all(survey.target_kinds[j].kind != "text" for survey in surveys)
        and any(answers[f"infinite{j}"] for answers in found.values())
    ]
    if infinite or any(answers["bad"] for answers in found.values()):
        starts = list(accumulate((survey.n_rows for survey in surveys), initial=0))
        bad = " OR ".join([_is_bad(scan, dtype), *infinite])
        values = scan.values(starts[:-1])
        [row] = database.fetch(f"SELECT * FROM ({values}) WHERE {bad} ORDER BY row LIMIT 1")
        problem = row[1] - starts[row[0]], _describe(row, scan.columns, dtype)
        surveys[row[0]] = replace(surveys[row[0]], problem=problem)
    return surveys


def sample_ids(scan: Scan, n_rows: int, database: Database) -> tuple[Any, ...]:
    """Return the ids of rows that are random, but the same in every run."""
    query = f"SELECT id FROM ({scan.values([0])}) WHERE id IS NOT NULL ORDER BY hash(row)"
    return tuple(row[0] for row in database.fetch(f"{query} LIMIT {n_rows}"))


def find_labels(scan: Scan, targets: Sequence[str], database: Database) -> Labels:
    """Return the different texts of each target, at most one more than `MAX_CLASSES`."""
    values = scan.values([0] * len(scan.files))
    found = {}
    for name in targets:
        label = f"CAST(y{scan.columns.targets.index(name)} AS VARCHAR)"
        labels = f"SELECT DISTINCT {label} FROM ({values}) WHERE {label} <> ''"
        rows = database.fetch(f"{labels} LIMIT {MAX_CLASSES + 1}")
        found[name] = {row[0] for row in rows}
    return found


def sort_labels(name: str, parts: Iterable[set[str]]) -> list[str]:
    """Return the labels of a target in the order of their indices.

    Raises
    ------
    DataError
        More of them than `MAX_CLASSES`.
    """
    labels: set[str] = set().union(*parts)
    if len(labels) > MAX_CLASSES:
        raise DataError(
            f"target {name!r} is text with more than {MAX_CLASSES} different values, so not "
            "a class label; name another column"
        )
    return sorted(labels)


def _questions(scan: Scan, dtype: str) -> dict[str, str]:
    """Return what is asked of the rows of each file, in SQL, by the name of the answer."""
    columns, id_type = scan.columns, scan.type_of(scan.columns.id)
    numeral = "TRY_CAST(id AS BIGINT)"
    asked = {"rows": "count(*)", "bad": f"count_if({_is_bad(scan, dtype)})"}
    # A numeral in CSV counts only as Python writes the integer, so that 007 and 7 stay two bags.
    asked["id"] = _example(id_type, "id", f"CAST({numeral} AS VARCHAR) IS DISTINCT FROM id")
    asked["beyond"] = (
        f"count_if({numeral} IS NULL AND id IS NOT NULL)" if id_type == "uint64" else "0"
    )
    for j in range(len(columns.coordinates)):
        asked |= {f"lo{j}": f"min(x{j})", f"hi{j}": f"max(x{j})"}
    for j, name in enumerate(columns.targets):
        asked[f"y{j}"] = _example(scan.type_of(name), f"y{j}", f"z{j} IS NULL")
        asked[f"infinite{j}"] = f"count_if(isinf(z{j}))"
    return asked


def _example(type_name: str, column: str, is_text: str) -> str:
    """Return the query of the first text of a column, by the alphabet."""
    if type_name in TEXTS:
        return f"min({column})"
    return (
        f"min({column}) FILTER ({column} <> '' AND {is_text})" if type_name == UNTYPED else "NULL"
    )


def _is_bad(scan: Scan, dtype: str) -> str:
    """Return the condition that a row has no id, or a coordinate that is not finite."""
    number = SQL_TYPES[dtype]
    bad = [
        f"NOT coalesce(isfinite(TRY_CAST(x{j} AS {number})), false)"
        for j in range(len(scan.columns.coordinates))
    ]
    empty = [] if scan.type_of(scan.columns.id) in INTEGERS else ["id = ''"]
    return " OR ".join(["id IS NULL", *empty, *bad])


def _survey(scan: Scan, file: TableFile, answers: Mapping[str, Any]) -> Survey:
    if answers["beyond"]:
        raise DataError(
            f"{file.url}: ids in column {scan.columns.id!r} exceed int64; store them as text"
        )
    dims, columns = range(len(scan.columns.coordinates)), scan.columns
    return Survey(
        file=file,
        n_rows=answers["rows"] or 0,
        lo=tuple(inf if answers[f"lo{j}"] is None else answers[f"lo{j}"] for j in dims),
        hi=tuple(-inf if answers[f"hi{j}"] is None else answers[f"hi{j}"] for j in dims),
        id_kind=_kind(scan.type_of(columns.id), file, answers["id"]),
        target_kinds=tuple(
            _kind(scan.type_of(name), file, answers[f"y{j}"])
            for j, name in enumerate(columns.targets)
        ),
    )


def _kind(type_name: str, file: TableFile, example: str | None) -> Kind:
    if type_name in (UNTYPED, "null"):
        return Kind("either" if example is None else "text", file.url, example)
    return Kind("text" if type_name in TEXTS else "number", file.url, example)


def _describe(row: Sequence[Any], columns: Columns, dtype: str) -> str:
    """Say what is wrong with a row of `Scan.values`."""
    bag, values = row[2], list(zip(row[3::2], row[4::2], strict=True))
    if bag is None or bag == "":
        return "the bag id is missing; give every row its bag's id or remove it"
    for name, (given, number) in zip(columns.coordinates, values, strict=False):
        if given is not None and number is None:
            return f"bag {bag!r}: coordinate {name!r} is {given!r}, not a number"
        with np.errstate(over="ignore"):
            if number is None or not np.isfinite(np.dtype(dtype).type(number)):
                shown = "missing" if number is None else number
                what = f"coordinate {name!r} is {shown}, not a finite {dtype}"
                return f"bag {bag!r}: {what}; remove the point or the bag"
    of_targets = zip(columns.targets, values[len(columns.coordinates) :], strict=True)
    name = next(name for name, (_, number) in of_targets if number is not None and isinf(number))
    return f"bag {bag!r}: target {name!r} is infinite"
