"""Checks of points, offsets and single bags; messages name the bag and the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays import Integers, as_array, first_not_a_number
from ...core.errors import DataError, shown
from .frames import numbers_of_frame
from .precision import check_array_apart

_TABLES = "give pandas.DataFrame(bag), whose columns are the coordinates"
_ROWS = (np.ndarray, list, tuple)  # rows of an array of objects

IdsLike = Sequence[int] | Sequence[str] | NDArray[Any]


def check_finite(
    points: NDArray[Any],
    offsets: Integers,
    ids: IdsLike | None = None,
    owner: str = "",
    names: Sequence[str] | None = None,
) -> None:
    """Raise DataError for the first NaN or infinite coordinate, naming bag, row and coordinate.

    ``owner`` precedes the bag's name in the message, for points that are not the bag's own.
    ``names`` are the names of the coordinates, if any.
    """
    finite = np.isfinite(points)
    if finite.all():
        return
    # the positions of all such values may take many times the memory of the points
    row, column = map(int, np.unravel_index(np.argmin(finite), finite.shape))
    bag = int(np.searchsorted(offsets, row, side="right") - 1)
    name = column if names is None else repr(str(names[column]))
    number = points[row, column]
    remedy = "remove the point or the bag"
    if np.isnan(number):
        remedy += ", or fill the column, as with its median, and add a column of 0 and 1 that flags"
        remedy += " filled cells"
    raise DataError(
        f"{owner}{bag_name(bag, ids)}, row {row - offsets[bag]}: coordinate {name} is {number}; "
        f"{remedy}"
    )


def bag_name(bag: int, ids: IdsLike | None) -> str:
    """Return the name of a bag in messages: its id, else its index."""
    return f"bag {bag}" if ids is None else f"bag with id {np.asarray(ids).tolist()[bag]!r}"


def as_points(points: ArrayLike) -> NDArray[Any]:
    """Return points as a contiguous float32 or float64 array; DataError for any other shape."""
    array = as_array("points", points)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"points have shape {array.shape}; expected (n_points, n_dims)")
    check_array_apart("points", array, is_whole=True)
    return np.ascontiguousarray(array, dtype=_float_dtype(array, "points"))


def as_bag(array: ArrayLike, name: str, empty: bool = False) -> NDArray[Any]:
    """Return the points of one bag, float32 or float64, shape (n_points, n_dims).

    ``name`` is the name of the bag in messages; ``empty`` allows a bag without points.

    Raises
    ------
    DataError
        If the shape is wrong, there are no points, or values are not real numbers.
    """
    is_frame = hasattr(array, "columns") and hasattr(array, "dtypes")
    bag = as_array(name, array)
    if is_frame and bag.dtype not in (np.float32, np.float64):
        bag = numbers_of_frame(array, name)
    if bag.dtype == object and bag.ndim == 1 and all(isinstance(row, _ROWS) for row in bag):
        bag = as_array(name, [*bag])  # lists of lists in a column of Arrow's or Parquet's
    if bag.ndim == 1:
        bag = bag[:, None]
    if bag.ndim != 2 or bag.shape[1] == 0:
        hint = f"; {_TABLES}" if isinstance(array, Mapping) else ""
        raise DataError(f"{name} has shape {bag.shape}; expected (n_points, n_dims){hint}")
    if len(bag) == 0 and not empty:
        raise DataError(f"{name} is empty; a bag needs at least one point, so leave it out")
    return bag.astype(_float_dtype(bag, name), copy=False)


def _float_dtype(array: NDArray[Any], name: str) -> np.dtype[Any]:
    if array.dtype in (np.float32, np.float64):
        return array.dtype
    if array.dtype.names:
        raise DataError(f"{name} has the fields {shown(list(array.dtype.names))}; {_TABLES}")
    if array.dtype.kind not in "biuf":
        first = first_not_a_number(array, "row", "coordinate")
        values = array.flat if array.dtype.kind == "O" else ()
        hint = f"; {_TABLES}" if any(isinstance(value, Mapping) for value in values) else ""
        raise DataError(f"{name} has dtype {array.dtype}; expected real numbers{first}{hint}")
    return np.dtype(np.float64)


def as_offsets(offsets: ArrayLike, n_points: int) -> Integers:
    """Return offsets as contiguous int64; DataError unless they run from 0 to ``n_points``."""
    array = as_array("offsets", offsets)
    if array.dtype.kind not in "iu":
        raise DataError(f"offsets have dtype {array.dtype}; expected integers")
    if array.ndim != 1 or len(array) == 0 or array[0] != 0 or array[-1] != n_points:
        raise DataError(f"offsets must run from 0 to n_points = {n_points}, one more than bags")
    return np.ascontiguousarray(array, dtype=np.int64)
