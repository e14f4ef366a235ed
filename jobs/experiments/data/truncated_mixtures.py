"""Mixtures of truncated Gaussians whose densities are known (001, Appendix A)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from bagbasis import Bags

N_COMPONENTS = 5
MEASURED_AT = 100  # midpoints a side


def truncated_mixtures(
    seed: int, n_mixtures: int = 50, n_points: int = 2500
) -> tuple[Bags, NDArray[np.float64]]:
    """Bags of five equally weighted truncated Gaussians in [0, 1]², and their densities.

    Means are uniform in the square, standard deviations uniform in [0.05, 0.15], each of its own.

    Returns
    -------
    bags : Bags
    densities : float64, shape (n_mixtures, 100²)
        At the midpoints of a grid, above 0.
    """
    rng = np.random.default_rng(seed)
    mean = rng.random((n_mixtures, N_COMPONENTS, 2))
    scale = rng.uniform(0.05, 0.15, (n_mixtures, N_COMPONENTS, 2))
    lo, hi = norm.cdf(-mean / scale), norm.cdf((1 - mean) / scale)
    axis = (np.arange(MEASURED_AT) + 0.5) / MEASURED_AT
    at = np.stack([g.ravel() for g in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    densities = np.empty((n_mixtures, len(at)))
    for i in range(n_mixtures):
        values = norm.pdf(at, mean[i, :, None], scale[i, :, None]) / (hi - lo)[i, :, None]
        densities[i] = values.prod(axis=2).mean(axis=0)
    component = rng.integers(0, N_COMPONENTS, (n_mixtures, n_points))
    row = np.arange(n_mixtures)[:, None]
    u = lo[row, component] + (hi - lo)[row, component] * rng.random((n_mixtures, n_points, 2))
    points = mean[row, component] + scale[row, component] * norm.ppf(u)
    return Bags.from_list(list(np.clip(points, 0, 1))), np.maximum(densities, 1e-300)
