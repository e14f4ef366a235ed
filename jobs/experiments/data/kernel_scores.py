"""The closed form of score matching on a matrix of the kernel's derivatives: O((n d)³)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve

from bagbasis.core.arrays import Floats


def closed_form_score(x: Floats, width: float, alpha: float) -> Callable[[Floats], Floats]:
    """Return the score of the density whose f minimises the objective over the whole RKHS.

    Sriperumbudur et al. 2017, Theorem 5, with the Gaussian kernel on standardised coordinates and
    the normal distribution of the points as base: f = −(ξ − Σ γ_aj ∂_j k(·, x_a)) / α.
    """
    centre, scale = x.mean(axis=0), x.std(axis=0)
    z = (x - centre) / scale
    n, d = z.shape
    precision = np.linalg.inv(np.atleast_2d(np.cov(z.T, bias=True)))
    base = -z @ precision

    def along_xi(mixed: Floats, third: Floats) -> Floats:
        means: Floats = (third + np.einsum("aibj,bj->aib", mixed, base)).mean(axis=2)
        return means

    mixed, third = derivatives(z, z, width)
    system = mixed.reshape(n * d, n * d) + n * alpha * np.eye(n * d)
    gamma = solve(system, along_xi(mixed, third).ravel(), assume_a="pos").reshape(n, d)

    def score(points: Floats) -> Floats:
        new = (points - centre) / scale
        mixed, third = derivatives(new, z, width)
        slope = along_xi(mixed, third) - np.einsum("aibj,bj->ai", mixed, gamma)
        scores: Floats = (-new @ precision - slope / alpha) / scale
        return scores

    return score


def derivatives(x: Floats, y: Floats, width: float) -> tuple[Floats, Floats]:
    """Return ∂_i ∂'_j k of all pairs, (n, d, m, d), and Σ_j ∂_i ∂'_j² k, (n, d, m)."""
    d = x.shape[1]
    gap = (x[:, None] - y[None]) / width**2
    k = np.exp(-0.5 * width**2 * (gap**2).sum(axis=2))
    mixed = -np.einsum("abi,abj,ab->aibj", gap, gap, k)
    for j in range(d):
        mixed[:, j, :, j] += k / width**2
    squares = (gap**2).sum(axis=2) - d / width**2
    third = (2 / width**2 - squares)[..., None] * gap * k[..., None]
    return mixed, third.transpose(0, 2, 1)
