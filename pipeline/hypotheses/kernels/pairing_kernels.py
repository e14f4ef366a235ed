# mypy: disallow-untyped-defs=False
"""Inner products of centred Gram matrices, one of two with its rows in other orders."""

from __future__ import annotations

import numpy as np

from ...core.compiling import kernel


@kernel()
def permuted_products(begin, end, A, B, orders, out):
    """Σ_ij A_ij B_{o(i) o(j)} of each order o; both matrices are symmetric.

    Parameters
    ----------
    begin, end : int
        The orders that are taken.
    A, B : float64, shape (n, n)
    orders : int64, shape (m, n)
    out : float64, shape (m,), written
    """
    n = len(A)
    for p in range(begin, end):
        order = orders[p]
        total = 0.0
        for i in range(n):
            a, b = A[i], B[order[i]]
            below = 0.0
            for j in range(i):
                below += a[j] * b[order[j]]
            total += 2 * below + a[i] * b[order[i]]
        out[p] = total


@kernel(fastmath={"contract", "reassoc"})
def permuted_products_of_widths(begin, end, A, B, orders, out):
    """Σ_ij A_k,ij B_l,o(i)o(j) of each order o and all k and l.

    All matrices are symmetric, with a diagonal of zeros. A row of the B's is put in order once for
    all A's, so that the sums go over neighbours.

    Parameters
    ----------
    begin, end : int
        The orders that are taken.
    A, B : float64, shape (K, n, n) and (L, n, n)
    orders : int64, shape (m, n)
    out : float64, shape (m, K, L), written
    """
    n = A.shape[1]
    row = np.empty((len(B), n))
    for p in range(begin, end):
        order = orders[p]
        out[p] = 0.0
        for i in range(1, n):
            for m in range(len(B)):
                b = B[m, order[i]]
                for j in range(i):
                    row[m, j] = b[order[j]]
            for k in range(len(A)):
                a = A[k, i]
                for m in range(len(B)):
                    total = 0.0
                    for j in range(i):
                        total += a[j] * row[m, j]
                    out[p, k, m] += 2 * total
