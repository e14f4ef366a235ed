"""Moments and quantiles of bags by NumPy, with the same bits as the kernels.

These functions are used until the kernels are worth compiling, see `core.compiling`. Every sum
therefore adds the same numbers in the same order as the kernel. `numpy.bincount` adds one weight
after the other; `numpy.sum` and a matrix product may not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.arrays import EitherPrecision, Floats, Integers

RANK_ROUNDING = 1e-9  # rounding error of a rank: .07 · 100 is 7.000000000000001
INTERMEDIATE_NUMBERS = 2**17  # size of an intermediate array that stays in one core's cache
# all intermediate arrays, and the pieces that are cached
INTERMEDIATE_BYTES = 96 * INTERMEDIATE_NUMBERS
MAX_CACHED = 256  # numbers of points, and of intervals, whose pieces are cached


def are_few_points(
    begin: int,
    end: int,
    points: NDArray[Any],
    offsets: Integers,
    *others: object,
) -> bool:
    """Return whether the points of some bags fit an intermediate array."""
    return bool(int(offsets[end] - offsets[begin]) * points.shape[1] <= INTERMEDIATE_NUMBERS)


def are_few_values(
    begin: int,
    end: int,
    points: NDArray[Any],
    offsets: Integers,
    groups: Integers,
    lo: Floats,
    inverse: Floats,
    drop: bool,
    margin: float,
    directions: Floats,
    n_intervals: int,
    shares: Floats,
    out: EitherPrecision,
    n_outside: Integers,
) -> bool:
    """Return whether points, and each bag's projections, fit an intermediate array."""
    longest = int(np.diff(offsets[begin : end + 1]).max(initial=0))
    n_directions = out[0].shape[1] // (n_intervals + len(shares))
    few = max(longest, 4 * n_intervals) * n_directions <= INTERMEDIATE_NUMBERS
    return few and are_few_points(begin, end, points, offsets)


def moments_by_arrays(
    begin: int,
    end: int,
    points: NDArray[Any],
    offsets: Integers,
    groups: Integers,
    lo: Floats,
    inverse: Floats,
    drop: bool,
    margin: float,
    covariance: bool,
    out: EitherPrecision,
    n_outside: Integers,
) -> None:
    """Write what `moments_kernels.moments` writes, with the same arguments."""
    unit, edges, beyond = scaled(begin, end, points, offsets, lo, inverse, margin=margin)
    unit, beyond = unit[:, groups[0]], beyond[:, groups[0]]
    n_outside[begin:end] = count_outside(beyond, edges)
    bag_of = np.repeat(np.arange(end - begin), np.diff(edges))
    if drop:
        inside = ~beyond.any(axis=1)
        unit, bag_of = unit[inside], bag_of[inside]
    n_bags, d = end - begin, unit.shape[1]
    sizes = np.bincount(bag_of, minlength=n_bags)
    rows = not_empty(out)[begin:end]
    columns = list(np.ascontiguousarray(unit.T))
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN of a bag without points
        for j in range(d):
            means = np.bincount(bag_of, columns[j], n_bags) / sizes
            rows[:, j] = means
            columns[j] -= means[bag_of]
        if covariance:
            for at, (first, second) in enumerate(zip(*np.triu_indices(d), strict=True), d):
                products = columns[first] * columns[second]
                rows[:, at] = np.bincount(bag_of, products, n_bags) / sizes


