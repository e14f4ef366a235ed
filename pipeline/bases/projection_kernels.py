"""Projection of ragged bags onto tensor-product bases, parallel over bags.

Points are taken in blocks, coordinates scaled to [0, 1] and transposed, the one-dimensional
functions evaluated by recurrence, and the coefficients summed as dot products over the block:
everything inner runs along the points of a block and vectorises. Sums over a block are in the
working precision, sums over blocks in double.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from .function_kernels import FAST, fill_cosine, fill_legendre, fill_trigonometric

BLOCK = 256  # points; scratch for 2 × 10 functions in float32 stays in a 48 KiB L1 cache
LANES = 16  # a block is padded to a multiple: the vector loops then need no scalar remainder

COSINE, TRIGONOMETRIC, LEGENDRE = 0, 1, 2


@njit(cache=True, fastmath=FAST)
def _dots(weight, table, m, first, stop, sums, at):
    """sums[at + k] += Σ_b weight[b] table[k, b] for first ≤ k < stop."""
    for k in range(first, stop):
        row = table[k]
        total = table.dtype.type(0)
        for b in range(m):
            total += weight[b] * row[b]
        sums[at + k] += total


@njit(cache=True, fastmath=FAST)
def _paired_dots(left, right, table, m, count, sums, at_left, at_right):
    """`_dots` for two weights over the same functions, four functions at a time.

    Six loads feed eight multiply-adds, where a single dot product loads two for each.
    """
    zero = table.dtype.type(0)
    k = 0
    while k + 4 <= count:
        r0, r1, r2, r3 = table[k], table[k + 1], table[k + 2], table[k + 3]
        a0, a1, a2, a3 = zero, zero, zero, zero
        b0, b1, b2, b3 = zero, zero, zero, zero
        for b in range(m):
            u, v = left[b], right[b]
            t0, t1, t2, t3 = r0[b], r1[b], r2[b], r3[b]
            a0 += u * t0
            a1 += u * t1
            a2 += u * t2
            a3 += u * t3
            b0 += v * t0
            b1 += v * t1
            b2 += v * t2
            b3 += v * t3
        sums[at_left + k] += a0
        sums[at_left + k + 1] += a1
        sums[at_left + k + 2] += a2
        sums[at_left + k + 3] += a3
        sums[at_right + k] += b0
        sums[at_right + k + 1] += b1
        sums[at_right + k + 2] += b2
        sums[at_right + k + 3] += b3
        k += 4
    while k < count:
        row = table[k]
        a0, b0 = zero, zero
        for b in range(m):
            a0 += left[b] * row[b]
            b0 += right[b] * row[b]
        sums[at_left + k] += a0
        sums[at_right + k] += b0
        k += 1


@njit(cache=True, fastmath=FAST)
def load_block(points, start, m, columns, lo, inverse, drop, x):
    """Scale a block to [0, 1] and transpose it; returns points kept and points outside."""
    of = x.dtype.type
    zero, one = of(0), of(1)
    beyond = zero  # how far, in sum: a test in floats vectorises where a count does not
    single, double = points
    for j in range(len(columns)):
        c = columns[j]
        row = x[j]
        if len(double):
            low, factor, column = lo[c], inverse[c], double[start : start + m, c]
            for b in range(m):
                row[b] = of((column[b] - low) * factor)
        else:
            # as narrow as the block, if that is float32 too: twice as many to a register
            near, scale, narrow = of(lo[c]), of(inverse[c]), single[start : start + m, c]
            for b in range(m):
                row[b] = (narrow[b] - near) * scale
        for b in range(m):
            v = row[b]
            w = v if v > zero else zero
            w = w if w < one else one
            beyond += abs(v - w)
    return (m, 0) if beyond == zero else _confine(x, m, drop)


@njit(cache=True)
def _confine(x, m, drop):
    """Clip or drop the points of a block that are outside; returns points kept and outside."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    kept, outside = 0, 0
    for b in range(m):
        inside = True
        for j in range(x.shape[0]):
            v = x[j, b]
            inside &= not (v < zero or v > one)
            x[j, kept] = zero if v < zero else (one if v > one else v)
        outside += not inside
        if inside or not drop:
            kept += 1
    return kept, outside


@njit(cache=True, fastmath=FAST)
def _multiply(tables, prefixes, changed, p, padded, products, last):
    """Write products[last] = Π_j φ_{α_j}(x_b) over all but the last of three or more dimensions.

    That is prefix p; products of shorter prefixes are kept in between.
    """
    n_dims = tables.shape[0]
    row = tables[0, prefixes[p, 0]]
    for level in range(1, n_dims - 1):
        final = level == n_dims - 2
        target = products[last if final else level]
        if final or level >= changed[p]:
            factor = tables[level, prefixes[p, level]]
            for b in range(padded):
                target[b] = row[b] * factor[b]
        row = target


