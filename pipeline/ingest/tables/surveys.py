"""First pass over a long table: every row is checked, every column measured.

A column holds numbers or text. CSV does not say which. A column of numerals may be either, and the
other files decide.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate, islice
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Floats
from ...core.errors import DataError
from ...data.bags.box import Box
from ...data.bags.precision import check_integers_apart
from ...data.store.targets import NUMERAL
from .bad_rows import (
    BadRow,
    RowProblem,
    check_expressions,
    first_problem,
    problems_of,
    text_condition,
    unfit_numbers,
)
from .database import Database, QueryReport
from .files import INTEGERS, TEXTS, UNTYPED, TableFile, check_pages, is_number, is_time
from .lines import line_of
from .scans import Scan, is_nan, null_condition, scans_of
from .values import MEDIAN, Columns, flag_of

logger = logging.getLogger(__name__)

COORDINATES_PER_SURVEY = 1_024  # coordinates that one query surveys
N_HASHED = 8  # coordinates by whose values rows of wider tables are sampled
SAMPLED_CELLS = 512  # ids of each piece of a table, from which the ranges of a shuffle are made
# a number with a sign, a comparison or a unit, which is the group
_AMOUNT = re.compile(r"[<>≤≥~≈]?\s*[-+−]?\s*\d+(?:[.,]\d+)?\s*([^\W\d_][^\d\s]*|)")
_FEW_CLASSES = 4  # up to as many amounts, such as 6 h and 24 h, are taken for classes
_MAX_WORDS = 0.05  # rows whose id is a word, as a fraction of those whose id is a number
_MAX_CLASSES = 2**14  # a text target with more labels than any classifier has is the wrong column

SortedLabels = dict[str, set[str]]  # the texts of each target


class ColumnKind(NamedTuple):
    """What a column holds in one file: "number", "text" or "either", with a text found in it.

    ``n_texts`` of its cells are text that is not a number, ``n_numbers`` are numbers. Of a target,
    ``padded`` is a number that begins with zeros, such as 007.
    """

    kind: str
    file: str
    example: str | None = None
    n_texts: int = 0
    n_numbers: int = 0
    padded: str | None = None


@dataclass(frozen=True)
class Survey:
    """Summary of one file, or of one piece of a file.

    ``lo`` and ``hi`` are the range of each coordinate in the units of the data, and ``n_missing``
    its number of missing cells. ``points`` are the coordinates of random rows, and ``sample`` the
    ids of random rows. ``problem`` is the first row that cannot be used.
    """

    file: TableFile
    n_rows: int
    lo: Floats
    hi: Floats
    id_kind: ColumnKind
    target_kinds: tuple[ColumnKind, ...]
    points: Floats
    n_missing: tuple[int, ...] = ()
    problem: BadRow | None = None
    sample: tuple[Any, ...] = ()

    def without(self, n: int) -> Survey:
        """Return the survey without the first ``n`` coordinates."""
        return replace(
            self,
            lo=self.lo[n:],
            hi=self.hi[n:],
            points=self.points[:, n:],
            n_missing=self.n_missing[n:],
        )

    def beside(self, other: Survey) -> Survey:
        """Return the survey of the coordinates of both, of the same rows of a file."""
        problems = [survey.problem for survey in (self, other) if survey.problem is not None]
        return replace(
            other,
            lo=np.concatenate([self.lo, other.lo]),
            hi=np.concatenate([self.hi, other.hi]),
            points=np.hstack([self.points, other.points]),
            n_missing=(*self.n_missing, *other.n_missing),
            problem=min(problems, key=lambda problem: problem.row, default=None),
        )


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
        """The number of each file's or piece's first row in the table, and of all rows."""
        return [0, *accumulate(survey.n_rows for survey in self.surveys)]

    def place_of(self, row: int) -> str:
        """Return the file of a row, its number there and, for CSV, its line, for messages."""
        at = bisect_right(self.starts, row) - 1
        file = self.surveys[at].file
        before = sum(s.n_rows for s in self.surveys[:at] if s.file.url == file.url)
        what = "item of the lists" if file.lists else "row"
        number = row - self.starts[at] + before
        line = line_of(file, number, self.columns.read)
        return f"{file.url}, {what} {number}" + ("" if line is None else f" (line {line})")

    def scans(self) -> list[tuple[Scan, list[int]]]:
        """Return the scans that one query reads each, with the number of each file's first row."""
        scans = scans_of(self.columns, [survey.file for survey in self.surveys])
        starts = iter(self.starts)
        return [(scan, list(islice(starts, len(scan.files)))) for scan in scans]

    @property
    def cell_range(self) -> tuple[Floats, Floats]:
        """Minimum and maximum of each coordinate, without missing cells."""
        lo = np.min([survey.lo for survey in self.surveys], axis=0)
        return lo, np.max([survey.hi for survey in self.surveys], axis=0)

    @property
    def range(self) -> tuple[Floats, Floats]:
        """Minimum and maximum of each stored coordinate; 0 and 1 for flags."""
        lo, hi = self.cell_range
        fills = self.columns.fills
        medians = [fills.get(coordinate.name, np.nan) for coordinate in self.columns.coordinates]
        n_flags = len(self.columns.flagged)
        ends = (np.fmin(lo, medians), np.zeros(n_flags)), (np.fmax(hi, medians), np.ones(n_flags))
        return np.concatenate(ends[0]), np.concatenate(ends[1])

    def check_apart(self) -> None:
        """Raise DataError for a coordinate of integers that float64 would merge."""
        file, coordinates = self.surveys[0].file, self.columns.coordinates
        are_integers = [
            not coordinate.sql and file.type_of(coordinate.text) in (*INTEGERS, UNTYPED)
            for coordinate in coordinates
        ]
        if len(coordinates):
            names = [coordinate.name for coordinate in coordinates]
            check_integers_apart(file.url, *self.cell_range, are_integers, names)

    @cached_property
    def sample(self) -> Floats:
        """The stored coordinates of random rows, shape (n_rows, n_coordinates)."""
        cells = np.concatenate([survey.points for survey in self.surveys])
        flags = np.isnan(cells[:, self.columns.flagged])
        for j, coordinate in enumerate(self.columns.coordinates):
            if coordinate.name in self.columns.fills:
                cells[np.isnan(cells[:, j]), j] = self.columns.fills[coordinate.name]
        return np.column_stack([cells, flags])

    def box(self, box: Box | float) -> Box:
        """Return the box that is given, or the one around the points by a quantile.

        For flags, the box is around 0 and 1.
        """
        n_cells = len(self.columns.coordinates)
        if not isinstance(box, Box):
            lo, hi = self.range
            box = Box.around(
                lo[:n_cells], hi[:n_cells], sample=self.sample[:, :n_cells], quantile=box
            )
        n_flags = len(self.columns.flagged)
        if not n_flags:
            return box
        of_flags = Box.around(np.zeros(n_flags), np.ones(n_flags))
        return Box((*box.lo, *of_flags.lo), (*box.hi, *of_flags.hi))

    def with_medians(self) -> CheckedTable:
        """Return the table with the medians of the coordinates that have missing cells.

        Medians are computed from the sampled rows. DataError for a coordinate that is missing in
        all sampled rows, or whose flag has the name of another coordinate.
        """
        n_missing = np.sum([survey.n_missing for survey in self.surveys], axis=0)
        names, medians = [coordinate.name for coordinate in self.columns.coordinates], {}
        for j in np.flatnonzero(n_missing).tolist():
            cells = self.sample[:, j][~np.isnan(self.sample[:, j])]
            place = f"{self.surveys[0].file.url}: coordinate {names[j]!r}"
            if not len(cells):
                raise DataError(
                    f"{place} is missing in nearly all rows, so that its median is unknown; leave "
                    "it out, or write an expression"
                )
            if flag_of(names[j]) in names:
                raise DataError(
                    f"{place} has missing cells, but another one has the name of its flag, "
                    f"{flag_of(names[j])!r}; give that one another name"
                )
            medians[names[j]] = float(np.median(cells))
        return replace(self, columns=replace(self.columns, medians=medians))

    def text_targets(self) -> list[str]:
        """Return the targets that are text; DataError for numbers in one file, text in another."""
        kinds = zip(*(survey.target_kinds for survey in self.surveys), strict=True)
        named = zip(self.columns.targets, kinds, strict=True)
        return [t.name for t, of in named if resolve_kinds(f"target {t.name!r}", of) == "text"]


