"""Rows of a table that cannot be used: the condition that finds them, in SQL, and what is said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any

import numpy as np

from ...errors import ParameterError
from ...store import EXACT, beyond_exact
from .database import Database
from .files import INTEGERS, TEXTS, UNTYPED
from .scans import SQL_TYPES, Scan, is_nan
from .values import Value, alias

INTEGER = re.compile("[+-]?[0-9]+")


def check_expressions(scan: Scan, database: Database) -> None:
    """Raise ParameterError for an expression that DuckDB does not take for its columns."""
    cells = scan.cells([0] * len(scan.files))
    file = scan.files[0]
    for one in scan.columns.expressions:
        if one.text in file.names:  # entries of vectors are ours
            continue
        if why := _complaint(one, one.sql, f"{cells} LIMIT 0", database):
            what = f"{one.text!r} cannot be computed of the columns of {file.url} ({why})"
            raise ParameterError(f"{one.key}: {what}")


def _complaint(value: Value, sql: str, cells: str, database: Database) -> str:
    """Return DuckDB's words against an expression, with the names of columns; "" for none."""
    why = database.complaint(f"SELECT {sql} FROM ({cells})")
    for name in value.inputs:
        why = why.replace(value.of(name), name)
    return why


def text_condition(j: int) -> str:
    """Return the condition that a target, which may be text, is no number."""
    return f"y{j} <> '' AND z{j} IS NULL"


def is_unfit(scan: Scan, j: int) -> str:
    """Return the condition that target ``j`` is infinite, or an integer that no float64 is."""
    kind, beyond = scan.kind_of(scan.columns.targets[j]), f"abs(z{j}) > {EXACT}"
    if kind in INTEGERS:
        return beyond
    if kind in (UNTYPED, *TEXTS):
        return f"isinf(z{j}) OR ({beyond} AND regexp_full_match(trim(y{j}), '{INTEGER.pattern}'))"
    return f"isinf(z{j})"


def is_bad(scan: Scan) -> str:
    """Return the condition that a row has no id, or a value that cannot be used."""
    bad = ["id IS NULL"] + ([] if scan.id_type in INTEGERS else ["id = ''"])
    for j, one in enumerate(scan.columns.coordinates):
        bad += _unread(one) + ([f"x{j} IS NULL"] if one.sql else [])
        allowed = "false"
        if scan.columns.missing != "refuse":  # a cell without a number is bad by itself
            allowed = f"x{j} IS NULL OR coalesce({is_nan(f'x{j}')}, false)"
        finite = f"coalesce(isfinite(TRY_CAST(x{j} AS {SQL_TYPES[scan.columns.dtype]})), false)"
        bad.append(f"NOT ({allowed} OR {finite})")
    for j, one in enumerate(scan.columns.targets):
        bad += [*_unread(one), f"e{j}"] if one.sql else []
    return " OR ".join(bad)


def _unread(value: Value) -> list[str]:
    """Return the conditions that a cell of a value is there, but has no number, date, …."""
    cells = [(alias("r", name), value.of(name)) for name in value.inputs]
    return [f"({cell} IS NOT NULL AND {read} IS NULL)" for cell, read in cells]


def describe(
    row: Mapping[str, Any], scan: Scan, unfit: Sequence[int], cells: str, database: Database
) -> str:
    """Say what is wrong with a row of `Scan.values`, which ``cells`` asks for.

    ``unfit`` are the targets of which there are numbers that cannot be used.
    """
    if not row["id"] and row["id"] != 0:
        return "the bag id is missing, or a number that is not whole; give every row its bag's id"
    bag, columns = f"bag {row['id']!r}", scan.columns
    for j, one in enumerate(columns.coordinates):
        what = f"{bag}: coordinate {one.name!r}"
        if why := _why_unread(row, scan, one):
            return f"{what} {why}"
        number = row[f"x{j}"]
        if one.sql and number is None:
            why = _complaint(one, f"CAST({one.sql} AS DOUBLE)", cells, database)
            return f"{what} cannot be computed ({why})"
        with np.errstate(over="ignore"):
            is_finite = number is not None and np.isfinite(np.dtype(columns.dtype).type(number))
        if not is_finite:
            missing = number is None or bool(one.sql and np.isnan(number))
            shown = "missing" if missing else number
            drop = ", or set missing to drop_point or drop_bag" if missing else ""
            what = f"{what} is {shown}, not a finite {columns.dtype}"
            return f"{what}; remove the point or the bag{drop}"
    for j, one in enumerate(columns.targets):
        what, given, number = f"{bag}: target {one.name!r}", row[f"y{j}"], row[f"z{j}"]
        if one.sql and (why := _why_unread(row, scan, one)):
            return f"{what} {why}"
        if one.sql and row[f"e{j}"]:
            return f"{what} cannot be computed ({_complaint(one, one.sql, cells, database)})"
        if j not in unfit or number is None:
            continue
        if isinf(number):
            return f"{what} is infinite"
        is_integer = isinstance(given, int) or INTEGER.fullmatch(str(given).strip())
        if abs(number) > EXACT and is_integer:
            told = beyond_exact(f"{one.name!r}: {given}")
            return f"{bag}: target {told}; or set its target_types to class"
    raise AssertionError(f"{row} can be used")


def _why_unread(row: Mapping[str, Any], scan: Scan, value: Value) -> str:
    for name in value.inputs:
        cell = row[alias("r", name)]
        if cell is None or row[value.of(name)] is not None:
            continue
        if not value.sql:
            return f"is {cell!r}, not a number"
        kind = scan.columns.types.get(name)
        return (
            f"cannot be computed: {name} is {cell!r}, not {kind} as in the first rows; correct "
            f"it, or set read: {{types: {{{name}: VARCHAR}}}} and cast it in the expression"
        )
    return ""
