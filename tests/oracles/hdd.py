"""Homogeneous density distances the slow way: exact κ, density estimates as sums over points and
their mirror images, projections as means over many integration points (001, eq. 8-9)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .series import product_function

CHECK_POINTS = ((2, 1), (3, 0.5), (10, 1), (1, 0.9))
CHECK_VALUES = {  # κ at those points, computed by hand
    "js": (0.084950, 0.495304, 2.136811, 0.0013164),
    "tv": (1, 2.5, 9, 0.1),
    "chi2": (1 / 3, 6.25 / 3.5, 81 / 11, 0.01 / 1.9),
    "hellinger": (0.085786, 0.525255, 2.337722, 0.0013167),
    "l2": (1, 6.25, 81, 0.01),
}


def kappa(
    distance: str, x: ArrayLike, y: ArrayLike, order: float | None = None
) -> NDArray[np.float64]:
    """κ(x, y) from its definition, in nats, for x, y > 0.

    Another order α than the distance's own keeps C(log x/y) = ∫ cos(λ log x/y) dμ of
    κ_α = Z(x^α + y^α) − 2(xy)^{α/2} C (000, eq. 4.12).
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if order is not None:
        own = 2 if distance == "l2" else 1
        mass = kappa(distance, 1.0, 1e-300)
        cosines = mass * (x**own + y**own) - kappa(distance, x, y)
        return mass * (x**order + y**order) - (x * y) ** (0.5 * (order - own)) * cosines
    if distance == "l2":
        return (x - y) ** 2
    if distance == "js":
        return 0.5 * x * np.log(2 * x / (x + y)) + 0.5 * y * np.log(2 * y / (x + y))
    if distance == "tv":
        return np.abs(x - y)
    if distance == "chi2":
        return (x - y) ** 2 / (x + y)
    return 0.5 * (np.sqrt(x) - np.sqrt(y)) ** 2


def kappa_of_nodes(
    lambdas: Sequence[float],
    weights: Sequence[float],
    x: ArrayLike,
    y: ArrayLike,
    order: float = 1.0,
) -> NDArray[np.float64]:
    """Σ_m w_m |x^{α/2+iλ_m} − y^{α/2+iλ_m}|²."""
    x, y = np.asarray(x, dtype=np.complex128), np.asarray(y, dtype=np.complex128)
    total = np.zeros(x.shape)
    for rate, weight in zip(lambdas, weights, strict=True):
        power = 0.5 * order + 1j * rate
        total = total + weight * np.abs(x**power - y**power) ** 2
    return total


def reflected_density(unit: NDArray, bandwidth: float, at: NDArray) -> NDArray[np.float64]:
    """The Gaussian density estimate on [0, 1]^d, every point mirrored at the edges, again and
    again; shape (len(at),)."""
    product = np.ones((len(at), len(unit)))
    for j in range(unit.shape[1]):
        one_d = np.zeros_like(product)
        for shift, sign in itertools.product((-4, -2, 0, 2, 4), (-1, 1)):
            gap = (at[:, None, j] - (shift + sign * unit[None, :, j])) / bandwidth
            one_d += np.exp(-0.5 * gap**2) / (np.sqrt(2 * np.pi) * bandwidth)
        product *= one_d
    return product.mean(axis=1)


def direct_embedding(
    unit: NDArray,
    bandwidth: float,
    floor: float,
    nodes: tuple[Sequence[float], Sequence[float]],
    indices: Sequence[Sequence[int]],
    at: NDArray,
    order: float = 1.0,
) -> NDArray[np.float64]:
    """A of one bag in the unit cube by integration over the points ``at``: O(n · n_e)."""
    density = np.maximum(reflected_density(unit, bandwidth, at), floor)
    functions = np.stack([product_function("cosine", alpha, at) for alpha in indices])
    parts = []
    for rate, weight in zip(*nodes, strict=True):
        power = np.sqrt(weight) * density.astype(complex) ** (0.5 * order + 1j * rate)
        parts.append(functions @ power.real / len(at))
        if rate != 0:
            parts.append(functions @ power.imag / len(at))
    return np.concatenate(parts)


def midpoints(n: int, n_dims: int) -> NDArray[np.float64]:
    """n^d evenly spaced points of the unit cube."""
    axis = (np.arange(n) + 0.5) / n
    return np.stack([g.ravel() for g in np.meshgrid(*[axis] * n_dims, indexing="ij")], axis=1)


def leave_one_out_bandwidth_score(unit: NDArray, bandwidth: float) -> float:
    """∫ p̂² − (2/n) Σ_i p̂^{−i}(x_i) of the reflected estimate (004, eq. 2.30)."""
    grid = midpoints({1: 2000, 2: 120}[unit.shape[1]], unit.shape[1])
    score = float((reflected_density(unit, bandwidth, grid) ** 2).mean())
    for i in range(len(unit)):
        others = np.delete(unit, i, axis=0)
        score -= 2 / len(unit) * float(reflected_density(others, bandwidth, unit[i : i + 1])[0])
    return score