def check_table(columns: Columns, surveys: Iterable[Survey], database: Database) -> CheckedTable:
    """Return the table with its surveys, after the checks across its files.

    DataError for a row that cannot be used, a table without rows, a coordinate without values, or a
    target of mixed types. The message names the first such row, counted in its file from 0 without
    the header.
    """
    table = CheckedTable(columns, tuple(surveys))
    for start, survey in zip(table.starts, table.surveys, strict=False):
        if survey.problem is not None:
            row, what, written = survey.problem
            place = table.place_of(start + row)
            place = place if written is None else f"{survey.file.url}, row {written}"
            raise DataError(f"{place}: {what}")
    file = table.surveys[0].file.url
    if not table.n_rows:
        raise DataError(f"{file}: the table has no rows")
    for column, least in zip(columns.coordinates, table.cell_range[0], strict=True):
        if least == inf and column.name not in columns.fills:
            raise DataError(f"{file}: coordinate {column.name!r} is missing in all rows")
    for column in columns.coordinates:
        if not column.sql:
            _refuse_mixed_times(table, column.text)
    for j, column in enumerate(columns.targets):
        _refuse_stray_texts(table, j, column.name, database)
        _tell_padded(table, j, column.name)
    return table


def _refuse_mixed_times(table: CheckedTable, name: str) -> None:
    """Refuse a coordinate with times in one file and numbers in another, or of unlike zones."""
    of_kind: dict[bool, TableFile] = {}  # the first file with times, and with numbers
    of_zone: dict[bool, TableFile] = {}  # the first file with a zone, and without
    for survey in table.surveys:
        kind = survey.file.type_of(name)
        if is_time(kind) or is_number(kind):
            of_kind.setdefault(is_time(kind), survey.file)
        if kind.startswith("timestamp"):
            of_zone.setdefault("tz=" in kind, survey.file)
    if len(of_kind) > 1:
        raise DataError(
            f"coordinate column {name!r} holds times in {of_kind[True].url} and numbers in "
            f"{of_kind[False].url}; write them alike"
        )
    if len(of_zone) > 1:
        raise DataError(
            f"coordinate column {name!r} holds times with a zone in {of_zone[True].url}, and times "
            f"without in {of_zone[False].url}; give all times a zone"
        )


