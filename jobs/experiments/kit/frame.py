"""From results to tables: one tidy data frame of all points, and a table of each measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .experiment import Result, ResultTable

REPEATS = ("repeat", "data_seed")  # parameters over which a table has medians
_MAX_COLUMNS = 10  # columns of values in a table; further ones stand below each other


def frame(results: Sequence[Result]) -> pd.DataFrame:
    """Return a row per result; its parameters and values are the columns.

    The values of nested mappings become columns such as ``js.coefficients.r2``; lists of numbers
    stay what they are. A value takes the place of a parameter of the same name.
    """
    return pd.DataFrame([{**flat(r.params), **flat(r.values), "took": r.seconds} for r in results])


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings, and lists of mappings, as one mapping with keys joined by dots."""
    joined: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            joined |= flat(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(isinstance(x, Mapping) for x in value):
            columns = {name: [part.get(name) for part in value] for name in value[0]}
            joined |= flat(columns, f"{prefix}{key}.")
        else:
            joined[f"{prefix}{key}"] = value
    return joined


def summary(results: Sequence[Result], measure: str = "") -> ResultTable:
    """Return a measure's table of what varies, means of lists of numbers, medians of repeats."""
    results = [r for r in results if r.params.get("measure", "") == measure]
    values = pd.DataFrame([_numbers(flat(r.values)) for r in results])
    params = pd.DataFrame([{k: _text(v) for k, v in flat(r.params).items()} for r in results])
    varying = [
        name for name in params if name not in REPEATS and params[name].nunique(dropna=False) > 1
    ]
    index = [params[name] for name in varying if name not in values]
    if index:
        medians = values.groupby(index, sort=False, dropna=False).median()
    else:
        medians = values.median().to_frame().T
    if len(medians.columns) > _MAX_COLUMNS:
        long = pd.Series(medians.stack(future_stack=True))
        medians = long.rename_axis([*medians.index.names, "number"]).dropna().to_frame("value")
    rows = medians.reset_index() if index or "value" in medians else medians
    rows = rows.drop(columns=[name for name in rows if name in ("index", "level_0", None)])
    return as_table(measure.capitalize() or "Results", rows)


def as_table(title: str, rows: pd.DataFrame) -> ResultTable:
    """Return a frame as a table: missing numbers are None."""
    cells = [[_cell(cell) for cell in row] for row in rows.itertuples(index=False)]
    return ResultTable(title, [str(name) for name in rows], cells)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers among values, and the means of lists of numbers."""
    numbers = {}
    for name, value in values.items():
        if isinstance(value, list) and value and all(isinstance(x, (int, float)) for x in value):
            numbers[name] = float(np.mean(value))
        elif isinstance(value, (int, float)):
            numbers[name] = float(value)
    return numbers


def _text(value: object) -> object:
    return str(value) if isinstance(value, (list, dict)) else value


def _cell(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and np.isnan(value) else value
