"""Rejection sampling from a density in the unit cube, with a bound in each cell of a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.arrays import Floats, Integers
from .series_values import midpoints, series_at, series_on_lattice

CANDIDATES_AT_ONCE = 2**16  # candidate points; the density values take half a MiB
MAX_GRID_CELLS = 2**24  # cells of the grid: 128 MiB of bounds
# With four midpoints per function a peak exceeds its neighbours by at most 8 % on each side.
_SLACK = 0.25


def draw_series(
    coefficients: Floats,
    indices: Integers,
    basis: str,
    threshold: float,
    grid: int,
    n: int,
    seed: int,
    stream: int,
) -> Floats:
    """Draw n points of the unit cube from max(p − threshold, 0), shape (n, d).

    ``coefficients`` of p have shape (1, s); ``grid`` is the number of cells per dimension.
    """
    axes = midpoints(grid), np.linspace(0, 1, grid + 1)
    middle, corners = (
        series_on_lattice(coefficients, indices, basis, axis).reshape(
            (len(axis),) * indices.shape[1]
        )
        for axis in axes
    )
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(stream,))))
    return _draw(
        cell_bounds(middle, corners, threshold),
        lambda unit: series_at(coefficients, indices, basis, unit)[0] - threshold,
        n,
        rng,
    )


def cell_bounds(middle: Floats, corners: Floats, threshold: float) -> Floats:
    """Return an approximate upper bound of max(p − threshold, 0) in each cell, (g, …, g).

    The bound takes the largest value of p at the midpoint and corners of the cell, plus a quarter.

    Parameters
    ----------
    middle : shape (g, …, g), p at the midpoints
    corners : shape (g + 1, …, g + 1), p at the corners
    """
    largest = corners
    for j in range(middle.ndim):
        below, above = (np.delete(largest, end, axis=j) for end in (-1, 0))
        largest = np.maximum(below, above)
    largest = np.maximum(largest, middle)
    return np.maximum(largest + _SLACK * np.abs(largest) - threshold, 0.0)


def _draw(
    bounds: Floats, density: Callable[[Floats], Floats], n: int, rng: np.random.Generator
) -> Floats:
    """Draw n points of the unit cube, shape (n, d), from a density that is below its bounds.

    A cell is drawn with a probability proportional to its bound. A point is drawn uniformly in the
    cell and accepted with probability density / bound.
    """
    cumulative = np.cumsum(bounds.ravel())
    accepted: list[Floats] = []
    missing, acceptance = n, min(1.0, bounds.size / cumulative[-1])
    while missing > 0:
        n_candidates = min(int(1.1 * missing / acceptance) + 16, CANDIDATES_AT_ONCE)
        cells = np.searchsorted(cumulative, rng.random(n_candidates) * cumulative[-1], "right")
        cells = np.minimum(cells, bounds.size - 1)
        corner = np.stack(np.unravel_index(cells, bounds.shape), axis=1)
        points = (corner + rng.random(corner.shape)) / bounds.shape[0]
        keep = rng.random(n_candidates) * bounds.ravel()[cells] < density(points)
        accepted.append(points[keep][:missing])
        missing -= len(accepted[-1])
    return np.concatenate(accepted)
