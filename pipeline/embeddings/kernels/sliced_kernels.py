"""Quantiles of projected points of ragged bags."""

from __future__ import annotations

import numpy as np

from ...compiling import kernel, subkernel
from .confine_kernels import confine

SHORT = 24  # values that are sorted by insertion
AT_ONCE = 512  # points whose products are summed together: they stay in the nearest cache
ROUNDING = 1e-9  # of a rank: .07 · 100 is 7.000000000000001
MOST_HALVINGS = 64  # of any number of values: the longer part waits, the shorter one is sorted


@kernel()
def sliced_quantiles(
    begin,
    end,
    points,
    offsets,
    groups,
    lo,
    inverse,
    drop,
    directions,
    n_intervals,
    shares,
    out,
    n_outside,
):
    """Quantiles of each bag's points along directions.

    Means of the quantile function over equal intervals, or values of points at some shares: both
    in one kernel, whose sorting is most of what there is to compile.

    Parameters
    ----------
    begin, end : int
        The bags that are embedded.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`; one group of all columns.
    directions : float64, shape (n_directions, d)
        Of unit length.
    n_intervals : int
        0: values at shares.
    shares : float64, shape (n_shares,)
        From 0 to 1; of a share u the least value that at least this share of the points does not
        exceed, of 0 the minimum. None with intervals.
    out : float32 or float64, shape (n_bags, n_directions * n), written
        n is n_intervals or n_shares. Divided by the root of its length; NaN where no point was
        kept.
    n_outside : int64, shape (n_bags,), written
    """
    columns = groups[0]
    n = n_intervals + len(shares)
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
            if n_intervals > 0:
                _interval_means(ordered, scale, out[i, k * n : (k + 1) * n])
            else:
                _values_at(ordered, shares, scale, out[i, k * n : (k + 1) * n])


@subkernel()
def longest_bag(begin, end, offsets):
    """Return how many points the largest of some bags has."""
    longest = 0
    for i in range(begin, end):
        size = offsets[i + 1] - offsets[i]
        longest = size if size > longest else longest
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
            a, b = (b, a) if b < a else (a, b)
            b = c if c < b else b
            pivot = b if b > a else a
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
            until = (i + 1) * m if (i + 1) * m < end else end
            total += ordered[i] * (until - at)
            i += until == (i + 1) * m
            at = until
        out[j] = scale * total / n


@subkernel()
def _values_at(ordered, shares, scale, out):
    """Write sorted values at ranks; none is interpolated."""
    for j in range(len(shares)):
        rank = np.int64(np.ceil(shares[j] * len(ordered) - ROUNDING)) - 1
        out[j] = scale * ordered[rank if rank > 0 else 0]
