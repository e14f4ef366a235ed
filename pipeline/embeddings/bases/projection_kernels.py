# mypy: disallow-untyped-defs=False
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

from ...core.compiling import UNSIGNED as _U, kernel, subkernel
from .function_kernels import REASSOCIATING, fill_cosine, fill_legendre, fill_trigonometric

SUMMED_POINTS = 256  # points; scratch for 2 × 10 functions in float32 stays in a 48 KiB L1 cache
# A block is padded to a multiple of it: the vector loops then need no scalar remainder.
_VECTOR_WIDTH = 16

COSINE, TRIGONOMETRIC, LEGENDRE = 0, 1, 2


@subkernel(fastmath=REASSOCIATING)
def load_block(points, start, m, columns, lo, inverse, drop, x):
    """Scale a block to [0, 1] and transpose it; returns points kept and points outside."""
    of = x.dtype.type
    zero, unity = of(0), of(1)
    beyond = zero  # how far, in sum: a test in floats vectorises where a count does not
    single, double = points
    for j in range(len(columns)):
        c = columns[j]
        row = x[j]
        if len(double):
            low = lo[c]
            factor = inverse[c]
            for b in range(m):
                row[b] = of((double[_U(start + b), c] - low) * factor)
        else:
            # as narrow as the block, if that is float32 too: twice as many to a register
            near = of(lo[c])
            scale = of(inverse[c])
            for b in range(m):
                row[b] = (single[_U(start + b), c] - near) * scale
        for b in range(m):
            v = row[b]
            w = v if v > zero else zero
            w = w if w < unity else unity
            beyond += abs(v - w)
    if beyond == zero:
        return m, 0
    n_kept, outside = 0, 0
    for b in range(m):
        inside = True
        for j in range(len(columns)):
            v = x[j, b]
            inside &= not (v < zero or v > unity)
            x[j, n_kept] = zero if v < zero else (unity if v > unity else v)
        outside += not inside
        if inside or not drop:
            n_kept += 1
    return n_kept, outside


@subkernel(fastmath=REASSOCIATING)
def _add_products(tables, padded, prefixes, counts, changed, products, sums):
    """Add a block's Σ_b Π_j φ_{α_j}(x_b) to ``sums``, in index order; tables hold φ_k(x_b).

    Two prefixes at a time, each of all but the last dimension, and of that four functions: six
    loads feed eight multiply-adds, where one dot product loads two for each.
    """
    n_dims = tables.shape[0]
    n_prefixes = len(counts)
    last = tables[n_dims - 1]
    zero = tables.dtype.type(0)
    at = np.int64(0)
    for p in range(0, n_prefixes, 2):
        q = p + 1 if p + 1 < n_prefixes else p
        # of one dimension the first function, which is 1
        left = tables[0, prefixes[p, 0]]
        right = tables[0, prefixes[q, 0]]
        if n_dims > 2:
            # products of shorter prefixes are kept in between
            left = products[0]
            right = products[n_dims - 1]
            for side in range(p, q + 1):
                row = tables[0, prefixes[side, 0]]
                for level in range(1, n_dims - 1):
                    final = level == n_dims - 2
                    product = products[level]
                    if final:
                        product = left if side == p else right
                    if final or level >= changed[side]:
                        factor = tables[level, prefixes[side, level]]
                        for b in range(padded):
                            product[b] = row[b] * factor[b]
                    row = product
        n_left = counts[p]
        n_right = counts[q] if q > p else 0
        other = at + n_left
        both = n_left if n_left < n_right else n_right
        k = 0
        while k + 4 <= both:
            r0 = last[k]
            r1 = last[k + 1]
            r2 = last[k + 2]
            r3 = last[k + 3]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = zero
            for b in range(padded):
                u = left[b]
                v = right[b]
                t0 = r0[b]
                t1 = r1[b]
                t2 = r2[b]
                t3 = r3[b]
                a0 += u * t0
                a1 += u * t1
                a2 += u * t2
                a3 += u * t3
                b0 += v * t0
                b1 += v * t1
                b2 += v * t2
                b3 += v * t3
            sums[at + k] += a0
            sums[at + k + 1] += a1
            sums[at + k + 2] += a2
            sums[at + k + 3] += a3
            sums[other + k] += b0
            sums[other + k + 1] += b1
            sums[other + k + 2] += b2
            sums[other + k + 3] += b3
            k += 4
        while k < both:
            row = last[k]
            a0 = b0 = zero
            for b in range(padded):
                a0 += left[b] * row[b]
                b0 += right[b] * row[b]
            sums[at + k] += a0
            sums[other + k] += b0
            k += 1
        longer = left
        more = n_left
        into = at
        if n_right > n_left:
            longer = right
            more = n_right
            into = other
        for rest in range(k, more):
            row = last[rest]
            a0 = zero
            for b in range(padded):
                a0 += longer[b] * row[b]
            sums[into + rest] += a0
        at = other + n_right


@subkernel()  # not fast: else the order of products depends on where the arrays lie in memory
def _write_means(sums, scales, total, out):
    """Write sums · scales / total; NaN where no point was kept."""
    share = 1.0 / total if total else np.nan
    for q in range(len(out)):
        out[q] = sums[q] * scales[q] * share


def _make_projection(basis: int) -> Callable[..., Any]:
    """Return `project_bags` for one basis: the other recurrences are not compiled with it."""

    @kernel(fastmath=REASSOCIATING)
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
        """Empirical projection coefficients of each bag (Oliva 2018, eq. 2.7).

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
            Leave points outside the box out; else they are moved to its edge.
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
        tables = np.empty((g, n_functions, SUMMED_POINTS), out.dtype)
        x = np.empty((g, SUMMED_POINTS), out.dtype)
        scratch = np.empty((7, SUMMED_POINTS), out.dtype)
        products = np.empty((g, SUMMED_POINTS), out.dtype)
        sums = np.empty(s, np.float64)
        for i in range(begin, end):
            n_outside[i] = 0
            for group in range(n_groups):
                sums[:] = 0.0
                total = np.int64(0)  # a plain 0 is a constant, for which all is compiled anew
                outside = 0
                for start in range(offsets[i], offsets[i + 1], SUMMED_POINTS):
                    remaining = offsets[i + 1] - start
                    m = remaining if remaining < SUMMED_POINTS else SUMMED_POINTS
                    n_kept, beyond = load_block(
                        points, start, m, groups[group], lo, inverse, drop, x
                    )
                    outside += beyond
                    total += n_kept
                    if n_kept == 0:
                        continue
                    padded = (n_kept + _VECTOR_WIDTH - 1) // _VECTOR_WIDTH * _VECTOR_WIDTH
                    for j in range(g):
                        for b in range(n_kept, padded):
                            x[j, b] = 0
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
                    for k in range(n_functions):
                        for b in range(n_kept, padded):
                            tables[0, k, b] = 0
                    _add_products(tables, padded, prefixes, counts, changed, products, sums)
                _write_means(sums, scales, total, out[i, group * s : (group + 1) * s])
                if outside > n_outside[i]:
                    n_outside[i] = outside

    return project_bags


PROJECTIONS = {basis: _make_projection(basis) for basis in (COSINE, TRIGONOMETRIC, LEGENDRE)}
"""`project_bags` of each basis."""
