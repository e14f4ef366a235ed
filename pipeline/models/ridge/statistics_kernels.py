# mypy: disallow-untyped-defs=False
"""Kernels of the sufficient statistics: packed triangles, exact sums."""

from __future__ import annotations

import numpy as np

from ...core.compiling import UNSIGNED as _U, kernel, subkernel
from .same_sums import add_panels_by_arrays, add_triangle_by_arrays, unpack_centred_by_arrays

STRIPE_COLUMNS = 512  # columns of features summed by one thread at a time: their sums stay in L1
ROWS_AT_ONCE = 4  # rows of a stripe added at a time, to load and store each sum once
_D = np.float64


@subkernel(inline="always")
def row_start(i, n):
    """Where row i begins in a packed upper triangle of order n."""
    return i * n - i * (i - 1) // 2


@subkernel()
def _add_row(packed, square, i):
    n = square.shape[0]
    target = packed[row_start(i, n) : row_start(i + 1, n)]
    source = square[i, i:]
    for j in range(n - i):
        target[j] += source[j]


@kernel(add_triangle_by_arrays)
def add_triangle(begin, end, packed, square):
    """Add pairs of rows of the upper triangle of ``square`` to ``packed``; packed is float64.

    Pair i, of (n + 1) // 2, has rows i and n − 1 − i, a long and a short one: equal work per pair.
    """
    n = square.shape[0]
    for pair in range(begin, end):
        _add_row(packed, square, pair)
        if n - 1 - pair > pair:
            _add_row(packed, square, n - 1 - pair)


@kernel(add_panels_by_arrays)
def add_panels(packed, blocks, edges, n_chunks, panel, start, stop):
    """Add what chunks of rows gave, in their order, to rows start … stop of a packed triangle.

    Parameters
    ----------
    packed : float64, shape (D (D + 1) / 2,)
    blocks : float32 or float64, shape (pairs, chunks, width, width)
        The products of each pair of panels, in the order of a packed triangle of panels.
    edges : int64, shape (panels + 1,)
        Where each panel of features begins.
    n_chunks : int
        Number of chunks that are filled.
    panel : int
        In which the rows lie.
    """
    n_panels, n = len(edges) - 1, edges[-1]
    for i in range(start, stop):
        row = i - edges[panel]
        for other in range(panel, n_panels):
            first = i if other == panel else edges[other]
            skipped, width = first - edges[other], edges[other + 1] - first
            begin = row_start(i, n) + first - i
            target = packed[begin : begin + width]
            products = blocks[row_start(panel, n_panels) + other - panel]
            for chunk in range(n_chunks):
                source = products[chunk, row, skipped : skipped + width]
                for j in range(width):
                    target[j] += source[j]


@kernel(unpack_centred_by_arrays)
def unpack_centred(begin, end, packed, sums, n_rows, shift, square):
    """Rows of the upper triangle of square = packed − sums sumsᵀ / n_rows + shift · I, float64."""
    n = square.shape[0]
    for i in range(begin, end):
        start = row_start(i, n) - i
        mean = sums[i] / n_rows
        for j in range(i, n):
            square[i, j] = packed[start + j] - mean * sums[j]
        square[i, i] += shift


@kernel(fastmath={"contract"})
def add_sums(begin, end, z, y, sums, cross):
    """Add Σ z to sums and zᵀy to cross, in double precision.

    Parameters
    ----------
    begin, end : int
        The stripes of columns that are summed.
    z : float32 or float64, shape (n, D)
        The number of rows is a multiple of `ROWS_AT_ONCE`.
    y : float64, shape (n, k)
    sums : float64, shape (D,)
    cross : float64, shape (k, D)
    """
    n, d = z.shape
    # No array is made here, and no part of one is written to another: a process that loads such a
    # kernel imports what Numba knows of arrays, and one that compiles it compiles all that.
    for stripe in range(begin, end):
        first = stripe * STRIPE_COLUMNS
        last = first + STRIPE_COLUMNS if first + STRIPE_COLUMNS < d else d
        for start in range(0, n, ROWS_AT_ONCE):
            i, k, m, o = _U(start), _U(start + 1), _U(start + 2), _U(start + 3)
            for column in range(first, last):
                j = _U(column)
                sums[j] += (_D(z[i, j]) + _D(z[k, j])) + (_D(z[m, j]) + _D(z[o, j]))
            for t in range(y.shape[1]):
                a, b, c, e = y[i, t], y[k, t], y[m, t], y[o, t]
                if a == 0.0 and b == 0.0 and c == 0.0 and e == 0.0:
                    continue
                for column in range(first, last):
                    j = _U(column)
                    total = (a * z[i, j] + b * z[k, j]) + (c * z[m, j] + e * z[o, j])
                    cross[t, j] += total


@kernel(fastmath={"contract", "reassoc"})
def linear_predictions(begin, end, z, coefficients, intercept, out):
    """Write z coefficientsᵀ + intercept into ``out``, summed in double precision.

    Parameters
    ----------
    begin, end : int
        The rows that are predicted.
    z : float32 or float64, shape (n, D)
    coefficients : float64, shape (k, D)
    intercept : float64, shape (k,)
    out : float64, shape (n, k), written
    """
    d = z.shape[1]
    for i in range(begin, end):
        for t in range(len(intercept)):
            total = 0.0
            for j in range(d):
                total += z[i, j] * coefficients[t, j]
            out[i, t] = total + intercept[t]
