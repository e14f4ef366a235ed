# mypy: disallow-untyped-defs=False
"""Gaussian density estimates of ragged bags on a grid.

A point is spread on the midpoints in its reach alone (Greengard and Lee 2004): what it gives to
those farther away is below float32's rounding of what it gives to the nearest. Two exponentials
per coordinate make all weights: exp(−c(f + k)²) = exp(−cf²) · exp(−2cf)^k · exp(−ck²).
"""

from __future__ import annotations

import numpy as np

from ...core.compiling import UNSIGNED as _U, kernel, subkernel
from ...core.sine_kernels import FAST
from ..bases.projection_kernels import SUMMED_POINTS, load_block
from ..random_features.kernels.landmark_kernels import decay

CHUNK = 8  # midpoints of the last coordinate that are written in one unrolled loop


@subkernel(fastmath=FAST)
def _weigh(x, m, n_grid, squares, table, first, scratch):
    """Write exp(−gap² / 2h²) of the midpoints around m points; ``first`` counts from the margin."""
    half, of = len(squares) - 1, table.dtype.type
    rate, side = -np.log(squares[1]), squares[1] * squares[1]
    left, right, ratio, other = scratch[0], scratch[1], scratch[2], scratch[3]
    for b in range(m):
        at = x[b] * of(n_grid) - of(0.5)
        below = np.floor(at)
        gap = at - below
        first[b] = np.int64(below) + 1
        left[b] = -rate * gap * gap
        ratio[b] = of(-2) * rate * gap
    if table.itemsize == 4:
        for b in range(m):
            left[b], ratio[b] = decay(left[b]), decay(ratio[b])
    else:
        for b in range(m):
            left[b], ratio[b] = np.exp(left[b]), np.exp(ratio[b])
    for b in range(m):
        inverse = of(1) / ratio[b]
        right[b] = left[b] * squares[1] * inverse
        other[b] = side * inverse
    for k in range(half):
        lower, upper, square = table[half - 1 - k], table[half + k], squares[k]
        for b in range(m):
            lower[b] = left[b] * square
            upper[b] = right[b] * square
            left[b] *= ratio[b]
            right[b] *= other[b]


@subkernel(fastmath=FAST)
def _spread(tables, first, m, widths, n, sums):
    """Add the products of weights of m points to ``sums``, a flat grid with n a side."""
    last = np.empty(CHUNK, tables.dtype)
    for b in range(m):
        corner = (first[0, b] * n + first[1, b]) * n + first[2, b]
        for c in range(0, widths[2], CHUNK):
            for k in range(CHUNK):
                last[k] = tables[2, c + k, b]
            for i in range(widths[0]):
                for j in range(widths[1]):
                    weight = tables[0, i, b] * tables[1, j, b]
                    at = _U(corner + (i * n + j) * n + c)
                    for k in range(CHUNK):
                        sums[at + _U(k)] += weight * last[_U(k)]


@subkernel()
def _fold(sums, n, half, g, factor, out, first):
    """Mirror the margins into the grid, and write it times ``factor`` to out[first:]."""
    for axis in range(g):
        apart = n ** (g - 1 - axis)  # of neighbours along this axis
        for i in range(n**axis):
            for k in range(half):
                low = (i * n + half - 1 - k) * apart
                into = (i * n + half + k) * apart
                high = (i * n + n - half + k) * apart
                down = (i * n + n - half - 1 - k) * apart
                for j in range(apart):
                    sums[_U(into + j)] += sums[_U(low + j)]
                    sums[_U(down + j)] += sums[_U(high + j)]
    inner = n - 2 * half
    for row in range(inner ** (g - 1)):
        start = half
        if g > 1:
            start += (row % inner + half) * n
        if g > 2:
            start += (row // inner + half) * n * n
        for c in range(inner):
            out[_U(first + row * inner + c)] = factor * sums[_U(start + c)]


@kernel()
def spread_bags(
    begin, end, points, offsets, groups, lo, inverse, drop, n_grid, squares, scale, out, n_outside
):
    """Gaussian density estimates with reflection at the edges, on the midpoints of a grid.

    Parameters
    ----------
    begin, end : int
        The bags that are embedded.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`; marginals of at most three coordinates.
    n_grid : int
        Midpoints per dimension; at least as many as a point reaches to one side.
    squares : of out's dtype, shape (half + 1,)
        exp(−(k / h n_grid)² / 2): a point reaches ``half`` midpoints to either side, a multiple
        of CHUNK / 2.
    scale : float
        Height of a Gaussian's peak: (√2π h)^−g.
    out : float32 or float64, shape (n_bags, n_groups · n_grid^g), written
        Its dtype is the working precision; sums are in double. NaN where no point was kept.
    n_outside : int64, shape (n_bags,), written
        Points of the bag outside the box, in the group where they are most.
    """
    n_groups, g = groups.shape
    half = len(squares) - 1
    n_cells, n = n_grid**g, n_grid + 2 * half
    # bags of fewer than three dimensions have weights of 1 in the first
    widths = (1 if g < 3 else 2 * half, 1 if g < 2 else 2 * half, 2 * half)
    tables = np.empty((3, 2 * half, SUMMED_POINTS), out.dtype)
    tables[:] = 1
    first = np.empty((3, SUMMED_POINTS), np.int64)
    first[:] = 0
    x = np.empty((g, SUMMED_POINTS), out.dtype)
    scratch = np.empty((4, SUMMED_POINTS), out.dtype)
    sums = np.empty(n**g, np.float64)
    for i in range(begin, end):
        n_outside[i] = 0
        for group in range(n_groups):
            sums[:] = 0.0
            total, outside = 0, 0
            for start in range(offsets[i], offsets[i + 1], SUMMED_POINTS):
                remaining = offsets[i + 1] - start
                m = remaining if remaining < SUMMED_POINTS else SUMMED_POINTS
                n_kept, beyond = load_block(points, start, m, groups[group], lo, inverse, drop, x)
                outside += beyond
                total += n_kept
                for j in range(g):
                    to = 3 - g + j
                    _weigh(x[j], n_kept, n_grid, squares, tables[to], first[to], scratch)
                _spread(tables, first, n_kept, widths, n, sums)
            factor = scale / total if total > 0 else np.nan
            _fold(sums, n, half, g, factor, out[i], group * n_cells)
            if outside > n_outside[i]:
                n_outside[i] = outside