def _tell_padded(table: CheckedTable, j: int, name: str) -> None:
    """Log a warning if numerals of a target begin with zeros: 007 and 7 are one number."""
    kinds = [survey.target_kinds[j] for survey in table.surveys]
    padded = next((kind for kind in kinds if kind.padded), None)
    declared = table.columns.target_types.get(name)
    if padded is None or declared is not None or any(kind.kind == "text" for kind in kinds):
        return
    logger.warning(
        "%s: target %r is %r in a row and is read as a number, %s; set target_types: {%s: class} "
        "if the values are names, or {%s: number} if they are numbers",
        *(padded.file, name, padded.padded, int(padded.padded or 0), name, name),
    )


def _refuse_stray_texts(table: CheckedTable, j: int, name: str, database: Database) -> None:
    """Refuse a target with numbers in most cells and text in some: its type is not guessed."""
    kinds = [survey.target_kinds[j] for survey in table.surveys]
    n_texts, n_numbers = sum(k.n_texts for k in kinds), sum(k.n_numbers for k in kinds)
    declared = table.columns.target_types.get(name)
    if n_texts and (declared == "number" or (declared is None and n_numbers > n_texts)):
        row, text = _first_text(table, j, database)
        raise DataError(
            f"{table.place_of(row)}: target {name!r} is {text!r}, not a number, as {n_numbers} "
            f"of its {n_texts + n_numbers} values are; name it in missing_values, or set "
            f"target_types: {{{name}: class}} if all of them are labels of classes"
        )
    if any(k.kind == "text" for k in kinds) and n_numbers and not n_texts and declared is None:
        raise DataError(
            f"{kinds[0].file}: target {name!r} is text, but all its values are numbers; "
            f"set target_types: {{{name}: number}} or {{{name}: class}}"
        )


