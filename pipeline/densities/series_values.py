"""Values of many series at once in the unit cube.

Values at points take one product of matrices per block. Values on a grid of midpoints take one
small transform per dimension.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.arrays import Floats, Integers
from ..embeddings.bases.functions import check_basis, evaluate_basis, function_scales
from .series_kernels import fill_products, work_space

POINTS_PER_BLOCK = 256  # long enough for vector loops; tables of functions stay in L1
_VALUES_PER_BLOCK = 2**17  # values of all functions at a block of points: 1 MiB stays in cache


def series_at(coefficients: Floats, indices: Integers, basis: str, unit: Floats) -> Floats:
    """Return Σ_α a_α φ_α (Oliva 2018, eq. 2.8) at points of the unit cube.

    Parameters
    ----------
    coefficients : float64, shape (n, s)
    indices : int64, shape (s, d)
    basis : {"cosine", "trigonometric", "legendre"}
    unit : float64, shape (n_points, d), in [0, 1]

    Returns
    -------
    float64, shape (n, n_points)
    """
    s, n_dims = indices.shape
    out = np.empty((len(coefficients), len(unit)))
    n_functions = int(indices.max()) + 1
    scales = function_scales(basis, n_functions)[indices].prod(axis=1)
    scaled = coefficients * scales
    order = np.lexsort(indices.T[::-1])
    block = min(POINTS_PER_BLOCK, max(16, _VALUES_PER_BLOCK // s), len(unit))
    work = work_space(n_dims, n_functions, block)
    values = np.empty((s, block))
    for start in range(0, len(unit), block or 1):
        x = np.ascontiguousarray(unit[start : start + block].T)
        m = x.shape[1]
        fill_products(x, m, check_basis(basis), indices, order, *work, values)
        np.matmul(scaled, values[:, :m], out=out[:, start : start + m])
    return out


def series_on_lattice(coefficients: Floats, indices: Integers, basis: str, axis: Floats) -> Floats:
    """Return Σ_α a_α φ_α on the grid with coordinates in ``axis``, shape (n, len(axis)^d).

    The coefficients are written into a dense array, and each dimension is transformed separately.
    The cost per value is the number of functions per dimension, instead of s for single points.
    """
    lengths = tuple(int(k) + 1 for k in indices.max(axis=0))
    values = np.zeros((len(coefficients), *lengths))
    values[(slice(None), *indices.T)] = coefficients
    n_after = 1
    for length in reversed(lengths):
        matrix = evaluate_basis(basis, length, axis)
        if n_after == 1:
            values = values.reshape(-1, length) @ matrix.T
        else:
            values = matrix @ values.reshape(-1, length, n_after)
        n_after *= len(axis)
    return values.reshape(len(coefficients), n_after)


def l2_distances(a: Floats, indices_a: Integers, b: Floats, indices_b: Integers) -> Floats:
    """Return ‖p_i − q_i‖₂ in the unit cube for series on the same basis, shape (n,).

    The distances follow from Parseval's identity (Oliva 2018, eq. 2.10-2.13). The index sets may
    differ.
    """
    union, where = np.unique(np.concatenate([indices_a, indices_b]), axis=0, return_inverse=True)
    gap = np.zeros((len(a), len(union)))
    gap[:, where[: len(indices_a)]] = a
    gap[:, where[len(indices_a) :]] -= b
    distances: Floats = np.sqrt((gap**2).sum(axis=1))
    return distances


def midpoints(n: int) -> Floats:
    """Return the midpoints of n equal cells of [0, 1], shape (n,)."""
    return (np.arange(n) + 0.5) / n


def row_blocks(n_rows: int, row_values: int, max_values: int) -> Iterator[slice]:
    """Yield slices of consecutive rows with at most ``max_values`` values, but at least one row."""
    step = max(1, max_values // max(1, row_values))
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))
