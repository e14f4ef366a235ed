# mypy: disallow-untyped-defs=False
"""Quantiles of projected points of ragged bags."""

from __future__ import annotations

import numpy as np

from ...core.compiling import UNSIGNED as _U, kernel, subkernel
from .confine_kernels import confine
from .same_bits import RANK_ROUNDING, are_few_values, quantiles_by_arrays

_DIRECTIONS_AT_ONCE = 16  # directions that are sorted together, by vector instructions
FEW_DIRECTIONS = 8  # with fewer directions, vectors run over points where they are projected
_VALUES_AT_ONCE = 2**14  # values sorted together: they stay in the fastest caches


@kernel(quantiles_by_arrays, are_few_values)
def sliced_quantiles(
    begin,
    end,
    points,
    offsets,
    groups,
    lo,
    inverse,
    drop,
    margin,
    directions,
    n_intervals,
    shares,
    out,
    n_outside,
):
    """Quantiles of each bag's points along directions.

    Means of the quantile function over equal intervals, or values of points at some fractions: both
    in one kernel, whose sorting is most of what there is to compile.

    Parameters
    ----------
    begin, end : int
        The bags that are embedded.
    points, offsets, groups, lo, inverse, drop
        See `bases.kernel_arguments`; one group of all columns.
    margin : float64
        See `confine_kernels.confine`.
    directions : float64, shape (d, n_directions - n_axes)
        Columns of unit length; the first n_axes directions, which are coordinate axes, are not
        among them.
    n_intervals : int
        0: values at fractions.
    shares : float64, shape (n_shares,)
        From 0 to 1; of a fraction u the least value that at least this fraction of the points does
        not exceed, of 0 the minimum. None with intervals.
    out : (float32, float64), each of shape (n_bags, n_directions * n) or (0, …), written
        See `arrays.by_precision`; n is n_intervals or n_shares. Divided by the root of its length;
        NaN where no point was kept. Its length says how many directions there are.
    n_outside : int64, shape (n_bags,), written
    """
    columns = groups[0]
    n = n_intervals + len(shares)
    single, double = out
    quantiles = np.empty(single.shape[1], np.float64)
    scale = 1.0 / np.sqrt(len(quantiles))
    longest = 0
    for i in range(begin, end):
        size = offsets[i + 1] - offsets[i]
        longest = size if size > longest else longest
    point = np.empty(len(columns), np.float64)
    unit = np.empty((len(columns), longest), np.float64)
    size = (
        _VALUES_AT_ONCE
        if longest * _DIRECTIONS_AT_ONCE > _VALUES_AT_ONCE
        else longest * _DIRECTIONS_AT_ONCE
    )
    values = np.empty(size if size > longest else longest, np.float64)
    merged = np.empty(longest if longest > _VALUES_AT_ONCE else 0, np.float64)
    totals = np.empty(_DIRECTIONS_AT_ONCE, np.float64)
    n_directions = len(quantiles) // n
    n_axes = n_directions - directions.shape[1]
    for i in range(begin, end):
        outside = 0
        n_kept = np.int64(
            0
        )  # for a plain 0, a constant, what it is given to would be compiled anew
        for row in range(offsets[i], offsets[i + 1]):
            inside = confine(points[row], columns, lo, inverse, margin, point)
            outside += not inside
            if inside or not drop:
                for j in range(len(point)):
                    unit[j, n_kept] = point[j]
                n_kept += 1
        n_outside[i] = outside
        if n_kept == 0:
            quantiles[:] = np.nan
        together = _VALUES_AT_ONCE // n_kept if n_kept > 0 and _VALUES_AT_ONCE // n_kept > 1 else 1
        together = together if together < _DIRECTIONS_AT_ONCE else _DIRECTIONS_AT_ONCE
        for k in range(0, n_directions if n_kept > 0 else 0, together):
            n_columns = together if together < n_directions - k else n_directions - k
            _project(unit, directions, n_axes, k, n_kept, n_columns, values)
            for start in range(0, n_kept, _VALUES_AT_ONCE):
                rows = _VALUES_AT_ONCE if n_kept - start > _VALUES_AT_ONCE else n_kept - start
                _sort_columns(values, start, rows, n_columns)
            if n_kept > _VALUES_AT_ONCE:
                _merge(values, n_kept, merged)
            if n_intervals > 0:
                _interval_means(values, n_kept, n_columns, n, scale, totals, quantiles, k * n)
            else:
                _values_at(values, n_kept, n_columns, shares, scale, quantiles, k * n)
        for j in range(len(quantiles)):
            if len(double):
                double[i, j] = quantiles[j]
            else:
                single[i, j] = quantiles[j]


