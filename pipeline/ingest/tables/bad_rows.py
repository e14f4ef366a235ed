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
from .values import Value

INTEGER = re.compile("[+-]?[0-9]+")


def check_expressions(scan: Scan, database: Database) -> None:
    """Raise ParameterError for an expression that DuckDB does not take for its columns."""
    cells = scan.cells([0] * len(scan.files))
    for one in (*scan.columns.coordinates, *scan.columns.targets):
        is_written = one.sql and one.text not in scan.files[0].names  # entries of vectors are ours
        why = database.complaint(f"SELECT {one.sql} FROM ({cells}) LIMIT 0") if is_written else ""
        if why:
            file = scan.files[0].url
            what = f"cannot be computed of the columns of {file} ({_plainly(why, scan, one)})"
            raise ParameterError(f"{one.key}: {one.text!r} {what}")


def _plainly(why: str, scan: Scan, value: Value) -> str:
    """Return DuckDB's words with the names of columns."""
    for name, _ in value.inputs:
        why = re.sub(rf"\bv{scan.columns.inputs.index((name, True))}\b", name, why)
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


def is_bad(scan: Scan, dtype: str) -> str:
    """Return the condition that a row has no id, or a value that cannot be used."""
    bad = ["id IS NULL"] + ([] if scan.id_type in INTEGERS else ["id = ''"])
    for j, one in enumerate(scan.columns.coordinates):
        bad += _unread(scan, one) + ([f"x{j} IS NULL"] if one.sql else [])
        allowed = "false"
        if scan.columns.missing != "refuse":  # a cell without a number is bad by itself
            allowed = f"x{j} IS NULL OR coalesce({is_nan(f'x{j}')}, false)"
        finite = f"coalesce(isfinite(TRY_CAST(x{j} AS {SQL_TYPES[dtype]})), false)"
        bad.append(f"NOT ({allowed} OR {finite})")
    for j, one in enumerate(scan.columns.targets):
        bad += [*_unread(scan, one), f"e{j}"] if one.sql else []
    return " OR ".join(bad)


def _unread(scan: Scan, value: Value) -> list[str]:
    """Return the conditions that a cell of a value is there, but has no number, date, …."""
    places = map(scan.columns.inputs.index, value.inputs)
    return [f"(r{k} IS NOT NULL AND v{k} IS NULL)" for k in places]


def describe(
    row: Mapping[str, Any],
    scan: Scan,
    dtype: str,
    unfit: Sequence[int],
    cells: str,
    database: Database,
) -> str:
    """Say what is wrong with a row of `Scan.values`, which ``cells`` asks for.

    ``unfit`` are the targets of which there are numbers that cannot be used.
    """
    if not row["id"] and row["id"] != 0:
        return "the bag id is missing, or a number that is not whole; give every row its bag's id"
    bag, columns = f"bag {row['id']!r}", scan.columns
    for j, one in enumerate(columns.coordinates):
        what = f"coordinate {one.name!r}"
        if why := _why_unread(row, scan, one):
            return f"{bag}: {what} {why}"
        number = row[f"x{j}"]
        if one.sql and number is None:
            why = database.complaint(f"SELECT CAST({one.sql} AS DOUBLE) FROM ({cells})")
            return f"{bag}: {what} cannot be computed ({_plainly(why, scan, one)})"
        with np.errstate(over="ignore"):
            if number is None or not np.isfinite(np.dtype(dtype).type(number)):
                missing = number is None or bool(one.sql and np.isnan(number))
                shown = "missing" if missing else number
                drop = ", or set missing to drop_point or drop_bag" if missing else ""
                what = f"{what} is {shown}, not a finite {dtype}"
                return f"{bag}: {what}; remove the point or the bag{drop}"
    for j, one in enumerate(columns.targets):
        what, given, number = f"target {one.name!r}", row[f"y{j}"], row[f"z{j}"]
        if one.sql and (why := _why_unread(row, scan, one)):
            return f"{bag}: {what} {why}"
        if one.sql and row[f"e{j}"]:
            why = database.complaint(f"SELECT {one.sql} FROM ({cells})")
            return f"{bag}: {what} cannot be computed ({_plainly(why, scan, one)})"
        if j not in unfit or number is None:
            continue
        if isinf(number):
            return f"{bag}: {what} is infinite"
        is_integer = isinstance(given, int) or INTEGER.fullmatch(str(given).strip())
        if abs(number) > EXACT and is_integer:
            told = beyond_exact(f"{one.name!r}: {given}")
            return f"{bag}: target {told}; or set its target_types to class"
    raise AssertionError(f"{row} can be used")


def _why_unread(row: Mapping[str, Any], scan: Scan, value: Value) -> str:
    for name, is_typed in value.inputs:
        k = scan.columns.inputs.index((name, is_typed))
        cell = row[f"r{k}"]
        if cell is None or row[f"v{k}"] is not None:
            continue
        if not is_typed:
            return f"is {cell!r}, not a number"
        kind = scan.columns.types.get(name)
        return (
            f"cannot be computed: {name} is {cell!r}, not {kind} as in the first rows; correct "
            f"it, or set read: {{types: {{{name}: VARCHAR}}}} and cast it in the expression"
        )
    return ""
