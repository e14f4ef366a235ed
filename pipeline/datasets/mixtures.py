"""Draw points from many equally weighted mixtures of truncated Gaussians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ..core.arrays import Integers

Singles = NDArray[np.float32]


class Mixtures(NamedTuple):
    """Equally weighted mixtures of Gaussians N(m, F Fᵀ), before truncation.

    Attributes
    ----------
    n_components : int64, shape (n,)
        Number of components of each mixture; the first of k components are used.
    means : float64, shape (n, k, d)
        Means m of the components.
    factors : float64, shape (n, k, d, d)
        Lower triangular factors F of the covariances.
    """

    n_components: NDArray[np.int64]
    means: NDArray[np.float64]
    factors: NDArray[np.float64]

    @property
    def covariances(self) -> NDArray[np.float64]:
        """Covariances of the components, shape (n, k, d, d)."""
        return self.factors @ np.swapaxes(self.factors, -1, -2)

    def draw_points(
        self, rng: np.random.Generator, sizes: Integers, box: Sequence[tuple[float, float]]
    ) -> Singles:
        """Draw ``sizes[i]`` points from mixture i, truncated to the box; shape (sum(sizes), d)."""
        k, n_dims = self.means.shape[1:]
        component = choose_components(rng, self.n_components, sizes, k)
        means, factors = self.means.reshape(-1, n_dims), self.factors.reshape(-1, n_dims, n_dims)
        return truncated_gaussians(rng, component, means, factors, box)

    def at(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the densities at points, shape (n, n_points)."""
        values = np.zeros((len(self.n_components), len(points)))
        scale = (2 * np.pi) ** (points.shape[1] / 2)
        for i, k in enumerate(self.n_components):
            for mean, factor in zip(self.means[i, :k], self.factors[i, :k], strict=True):
                normal = solve_triangular(factor, (points - mean).T, lower=True)
                height = 1 / (scale * k * np.linalg.det(factor))
                values[i] += height * np.exp(-0.5 * (normal**2).sum(axis=0))
        return values


def choose_components(
    rng: np.random.Generator, n_components: Integers, sizes: Integers, stride: int
) -> Integers:
    """Draw the component of every point; all components of a mixture have equal probability.

    The components of bag i are ``i * stride + (0 … n_components[i] - 1)``.

    Parameters
    ----------
    n_components, sizes : int64, shape (n_bags,)
        Number of components of each bag's mixture, at most ``stride``, and number of points.

    Returns
    -------
    int64, shape (sum(sizes),)
    """
    # A float32 uniform is at most 1 - 2^-24, and its product with k rounds below k.
    u = rng.random(int(sizes.sum()), dtype=np.float32)
    component = (u * np.repeat(n_components.astype(np.float32), sizes)).astype(np.int64)
    component += np.repeat(np.arange(len(sizes), dtype=np.int64) * stride, sizes)
    return component


def truncated_gaussians(
    rng: np.random.Generator,
    component: Integers,
    means: NDArray[np.float64],
    factors: NDArray[np.float64],
    box: Sequence[tuple[float, float]],
) -> Singles:
    """Draw one point from N(means[c], F F^T), F = factors[c], in the box, for each c.

    Points outside the box are drawn again from the same component, until all are inside.

    Parameters
    ----------
    component : int64, shape (n_points,)
    means : shape (n_components, d)
    factors : shape (n_components, d, d)
        Lower triangular.
    box : one (lo, hi) per dimension, both included

    Returns
    -------
    float32, shape (n_points, d)
    """
    means32, factors32 = means.astype(np.float32), factors.astype(np.float32)
    columns = _gaussians(rng, component, means32, factors32)
    outside = np.flatnonzero(_outside(columns, box))
    while len(outside):
        again = _gaussians(rng, component[outside], means32, factors32)
        columns[:, outside] = again
        outside = outside[_outside(again, box)]
    return np.ascontiguousarray(columns.T)


def _gaussians(
    rng: np.random.Generator, component: Integers, means: Singles, factors: Singles
) -> Singles:
    """Draw points without truncation, one row per dimension; shape (d, n_points)."""
    n_dims = means.shape[1]
    noise = rng.standard_normal((n_dims, len(component)), dtype=np.float32)
    columns = np.empty_like(noise)
    for i in range(n_dims):
        np.take(means[:, i], component, out=columns[i], mode="clip")
        for j in range(i + 1):
            columns[i] += factors[:, i, j].take(component, mode="clip") * noise[j]
    return columns


def _outside(columns: Singles, box: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    outside = np.zeros(columns.shape[1], dtype=bool)
    for column, (lo, hi) in zip(columns, box, strict=True):
        outside |= (column < lo) | (column > hi)
    return outside
