# mypy: disallow-untyped-defs=False
"""Kernels of the sufficient statistics: packed triangles, exact sums."""

from __future__ import annotations

import numpy as np

from ...core.compiling import UNSIGNED as _U, kernel, subkernel
from .same_sums import add_panels_by_arrays, add_triangle_by_arrays, unpack_centred_by_arrays

STRIPE_COLUMNS = 512  # columns of features summed by one thread at a time: their sums stay in L1
_ROWS_AT_ONCE = 4  # rows of a stripe converted to double at a time, to load and store each sum once


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
    y : float64, shape (n, k)
    sums : float64, shape (D,)
    cross : float64, shape (k, D)
    """
    n, d = z.shape
    # No part of an array is written to another: Numba compiles numpy's broadcasting for that, its
    # messages and all, which took four seconds.
    rows = np.empty((_ROWS_AT_ONCE, STRIPE_COLUMNS), np.float64)
    weights = np.empty(_ROWS_AT_ONCE, np.float64)
    for stripe in range(begin, end):
        first = stripe * STRIPE_COLUMNS
        width = d - first if d - first < STRIPE_COLUMNS else STRIPE_COLUMNS
        for start in range(0, n, _ROWS_AT_ONCE):
            for r in range(_ROWS_AT_ONCE):
                if start + r < n:
                    for j in range(width):
                        rows[r, j] = z[start + r, _U(first + j)]
                else:
                    for j in range(width):
                        rows[r, j] = 0.0
            for j in range(width):
                total = (rows[0, j] + rows[1, j]) + (rows[2, j] + rows[3, j])
                sums[_U(first + j)] += total
            for t in range(y.shape[1]):
                some = False
                for r in range(_ROWS_AT_ONCE):
                    weights[r] = y[start + r, t] if start + r < n else 0.0
                    some |= weights[r] != 0.0
                if not some:
                    continue
                a = weights[0]
                b = weights[1]
                c = weights[2]
                e = weights[3]
                for j in range(width):
                    total = (a * rows[0, j] + b * rows[1, j]) + (c * rows[2, j] + e * rows[3, j])
                    cross[t, _U(first + j)] += total


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
