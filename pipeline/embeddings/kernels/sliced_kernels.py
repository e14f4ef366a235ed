"""Quantiles of projected points of ragged bags."""

from __future__ import annotations

import numpy as np

from ...compiling import kernel, subkernel
from .confine_kernels import confine

SHORT = 24  # values that are sorted by insertion
AT_ONCE = 512  # points whose products are summed together: they stay in the nearest cache
MOST_HALVINGS = 64  # of any number of values: the longer part waits, the shorter one is sorted


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
            _interval_means(ordered, scale, out[i, k * n_quantiles : (k + 1) * n_quantiles])


@subkernel()
def longest_bag(begin, end, offsets):
    """Return how many points the largest of some bags has."""
    longest = 0
    for i in range(begin, end):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest


@subkernel()
def keep_points(bag, columns, lo, inverse, drop, point, unit):
    """Write the points of a bag, scaled to the unit cube; return how many stay and are outside.

    ``unit`` has a column per point, so that `project` takes many of them at once; ``point`` is
    scratch of one.
    """
    kept, outside = 0, 0
    for row in range(len(bag)):
        inside = confine(bag[row], columns, lo, inverse, point)
        outside += not inside
        if inside or not drop:
            for j in range(len(point)):
                unit[j, kept] = point[j]
            kept += 1
    return kept, outside


@subkernel()
def project(unit, direction, values):
    """Write the products of the first points with a direction, one per value."""
    for start in range(0, len(values), AT_ONCE):
        some = values[start : start + AT_ONCE]
        some[:] = 0.0
        for j in range(len(direction)):
            coordinates = unit[j, start : start + AT_ONCE]
            for row in range(len(some)):
                some[row] += coordinates[row] * direction[j]


@subkernel()
def sort_values(values, bounds):
    """Sort values in place, none of them NaN: quicksort, by the median of three.

    Numba's own sort, which knows NaN, takes longer to compile than all else here. ``bounds`` of
    parts that wait has shape (MOST_HALVINGS, 2).
    """
    waiting, first, last = 0, 0, len(values) - 1
    while True:
        while last - first >= SHORT:
            a, b, c = values[first], values[(first + last) >> 1], values[last]
            pivot = max(min(a, b), min(max(a, b), c))
            i, j = first, last
            while i <= j:
                while values[i] < pivot:
                    i += 1
                while pivot < values[j]:
                    j -= 1
                if i <= j:
                    values[i], values[j] = values[j], values[i]
                    i += 1
                    j -= 1
            if j - first < last - i:
                bounds[waiting, 0], bounds[waiting, 1], last = i, last, j
            else:
                bounds[waiting, 0], bounds[waiting, 1], first = first, j, i
            waiting += 1
        for k in range(first + 1, last + 1):
            value, at = values[k], k
            while at > first and value < values[at - 1]:
                values[at] = values[at - 1]
                at -= 1
            values[at] = value
        if waiting == 0:
            return
        waiting -= 1
        first, last = bounds[waiting, 0], bounds[waiting, 1]


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