def _first_text(table: CheckedTable, j: int, database: Database) -> tuple[int, str]:
    """Return the first cell of a target that is text and not a number, with its row."""
    for scan, starts in table.scans():
        if scan.kind_of(table.columns.targets[j]) in (UNTYPED, *TEXTS):
            query = f"SELECT row, y{j} FROM ({scan.values(starts)}) WHERE {text_condition(j)}"
            for row in database.fetch(f"{query} ORDER BY row LIMIT 1"):
                return row["row"], row[f"y{j}"]
    raise DataError(f"{table.surveys[0].file.url}: the file was changed while it was read")


def resolve_kinds(what: str, kinds: Iterable[ColumnKind]) -> str:
    """Return "number" or "text" for a column of several files; CSV numerals follow the others.

    DataError for numbers in one file and text in another; ``what`` names the column.
    """
    first: dict[str, ColumnKind] = {}
    for kind in kinds:
        first.setdefault(kind.kind, kind)
    if "number" in first and "text" in first:
        raise DataError(
            f"{what} holds numbers in {first['number'].file} and text in {first['text'].file} "
            f"(such as {first['text'].example!r}); write them alike"
        )
    return "text" if "text" in first else "number"


def tell_words_among_numbers(kinds: Sequence[ColumnKind]) -> None:
    """Log a warning if a few rows of a table have a text as id, and all others have a number."""
    n_words = sum(kind.n_texts for kind in kinds)
    n_numbers = sum(kind.n_numbers for kind in kinds)
    if 0 < n_words <= _MAX_WORDS * n_numbers:
        of_word = next(kind for kind in kinds if kind.n_texts)
        logger.warning(
            "%s: the id is text such as %r in %d of %d rows, and a number in all others; it is a "
            "bag of its own: delete the rows if they are totals, notes or a header again",
            *(of_word.file, of_word.example, n_words, n_words + n_numbers),
        )


def find_labels(scan: Scan, targets: Sequence[str], database: Database) -> SortedLabels:
    """Return the different texts of each target, at most one more than `_MAX_CLASSES`."""
    values = scan.values([0] * len(scan.files))
    labels = {}
    for j, target in enumerate(scan.columns.targets):
        if target.name in targets:
            label = f"SELECT DISTINCT {scan.label(j)} AS label FROM ({values})"
            query = f"SELECT label FROM ({label}) WHERE label <> '' LIMIT {_MAX_CLASSES + 1}"
            labels[target.name] = {row["label"] for row in database.fetch(query)}
    return labels


def sort_labels(name: str, parts: Iterable[set[str]], types: Mapping[str, str]) -> list[str]:
    """Return the labels of a target in the order of their indices.

    DataError for too many, and for numbers such as "4,5" or "12 %" unless ``types`` has the target.
    """
    labels: set[str] = set().union(*parts)
    if labels and name not in types and all(map(NUMERAL.fullmatch, labels)):
        raise DataError(
            f"target {name!r} is text such as {min(labels)!r}, which looks like a number; if it is "
            "one, write it without signs, or name decimal_separator or thousands in read; if it is "
            f"a class, set target_types: {{{name}: class}}"
        )
    units = {match[1] if (match := _AMOUNT.fullmatch(label)) else None for label in labels}
    if len(labels) > _FEW_CLASSES and name not in types and len(units) == 1 and None not in units:
        logger.warning(
            "target %r is text such as %r, which looks like an amount, and is read as %d classes; "
            "if it is a number, write it without its unit and signs, or set target_types: "
            "{%s: class} if it is a class",
            *(name, min(labels), len(labels), name),
        )
    if len(labels) > _MAX_CLASSES:
        raise DataError(
            f"target {name!r} is text with more than {_MAX_CLASSES} different values, so not "
            "a class label; name another column"
        )
    return sorted(labels)


