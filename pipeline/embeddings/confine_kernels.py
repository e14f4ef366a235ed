"""One point scaled to the unit cube, and one row written: where several kernels begin and end.

Both take arrays of either precision, so that the kernels, which work in double, are compiled once.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def confine(points, row, columns, lo, inverse, x):
    """Scale the box to [0, 1]^g and clip; returns whether the point was inside.

    Parameters
    ----------
    points : (float32, float64), each of shape (n, d) or (0, d)
        See `arrays.by_precision`.
    row : int
        The point that is taken.
    columns : int64, shape (g,)
        The coordinates that are taken.
    lo, inverse : float64, shape (d,)
        x ↦ (x − lo) · inverse scales the box to [0, 1].
    x : shape (g,), written
    """
    single, double = points
    inside = True
    for j in range(len(columns)):
        c = columns[j]
        coordinate = double[row, c] if len(double) else np.float64(single[row, c])
        v = (coordinate - lo[c]) * inverse[c]
        inside &= not (v < 0.0 or v > 1.0)
        x[j] = min(max(v, 0.0), 1.0)
    return inside


@njit(cache=True)
def write_row(values, out, i):
    """Write row i of ``out``, (float32, float64): see `arrays.by_precision`."""
    single, double = out
    if len(double):
        for q in range(len(values)):
            double[i, q] = values[q]
    else:
        for q in range(len(values)):
            single[i, q] = values[q]
