"""Kernels of the sufficient statistics: packed triangles, exact sums."""

from __future__ import annotations

import numpy as np

from ..compiling import kernel, subkernel

STRIPE = 512  # columns of features summed by one thread at a time: their sums stay in L1
ROWS = 4  # rows of a stripe converted to double at a time, to load and store each sum once


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


@kernel()
def add_triangle(begin, end, packed, square):
    """Add pairs of rows of the upper triangle of ``square`` to ``packed``; packed is float64.

    Pair i, of (n + 1) // 2, has rows i and n − 1 − i, a long and a short one: equal work per pair.
    """
    n = square.shape[0]
    for pair in range(begin, end):
        _add_row(packed, square, pair)
        if n - 1 - pair > pair:
            _add_row(packed, square, n - 1 - pair)


@kernel()
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
        Of them, that are filled.
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


@subkernel()
def _add_shifted_row(packed, square, a, b, i):
    n = square.shape[0]
    target = packed[row_start(i, n) : row_start(i + 1, n)]
    source, left, right = square[i, i:], a[i:], b[i:]
    for j in range(n - i):
        target[j] += source[j] + (a[i] * right[j] + b[i] * left[j])


@kernel()
def add_shifted_triangle(begin, end, packed, square, a, b):
    """Add as `add_triangle` does, of ``square`` + a bᵀ + b aᵀ; a, b float64 (D,)."""
    n = square.shape[0]
    for pair in range(begin, end):
        _add_shifted_row(packed, square, a, b, pair)
        if n - 1 - pair > pair:
            _add_shifted_row(packed, square, a, b, n - 1 - pair)


@kernel()
def unpack_centred(begin, end, packed, sums, n_rows, shift, square):
    """Rows of the upper triangle of square = packed − sums sumsᵀ / n_rows + shift · I, float64."""
    n = square.shape[0]
    for i in range(begin, end):
        start = row_start(i, n) - i
        mean = sums[i] / n_rows
        for j in range(i, n):
            square[i, j] = packed[start + j] - mean * sums[j]
        square[i, i] += shift


@subkernel(fastmath={"contract"})
def _add_weighted(rows, weights, target):
    """Add Σ_i weights[i] rows[i] to ``target``, over the rows (at most ROWS) with a weight."""
    m = len(weights)
    a = weights[0]
    b = weights[1] if m > 1 else 0.0
    c = weights[2] if m > 2 else 0.0
    d = weights[3] if m > 3 else 0.0
    if a == 0.0 and b == 0.0 and c == 0.0 and d == 0.0:
        return
    for j in range(len(target)):
        target[j] += (a * rows[0, j] + b * rows[1, j]) + (c * rows[2, j] + d * rows[3, j])


@subkernel(fastmath={"contract"})
def _take_rows(z, rows, sums):
    """Write ROWS rows of z into ``rows``, and add them to ``sums``: one loop over both."""
    z0, z1, z2, z3 = z[0], z[1], z[2], z[3]
    r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
    for j in range(len(sums)):
        a, b, c, d = np.float64(z0[j]), np.float64(z1[j]), np.float64(z2[j]), np.float64(z3[j])
        r0[j], r1[j], r2[j], r3[j] = a, b, c, d
        sums[j] += (a + b) + (c + d)


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
    for stripe in range(begin, end):
        columns = slice(stripe * STRIPE, min(d, (stripe + 1) * STRIPE))
        target = sums[columns]
        rows, last = np.empty((ROWS, len(target))), np.zeros((ROWS, len(target)), z.dtype)
        for start in range(0, n, ROWS):
            m = min(ROWS, n - start)
            if m < ROWS:
                last[:m] = z[start:, columns]
                _take_rows(last, rows, target)
            else:
                _take_rows(z[start : start + ROWS, columns], rows, target)
            for t in range(y.shape[1]):
                _add_weighted(rows, y[start : start + m, t], cross[t, columns])


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
