# mypy: disallow-untyped-defs=False
"""Shares of ragged bags' points by their nearest centre."""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel
from .confine_kernels import confine


@kernel()
def word_shares(begin, end, points, offsets, groups, lo, inverse, drop, centres, out, n_outside):
    """Roots of each bag's fractions of points by the nearest centre, of equal ones the first.

    Parameters
    ----------
    begin, end : int
        The bags that are embedded.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`; one group of all columns.
    centres : float64, shape (n_words, d)
        In the unit cube.
    out : float32 or float64, shape (n_bags, n_words), written
        NaN where no point was kept.
    n_outside : int64, shape (n_bags,), written
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
