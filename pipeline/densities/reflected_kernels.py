# mypy: disallow-untyped-defs=False
"""Kernel of the Gaussian density estimate with reflection at the faces of the unit cube."""

from __future__ import annotations

import numpy as np

from ..core.compiling import kernel, subkernel

POINTS_AT_ONCE = 64  # points per unit of work


@subkernel()
def _reflected(x, y, inverse, reach, n_images):
    """Return Σ exp(−½((y − x')/h)²) over mirror images x' = 2k ± x of x within reach of y."""
    total = 0.0
    for k in range(-n_images, n_images + 1):
        gap = abs(y - 2 * k - x)
        if gap < reach:
            total += np.exp(-0.5 * (gap * inverse) ** 2)
        gap = abs(y - 2 * k + x)
        if gap < reach:
            total += np.exp(-0.5 * (gap * inverse) ** 2)
    return total


@kernel()
def reflected_density(begin, end, points, offsets, at, bandwidth, reach, n_images, out):
    """Write (1/n_i) Σ_j Π_l k_h(x_jl, y_l) for each bag i and point y (Oliva 2018, eq. 2.27-2.29).

    Parameters
    ----------
    begin, end : int
        Range of units of work; a unit is `POINTS_AT_ONCE` points for one bag.
    points : float64, shape (n_points, d), in [0, 1]
    offsets : int64, shape (n_bags + 1,)
    at : float64, shape (m, d), in [0, 1]
    bandwidth : float
    reach : float
        Largest distance of mirror images that are counted.
    n_images : int
        Number of pairs of mirror images on each side that can be within reach.
    out : float64, shape (n_bags, m), written
    """
    m, n_dims = at.shape
    n_parts = (m + POINTS_AT_ONCE - 1) // POINTS_AT_ONCE
    inverse = 1.0 / bandwidth
    norm = (inverse / np.sqrt(2.0 * np.pi)) ** n_dims
    for task in range(begin, end):
        i, block = task // n_parts, task % n_parts
        for b in range(block * POINTS_AT_ONCE, min(m, (block + 1) * POINTS_AT_ONCE)):
            total = 0.0
            for p in range(offsets[i], offsets[i + 1]):
                product = norm
                for j in range(n_dims):
                    product *= _reflected(points[p, j], at[b, j], inverse, reach, n_images)
                    if product == 0.0:
                        break
                total += product
            out[i, b] = total / (offsets[i + 1] - offsets[i])