@subkernel()
def _project(unit, directions, n_axes, k, n_kept, n_columns, values):
    """Write the products of the first points with directions k …, ``n_columns`` per point."""
    for at in range(n_kept * n_columns):
        values[at] = 0.0
    first = n_axes - k if n_axes > k else 0  # the first n_columns are axes
    first = first if first < n_columns else n_columns
    for column in range(first):
        for row in range(n_kept):
            values[_U(row * n_columns + column)] += unit[k + column, row]
    begin = k - n_axes
    for j in range(len(unit) if first < n_columns else 0):
        for column in range(first, n_columns if n_columns < FEW_DIRECTIONS else 0):
            length = directions[j, begin + column]
            for row in range(n_kept):
                values[_U(row * n_columns + column)] += unit[j, row] * length
        for row in range(n_kept if n_columns >= FEW_DIRECTIONS else 0):
            coordinate = unit[j, row]
            for column in range(first, n_columns):
                values[_U(row * n_columns + column)] += (
                    coordinate * directions[j, _U(begin + column)]
                )


@subkernel()
def _sort_columns(values, begin, n, n_columns):
    """Sort each column of n rows of a flat array, in place, none NaN: Batcher's merge exchange.

    Which rows are compared does not depend on the values (Knuth, The art of computer programming
    3, algorithm 5.2.2M): so there are no branches to guess, and neighbours are one vector.
    """
    top = 1
    while 2 * top < n:
        top *= 2
    step = top
    while step > 0:
        other, start, apart = top, 0, step
        while True:
            # rows with (row & step) == start, which are runs of ``step`` rows
            for first in range(start, n - apart, 2 * step):
                last = first + step if first + step < n - apart else n - apart
                for at in range((begin + first) * n_columns, (begin + last) * n_columns):
                    a, b = values[_U(at)], values[_U(at + apart * n_columns)]
                    values[_U(at)] = b if b < a else a
                    values[_U(at + apart * n_columns)] = a if b < a else b
            if other == step:
                break
            apart, start = other - step, step
            other //= 2
        step //= 2


@subkernel()
def _merge(values, n, merged):
    """Sort n values of which each `_VALUES_AT_ONCE` are sorted, in place; ``merged`` is scratch."""
    width = _VALUES_AT_ONCE
    while width < n:
        for start in range(0, n, 2 * width):
            middle = start + width if start + width < n else n
            end = middle + width if middle + width < n else n
            i, j = start, middle
            for at in range(start, end):
                # an index that is out of its part is not looked at
                second = i == middle or (j < end and values[_U(j)] < values[_U(i)])
                merged[_U(at)] = values[_U(j)] if second else values[_U(i)]
                i += not second
                j += second
        for at in range(n):
            values[at] = merged[at]
        width *= 2


@subkernel()
def _interval_means(values, n, n_columns, m, scale, totals, out, first):
    """Means of the step function through n sorted values, over m equal intervals of [0, 1].

    In units of 1 / (n m) value i covers [i m, (i + 1) m), interval j [j n, (j + 1) n).
    """
    i = 0
    for j in range(m):
        at, end = j * n, (j + 1) * n
        for column in range(n_columns):
            totals[column] = 0.0
        while at < end:
            until = (i + 1) * m if (i + 1) * m < end else end
            for column in range(n_columns):
                totals[column] += values[_U(i * n_columns + column)] * (until - at)
            i += until == (i + 1) * m
            at = until
        for column in range(n_columns):
            out[first + column * m + j] = scale * totals[column] / n


@subkernel()
def _values_at(values, n, n_columns, shares, scale, out, first):
    """Write sorted values at ranks; none is interpolated."""
    for j in range(len(shares)):
        rank: np.int64 | int = np.int64(np.ceil(shares[j] * n - RANK_ROUNDING)) - 1
        rank = rank if rank > 0 else 0
        for column in range(n_columns):
            out[first + column * len(shares) + j] = scale * values[rank * n_columns + column]
