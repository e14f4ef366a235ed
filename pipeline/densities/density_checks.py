"""Checks for the inputs of `Densities`, and positions of points in the box."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core import Integer
from ..core.arrays import Bools, Floats, Integers, as_array
from ..core.errors import DataError, ParameterError, shown
from ..data.bags.box import Box
from ..data.bags.coordinates import Names
from ..data.bags.point_rows import points_in_order

MAX_MIDPOINTS = 2**27  # largest number per dimension; the coordinates take 1 GiB
MAX_VALUES_BYTES = 2**33  # largest size of one array of values


def checked_indices(indices: ArrayLike) -> Integers:
    """Return distinct multi-indices that include zero, read-only int64 of shape (s, d)."""
    array = as_array("indices", indices)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iu" or (array < 0).any():
        raise DataError(
            f"indices have shape {array.shape} and dtype {array.dtype}; expected (s, d) integers "
            "≥ 0, such as bases.index_set gives"
        )
    if not (array == 0).all(axis=1).any():
        raise DataError("indices lack the constant function (0, …, 0), so nothing integrates to 1")
    ordered = array[np.lexsort(array.T)]
    if (ordered[1:] == ordered[:-1]).all(axis=1).any():
        raise DataError("indices hold a multi-index twice; add up its coefficients")
    return _read_only(array.astype(np.int64, copy=False))


def checked_coefficients(coefficients: ArrayLike, n_functions: int) -> Floats:
    """Return finite coefficients, read-only float64 of shape (n, n_functions)."""
    array = as_array("coefficients", coefficients, np.float64)
    if array.ndim != 2 or array.shape[1] != n_functions:
        raise DataError(
            f"coefficients have shape {array.shape}; expected (n, {n_functions}), a row per "
            "density and a column per index"
        )
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise DataError(f"density {int(finite.argmin())} has a coefficient that is not finite")
    return _read_only(array)


def checked_threshold(threshold: ArrayLike, n: int) -> Floats:
    """Return finite thresholds, read-only float64 of shape (n,)."""
    array = as_array("threshold", threshold, np.float64)
    if array.shape != (n,) or not np.isfinite(array).all():
        raise DataError(f"threshold has shape {array.shape}; expected ({n},) finite numbers")
    return _read_only(array)


def checked_points(points: ArrayLike, n_dims: int, names: Names = None) -> NDArray[Any]:
    """Return finite points, shape (n_points, n_dims), with columns in the order of ``names``."""
    array, _ = points_in_order(points, names, "points", "the densities are of")
    if array.ndim == 1 and n_dims == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != n_dims or array.dtype.kind not in "biuf":
        raise DataError(
            f"points have shape {array.shape} and dtype {array.dtype}; expected (n_points, "
            f"{n_dims}) real numbers"
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise DataError(f"points, row {int(finite.argmin())}: a coordinate is not finite")
    return array


def check_grid(n: object) -> int:
    """Return ``n`` if it is a valid number of midpoints per dimension; else ParameterError."""
    return Integer(1, MAX_MIDPOINTS).check("grid", n)


def check_bytes(grid: int, n_dims: int, n_densities: int) -> None:
    """Raise ParameterError if the values on a grid take more than 8 GiB."""
    n_bytes = 8 * n_densities * grid**n_dims
    if n_bytes > MAX_VALUES_BYTES:
        raise ParameterError(
            f"{grid} midpoints in each of {n_dims} dimensions for {n_densities} densities take "
            f"{n_bytes:,} bytes; take a smaller grid, fewer densities at a time, or a marginal"
        )


def checked_dims(dims: ArrayLike, n_dims: int) -> list[int]:
    """Return distinct dimensions as a list; ParameterError otherwise."""
    chosen = np.atleast_1d(as_array("dims", dims))
    is_whole = chosen.dtype.kind in "iu" and chosen.ndim == 1
    distinct = is_whole and len(np.unique(chosen)) == chosen.size > 0
    if not distinct or chosen.min() < 0 or chosen.max() >= n_dims:
        raise ParameterError(
            f"dims is {shown(dims)}; expected distinct dimensions of 0 to {n_dims - 1}"
        )
    return [int(j) for j in chosen]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array if it is read-only, else a read-only copy."""
    if not array.flags.writeable:
        return array
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def box_volume(box: Box) -> float:
    """Return the volume of a box in the units of the data."""
    return float(np.prod(np.array(box.hi) - np.array(box.lo)))


def box_contains(box: Box, points: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the points inside the box, shape (n,).

    Edges are rounded to the precision of the points: a float32 point on an edge is inside.
    """
    lo, hi = (np.array(edge, dtype=points.dtype) for edge in (box.lo, box.hi))
    inside: Bools = np.logical_and.reduce((points >= lo) & (points <= hi), axis=1)
    return inside


def in_unit_cube(box: Box, points: NDArray[Any]) -> Floats:
    """Return points in the box scaled to [0, 1]^d, float64; points outside move to its edge."""
    return np.clip(box.to_unit(points.astype(np.float64)), 0.0, 1.0)
