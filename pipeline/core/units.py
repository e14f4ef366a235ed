"""Units that are powers of two, in which the squares of numbers of any size are ordinary numbers.

Numbers divided by a power of two keep their bits, so that nothing but the exponent of a result
depends on the unit; a square of 1e160 is infinite in double, and one of 1e-200 is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats, Integers

UNIT_STEP = 128  # between exponents of units: columns between 2^-64 and 2^64 have the unit 1
NO_UNIT = -9 * UNIT_STEP  # of zeros: below every number's


def units_of(columns: Floats) -> Integers:
    """Return for each column of (n, k) the e of a unit 2^e in which sums of squares are ordinary.

    Numbers between 2^-64 and 2^64 have e = 0.
    """
    largest = np.abs(columns).max(axis=0, initial=0.0)
    steps = np.floor(np.frexp(largest)[1] / UNIT_STEP + 0.5).astype(np.int64)
    return np.where(largest == 0, NO_UNIT, UNIT_STEP * steps)


def units_of_labels(labels: Floats, predicted: Floats) -> Integers:
    """Return a unit per label column (n, k); a column of zeros has its predictions' unit."""
    own = units_of(labels)
    return np.where(own == NO_UNIT, units_of(predicted), own)


def in_units(rows: Floats, exponents: Integers) -> Floats:
    """Return rows (n, k) over 2^``exponents``, infinite where that is too large for numbers."""
    if not exponents.any():
        return rows
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(rows, -exponents))


def surely_finite(values: NDArray[Any]) -> bool:
    """Return whether the sum of floats shows that all are finite: one pass, and no memory.

    It does not where large ones add up to infinity.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(values, axis=None)))
