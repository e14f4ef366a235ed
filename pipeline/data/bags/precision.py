"""Checks that floats keep points apart, such as Julian dates of a night or large integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Bools, Floats
from ...core.errors import DataError
from .box import range_of

MIN_STEPS = 2**12  # float32 merges points if the range of a coordinate has fewer of its steps


def merged_by_float32(
    points: NDArray[Any],
    lo: Floats | None = None,
    hi: Floats | None = None,
    span: Floats | None = None,
) -> NDArray[np.int64]:
    """Return the coordinates whose points float32 would merge.

    In these coordinates a value differs from its float32, and the range has fewer than 4,096 steps
    of float32 at its largest value. The range of a constant counts as 1.

    Parameters
    ----------
    points : ndarray, shape (n, d)
        Points, or a sample of them. Points of float32 have no such coordinates.
    lo, hi : ndarray, shape (d,), optional
        Range of all points. None: the range of ``points``.
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
        differs: Bools = (columns != columns.astype(np.float32)).any(axis=0)
    return suspects[differs]


def steps_of(lo: Floats, hi: Floats, span: Floats | None = None) -> Floats:
    """Return float32's step at the largest value over a 4,096th of the range, shape (d,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(np.abs(lo), np.abs(hi)).astype(np.float32)
        step = np.spacing(largest).astype(np.float64)
        width = np.fmax(hi - lo, 0.0 if span is None else span)
        width = np.where(width > 0, width, 1.0)
        return np.asarray(np.where(np.isfinite(largest), step * MIN_STEPS / width, 0.0))


def check_integers_apart(
    place: str, lo: Floats, hi: Floats, are_integers: Sequence[bool], names: Sequence[str]
) -> None:
    """Raise DataError for a coordinate of integers that float64 would merge.

    Parameters
    ----------
    place : str
        Name of the points in messages.
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
        merged = (step > 1) & (step * MIN_STEPS > width) & are_integers
    for j in np.flatnonzero(merged).tolist():
        name = repr(names[j]) if names else str(j)
        raise DataError(
            f"{place}: float64 merges integers: coordinate {name} ranges over {hi[j] - lo[j]:g} "
            f"near {largest[j]:.17g}, where float64 has steps of {step[j]:g}; subtract an offset "
            "such as the least value from the integers, or leave the coordinate out"
        )


def has_integers(bag: object) -> bool:
    """Return whether an array, a pandas frame or the first of nested lists has integers."""
    if type(bag) is np.ndarray:
        return bag.dtype.kind in "iu"
    if isinstance(bag, (list, tuple)):
        first: Any = bag
        while isinstance(first, (list, tuple)) and first:
            first = first[0]
        return isinstance(first, (int, np.integer))
    own = [getattr(bag, "dtype", None)]
    dtypes = list(getattr(bag, "dtypes", own)) if hasattr(bag, "columns") else own
    return any(getattr(dtype, "kind", "") in ("i", "u") for dtype in dtypes)


class IntegerRange:
    """Range of the integers in many arrays, which are checked together.

    Parameters
    ----------
    place : str
        Name of the points in messages.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._ends: tuple[Floats, Floats] | None = None

    def add(self, original: object, points: NDArray[Any]) -> None:
        """Update the range with points, shape (n, d), that were given as integers.

        Parameters
        ----------
        original : array_like
            Points as they were given.
        points : ndarray
            The same points as floats.
        """
        if not len(points) or not has_integers(original):
            return
        lo, hi = (end.astype(np.float64) for end in range_of(points))
        if self._ends is not None and len(self._ends[0]) == len(lo):
            lo, hi = np.minimum(lo, self._ends[0]), np.maximum(hi, self._ends[1])
        self._ends = lo, hi

    def check(self, names: Sequence[str] = ()) -> None:
        """Raise DataError if float64 merges the integers; see `check_integers_apart`."""
        if self._ends is not None:
            check_integers_apart(self.place, *self._ends, [True] * len(self._ends[0]), names)


def check_array_apart(place: str, array: object, is_whole: bool) -> None:
    """Raise DataError for an array of integers that float64 would merge.

    Parameters
    ----------
    place : str
        Name of the points in messages.
    array : array, shape (n, d) or (n,)
        Points as they were given. Only integers of 64 bits can be refused.
    is_whole : bool
        Whether these are all points. Equal values in a single bag say nothing about other bags.
    """
    dtype: Any = getattr(array, "dtype", None)
    if getattr(dtype, "kind", "") not in ("i", "u") or getattr(dtype, "itemsize", 0) < 8:
        return
    points = np.asarray(array)
    if points.dtype.kind == "O":  # a nullable column of pandas
        present = [value for value in points.ravel().tolist() if isinstance(value, int)]
        points = np.array(present, dtype=f"{dtype.kind}8")
    if not points.size or points.ndim not in (1, 2):
        return
    points = points[:, None] if points.ndim == 1 else points
    ends = points.min(axis=0), points.max(axis=0)
    lo, hi = (end.astype(np.float64) for end in ends)
    counts = (is_whole | (ends[0] < ends[1])).tolist()
    check_integers_apart(place, lo, hi, counts, ())


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


def check_labels_apart(what: str, labels: NDArray[Any]) -> None:
    """Raise DataError for a float as a label that stands for several whole numbers."""
    first = 2 ** (np.finfo(labels.dtype).nmant + 1)
    shared = labels[np.abs(labels) >= first]
    if shared.size:
        raise DataError(
            f"{what} have {shared[0]:.0f}, a {labels.dtype}, which has no digit for every whole "
            f"number from {first}, so that two labels may be one: give whole numbers or texts"
        )
