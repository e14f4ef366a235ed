# mypy: disallow-untyped-defs=False
"""A Cholesky factor whose first row goes, and whose next columns are solved for.

The factor is R, upper, with rows in order: RᵀR = A. Only the window start:stop of it is in use.
"""

from __future__ import annotations

import numpy as np

from ....core.compiling import kernel


@kernel()
def drop_first(R, u, start, stop, row, tail):
    """Take the first row and column of A out of R, and of u = R⁻ᵀc, shape (n, q).

    What is left is RᵀR + vvᵀ for the row v that goes: rotations add it, which rounding cannot
    make indefinite. ``row`` (n,) and ``tail`` (q,) are scratch.
    """
    # loops: numba compiles numpy's broadcasting, messages and all, for parts of arrays
    for i in range(start, stop):
        row[i] = R[start, i]
    for q in range(len(tail)):
        tail[q] = u[start, q]
    for k in range(start + 1, stop):
        length = np.hypot(R[k, k], row[k])
        c, s = R[k, k] / length, row[k] / length
        for i in range(k, stop):
            above = R[k, i]
            R[k, i] = c * above + s * row[i]
            row[i] = c * row[i] - s * above
        for q in range(len(tail)):
            above = u[k, q]
            u[k, q] = c * above + s * tail[q]
            tail[q] = c * tail[q] - s * above


@kernel()
def solve_columns(R, start, stop, columns):
    """Replace columns g of A, in rows (2, n), by R⁻ᵀg."""
    for k in range(start, stop):
        for q in range(len(columns)):
            value = columns[q, k - start] / R[k, k]
            columns[q, k - start] = value
            for i in range(k + 1, stop):
                columns[q, i - start] -= R[k, i] * value
