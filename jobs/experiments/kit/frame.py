"""From results to tables: one data frame of all points, pivots of it, and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bagbasis.core.arrays import Floats

from .experiment import Result, Table

Column = str | Callable[[pd.DataFrame], Any]
"""The name of a frame's column, or what makes one of the frame."""


def select(results: Sequence[Result], **params: object) -> list[Result]:
    """Return the results whose points have these parameters."""
    return [r for r in results if all(r.params.get(key) == v for key, v in params.items())]


def frame(results: Sequence[Result], **params: object) -> pd.DataFrame:
    """Return a row per result that has these parameters; its parameters and values are the columns.

    The values of nested mappings become columns such as ``js.coefficients.r2``; lists stay what
    they are. A value takes the place of a parameter of the same name. ``took`` is the seconds that
    the point took.
    """
    rows = [
        {**flat(r.params), **flat(r.values), "took": r.seconds} for r in select(results, **params)
    ]
    return pd.DataFrame(rows)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by dots."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def column(rows: pd.DataFrame, name: str) -> Floats:
    """Return a column of numbers."""
    return rows[name].to_numpy(dtype=float)


def pair(rows: pd.DataFrame, x: str, y: str) -> tuple[Floats, Floats]:
    """Two columns of the rows that have both."""
    if y not in rows:
        return np.empty(0), np.empty(0)
    rows = rows.dropna(subset=[x, y])
    return column(rows, x), column(rows, y)


def table(
    title: str,
    rows: pd.DataFrame,
    columns: Mapping[str, Column],
    remarks: Sequence[str] = (),
) -> Table:
    """Return a table with a row per row of a frame; cells that the frame lacks are empty."""
    cells = [_cells(rows, source) for source in columns.values()]
    return Table(title, list(columns), [list(row) for row in zip(*cells, strict=True)], remarks)


def whole_table(title: str, rows: pd.DataFrame, remarks: Sequence[str] = ()) -> Table:
    """Return a frame as a table, with all of its columns under their own names."""
    return table(title, rows, {str(name): str(name) for name in rows}, remarks)


def _cells(rows: pd.DataFrame, source: Column) -> list[Any]:
    if callable(source):
        values = source(rows)
    else:
        values = rows[source] if source in rows else [None] * len(rows)
    return [_cell(value) for value in values]


def _cell(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value


def pivot(
    rows: pd.DataFrame, index: str, columns: str, values: Mapping[str, str]
) -> tuple[list[str], dict[Any, list[Any]]]:
    """Columns ``"RMSE, 4,000"`` per text of ``values`` and value of ``columns``; cells per index.

    Both keep the order in which they first appear; a cell that is not there is None.
    """
    across = list(dict.fromkeys(rows[columns]))
    names = [f"{text}, {value:,}" for text in values for value in across]
    found: dict[Any, list[Any]] = {}
    for key, group in rows.groupby(index, sort=False):
        at = group.set_index(columns)
        found[key] = [
            _cell(at.loc[value, name]) if value in at.index else None
            for name in values.values()
            for value in across
        ]
    return names, found
