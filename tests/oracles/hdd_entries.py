"""HDD embeddings against the direct oracle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, Box
from bagbasis.embeddings import HDDSpec
from bagbasis.embeddings.hdd_measures import DISTANCES, ORDERS, lambda_nodes

from . import series
from .hdd import direct_embedding, midpoints
from .implementation import DTYPES, Implementation
from .series_entries import HI, LO, ragged_bags

BANDWIDTH, FLOOR = 0.15, 1e-2
N_PER_DIM = {1: 8, 2: 5, 3: 3}
GRID = {1: 60, 2: 24, 3: 10}
COEFFICIENTS = 20  # the next one is damped to 5e-20


def spec_of(distance: str, order: float, n_dims: int, size: int, **fields: Any) -> HDDSpec:
    """All dimensions, or marginals of ``size`` of them."""
    lambdas, weights = lambda_nodes(distance, 3)
    return HDDSpec(
        distance=distance,
        order=order,
        n_per_dim=N_PER_DIM[size],
        max_norm=None,
        lambdas=lambdas,
        weights=weights,
        bandwidth=BANDWIDTH,
        floor=FLOOR,
        n_coefficients=COEFFICIENTS,
        grid=GRID[size],
        marginals=None if size == n_dims else size,
        box=Box(LO[:n_dims], HI[:n_dims]),
        **fields,
    )


def embedded(bags: Bags, *, spec: HDDSpec, dtype: Any) -> tuple[NDArray[Any], int]:
    """`HDDSpec.embed`: A, and points outside the box."""
    out = np.empty((len(bags), spec.n_features), dtype=dtype)
    return out, spec.embed(bags, out)


def embedded_by_loop(bags: Bags, *, spec: HDDSpec) -> tuple[NDArray[Any], int]:
    """Bag by bag and marginal by marginal, at the grid's midpoints."""
    size = spec.group_size
    at = midpoints(spec.grid, size)
    indices = series.index_set_by_loop(size, spec.n_per_dim, None, "cosine")
    floor = -np.inf if spec.is_linear else spec.floor
    rows, n_outside = [], 0
    for bag in bags:
        unit = series.to_unit(bag, spec.box.lo, spec.box.hi)
        groups = []
        most = 0
        for group in series.subsets(bags.n_dims, size):
            selected, outside = series.confined(unit[:, list(group)], spec.out_of_box)
            most = max(most, outside)
            nodes = spec.lambdas, spec.weights
            groups.append(
                direct_embedding(selected, spec.bandwidth, floor, nodes, indices, at, spec.order)
            )
        rows.append(np.concatenate(groups))
        n_outside += most
    return np.stack(rows), n_outside


def hdd_embeddings() -> Iterator[Implementation]:
    """Distances, dimensions and dtypes; then orders, marginals and dropping."""
    for n_dims in (1, 2, 3):
        for distance in DISTANCES:
            for dtype in DTYPES:
                yield _embedding(distance, n_dims, n_dims, dtype)
    for order in (0.5, 1.5, 3.0):
        yield _embedding("js", 2, 2, np.float32, order=order)
    for mode in ("clip", "drop"):
        yield _embedding("chi2", 3, 2, np.float64, mode)
        yield _embedding("tv", 4, 1, np.float32, mode)


def _embedding(
    distance: str,
    n_dims: int,
    size: int,
    dtype: Any,
    mode: str = "clip",
    order: float | None = None,
) -> Implementation:
    spec = spec_of(distance, order or ORDERS[distance], n_dims, size, out_of_box=mode)
    names = [distance, f"{n_dims}d", np.dtype(dtype).name, mode, f"order {spec.order:g}"]
    names += [f"marginals={size}"] * (size < n_dims)
    coarse = dtype == np.float32
    return Implementation(
        "HDD " + " ".join(names),
        partial(embedded, spec=spec, dtype=dtype),
        partial(embedded_by_loop, spec=spec),
        partial(ragged_bags, n_dims=n_dims, dtype=dtype),
        5,
        atol=3e-5 if coarse else 1e-9,
        rtol=3e-5 if coarse else 1e-9,
    )
