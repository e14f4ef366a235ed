# mypy: disallow-untyped-defs=False
"""Sums of a symmetric matrix over the pairs of a set of units, for many random sets; serial.

A set is a row of zeros and ones, so that the matrix' rows are only added, never multiplied. All 16
sums of four rows are made once, and each set takes one of them ("method of the four Russians"): a
quarter of the additions; and of the matrix one triangle is read.
"""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel

COLUMNS_AT_ONCE = 64  # columns summed at a time: 16 sums of them are 8 KiB
SETS_AT_ONCE = 512  # sets whose sums are in the cache: 256 KiB
TABLES_AT_ONCE = 4  # tables of four rows; a set takes one sum from each per pass over its own sums


@kernel()
def sum_over_sets(gram, sets, bits, out):
    """Write Σ_ij v_i v_j g_ij of each set v.

    Parameters
    ----------
    gram : float64, shape (n, n)
        Symmetric.
    sets : float64, shape (m, n)
        Zeros and ones.
    bits : uint8, shape (⌈n / 8⌉, m)
        The same, eight units to a byte, the first in its lowest bit.
    out : float64, shape (m,)
    """
    n_sets, n = sets.shape
    n_groups = 2 * bits.shape[0]
    tables = np.empty((TABLES_AT_ONCE, 16, COLUMNS_AT_ONCE))
    sums, row = np.empty((SETS_AT_ONCE, COLUMNS_AT_ONCE)), np.zeros(COLUMNS_AT_ONCE)
    for p in range(n_sets):
        out[p] = 0.0
    for first_column in range(0, n, COLUMNS_AT_ONCE):
        width = min(COLUMNS_AT_ONCE, n - first_column)
        for start in range(0, n_sets, SETS_AT_ONCE):
            m = min(SETS_AT_ONCE, n_sets - start)
            for p in range(m):
                for j in range(COLUMNS_AT_ONCE):
                    sums[p, j] = 0.0
            for group in range(first_column // 4, n_groups, TABLES_AT_ONCE):
                for k in range(TABLES_AT_ONCE):
                    first = 4 * (group + k)
                    # rows next to the columns are there with both halves, others below them once
                    times = 1.0 if first < first_column + COLUMNS_AT_ONCE else 2.0
                    for j in range(COLUMNS_AT_ONCE):
                        tables[k, 0, j] = 0.0
                    for bit in range(4):
                        size = 1 << bit
                        for j in range(COLUMNS_AT_ONCE):
                            inside = j < width and first + bit < n
                            row[j] = times * gram[first + bit, first_column + j] if inside else 0.0
                        for i in range(size):
                            for j in range(COLUMNS_AT_ONCE):
                                tables[k, size + i, j] = tables[k, i, j] + row[j]
                byte = group // 2
                other = min(byte + 1, bits.shape[0] - 1)  # beyond the last one all sums are 0
                for p in range(m):
                    first_byte, second_byte = bits[byte, start + p], bits[other, start + p]
                    a, b = tables[0, first_byte & 15], tables[1, first_byte >> 4]
                    c, d = tables[2, second_byte & 15], tables[3, second_byte >> 4]
                    own = sums[p]
                    for j in range(COLUMNS_AT_ONCE):
                        own[j] += (a[j] + b[j]) + (c[j] + d[j])
            for p in range(m):
                own, chosen = sums[p], sets[start + p]
                a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
                end = width // 4 * 4
                for j in range(0, end, 4):
                    a0 += own[j] * chosen[first_column + j]
                    a1 += own[j + 1] * chosen[first_column + j + 1]
                    a2 += own[j + 2] * chosen[first_column + j + 2]
                    a3 += own[j + 3] * chosen[first_column + j + 3]
                for j in range(end, width):
                    a0 += own[j] * chosen[first_column + j]
                out[start + p] += (a0 + a1) + (a2 + a3)


@kernel()
def mirror(gram):
    """Write the lower triangle of a matrix, shape (n, n), over the upper one."""
    for i in range(gram.shape[0]):
        for j in range(i):
            gram[j, i] = gram[i, j]
