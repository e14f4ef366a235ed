"""Projection of ragged bags onto tensor-product bases, one kernel per basis.

Points are taken in blocks, coordinates scaled to [0, 1] and transposed, the one-dimensional
functions evaluated by recurrence, and the coefficients summed as dot products over the block:
everything inner runs along the points of a block and vectorises. Sums over a block are in the
working precision, sums over blocks in double.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiling import kernel, subkernel
from .function_kernels import FAST, fill_cosine, fill_legendre, fill_trigonometric

BLOCK = 256  # points; scratch for 2 × 10 functions in float32 stays in a 48 KiB L1 cache
LANES = 16  # a block is padded to a multiple: the vector loops then need no scalar remainder

COSINE, TRIGONOMETRIC, LEGENDRE = 0, 1, 2


# Numba compiles a function anew for each constant that it is given: sums are passed as slices.
@subkernel(fastmath=FAST)
def _dots(weight, rows, m, sums):
    """sums[k] += Σ_b weight[b] rows[k, b]."""
    for k in range(len(sums)):
        row = rows[k]
        total = rows.dtype.type(0)
        for b in range(m):
            total += weight[b] * row[b]
        sums[k] += total


@subkernel(fastmath=FAST)
def _paired_dots(left, right, rows, m, left_sums, right_sums):
    """`_dots` for two weights over the same functions, four functions at a time.

    Six loads feed eight multiply-adds, where a single dot product loads two for each.
    """
    zero = rows.dtype.type(0)
    count = len(left_sums) if len(left_sums) < len(right_sums) else len(right_sums)
    k = 0
    while k + 4 <= count:
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
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
        left_sums[k] += a0
        left_sums[k + 1] += a1
        left_sums[k + 2] += a2
        left_sums[k + 3] += a3
        right_sums[k] += b0
        right_sums[k + 1] += b1
        right_sums[k + 2] += b2
        right_sums[k + 3] += b3
        k += 4
    while k < count:
        row = rows[k]
        a0, b0 = zero, zero
        for b in range(m):
            a0 += left[b] * row[b]
            b0 += right[b] * row[b]
        left_sums[k] += a0
        right_sums[k] += b0
        k += 1


@subkernel(fastmath=FAST)
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


@subkernel()
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


@subkernel(fastmath=FAST)
def _multiply(tables, prefix, changed, padded, products, target):
    """Write Π_j φ_{α_j}(x_b) over all but the last of three or more dimensions to ``target``.

    Products of shorter prefixes are kept in between.
    """
    n_dims = tables.shape[0]
    row = tables[0, prefix[0]]
    for level in range(1, n_dims - 1):
        final = level == n_dims - 2
        product = target if final else products[level]
        if final or level >= changed:
            factor = tables[level, prefix[level]]
            for b in range(padded):
                product[b] = row[b] * factor[b]
        row = product


@subkernel(fastmath=FAST)
def _add_products(tables, padded, prefixes, counts, changed, products, sums):
    """Add a block's Σ_b Π_j φ_{α_j}(x_b) to ``sums``, in index order; tables hold φ_k(x_b)."""
    n_dims, n_prefixes = tables.shape[0], len(counts)
    last, left, right = tables[n_dims - 1], products[0], products[n_dims - 1]
    if n_dims == 1:
        left[:] = 1
    at = 0
    for p in range(0, n_prefixes, 2):
        q = p + 1
        if n_dims == 2:
            next_one = q if q < n_prefixes else p
            left, right = tables[0, prefixes[p, 0]], tables[0, prefixes[next_one, 0]]
        elif n_dims > 2:
            for side in range(2 if q < n_prefixes else 1):
                target = right if side else left
                prefix, at_level = prefixes[p + side], changed[p + side]
                _multiply(tables, prefix, at_level, padded, products, target)
        ours = sums[at : at + counts[p]]
        at += len(ours)
        theirs = sums[at : at + (counts[q] if q < n_prefixes else 0)]
        at += len(theirs)
        both = len(ours) if len(ours) < len(theirs) else len(theirs)
        _paired_dots(left, right, last, padded, ours, theirs)
        longer, rest = (left, ours) if len(ours) > both else (right, theirs)
        _dots(longer, last[both:], padded, rest[both:])


@subkernel()  # not fast: with "arcp" it depends on the code around it whether there is a quotient
def _write_means(sums, scales, total, out):
    """Write sums · scales / total; NaN where no point was kept."""
    for q in range(len(out)):
        out[q] = sums[q] * scales[q] / total if total else np.nan


def _make_projection(basis: int) -> Callable[..., Any]:
    """Return `project_bags` for one basis: the other recurrences are not compiled with it."""

    @kernel(fastmath=FAST)
    def project_bags(
        begin,
        end,
        points,
        offsets,
        groups,
        lo,
        inverse,
        drop,
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
        begin, end : int
            The bags that are projected.
        points : (float32, float64), each of shape (n_points, d) or (0, d)
            The bags' points in their own dtype, and none in the other: see `arrays.by_precision`.
        offsets : int64, shape (n_bags + 1,)
        groups : int64, shape (n_groups, g)
            Columns of each marginal; one group of all columns without marginals.
        lo, inverse : float64, shape (d,)
            x ↦ (x − lo) · inverse scales the box to [0, 1], in the finer of the points' and out's
            dtype, which holds them exactly.
        drop : bool
            Leave points outside the box out; else they are clipped to its walls.
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
        tables = np.empty((g, n_functions, BLOCK), out.dtype)
        x = np.empty((g, BLOCK), out.dtype)
        scratch = np.empty((7, BLOCK), out.dtype)
        products = np.empty((g, BLOCK), out.dtype)
        sums = np.empty(s, np.float64)
        for i in range(begin, end):
            n_outside[i] = 0
            for group in range(n_groups):
                sums[:] = 0.0
                total = 0
                outside = 0
                for start in range(offsets[i], offsets[i + 1], BLOCK):
                    left = offsets[i + 1] - start
                    m = left if left < BLOCK else BLOCK
                    kept, beyond = load_block(points, start, m, groups[group], lo, inverse, drop, x)
                    outside += beyond
                    total += kept
                    if kept == 0:
                        continue
                    padded = (kept + LANES - 1) // LANES * LANES
                    for j in range(g):
                        x[j, kept:padded] = 0
                        if basis == COSINE:
                            fill_cosine(x[j], padded, tables[j], scratch)
                        elif basis == TRIGONOMETRIC:
                            fill_trigonometric(x[j], padded, tables[j], scratch)
                        else:
                            fill_legendre(x[j], padded, tables[j], scratch)
                    if squared:
                        for j in range(g):
                            for k in range(n_functions):
                                for b in range(padded):
                                    tables[j, k, b] *= tables[j, k, b]
                    tables[0, :, kept:padded] = 0
                    _add_products(tables, padded, prefixes, counts, changed, products, sums)
                _write_means(sums, scales, total, out[i, group * s : (group + 1) * s])
                if outside > n_outside[i]:
                    n_outside[i] = outside

    return project_bags


PROJECTIONS = {basis: _make_projection(basis) for basis in (COSINE, TRIGONOMETRIC, LEGENDRE)}
"""`project_bags` of each basis."""