def survey_scan(scan: Scan, database: Database, report: QueryReport | None = None) -> list[Survey]:
    """Check and measure every value of each file.

    The sampled rows are chosen by a hash of their values, so that the sample does not depend on how
    the files are cut. A query surveys at most `COORDINATES_PER_SURVEY` coordinates: with some
    thousands the results of a file do not fit in a block of DuckDB, which then ends the process.

    Raises
    ------
    DataError
        If a file cannot be read, has a page that does not match its checksum, or holds ids beyond
        int64.
    ParameterError
        If DuckDB refuses an expression for the types of its columns.
    """
    for file in scan.files:
        check_pages(file, scan.columns)
    check_expressions(scan, database)
    n_columns, made = len(scan.columns.coordinates), []
    starts = range(0, max(1, n_columns), COORDINATES_PER_SURVEY)
    n_hashed = n_columns if len(starts) == 1 else N_HASHED
    for k, start in enumerate(starts):
        hashed = scan.columns.coordinates[: n_hashed if k else 0]
        part = (*hashed, *scan.columns.coordinates[start : start + COORDINATES_PER_SURVEY])
        targets = scan.columns.targets if k == len(starts) - 1 else ()
        of_part = replace(scan, columns=replace(scan.columns, coordinates=part, targets=targets))

        def report_part(share: float, k: int = k) -> None:
            if report is not None:
                report((k + share) / len(starts))

        surveys = _survey_part(of_part, n_hashed, database, report_part if report else None)
        made.append([survey.without(len(hashed)) for survey in surveys])
    return [reduce(Survey.beside, of_file) for of_file in zip(*made, strict=True)]


def _survey_part(
    scan: Scan, n_hashed: int, database: Database, report: QueryReport | None
) -> list[Survey]:
    """Survey each file by one query; sampled rows are chosen by the first ``n_hashed`` columns."""
    questions = _questions(scan, n_hashed)
    asked = ", ".join(f"{question} AS {name}" for name, question in questions.items())
    values = scan.values([0] * len(scan.files))
    try:
        rows = database.fetch(f"SELECT file, {asked} FROM ({values}) GROUP BY file", report)
        of_none = []
        if len(rows) < len(scan.files):
            of_none = database.fetch(f"SELECT {asked} FROM ({values} LIMIT 0)")
    except DataError:
        if len(scan.files) > 1:  # DuckDB does not always say which of them it is
            for file in scan.files:
                _survey_part(Scan(scan.columns, (file,)), n_hashed, database, None)
        raise
    row_of_file = {row["file"]: row for row in rows}
    surveys = [
        _survey(scan, file, row_of_file.get(i, *of_none)) for i, file in enumerate(scan.files)
    ]
    unfit = [
        j
        for j in range(len(scan.columns.targets))
        if all(survey.target_kinds[j].kind != "text" for survey in surveys)
        and any(answers[f"unfit{j}"] for answers in rows)
    ]
    if unfit or any(answers["bad"] for answers in rows):
        starts = list(accumulate((survey.n_rows for survey in surveys), initial=0))
        at, bad = first_problem(scan, starts[:-1], unfit, database)
        bad = bad._replace(row=bad.row - starts[at])
        surveys[at] = replace(surveys[at], problem=bad)
    return surveys


def sample_ids(scan: Scan, n_rows: int, database: Database) -> tuple[Any, ...]:
    """Return the ids of a random sample of rows, the same in every run."""
    query = f"SELECT id FROM ({scan.values([0])}) WHERE id IS NOT NULL ORDER BY hash(row)"
    return tuple(row["id"] for row in database.fetch(f"{query} LIMIT {n_rows}"))


