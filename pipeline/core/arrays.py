"""Types of arrays, by the names that signatures use; arrays as kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
EitherPrecision = tuple[NDArray[np.float32], NDArray[np.float64]]
"""See `by_precision`."""


def by_precision(array: NDArray[Any]) -> EitherPrecision:
    """Return the array as a pair (float32, float64), of which the other one has no rows.

    A kernel that takes a pair is compiled once, where it would be for each dtype.
    """
    shape = (0, *array.shape[1:])
    if array.dtype == np.float32:
        return array, np.empty(shape, np.float64)
    return np.empty(shape, np.float32), array
