"""Powers of two as units, in which squares of numbers neither overflow nor underflow.

Division by a power of two keeps all bits of a number, so that only the exponent of a result depends
on the unit. Without units the square of 1e160 is infinite in double precision, and the square of
1e-200 is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats, Integers

UNIT_STEP = 128  # between exponents of units: columns between 2^-64 and 2^64 have the unit 1
NO_UNIT = -9 * UNIT_STEP  # of zeros: below every number's


def units_of(columns: Floats) -> Integers:
    """Return for each column of (n, k) the exponent e of a unit 2^e that avoids overflow.

    In this unit sums of squares are ordinary numbers. For values between 2^-64 and 2^64, e is 0.
    """
    largest = np.abs(columns).max(axis=0, initial=0.0)
    steps = np.floor(np.frexp(largest)[1] / UNIT_STEP + 0.5).astype(np.int64)
    return np.where(largest == 0, NO_UNIT, UNIT_STEP * steps)


def units_of_labels(labels: Floats, predicted: Floats) -> Integers:
    """Return a unit per label column (n, k); a column of zeros has its predictions' unit."""
    own = units_of(labels)
    return np.where(own == NO_UNIT, units_of(predicted), own)


def in_units(rows: Floats, exponents: Integers) -> Floats:
    """Return rows (n, k) divided by 2^``exponents``; an overflow is infinite."""
    if not exponents.any():
        return rows
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(rows, -exponents))


def surely_finite(values: NDArray[Any]) -> bool:
    """Return whether the sum of floats proves that all are finite, in one pass without memory.

    It returns False, too, if large finite values add up to infinity.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(values, axis=None)))