def _questions(scan: Scan, n_hashed: int) -> dict[str, str]:
    """Return the SQL aggregates over the rows of each file, by the name of the result."""
    columns, id_type = scan.columns, scan.id_type
    numeral = "TRY_CAST(id AS BIGINT)"
    asked = {"n": "count(*)", "bad": _count_of(problems_of(scan))}
    # A numeral in CSV counts only as Python writes the integer, so that 007 and 7 stay two bags.
    asked["id"] = _example(id_type, "id", f"CAST({numeral} AS VARCHAR) IS DISTINCT FROM id")
    is_word = (
        "id <> '' AND TRY_CAST(id AS DOUBLE) IS NULL" if id_type in (UNTYPED, *TEXTS) else "false"
    )
    asked["words"] = f"coalesce(count_if({is_word}), 0)"  # NULL for a folder without a value
    asked["word"] = f"min(id) FILTER ({is_word})"
    is_beyond = f"{numeral} IS NULL AND id IS NOT NULL" if id_type == "uint64" else "false"
    asked["beyond"] = f"count_if({is_beyond})"
    numbers = [f"x{j}" for j in range(len(columns.coordinates))]
    for least, none in (("min", inf), ("max", -inf)):
        # DuckDB takes NaN, which is missing, for the largest number. No FILTER: for each, DuckDB
        # copies all columns, which takes memory by the square of their number.
        cells = (f"{least}(CASE WHEN NOT {is_nan(x)} THEN {x} END)" for x in numbers)
        ends = (f"coalesce({cell}, '{none}'::DOUBLE)" for cell in cells)
        asked[least] = f"[{', '.join(ends)}]"
    if numbers and columns.missing == MEDIAN:
        asked["n_missing"] = f"[{', '.join(f'count_if({null_condition(x)})' for x in numbers)}]"
    if numbers and columns.share:
        hashed = ", ".join(["id", *numbers[:n_hashed]])
        row = f"hash({hashed}) < {int(columns.share * 2**64)}::UHUGEINT"
        asked["points"] = f"list([{', '.join(numbers)}]) FILTER ({row})"
    for j, target in enumerate(columns.targets):
        kind = scan.kind_of(target)
        example = _example(kind, f"y{j}", f"z{j} IS NULL")
        is_text = text_condition(j) if kind in (UNTYPED, *TEXTS) else "false"
        padded = f"min(y{j}) FILTER (regexp_full_match(y{j}, '0[0-9]+'))"
        n_texts = f"coalesce(count_if({is_text}), 0)"  # NULL for a folder without a value
        counts = f"'n_texts': {n_texts}, 'n_numbers': count(z{j})"
        counts += f", 'padded': {padded if kind == UNTYPED and not target.sql else 'NULL'}"
        asked[f"target{j}"] = f"{{'example': {example}, {counts}}}"
        asked[f"unfit{j}"] = _count_of(unfit_numbers(scan, j))
    return asked


def _count_of(problems: Sequence[RowProblem]) -> str:
    return f"count_if({' OR '.join(is_bad for is_bad, _ in problems)})"


def _example(type_name: str, column: str, is_text: str) -> str:
    """Return the query of the first text of a column in alphabetical order."""
    if type_name in TEXTS:
        return f"min({column})"
    return (
        f"min({column}) FILTER ({column} <> '' AND {is_text})" if type_name == UNTYPED else "NULL"
    )


def _survey(scan: Scan, file: TableFile, answers: Mapping[str, Any]) -> Survey:
    types = scan.columns.target_types
    if answers["beyond"]:
        raise DataError(
            f"{file.url}: ids in column {scan.columns.ids[0]!r} exceed int64; store them as text"
        )
    points = answers.get("points") or np.empty((0, len(scan.columns.coordinates)))
    return Survey(
        file=file,
        n_rows=answers["n"],
        lo=np.array(answers["min"], dtype=np.float64),
        hi=np.array(answers["max"], dtype=np.float64),
        points=np.array(points, dtype=np.float64),
        n_missing=tuple(answers.get("n_missing", ())),
        id_kind=_kind(
            scan.id_type,
            file,
            answers["id"] if answers["word"] is None else answers["word"],
            answers["words"],
            answers["n"] - answers["words"],
        ),
        target_kinds=tuple(
            _kind(
                scan.kind_of(target), file, **answers[f"target{j}"], declared=types.get(target.name)
            )
            for j, target in enumerate(scan.columns.targets)
        ),
    )


def _kind(
    type_name: str,
    file: TableFile,
    example: str | None,
    n_texts: int = 0,
    n_numbers: int = 0,
    padded: str | None = None,
    declared: str | None = None,
) -> ColumnKind:
    if declared is None and type_name in (UNTYPED, "null"):
        kind = "either" if example is None else "text"
    else:
        is_text = type_name in TEXTS if declared is None else declared == "class"
        kind = "text" if is_text else "number"
    return ColumnKind(kind, file.url, example, n_texts, n_numbers, padded)
