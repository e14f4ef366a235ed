"""Conversion of ragged points to and from awkward arrays, which share memory."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Integers
from ...core.errors import DataError, shown

if TYPE_CHECKING:
    from awkward import Array


def _library() -> ModuleType:
    """Return the library awkward; DataError if it is not installed."""
    try:
        import awkward  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise DataError("awkward is missing: pip install 'bagbasis[awkward]'") from error
    module: ModuleType = awkward
    return module


def split_lists(array: object) -> tuple[NDArray[np.generic], Integers, list[str] | None]:
    """Return points, shape (n, d), sizes and names of an array of lists of points.

    Names are the fields of records.

    Raises
    ------
    DataError
        If the argument is not an awkward array, a bag or number is missing, or points differ in
        dimension.
    """
    ak = _library()
    if not isinstance(array, ak.Array):
        raise DataError(f"array is {shown(array)}; expected an awkward array")
    try:
        sizes = ak.to_numpy(ak.num(array, axis=1), allow_missing=False)
        items = ak.flatten(array, axis=1)
        if ak.fields(items):
            columns = [ak.to_numpy(items[name], allow_missing=False) for name in ak.fields(items)]
            names = None if ak.is_tuple(items) else ak.fields(items)
            return np.column_stack(columns), sizes, names
        points = ak.to_numpy(items, allow_missing=False)
    except (ValueError, TypeError, np.exceptions.AxisError) as error:
        what = "one list of points per bag, each a list or a record of numbers, none missing"
        raise DataError(f"array has type {shown(str(ak.type(array)))}; expected {what}") from error
    return points[:, None] if points.ndim == 1 else points, sizes, None


def join_lists(points: NDArray[np.generic], sizes: Integers) -> Array:
    """Return one list of points, shape (n_i, d), per bag; the numbers are not copied."""
    ak = _library()
    return ak.unflatten(ak.from_numpy(points, regulararray=True), sizes)
