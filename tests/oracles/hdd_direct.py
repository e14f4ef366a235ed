"""The direct form of HDD embeddings: density estimates and projections at integration points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags
from bagbasis.embeddings import HDDSpec, evaluate_basis
from bagbasis.embeddings.refusals import refuse_outside

from .hdd_direct_kernels import powers, reflected_densities

BLOCK_BYTES = 2**23
REACH = {4: 5.5, 8: 8.5}  # bandwidths; beyond lies less than the precision of the sums


def embed_at(spec: HDDSpec, bags: Bags, at: NDArray[np.float64], out: NDArray[Any]) -> int:
    """A by integration over given points (001, eq. 8-9; 000, eq. 4.10), O(n · n_e) a bag.

    Parameters
    ----------
    spec : HDDSpec
    bags : Bags
    at : shape (n_e, g)
        Integration points of equal weight in the unit cube.
    out : float32 or float64, shape (n_bags, spec.n_features), written

    Returns
    -------
    int
        Points outside the box.
    """
    dtype = out.dtype
    functions = basis_at(spec.indices, at).astype(dtype)
    columns = np.ascontiguousarray(at.T.astype(dtype))
    shape = (len(bags), len(spec.groups), spec.n_parts, len(spec.indices))
    projected = np.empty(shape, dtype=dtype)
    step = max(1, BLOCK_BYTES // ((spec.n_parts + 1) * len(at) * dtype.itemsize))
    n_outside = 0
    for start in range(0, len(bags), step):
        block = bags[start : start + step]
        outside = np.zeros(len(block), dtype=np.int64)
        for g, group in enumerate(spec.groups):
            density, beyond = _densities(spec, block, group, columns)
            projected[start : start + step, g] = _powers(spec, density) @ functions
            outside = np.maximum(outside, beyond)
        flat = projected[start : start + step].reshape(len(block), -1)
        refuse_outside(outside, flat, spec.out_of_box, spec.box, start)
        n_outside += int(outside.sum())
    out[:] = projected.reshape(out.shape)
    return n_outside


def _powers(spec: HDDSpec, density: NDArray[Any]) -> NDArray[Any]:
    """√w p^{α/2+iλ} of density values (n, m) that are floored first, (n, n_parts, m)."""
    parts = np.empty((len(density), spec.n_parts, density.shape[1]), dtype=density.dtype)
    dtype = density.dtype.type
    powers(
        *(0, len(density), density),
        dtype(-np.inf if spec.is_linear else spec.floor),
        dtype(spec.order / 2),
        np.array(spec.lambdas, dtype),
        np.sqrt(spec.weights).astype(dtype),
        parts,
    )
    return parts


def basis_at(indices: NDArray[np.int64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """φ_α(u) / n_e at the integration points, shape (n_e, |V|)."""
    values = np.full((len(at), len(indices)), 1 / len(at))
    for j, column in enumerate(indices.T):
        values *= evaluate_basis("cosine", int(column.max()) + 1, at[:, j])[:, column]
    return values


def _densities(
    spec: HDDSpec, bags: Bags, group: NDArray[np.int64], columns: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Density estimates of one marginal at the points, and points of each bag outside the box."""
    dtype, points = columns.dtype, bags.points[:, group]
    # the edges that the points can hold, as in `bases.project`
    lo, hi = (np.array(edge)[group].astype(points.dtype) for edge in (spec.box.lo, spec.box.hi))
    beyond = ((points < lo) | (points > hi)).any(axis=1)
    unit = spec.box.to_unit(bags.points)[:, group]
    counts = np.add.reduceat(beyond, bags.offsets[:-1], dtype=np.int64)
    out = np.empty((len(bags), columns.shape[1]), dtype=dtype)
    reflected_densities(
        0,
        len(bags),
        np.clip(unit, 0, 1).astype(dtype, order="C"),  # one kernel, not one per layout
        ~beyond if spec.out_of_box == "drop" else np.ones(len(unit), dtype=bool),
        bags.offsets,
        columns,
        dtype.type(spec.bandwidth),
        dtype.type(REACH[dtype.itemsize] * spec.bandwidth),
        out,
    )
    return out, counts
