"""Score matching by its definition: the closed form on a kernel matrix, derivatives pair by pair.

Sriperumbudur et al. 2017, Theorem 5, for the Gaussian kernel k(x, y) = exp(−‖x − y‖² / 2σ²) and a
normal base density: f minimises
(1/n) Σ_a Σ_j [½ (∂_j f)² + ∂²_j f + ∂_j log q ∂_j f](x_a) + α/2 ‖f‖².
"""

from __future__ import annotations

import numpy as np


def kernel_derivatives(x, y, width):
    """k and its derivatives at all pairs: ∂_i ∂'_j k of shape (n, d, m, d), ∂'_j² k (n, m, d),
    ∂'_j k (n, m, d), ∂_i ∂'_j² k (n, d, m, d), where ' is the second argument."""
    d = x.shape[1]
    gap = (x[:, None] - y[None]) / width**2
    k = np.exp(-0.5 * width**2 * (gap**2).sum(axis=2))
    eye = np.eye(d)
    first = gap * k[..., None]
    mixed = k[:, None, :, None] * (
        eye[None, :, None, :] / width**2 - gap.transpose(0, 2, 1)[..., None] * gap[:, None]
    )
    second = (gap**2 - 1 / width**2) * k[..., None]
    along = -gap.transpose(0, 2, 1)[..., None] * second[:, None]
    along += 2 * k[:, None, :, None] * gap[:, None] * eye[None, :, None, :] / width**2
    return k, mixed, second, first, along


class KernelScore:
    """The slope ∇f of the closed form, at any points."""

    def __init__(self, x, mean, covariance, width, alpha):
        self.x, self.width, self.alpha = x, width, alpha
        self.mean, self.precision = mean, np.linalg.inv(covariance)
        n, d = x.shape
        self.base = (mean - x) @ self.precision
        self.gamma = np.zeros((n, d))
        h = self._slope_of_xi(x)
        _, mixed, *_ = kernel_derivatives(x, x, width)
        system = mixed.reshape(n * d, n * d) + n * alpha * np.eye(n * d)
        self.gamma = np.linalg.solve(system, h.ravel()).reshape(n, d)

    def _slope_of_xi(self, points):
        _, mixed, _, _, along = kernel_derivatives(points, self.x, self.width)
        return (along.sum(axis=3) + np.einsum("aibj,bj->aib", mixed, self.base)).mean(axis=2)

    def __call__(self, points):
        """∇ log p = ∇ log q + ∇f."""
        _, mixed, *_ = kernel_derivatives(points, self.x, self.width)
        slope = -(self._slope_of_xi(points) - np.einsum("aibj,bj->ai", mixed, self.gamma))
        return (self.mean - points) @ self.precision + slope / self.alpha


def objective(slopes, curvatures):
    """E[½ ‖s‖² + ∇·s] of scores s (n, d) and their own derivatives ∂_j s_j (n, d)."""
    return float((0.5 * slopes**2 + curvatures).sum(axis=1).mean())


def curvature(score, points, step=1e-4):
    """∂_j s_j of a score by differences, shape (n, d)."""
    out = np.empty_like(points)
    for j in range(points.shape[1]):
        up, down = points.copy(), points.copy()
        up[:, j] += step
        down[:, j] -= step
        out[:, j] = (score(up)[:, j] - score(down)[:, j]) / (2 * step)
    return out


def feature_fit(z, omega, amplitudes, alpha, mean, covariance):
    """θ by explicit derivatives of each feature at each point."""
    L = omega.shape[1]
    precision = np.linalg.inv(covariance)
    G, b = np.zeros((2 * L, 2 * L)), np.zeros(2 * L)
    for point in z:
        angle = point @ omega
        for j in range(len(point)):
            first = omega[j] * amplitudes * np.array([np.cos(angle), -np.sin(angle)])
            second = -(omega[j] ** 2) * amplitudes * np.array([np.sin(angle), np.cos(angle)])
            slope = ((mean - point) @ precision)[j]
            G += np.outer(first.ravel(), first.ravel()) / len(z)
            b += (second + slope * first).ravel() / len(z)
    return -np.linalg.solve(G + alpha * np.eye(2 * L), b)
