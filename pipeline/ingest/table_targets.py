"""Targets of long tables: labels of classes, and numbers that can not be targets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import isinf
from typing import Any

from ..bags.targets import EXACT, beyond_exact
from ..errors import DataError
from .table_columns import Columns
from .table_files import INTEGERS, TEXTS, UNTYPED
from .table_scans import Database, Scan

MAX_CLASSES = 2**14  # a text target with more labels than any classifier has is the wrong column
INTEGER = re.compile("[+-]?[0-9]+")

Labels = dict[str, set[str]]  # the texts of each target


def find_labels(scan: Scan, targets: Sequence[str], database: Database) -> Labels:
    """Return the different texts of each target, at most one more than `MAX_CLASSES`."""
    values = scan.values([0] * len(scan.files))
    found = {}
    for name in targets:
        label = scan.label(scan.columns.targets.index(name))
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


def is_unfit(scan: Scan, j: int) -> str:
    """Return the condition that target ``j`` is infinite, or an integer that no float64 is."""
    kind, beyond = scan.type_of(scan.columns.targets[j]), f"abs(z{j}) > {EXACT}"
    if kind in INTEGERS:
        return beyond
    if kind in (UNTYPED, *TEXTS):
        return f"isinf(z{j}) OR ({beyond} AND regexp_full_match(trim(y{j}), '{INTEGER.pattern}'))"
    return f"isinf(z{j})"


def describe_unfit(
    columns: Columns, values: Sequence[tuple[Any, float | None]], unfit: Sequence[int]
) -> str:
    """Say which of a row's targets is no target, and why; its values are those of `Scan.values`."""
    for j in unfit:
        name, (given, number) = columns.targets[j], values[len(columns.coordinates) + j]
        if number is not None and isinf(number):
            return f"target {name!r} is infinite"
        is_integer = isinstance(given, int) or INTEGER.fullmatch(str(given).strip())
        if number is not None and abs(number) > EXACT and is_integer:
            return f"target {beyond_exact(f'{name!r}: {given}')}; or set its target_types to class"
    raise AssertionError(f"all of {values} are targets")
