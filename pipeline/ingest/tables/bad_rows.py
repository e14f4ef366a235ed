"""Rows of a table that cannot be used: SQL conditions that find them, and their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import ParameterError
from ...data.bags.ids import EXACT
from ...data.store.targets import beyond_exact
from .database import Database
from .files import INTEGERS, TEXTS, UNTYPED
from .scans import (
    CLAIM,
    FOLDER,
    ITEMS,
    SQL_TYPES,
    UNLIKE,
    WRITTEN,
    Scan,
    null_condition,
)
from .values import MEDIAN, Value, alias, inputs_of

INTEGER = "[+-]?[0-9]+"
_EMPTY = (
    "the bag is empty: its lists of coordinates have no items or are missing; remove the row, or "
    "set missing to drop_point or drop_bag"
)


class BadCells(NamedTuple):
    """A query of the cells that expressions are computed from: `Scan.cells`, or a part of it."""

    query: str
    database: Database

    def complaint(self, value: Value, sql: str) -> str:
        """Return DuckDB's error message for an expression, with column names; else ""."""
        why = self.database.complaint(f"SELECT {sql} FROM ({self.query})")
        for name in value.inputs:
            why = why.replace(value.of(name), name)
        return why


class BadRow(NamedTuple):
    """A row that cannot be used, and the problem with it.

    If ``row`` counts the items of lists, ``written`` is the number of the row in the file.
    """

    row: int
    what: str
    written: int | None = None


RowProblem = tuple[str, Callable[[Mapping[str, Any], BadCells], str]]
"""A condition that finds rows, and a function that returns the message for such a row."""


def check_expressions(scan: Scan, database: Database) -> None:
    """Raise ParameterError for an expression that DuckDB does not take for its columns."""
    cells = BadCells(f"{scan.cells([0] * len(scan.files))} LIMIT 0", database)
    file = scan.files[0]
    for expression in scan.columns.expressions:
        if expression.text in file.names:  # an entry of a vector: `spread` made it
            continue
        if why := cells.complaint(expression, expression.sql):
            what = f"{expression.text!r} cannot be computed of the columns of {file.url} ({why})"
            raise ParameterError(f"{expression.key}: {what}")


def first_problem(
    scan: Scan, starts: Sequence[int], unfit: Sequence[int], database: Database
) -> tuple[int, BadRow]:
    """Return the file and the first of its rows that cannot be used, with the problem.

    The row is counted as `Scan.values` counts it. ``unfit`` are the targets that have numbers that
    cannot be used.
    """
    problems = problems_of(scan)
    problems += [problem for j in unfit for problem in unfit_numbers(scan, j)]
    cases = " ".join(f"WHEN {is_bad} THEN {i}" for i, (is_bad, _) in enumerate(problems))
    rows = f"SELECT *, CASE {cases} END AS problem FROM ({scan.values(starts)})"
    typed = ", ".join(alias("v", name) for name in inputs_of(scan.columns.expressions))
    others = f"* EXCLUDE ({typed})" if typed else "*"  # Python has no type for some of them
    query = f"SELECT {others} FROM ({rows}) WHERE problem IS NOT NULL ORDER BY row LIMIT 1"
    [row] = database.fetch(query)
    cells = f"SELECT * FROM ({scan.cells(starts)}) WHERE row = {row['row']}"
    what = problems[row["problem"]][1](row, BadCells(cells, database))
    what = f"bag {row['id']!r}: {what}" if row["problem"] else what
    return row["file"], BadRow(row["row"], what, row.get(WRITTEN))


def text_condition(j: int) -> str:
    """Return the condition that a target, which may be text, is not a number."""
    return f"y{j} <> '' AND z{j} IS NULL"


def problems_of(scan: Scan) -> list[RowProblem]:
    """Return the possible problems of a row: first a missing id, then its values."""
    no_id = "id IS NULL" if scan.id_type in INTEGERS else "id IS NULL OR id = ''"
    no_id_text = (
        "the bag id is missing, or a number that is not whole or is too large; give every row its "
        "bag's id"
    )
    problems: list[RowProblem] = [(no_id if scan.columns.ids else "false", lambda *_: no_id_text)]
    if scan.files[0].lists and scan.columns.missing in ("refuse", MEDIAN):
        problems.append((f"{ITEMS} = 0", lambda *_: _EMPTY))
    problems += [_of_folder(j, name) for j, (name, _) in enumerate(scan.files[0].claims)]
    for j, column in enumerate(scan.columns.coordinates):
        problems += _of_cells(scan, column, f"coordinate {column.name!r}")
        problems += _of_coordinate(scan, j, column, f"coordinate {column.name!r}")
    for j, column in enumerate(scan.columns.targets):
        if column.sql:
            problems += _of_cells(scan, column, f"target {column.name!r}")
            problems.append((f"e{j}", _failure(column, f"target {column.name!r}", column.sql)))
    return problems


