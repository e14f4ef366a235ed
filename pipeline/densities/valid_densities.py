"""The nearest valid density, which is nowhere negative and integrates to one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.stats import qmc

from ..core.arrays import Floats, Integers
from .series_values import midpoints, row_blocks, series_at, series_on_lattice

MAX_GRID_DIMS = 3  # with more dimensions, a grid that is fine enough has too many cells
MAX_CELLS = 2**18  # cells of a grid by default: 2 MiB of values per density
# Smallest number of midpoints per dimension, by number of dimensions: fine enough for a figure.
MIN_GRID = {1: 256, 2: 64, 3: 32}
LOG2_POINTS = 14  # number of quasi-random points (log2) with more dimensions
SERIES_VALUES_PER_BLOCK = 2**16  # half a MiB; larger blocks cost more in page faults than they save


def default_grid(indices: Integers) -> int:
    """Return a number of midpoints per dimension that resolves a series.

    The default is four midpoints per function. If the grid would have too many cells, it is
    smaller, but not below two per function: fewer midpoints do not integrate every function of the
    series exactly.
    """
    n_dims = indices.shape[1]
    n_functions = int(indices.max()) + 1
    affordable = int(MAX_CELLS ** (1 / n_dims) + 1e-9)
    wanted = max(4 * n_functions, MIN_GRID.get(n_dims, 1))
    return max(2 * n_functions, min(wanted, affordable))


def thresholds(coefficients: Floats, indices: Integers, basis: str, grid: int) -> Floats:
    """Return c of max(p − c, 0) for each series, in units of the uniform density, shape (n,).

    c is computed on a grid of ``grid`` midpoints per dimension, or on 2^14 quasi-random points with
    more than three dimensions.
    """
    n_dims = indices.shape[1]
    n_values = grid**n_dims if n_dims <= MAX_GRID_DIMS else 2**LOG2_POINTS
    out = np.empty(len(coefficients))
    for rows in row_blocks(len(coefficients), n_values, SERIES_VALUES_PER_BLOCK):
        if n_dims <= MAX_GRID_DIMS:
            values = series_on_lattice(coefficients[rows], indices, basis, midpoints(grid))
        else:
            values = series_at(coefficients[rows], indices, basis, quasi_random_points(n_dims))
        out[rows] = solve_thresholds(values)
    return out


def solve_thresholds(values: Floats) -> Floats:
    """Return c with mean(max(v − c, 0)) = 1 for each row v of values, shape (n, m).

    max(v − c, 0) is the projection of v on the simplex of mean one. If the k largest values remain
    positive, c = (their sum − m) / k. k is the largest number for which all k values exceed this c.
    """
    m = values.shape[1]
    descending = np.sort(values, axis=1)[:, ::-1]
    candidates = (np.cumsum(descending, axis=1) - m) / np.arange(1, m + 1)
    n_positive: Integers = m - (descending > candidates)[:, ::-1].argmax(axis=1)
    c: Floats = candidates[np.arange(len(values)), n_positive - 1]
    # running sums accumulate rounding errors; one Newton step on the sum corrects them
    excess: Floats = np.maximum(values - c[:, None], 0).sum(axis=1) - m
    return c + excess / n_positive


@lru_cache(maxsize=8)
def quasi_random_points(n_dims: int) -> Floats:
    """Return 2^14 scrambled Sobol points of the unit cube, always the same; read-only."""
    points: Floats = qmc.Sobol(n_dims, scramble=True, rng=0).random_base2(LOG2_POINTS)
    points.setflags(write=False)
    return points
