"""Whether floats can tell the given points apart: Julian dates of a night, Unix times, integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...core.errors import DataError

STEPS = 2**12  # fewer steps of float32 within the range of a coordinate merge points


def merged_by_float32(
    points: NDArray[Any],
    lo: Floats | None = None,
    hi: Floats | None = None,
    span: Floats | None = None,
) -> NDArray[np.int64]:
    """Return the coordinates whose points float32 would merge.

    These are coordinates of which a value differs from its float32, and of which the range has
    fewer than 4,096 steps of float32 at its largest value. A constant counts as of range 1.

    Parameters
    ----------
    points : ndarray, shape (n, d)
        Points, or some of them; those of float32 have no such coordinates.
    lo, hi : ndarray, shape (d,), optional
        Range of all points. None: that of ``points``.
    span : ndarray, shape (d,), optional
        Width of the range of all points that are stored with them. None: ``hi - lo``.
    """
    if points.dtype != np.float64 or not len(points):
        return np.empty(0, dtype=np.int64)
    lo = points.min(axis=0) if lo is None else lo
    hi = points.max(axis=0) if hi is None else hi
    suspects = np.flatnonzero(steps_of(lo, hi, span) > 1)
    if not len(suspects):
        return suspects
    columns = points[:, suspects]
    with np.errstate(over="ignore"):
        differs = (columns != columns.astype(np.float32)).any(axis=0)
    return suspects[differs]


def steps_of(lo: Floats, hi: Floats, span: Floats | None = None) -> Floats:
    """Return float32's step at the largest value over a 4,096th of the range, shape (d,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(np.abs(lo), np.abs(hi)).astype(np.float32)
        step = np.spacing(largest).astype(np.float64)
        width = np.fmax(hi - lo, 0.0 if span is None else span)
        width = np.where(width > 0, width, 1.0)
        return np.asarray(np.where(np.isfinite(largest), step * STEPS / width, 0.0))


def check_integers_apart(
    place: str, lo: Floats, hi: Floats, are_integers: Sequence[bool], names: Sequence[str]
) -> None:
    """Raise DataError for a coordinate of integers that float64 would merge.

    Parameters
    ----------
    place : str
        What messages call the points.
    lo, hi : ndarray, shape (d,)
        Range of all points.
    are_integers : sequence of bool
        Whether the values of a coordinate were given as integers.
    names : sequence of str
        Names of the coordinates; empty for coordinates without names.
    """
    if not any(are_integers):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(np.abs(lo), np.abs(hi))
        step, width = np.spacing(largest), np.where(hi > lo, hi - lo, 1.0)
        merged = (step > 1) & (step * STEPS > width) & are_integers
    for j in np.flatnonzero(merged)[:1]:
        name = repr(names[j]) if names else str(j)
        raise DataError(
            f"{place}: float64 merges integers: coordinate {name} ranges over {hi[j] - lo[j]:g} "
            f"near {largest[j]:.17g}, where float64 has steps of {step[j]:g}; subtract an offset "
            "such as the least value from the integers, or leave the coordinate out"
        )


def too_coarse(
    place: str, column: int, lo: Floats, hi: Floats, names: Sequence[str] | None = None
) -> str:
    """Return the message for a coordinate whose points a store of float32 would merge."""
    name = repr(names[column]) if names else str(column)
    largest = max(abs(lo[column]), abs(hi[column]))
    step, span = np.spacing(np.float32(largest)), hi[column] - lo[column]
    return (
        f"{place}: float32 merges points: coordinate {name} ranges over {span:g} near "
        f'{largest:.9g}, where float32 has steps of {step:g}; make the store with dtype="float64", '
        f"or subtract an offset such as {np.floor(lo[column]):.12g} from the coordinate"
    )
