"""Inner products of two centred Gram matrices, one of them with its rows in other orders."""

from __future__ import annotations

from ...compiling import kernel


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
