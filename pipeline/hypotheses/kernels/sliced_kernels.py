# mypy: disallow-untyped-defs=False
"""Wasserstein distances of two parts of sorted numbers; serial."""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel


@kernel()
def sliced_squares(values, orders, firsts, out):
    """Write the mean over directions of W₂² between the rows in a part and the others.

    Parameters
    ----------
    values : float64, shape (L, n)
        Projections of all rows on each direction, ascending.
    orders : int64, shape (L, n)
        The row of each.
    firsts : bool, shape (m, n)
        The rows of each part, at least one in it and one outside.
    out : float64, shape (m,)
    """
    n_directions, n = values.shape
    x, y = np.empty(n), np.empty(n)
    for b in range(len(firsts)):
        total = 0.0
        for k in range(n_directions):
            n_x, n_y = 0, 0
            for i in range(n):
                if firsts[b, orders[k, i]]:
                    x[n_x] = values[k, i]
                    n_x += 1
                else:
                    y[n_y] = values[k, i]
                    n_y += 1
            i, j, at = 0, 0, 0
            # quantile functions are steps of 1 / n_x and 1 / n_y: counted in 1 / (n_x n_y)
            while i < n_x and j < n_y:
                end = min((i + 1) * n_y, (j + 1) * n_x)
                total += (end - at) / (n_x * n_y) * (x[i] - y[j]) ** 2
                at = end
                if (i + 1) * n_y == end:
                    i += 1
                if (j + 1) * n_x == end:
                    j += 1
        out[b] = total / n_directions