def quantiles_by_arrays(
    begin: int,
    end: int,
    points: NDArray[Any],
    offsets: Integers,
    groups: Integers,
    lo: Floats,
    inverse: Floats,
    drop: bool,
    margin: float,
    directions: Floats,
    n_intervals: int,
    shares: Floats,
    out: EitherPrecision,
    n_outside: Integers,
) -> None:
    """Write what `sliced_kernels.sliced_quantiles` writes, with the same arguments."""
    unit, edges, beyond = scaled(begin, end, points, offsets, lo, inverse, margin=margin)
    unit, beyond = unit[:, groups[0]], beyond[:, groups[0]]
    n_outside[begin:end] = count_outside(beyond, edges)
    rows = not_empty(out)
    scale = 1 / np.sqrt(rows.shape[1])
    n_directions = rows.shape[1] // (n_intervals + len(shares))
    n_axes = n_directions - directions.shape[1]
    for i, (start, stop) in enumerate(pairwise(edges), begin):
        of_bag = unit[start:stop]
        if drop and n_outside[i]:
            of_bag = of_bag[~beyond[start:stop].any(axis=1)]
        n = len(of_bag)
        if n == 0:
            rows[i] = np.nan
            continue
        values = np.zeros((n_directions, n))
        values[:n_axes] += of_bag.T[:n_axes]
        if n_axes < n_directions:
            for column, lengths in zip(of_bag.T, directions, strict=True):
                values[n_axes:] += lengths[:, None] * column
        values.sort(axis=1)
        if n_intervals:
            totals = np.zeros((len(values), n_intervals))
            for taken, weights in _pieces(n, n_intervals):
                parts = values.take(taken, axis=1)
                parts *= weights
                for part in parts.swapaxes(0, 1):  # one piece after the other
                    totals += part
            rows[i] = (scale * totals / n).ravel()
        else:
            ranks = np.ceil(shares * n - RANK_ROUNDING).astype(np.int64) - 1
            rows[i] = (scale * values[:, np.maximum(ranks, 0)]).ravel()


def _pieces(n: int, m: int) -> Iterable[tuple[Integers, Floats]]:
    return _kept_pieces(n, m) if max(n, m, 16 * n // m) <= MAX_CACHED else _all_pieces(n, m)


@lru_cache(maxsize=MAX_CACHED)
def _kept_pieces(n: int, m: int) -> list[tuple[Integers, Floats]]:
    """Return all pieces of each interval in one pair of arrays, shape (pieces, m)."""
    taken, weights = zip(*_all_pieces(n, m), strict=True)
    return [(np.concatenate(taken), np.concatenate(weights))]


def _all_pieces(n: int, m: int) -> Iterator[tuple[Integers, Floats]]:
    """Yield, for the k-th piece of each of m equal intervals, its value among n and its weight.

    Both have shape (1, m). In units of 1 / (n m), value i covers [i m, (i + 1) m), and interval j
    covers [j n, (j + 1) n). Intervals of fewer pieces than others have pieces of weight 0 at the
    end.
    """
    begin = np.arange(m) * n
    first, last = begin // m, (begin + n - 1) // m
    for k in range(int((last - first).max()) + 1):
        taken = np.minimum(first + k, last)
        low, high = np.maximum(taken * m, begin), np.minimum((taken + 1) * m, begin + n)
        weights = np.where(first + k <= last, high - low, 0).astype(np.float64)
        yield taken[None], weights[None]


def scaled(
    begin: int,
    end: int,
    points: NDArray[Any] | EitherPrecision,
    offsets: Integers,
    lo: Floats,
    inverse: Floats,
    dtype: DTypeLike = np.float64,
    margin: float = 0.0,
) -> tuple[Floats, Integers, NDArray[np.bool_]]:
    """Return points in the unit cube, the offsets of their bags, and which coordinates are outside.

    The points, shape (n, d), are clipped to the cube with a ``margin`` around it. They are scaled
    in the finer of their dtype and ``dtype``, see `bases.kernel_arguments`. The offsets have shape
    (n_bags + 1,), and the flags of coordinates outside the cube shape (n, d).
    """
    if isinstance(points, tuple):
        points = not_empty(points)
    edges = offsets[begin : end + 1] - offsets[begin]
    kind = np.result_type(points, dtype)
    rows = points[offsets[begin] : offsets[end]] - lo.astype(kind)
    unit = (rows * inverse.astype(kind)).astype(np.float64)
    beyond = (unit < 0) | (unit > 1)
    # 0.0 - margin: not -0.0 without one
    return np.clip(unit, 0.0 - margin, 1.0 + margin, out=unit), edges, beyond


def not_empty(pair: EitherPrecision) -> NDArray[Any]:
    """Return the array of the two precisions that has rows."""
    single, double = pair
    return double if len(double) else single


def count_outside(beyond: NDArray[np.bool_], edges: Integers) -> Integers:
    """Return how many points of each bag are beyond the box in any coordinate."""
    sums = np.concatenate([[0], np.cumsum(beyond.any(axis=1))])
    return np.asarray(np.diff(sums[edges]), np.int64)
