"""Quantiles of projected points of ragged bags."""

from __future__ import annotations

import numpy as np

from ...compiling import kernel, subkernel
from .confine_kernels import confine


@kernel()
def sliced_quantiles(
    begin, end, points, offsets, groups, lo, inverse, drop, directions, n_quantiles, out, n_outside
):
    """Means of each bag's quantile function over n_quantiles equal intervals, per direction.

    Parameters
    ----------
    begin, end : int
        The bags that are embedded.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`; one group of all columns.
    directions : float64, shape (n_directions, d)
        Of unit length.
    n_quantiles : int
    out : float32 or float64, shape (n_bags, n_directions * n_quantiles), written
        Divided by the root of its length; NaN where no point was kept.
    n_outside : int64, shape (n_bags,), written
    """
    columns = groups[0]
    d = len(columns)
    scale = 1.0 / np.sqrt(out.shape[1])
    longest = 0
    for i in range(begin, end):
        longest = max(longest, offsets[i + 1] - offsets[i])
    unit = np.empty((longest, d), np.float64)
    values = np.empty(longest, np.float64)
    for i in range(begin, end):
        kept, outside = 0, 0
        for row in range(offsets[i], offsets[i + 1]):
            inside = confine(points[row], columns, lo, inverse, unit[kept])
            outside += not inside
            kept += inside or not drop
        n_outside[i] = outside
        if kept == 0:
            out[i] = np.nan
            continue
        for k in range(len(directions)):
            for row in range(kept):
                value = 0.0
                for j in range(d):
                    value += unit[row, j] * directions[k, j]
                values[row] = value
            ordered = values[:kept]
            ordered.sort()
            _interval_means(ordered, scale, out[i, k * n_quantiles : (k + 1) * n_quantiles])


@subkernel()
def _interval_means(ordered, scale, out):
    """Means of the step function through sorted values, over equal intervals of [0, 1].

    In units of 1 / (n m) value i covers [i m, (i + 1) m), interval j [j n, (j + 1) n).
    """
    n, m = len(ordered), len(out)
    i = 0
    for j in range(m):
        total, at, end = 0.0, j * n, (j + 1) * n
        while at < end:
            until = min((i + 1) * m, end)
            total += ordered[i] * (until - at)
            i += until == (i + 1) * m
            at = until
        out[j] = scale * total / n
