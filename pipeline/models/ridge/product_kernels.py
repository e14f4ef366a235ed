# mypy: disallow-untyped-defs=False
"""Kernels of products with rows that are read once a step of conjugate gradients."""

from __future__ import annotations

from ...core.compiling import kernel

N_STRIPES = 16  # stripes of rows with sums of their own: as many for any number of threads


@kernel(fastmath={"contract", "reassoc"})
def row_products(begin, end, z, weights, direction, shift, sums, totals):
    """Add zᵀu to sums and Σu to totals, stripe by stripe, for u = weights (z direction − shift).

    Two rows at a time are multiplied and added while they are in a core's cache: memory is read
    once, and that is all the time it takes.

    Parameters
    ----------
    begin, end : int
        The stripes that are summed.
    z : float32 or float64, shape (n, D)
    weights : float64, shape (n,), or (0,) where all are one
    direction : shape (D,)
    shift : float
    sums : shape (STRIPES, D), of the dtype of z as direction is
    totals : float64, shape (STRIPES,)
    """
    n, d = z.shape
    for stripe in range(begin, end):
        start, stop = stripe * n // N_STRIPES, (stripe + 1) * n // N_STRIPES
        target = sums[stripe]
        for i in range(start, stop, 2):
            first, second = z[i], z[min(i + 1, stop - 1)]
            a, b = direction.dtype.type(0), direction.dtype.type(0)
            for j in range(d):
                a += first[j] * direction[j]
                b += second[j] * direction[j]
            left, right = a - shift, b - shift
            if len(weights):
                left *= weights[i]
                right *= weights[min(i + 1, stop - 1)]
            if i + 1 == stop:  # the second row is the first again
                right = 0.0
            totals[stripe] += left + right
            p, q = direction.dtype.type(left), direction.dtype.type(right)
            for j in range(d):
                target[j] += p * first[j] + q * second[j]
