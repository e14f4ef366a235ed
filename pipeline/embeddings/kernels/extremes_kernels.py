"""Extreme quantiles of projected points of ragged bags."""

from __future__ import annotations

import numpy as np

from ...compiling import kernel
from .sliced_kernels import MOST_HALVINGS, keep_points, longest_bag, project, sort_values

ROUNDING = 1e-9  # of a rank: .07 · 100 is 7.000000000000001


@kernel()
def extreme_quantiles(
    begin, end, points, offsets, groups, lo, inverse, drop, directions, shares, out, n_outside
):
    """Quantiles of each bag's points along directions: values of points, none is interpolated.

    The quantile of a share u is the least value that at least this share of the points does not
    exceed; of 0 it is the minimum.

    Parameters
    ----------
    begin, end : int
        The bags that are embedded.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`; one group of all columns.
    directions : float64, shape (n_directions, d)
    shares : float64, shape (n_shares,)
        From 0 to 1.
    out : float32 or float64, shape (n_bags, n_directions * n_shares), written
        Divided by the root of its length; NaN where no point was kept.
    n_outside : int64, shape (n_bags,), written
    """
    columns, n_shares = groups[0], len(shares)
    scale = 1.0 / np.sqrt(out.shape[1])
    longest = longest_bag(begin, end, offsets)
    point = np.empty(len(columns), np.float64)
    unit = np.empty((len(columns), longest), np.float64)
    values = np.empty(longest, np.float64)
    bounds = np.empty((MOST_HALVINGS, 2), np.int64)
    for i in range(begin, end):
        bag = points[offsets[i] : offsets[i + 1]]
        kept, n_outside[i] = keep_points(bag, columns, lo, inverse, drop, point, unit)
        if kept == 0:
            out[i] = np.nan
            continue
        for k in range(len(directions)):
            ordered = values[:kept]
            project(unit, directions[k], ordered)
            sort_values(ordered, bounds)
            for j in range(n_shares):
                rank = int(np.ceil(shares[j] * kept - ROUNDING)) - 1
                out[i, k * n_shares + j] = scale * ordered[min(max(rank, 0), kept - 1)]
