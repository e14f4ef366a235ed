"""Projection of bags onto a basis: arguments and calls of the kernel."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import EitherPrecision, Floats, Integers, by_precision
from ...data.bags.bags import Bags
from ...data.bags.box import Box
from ...execution.pool import weighted_edges
from ..launching import embed_by
from .functions import check_basis, function_scales
from .index_sets import Prefixes, prefix_runs
from .projection_kernels import PROJECTIONS

Indices = Integers
KernelArguments = tuple[EitherPrecision, Indices, Indices, Floats, Floats, bool]
"""What a projection kernel takes of the points; `kernel_arguments` makes it."""


def project(
    bags: Bags,
    indices: Integers,
    groups: Integers,
    basis: str,
    box: Box,
    out: NDArray[Any],
    *,
    drop: bool = False,
    squared: bool = False,
) -> Integers:
    """Write the coefficients a_α(X) = mean φ_α(x) of each bag into ``out`` (Oliva 2018, eq. 2.7).

    Parameters
    ----------
    bags : Bags
    indices : int64, shape (s, g)
        From `index_set`.
    groups : int64, shape (n_groups, g)
        Columns of each marginal.
    basis : {"cosine", "trigonometric", "legendre"}
    box : Box
        Points scaled to the unit cube.
    out : float32 or float64, shape (n_bags, n_groups · s), written
        The row of a bag is NaN if all of its points are left out.
    drop : bool
        Whether to leave out points outside the box; otherwise they are moved to its edge.
    squared : bool
        Whether to write means of φ_α² instead of φ_α.

    Returns
    -------
    int64, shape (n_bags,)
        Number of points of each bag outside the box.
    """
    n_outside = np.zeros(len(bags), dtype=np.int64)
    if len(bags) == 0:
        return n_outside
    runs, scales, n_functions = _walk(indices.tobytes(), indices.shape, basis)
    embed_by(
        PROJECTIONS[check_basis(basis)],
        weighted_edges(bags.offsets, projection_seconds(out.shape[1], groups.shape[1])),
        *kernel_arguments(bags, groups, box, drop, out.dtype),
        squared,
        n_functions,
        runs.prefixes,
        runs.counts,
        runs.changed,
        scales**2 if squared else scales,
        out,
        n_outside,
    )
    return n_outside


def projection_seconds(n_features: int, n_dims: int) -> float:
    """Return the seconds per point of `project`, in order of magnitude."""
    return 1e-10 * n_features + 2e-9 * n_dims


def kernel_arguments(
    bags: Bags, groups: Integers, box: Box, drop: bool, dtype: np.dtype[Any]
) -> KernelArguments:
    """Return the first arguments of every kernel over ragged bags, after the range of bags.

    Returns
    -------
    points : (float32, float64), see `by_precision`
    offsets : the bags'
    groups : int64, shape (n_groups, g)
        Columns of each marginal.
    lo, inverse : float64, shape (d,)
        x ↦ (x − lo) · inverse scales the box to [0, 1]. They hold numbers of the finer of the
        points' dtype and ``dtype``.
    drop : bool
        Leave points outside the box out; else they are moved to its edge.
    """
    lo, inverse = scaling(box, bags.points.dtype, dtype)
    points = by_precision(bags.points)
    return points, bags.offsets, groups, lo, inverse, drop


@lru_cache(maxsize=64)
def _walk(raw: bytes, shape: tuple[int, int], basis: str) -> tuple[Prefixes, Floats, int]:
    indices = np.frombuffer(raw, dtype=np.int64).reshape(shape)
    n_functions = int(indices.max()) + 1
    scales = function_scales(basis, n_functions)[indices].prod(axis=1)
    return prefix_runs(indices), scales, n_functions


def scaling(
    box: Box, points_dtype: np.dtype[Any], out_dtype: np.dtype[Any]
) -> tuple[Floats, Floats]:
    """(lo, 1 / width), rounded to the finer of the two precisions.

    The edges are those that the points can hold: a point on an edge is then scaled to exactly 0,
    or to at most 1, where the rounding of another width would put it outside.
    """
    dtype = np.result_type(points_dtype, out_dtype)
    lo, hi = (np.array(edge, dtype=points_dtype).astype(dtype) for edge in (box.lo, box.hi))
    exact = (np.array(box.hi) - np.array(box.lo)).astype(dtype)
    width = np.where(hi > lo, hi - lo, exact)
    return lo.astype(np.float64), (1 / width).astype(dtype).astype(np.float64)