@njit(cache=True, fastmath=FAST)
def _add_block(tables, x, kept, basis, squared, prefixes, counts, changed, products, sums, scratch):
    """Add a block's Σ_b φ_α(x_b) (or φ_α² when squared) to ``sums``, in index order."""
    n_dims = tables.shape[0]
    padded = (kept + LANES - 1) // LANES * LANES
    for j in range(n_dims):
        x[j, kept:padded] = 0
        if basis == COSINE:
            fill_cosine(x[j], padded, tables[j], scratch)
        elif basis == TRIGONOMETRIC:
            fill_trigonometric(x[j], padded, tables[j], scratch)
        else:
            fill_legendre(x[j], padded, tables[j], scratch)
        if squared:
            for k in range(tables.shape[1]):
                for b in range(padded):
                    tables[j, k, b] *= tables[j, k, b]
    tables[0, :, kept:padded] = 0
    last = tables[n_dims - 1]
    if n_dims == 1:
        products[0, :] = 1
        _dots(products[0], last, padded, 0, counts[0], sums, 0)
        return
    n_prefixes = len(counts)
    at = 0
    for p in range(0, n_prefixes, 2):
        q = min(p + 1, n_prefixes - 1)
        if n_dims == 2:
            left, right = tables[0, prefixes[p, 0]], tables[0, prefixes[q, 0]]
        else:
            _multiply(tables, prefixes, changed, p, padded, products, 0)
            _multiply(tables, prefixes, changed, q, padded, products, n_dims - 1)
            left, right = products[0], products[n_dims - 1]
        if q == p:
            _dots(left, last, padded, 0, counts[p], sums, at)
            return
        next_at = at + counts[p]
        both = min(counts[p], counts[q])
        _paired_dots(left, right, last, padded, both, sums, at, next_at)
        if both < counts[p]:
            _dots(left, last, padded, both, counts[p], sums, at)
        if both < counts[q]:
            _dots(right, last, padded, both, counts[q], sums, next_at)
        at = next_at + counts[q]


@njit(cache=True, parallel=True, fastmath=FAST)
def project_bags(
    points,
    offsets,
    parts,
    groups,
    lo,
    inverse,
    drop,
    basis,
    squared,
    n_functions,
    prefixes,
    counts,
    changed,
    scales,
    out,
    n_outside,
):
    """Empirical projection coefficients of each bag (004, eq. 2.7).

    Parameters
    ----------
    points : (float32, float64), each of shape (n_points, d) or (0, d)
        The bags' points in their own dtype, and none in the other: see `arrays.by_precision`.
    offsets : int64, shape (n_bags + 1,)
    parts : int64, shape (n_parts + 1,)
        Bag ranges of about equal work, one parallel iteration each.
    groups : int64, shape (n_groups, g)
        Columns of each marginal; one group of all columns without marginals.
    lo, inverse : float64, shape (d,)
        x ↦ (x − lo) · inverse scales the box to [0, 1], in the finer of the points' and out's
        dtype, which holds them exactly.
    drop : bool
        Leave points outside the box out; else they are clipped to its walls.
    basis : COSINE, TRIGONOMETRIC or LEGENDRE
    squared : bool
        Means of φ_α² instead of φ_α.
    n_functions : int
        One-dimensional functions needed.
    prefixes, counts, changed : see `index_sets.Prefixes`
    scales : float64, shape (s,)
        Norm factor of each index (squared when ``squared``).
    out : shape (n_bags, n_groups · s), written; its dtype is the working precision
    n_outside : int64, shape (n_bags,), written
        Points of the bag outside the box, in the group where they are most.
    """
    n_groups, g = groups.shape
    s = len(scales)
    for part in prange(len(parts) - 1):
        tables = np.empty((g, n_functions, BLOCK), out.dtype)
        x = np.empty((g, BLOCK), out.dtype)
        scratch = np.empty((7, BLOCK), out.dtype)
        products = np.empty((g, BLOCK), out.dtype)
        sums = np.empty(s, np.float64)
        for i in range(parts[part], parts[part + 1]):
            n_outside[i] = 0
            for group in range(n_groups):
                sums[:] = 0.0
                total = 0
                outside = 0
                for start in range(offsets[i], offsets[i + 1], BLOCK):
                    m = min(BLOCK, offsets[i + 1] - start)
                    kept, beyond = load_block(points, start, m, groups[group], lo, inverse, drop, x)
                    outside += beyond
                    total += kept
                    if kept > 0:
                        _add_block(
                            tables,
                            x,
                            kept,
                            basis,
                            squared,
                            prefixes,
                            counts,
                            changed,
                            products,
                            sums,
                            scratch,
                        )
                for q in range(s):
                    out[i, group * s + q] = sums[q] * scales[q] / total if total else np.nan
                n_outside[i] = max(n_outside[i], outside)
