# mypy: disallow-untyped-defs=False
"""Fractions of ragged bags' points by their nearest centre."""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel
from .confine_kernels import confine


@kernel()
def word_shares(begin, end, points, offsets, groups, lo, inverse, drop, centres, out, n_outside):
    """Write the square roots of the fractions of each bag's points by their nearest centre.

    If several centres are equally near, the first counts.

    Parameters
    ----------
    begin, end : int
        First bag that is embedded, and last bag + 1.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`; one group of all columns.
    centres : float64, shape (n_words, d)
        Centres in the unit cube.
    out : float32 or float64, shape (n_bags, n_words), written
        NaN for bags without points that count.
    n_outside : int64, shape (n_bags,), written
        Number of points outside the box.
    """
    columns = groups[0]
    d, n_words = len(columns), len(centres)
    x = np.empty(d, np.float64)
    counts = np.empty(n_words, np.int64)
    for i in range(begin, end):
        counts[:] = 0
        n_kept, outside = 0, 0
        for row in range(offsets[i], offsets[i + 1]):
            inside = confine(points[row], columns, lo, inverse, 0.0, x)
            outside += not inside
            if drop and not inside:
                continue
            n_kept += 1
            nearest, least = 0, np.inf
            for k in range(n_words):
                square = 0.0
                for j in range(d):
                    square += (x[j] - centres[k, j]) ** 2
                if square < least:
                    nearest, least = k, square
            counts[nearest] += 1
        n_outside[i] = outside
        for k in range(n_words):
            out[i, k] = np.sqrt(counts[k] / n_kept) if n_kept else np.nan