def unfit_numbers(scan: Scan, j: int) -> list[RowProblem]:
    """Return the problems of target ``j``: infinite, or an integer that float64 cannot hold."""
    target = scan.columns.targets[j]
    # 2^53 + 1 is 2^53 as a float64
    is_beyond = f"(abs(z{j}) > {EXACT} OR abs(TRY_CAST(y{j} AS HUGEINT)) > {EXACT})"
    if scan.kind_of(target) in (UNTYPED, *TEXTS):
        is_beyond += f" AND regexp_full_match(trim(y{j}), '{INTEGER}')"
    elif scan.kind_of(target) not in INTEGERS:
        is_beyond = "false"

    def message(row: Mapping[str, Any], _: BadCells) -> str:
        cause = beyond_exact(f"{target.name!r}: {row[f'y{j}']}")
        return f"target {cause}; or set its target_types to class"

    is_infinite = f"isinf(z{j})"
    return [(is_infinite, lambda *_: f"target {target.name!r} is infinite"), (is_beyond, message)]


def _of_folder(j: int, name: str) -> RowProblem:
    """Return the problem of a cell unlike the value that a folder such as st=JFK gives its column.

    One of the two is wrong, and nothing tells which.
    """

    def message(row: Mapping[str, Any], _: BadCells) -> str:
        return (
            f"column {name!r} is {row[f'{CLAIM}{j}']!r}, but the file is in a folder "
            f"{name}={row[f'{FOLDER}{j}']}; correct one of them, or rename the column or the folder"
        )

    return f"{UNLIKE}{j}", message


def _of_cells(scan: Scan, value: Value, what: str) -> list[RowProblem]:
    """Return the problems of cells of a value that are not missing and not a number, date, …."""

    def of(name: str) -> RowProblem:
        cell, kind = alias("r", name), scan.columns.types.get(name)

        def message(row: Mapping[str, Any], _: BadCells) -> str:
            if not value.sql:
                return f"{what} is {row[cell]!r}, not a number"
            return (
                f"{what} cannot be computed: {name} is {row[cell]!r}, not {kind} as in the first "
                f"rows; correct it, or set read: {{types: {{{name}: VARCHAR}}}} and cast it in "
                "the expression"
            )

        return f"({cell} IS NOT NULL AND {value.of(name)} IS NULL)", message

    return list(map(of, value.inputs))


def _of_coordinate(scan: Scan, j: int, value: Value, what: str) -> list[RowProblem]:
    dtype, allowed, missing_is = scan.columns.dtype, "false", scan.columns.missing
    medians = scan.columns.medians
    has_median = medians is None or value.name in medians
    if missing_is != "refuse" and (missing_is != MEDIAN or has_median):
        # a cell with text that is not a number is a problem of its own
        allowed = null_condition(f"x{j}")
    finite = f"coalesce(isfinite(TRY_CAST(x{j} AS {SQL_TYPES[dtype]})), false)"

    def message(row: Mapping[str, Any], _: BadCells) -> str:
        number = row[f"x{j}"]
        missing = number is None or bool(value.sql and np.isnan(number))
        not_finite = f"is {'missing' if missing else number}, not a finite {dtype}"
        if missing and missing_is == MEDIAN:
            not_finite += ", and the store has no median of it"
        drop = ", or set missing to drop_point or drop_bag" if missing else ""
        return f"{what} {not_finite}; remove the point or the bag{drop}"

    failure = _failure(value, what, f"CAST({value.sql} AS DOUBLE)")
    fails = [(f"x{j} IS NULL", failure)] if value.sql else []
    return [*fails, (f"NOT ({allowed} OR {finite})", message)]


def _failure(value: Value, what: str, sql: str) -> Callable[[Mapping[str, Any], BadCells], str]:
    return lambda _, cells: f"{what} cannot be computed ({cells.complaint(value, sql)})"
