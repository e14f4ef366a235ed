# mypy: disallow-untyped-defs=False
"""Tensor-product basis functions at a block of points, one row per function."""

from __future__ import annotations

import numpy as np

from ..core.compiling import kernel, subkernel
from ..embeddings.bases.function_kernels import (
    REASSOCIATING,
    fill_cosine,
    fill_legendre,
    fill_trigonometric,
)
from ..embeddings.bases.projection_kernels import COSINE, TRIGONOMETRIC

SCRATCH_ROWS = 7  # rows that the recurrences use


@subkernel(fastmath=REASSOCIATING)
def _multiply(indices, q, first, tables, m, products):
    """Write products[j] = Π_{i ≤ j} φ_{α_i} for first ≤ j < d − 1, at m points."""
    for j in range(first, indices.shape[1] - 1):
        row, product = tables[j, indices[q, j]], products[j]
        if j == 0:
            for b in range(m):
                product[b] = row[b]
        else:
            below = products[j - 1]
            for b in range(m):
                product[b] = below[b] * row[b]


@kernel(fastmath=REASSOCIATING)
def fill_products(x, m, basis, indices, order, tables, scratch, products, out):
    """Write φ_α, without normalising constants, at m points of the unit cube.

    Parameters
    ----------
    x : float64, shape (d, ≥ m)
        Coordinates in [0, 1].
    basis : COSINE, TRIGONOMETRIC or that of Legendre
    indices : int64, shape (s, d)
    order : int64, shape (s,)
        Rows of ``indices`` in lexicographic order: neighbours then share partial products.
    tables : float64, shape (d, K, ≥ m), scratch : (7, ≥ m), products : (d, ≥ m)
        Work space.
    out : float64, shape (s, ≥ m), written
    """
    n_dims = len(x)
    for j in range(n_dims):
        if basis == COSINE:
            fill_cosine(x[j], m, tables[j], scratch)
        elif basis == TRIGONOMETRIC:
            fill_trigonometric(x[j], m, tables[j], scratch)
        else:
            fill_legendre(x[j], m, tables[j], scratch)
    for p in range(len(order)):
        q = order[p]
        last, row = tables[n_dims - 1, indices[q, n_dims - 1]], out[q]
        if n_dims == 1:
            for b in range(m):
                row[b] = last[b]
            continue
        first = 0
        if p > 0:
            before = order[p - 1]
            while first < n_dims - 1 and indices[before, first] == indices[q, first]:
                first += 1
        _multiply(indices, q, first, tables, m, products)
        product = products[n_dims - 2]
        for b in range(m):
            row[b] = product[b] * last[b]


def work_space(
    n_dims: int, n_functions: int, n_points: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays ``tables``, ``scratch`` and ``products`` for `fill_products`."""
    return (
        np.empty((n_dims, n_functions, n_points)),
        np.empty((SCRATCH_ROWS, n_points)),
        np.empty((n_dims, n_points)),
    )
