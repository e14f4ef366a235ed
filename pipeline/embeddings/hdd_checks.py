"""What `HDDEmbedding` refuses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import is_integer, is_number
from ..errors import ParameterError
from .hdd_measures import DISTANCES

MAX_COEFFICIENTS = {1: 256, 2: 64, 3: 24}
MAX_GRID = {1: 4096, 2: 512, 3: 96}
MAX_ORDER = 4
METHODS = ("fast", "direct")


def check_parameters(embedding: Any, n_dims: int) -> int:
    """Raise ParameterError for what can not be used; the dimensions of one marginal."""
    size = n_dims if embedding.marginals is None else embedding.marginals
    if not is_integer(size, 1) or size > n_dims:
        raise ParameterError(f"marginals is {size!r}; expected 1 to {n_dims} or None")
    if size > max(MAX_COEFFICIENTS):
        raise ParameterError(
            f"density estimates in {size} dimensions are out of reach; use marginals=1, 2 or 3"
        )
    _check_functions(embedding)
    _check_density(embedding, int(size))
    return int(size)


def check_resolved(bandwidth: float, size: int) -> None:
    """Raise ParameterError for a bandwidth that the coefficients can not follow."""
    least = 1.5 / (np.pi * MAX_COEFFICIENTS[size])
    if bandwidth < least:
        raise ParameterError(
            f"bandwidth is {bandwidth}; in {size} dimensions expected at least {least:.4f}"
        )


def _check_functions(embedding: Any) -> None:
    if embedding.distance not in DISTANCES:
        raise ParameterError(
            f"distance is {embedding.distance!r}; expected one of {list(DISTANCES)}"
        )
    n_per_dim, max_norm, order = embedding.n_per_dim, embedding.max_norm, embedding.order
    if max_norm is None and n_per_dim is not None and not is_integer(n_per_dim, 1):
        raise ParameterError(f"n_per_dim is {n_per_dim!r}; expected an integer ≥ 1 or None")
    if max_norm is not None and not is_number(max_norm, 0):
        raise ParameterError(f"max_norm is {max_norm!r}; expected a finite number ≥ 0")
    if order is not None and not (is_number(order, 1e-6) and order <= MAX_ORDER):
        raise ParameterError(f"order is {order!r}; expected 0 < order ≤ {MAX_ORDER} or None")
    if not is_integer(embedding.seed, 0):
        raise ParameterError(f"seed is {embedding.seed!r}; expected an integer ≥ 0")


def _check_density(embedding: Any, size: int) -> None:
    bandwidth, grid = embedding.bandwidth, embedding.grid
    if bandwidth != "auto" and not (is_number(bandwidth, 1e-6) and bandwidth < 1):
        raise ParameterError(
            f"bandwidth is {bandwidth!r}; expected a share of the box's side or 'auto'"
        )
    if not is_number(embedding.floor, 1e-30):
        raise ParameterError(f"floor is {embedding.floor!r}; expected a number > 0")
    if embedding.method not in METHODS:
        raise ParameterError(f"method is {embedding.method!r}; expected one of {list(METHODS)}")
    if not is_integer(embedding.n_integration, 1):
        raise ParameterError(f"n_integration is {embedding.n_integration!r}; expected ≥ 1")
    if grid is not None and not (is_integer(grid, 2) and grid <= MAX_GRID[size]):
        raise ParameterError(f"grid is {grid!r}; expected 2 to {MAX_GRID[size]} midpoints or None")
