"""The first look at a long table: every row is checked, every column measured.

A column holds numbers or text. CSV does not say which: a column of numerals may be either, and the
other files decide.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats
from ..bags.box import Box
from ..errors import DataError
from .table_columns import Columns, Indicator
from .table_files import INTEGERS, TEXTS, UNTYPED, TableFile, check_pages
from .table_scans import SQL_TYPES, Database, Report, Scan, is_nan, scans_of
from .table_targets import describe_unfit, is_unfit

RANGE = (("lo", "min"), ("hi", "max"))  # names of the answers, and of what is asked
SAMPLE = 512  # ids of each piece of a table, of which the ranges of a shuffle are made


class Kind(NamedTuple):
    """What a column holds in one file: "number", "text" or "either", with a text found in it.

    Of a target, ``n_texts`` of its cells are text that is no number, ``n_numbers`` are numbers.
    """

    kind: str
    file: str
    example: str | None = None
    n_texts: int = 0
    n_numbers: int = 0


@dataclass(frozen=True)
class Survey:
    """One file, or one piece of a file, in small.

    ``lo`` and ``hi`` are the range of each coordinate in the units of the data, ``points`` the
    coordinates of random rows. ``problem`` is the first row that can not be used, and what is
    wrong with it; ``sample`` the ids of random rows.
    """

    file: TableFile
    n_rows: int
    lo: tuple[float, ...]
    hi: tuple[float, ...]
    id_kind: Kind
    target_kinds: tuple[Kind, ...]
    points: Floats
    problem: tuple[int, str] | None = None
    sample: tuple[Any, ...] = ()


@dataclass(frozen=True)
class CheckedTable:
    """A table whose rows can all be used, with the surveys of its files, or pieces, in order."""

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

    @property
    def range(self) -> tuple[Floats, Floats]:
        """The least and the largest value of each coordinate."""
        lo = np.min([survey.lo for survey in self.surveys], axis=0)
        return lo, np.max([survey.hi for survey in self.surveys], axis=0)

    def box(self, box: Box | float) -> Box:
        """Return the box that is given, or the one around the points by a quantile."""
        if isinstance(box, Box):
            return box
        sample = np.concatenate([survey.points for survey in self.surveys])
        return Box.around(*self.range, sample, box)

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
    for one, least in zip(columns.coordinates, table.range[0], strict=True):
        if least == inf:
            raise DataError(
                f"{table.surveys[0].file.url}: coordinate {one.column!r} is missing in all rows"
            )
    return table


def refuse_stray_texts(table: CheckedTable, database: Database) -> None:
    """Refuse a target that is a number in most cells and text in some: which is not guessed.

    Raises
    ------
    DataError
        Names the target, and the first cell that is no number.
    """
    types = table.columns.target_types
    for j, name in enumerate(table.columns.targets):
        kinds = [survey.target_kinds[j] for survey in table.surveys]
        n_texts, n_numbers = sum(k.n_texts for k in kinds), sum(k.n_numbers for k in kinds)
        declared = types.get(name)
        if n_texts and (declared == "number" or (declared is None and n_numbers > n_texts)):
            row, text = _first_text(table, j, database)
            raise DataError(
                f"{table.place_of(row)}: target {name!r} is {text!r}, not a number, as {n_numbers} "
                f"of its {n_texts + n_numbers} values are; name it in missing_values, or set "
                f"target_types: {{{name}: class}} if all of them are labels of classes"
            )
        is_text = any(kind.kind == "text" for kind in kinds)
        if is_text and n_numbers and not n_texts and declared is None:
            raise DataError(
                f"{kinds[0].file}: target {name!r} is text, but all its values are numbers; "
                f"set target_types: {{{name}: number}} or {{{name}: class}}"
            )


def _first_text(table: CheckedTable, j: int, database: Database) -> tuple[int, str]:
    """Return the first cell of a target that is text and no number, with its row."""
    for scan, starts in table.scans():
        if scan.type_of(table.columns.targets[j]) in (UNTYPED, *TEXTS):
            query = f"SELECT row, y{j} FROM ({scan.values(starts)}) WHERE {_is_text(j)}"
            for row, text in database.fetch(f"{query} ORDER BY row LIMIT 1"):
                return row, text
    raise DataError(f"{table.surveys[0].file.url}: the file was changed while it was read")


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
    scan: Scan, dtype: str, share: float, database: Database, report: Report | None = None
) -> list[Survey]:
    """Look at every value of each file; points will be stored as ``dtype``.

    The surveys have the coordinates of a ``share`` of the rows, which their values decide: it is
    the same rows however the files are cut.

    Raises
    ------
    DataError
        A file can not be read, has a page unlike its checksum, or holds ids beyond int64.
    """
    for file in scan.files:
        check_pages(file, scan.columns)
    asked = _questions(scan, dtype, share)
    values = scan.values([0] * len(scan.files))
    query = f"SELECT file, {', '.join(asked.values())} FROM ({values}) GROUP BY file"
    try:
        rows = database.fetch(query, report)
    except DataError:
        if len(scan.files) > 1:  # DuckDB does not always say which of them it is
            for file in scan.files:
                survey_scan(Scan(scan.columns, (file,)), dtype, share, database)
        raise
    found = {row[0]: dict(zip(asked, row[1:], strict=True)) for row in rows}
    surveys = [
        _survey(scan, file, found.get(i, dict.fromkeys(asked))) for i, file in enumerate(scan.files)
    ]
    unfit = [
        j
        for j in range(len(scan.columns.targets))
        if all(survey.target_kinds[j].kind != "text" for survey in surveys)
        and any(answers[f"unfit{j}"] for answers in found.values())
    ]
    if unfit or any(answers["bad"] for answers in found.values()):
        starts = list(accumulate((survey.n_rows for survey in surveys), initial=0))
        bad = " OR ".join([_is_bad(scan, dtype), *(is_unfit(scan, j) for j in unfit)])
        values = scan.values(starts[:-1])
        [row] = database.fetch(f"SELECT * FROM ({values}) WHERE {bad} ORDER BY row LIMIT 1")
        problem = row[1] - starts[row[0]], _describe(row, scan.columns, dtype, unfit)
        surveys[row[0]] = replace(surveys[row[0]], problem=problem)
    return surveys


def sample_ids(scan: Scan, n_rows: int, database: Database) -> tuple[Any, ...]:
    """Return the ids of a random sample of rows, the same in every run."""
    query = f"SELECT id FROM ({scan.values([0])}) WHERE id IS NOT NULL ORDER BY hash(row)"
    return tuple(row[0] for row in database.fetch(f"{query} LIMIT {n_rows}"))


def _questions(scan: Scan, dtype: str, share: float) -> dict[str, str]:
    """Return what is asked of the rows of each file, in SQL, by the name of the answer."""
    columns, id_type = scan.columns, scan.id_type
    numeral = "TRY_CAST(id AS BIGINT)"
    asked = {"rows": "count(*)", "bad": f"count_if({_is_bad(scan, dtype)})"}
    # A numeral in CSV counts only as Python writes the integer, so that 007 and 7 stay two bags.
    asked["id"] = _example(id_type, "id", f"CAST({numeral} AS VARCHAR) IS DISTINCT FROM id")
    asked["beyond"] = (
        f"count_if({numeral} IS NULL AND id IS NOT NULL)" if id_type == "uint64" else "0"
    )
    numbers = [f"x{j}" for j in range(len(columns.coordinates))]
    for j, x in enumerate(numbers):  # DuckDB takes NaN, which is missing, for the largest number
        asked |= {f"{of}{j}": f"{least}({x}) FILTER (NOT {is_nan(x)})" for of, least in RANGE}
    if numbers and share:
        row = f"hash({', '.join(['id', *numbers])}) < {int(share * 2**64)}::UHUGEINT"
        asked["points"] = f"list([{', '.join(numbers)}]) FILTER ({row})"
    for j, name in enumerate(columns.targets):
        kind = scan.type_of(name)
        asked[f"y{j}"] = _example(kind, f"y{j}", f"z{j} IS NULL")
        is_text = f"count_if({_is_text(j)})" if kind in (UNTYPED, *TEXTS) else "0"
        asked |= {f"texts{j}": is_text, f"numbers{j}": f"count(z{j})"}
        asked[f"unfit{j}"] = f"count_if({is_unfit(scan, j)})"
    return asked


def _is_text(j: int) -> str:
    """Return the condition that a target, which may be text, is no number."""
    return f"y{j} <> '' AND z{j} IS NULL"


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
    # In CSV a coordinate may be text: then r is there, but x is not.
    missing = f"coalesce({is_nan('{x}')}, false) OR ({{x}} IS NULL AND {{r}} IS NULL)"
    allowed = "false" if scan.columns.missing == "refuse" else missing
    bad = [
        f"NOT ({allowed.format(x=f'x{j}', r=f'r{j}')} "
        f"OR coalesce(isfinite(TRY_CAST(x{j} AS {number})), false))"
        for j in range(len(scan.columns.coordinates))
    ]
    empty = [] if scan.id_type in INTEGERS else ["id = ''"]
    return " OR ".join(["id IS NULL", *empty, *bad])


def _survey(scan: Scan, file: TableFile, answers: Mapping[str, Any]) -> Survey:
    if answers["beyond"]:
        raise DataError(
            f"{file.url}: ids in column {scan.columns.ids[0]!r} exceed int64; store them as text"
        )
    dims, columns = range(len(scan.columns.coordinates)), scan.columns
    return Survey(
        file=file,
        n_rows=answers["rows"] or 0,
        lo=tuple(inf if answers[f"lo{j}"] is None else answers[f"lo{j}"] for j in dims),
        hi=tuple(-inf if answers[f"hi{j}"] is None else answers[f"hi{j}"] for j in dims),
        points=np.array(answers.get("points") or np.empty((0, len(dims))), dtype=np.float64),
        id_kind=_kind(scan.id_type, file, answers["id"]),
        target_kinds=tuple(
            _kind(
                scan.type_of(name), file, answers[f"y{j}"], columns.target_types.get(name)
            )._replace(n_texts=answers[f"texts{j}"] or 0, n_numbers=answers[f"numbers{j}"] or 0)
            for j, name in enumerate(columns.targets)
        ),
    )


def _kind(
    type_name: str, file: TableFile, example: str | None, declared: str | None = None
) -> Kind:
    if declared is not None:
        return Kind("text" if declared == "class" else "number", file.url, example)
    if type_name in (UNTYPED, "null"):
        return Kind("either" if example is None else "text", file.url, example)
    return Kind("text" if type_name in TEXTS else "number", file.url, example)


def _describe(row: Sequence[Any], columns: Columns, dtype: str, unfit: Sequence[int]) -> str:
    """Say what is wrong with a row of `Scan.values`, of its targets with one of the ``unfit``."""
    bag, values = row[2], list(zip(row[3::2], row[4::2], strict=True))
    if bag is None or bag == "":
        return "the bag id is missing, or a number that is not whole; give every row its bag's id"
    for one, (given, number) in zip(columns.coordinates, values, strict=False):
        name = one.column
        if given is not None and number is None:
            if isinstance(one, Indicator):
                none = f"none of its categories {list(one.labels)}"
                return f"bag {bag!r}: coordinate {one.column!r} is {given!r}, {none}"
            return f"bag {bag!r}: coordinate {name!r} is {given!r}, not a number"
        with np.errstate(over="ignore"):
            if number is None or not np.isfinite(np.dtype(dtype).type(number)):
                shown = "missing" if number is None else number
                what = f"coordinate {name!r} is {shown}, not a finite {dtype}"
                drop = "or set missing to drop_point or drop_bag" if number is None else ""
                return f"bag {bag!r}: {what}; remove the point or the bag{drop and f', {drop}'}"
    return f"bag {bag!r}: {describe_unfit(columns, values, unfit)}"
