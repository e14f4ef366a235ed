# mypy: disallow-untyped-defs=False
"""Means and covariances of ragged bags."""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel
from .confine_kernels import confine
from .same_bits import are_few_points, moments_by_arrays


@kernel(moments_by_arrays, are_few_points)
def moments(
    begin, end, points, offsets, groups, lo, inverse, drop, margin, covariance, out, n_outside
):
    """Mean and, with ``covariance``, upper triangle of the covariance (1/n) of each bag.

    Two passes in double: deviations are taken from the mean that the first one found.

    Parameters
    ----------
    begin, end : int
        The bags that are embedded.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`; one group of all columns.
    margin : float64
        See `confine_kernels.confine`.
    covariance : bool
    out : (float32, float64), each of shape (n_bags, s) or (0, s), written
        s is d or, with ``covariance``, d + d (d + 1) / 2; see `arrays.by_precision`. NaN where no
        point was kept.
    n_outside : int64, shape (n_bags,), written
    """
    single, double = out
    columns = groups[0]
    d = len(columns)
    x, mean = np.empty(d, np.float64), np.empty(d, np.float64)
    side = d if covariance else 0  # of means alone, a square of d would be written for nothing
    products = np.empty((side, side), np.float64)
    values = np.empty(single.shape[1], np.float64)
    for i in range(begin, end):
        n_kept, outside = 0, 0
        mean[:] = 0
        for row in range(offsets[i], offsets[i + 1]):
            inside = confine(points[row], columns, lo, inverse, margin, x)
            outside += not inside
            if inside or not drop:
                n_kept += 1
                for j in range(d):
                    mean[j] += x[j]
        n_outside[i] = outside
        if n_kept == 0:
            values[:] = np.nan
        for j in range(d if n_kept > 0 else 0):
            mean[j] /= n_kept
            values[j] = mean[j]
        products[:] = 0
        for row in range(offsets[i], offsets[i + 1] if covariance and n_kept > 0 else offsets[i]):
            inside = confine(points[row], columns, lo, inverse, margin, x)
            if inside or not drop:
                for j in range(d):
                    x[j] -= mean[j]
                for j in range(d):
                    for k in range(j, d):
                        products[j, k] += x[j] * x[k]
        at = d
        for j in range(d if covariance and n_kept > 0 else 0):
            for k in range(j, d):
                values[at] = products[j, k] / n_kept
                at += 1
        for j in range(len(values)):
            if len(double):
                double[i, j] = values[j]
            else:
                single[i, j] = values[j]
