"""Statistics of tests, the slow way: loops over pairs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gamma, kv

PairKernel = Callable[[NDArray, NDArray], float]


def kernel_by_formula(name: str, bandwidth: float, nu: float = 1.5) -> PairKernel:
    """The kernel of two points."""

    def value(x: NDArray, y: NDArray) -> float:
        if name == "gaussian":
            return math.exp(-(math.dist(x, y) ** 2) / (2 * bandwidth**2))
        if name == "laplacian":
            return math.exp(-sum(abs(a - b) for a, b in zip(x, y, strict=True)) / bandwidth)
        r = math.sqrt(2 * nu) * math.dist(x, y) / bandwidth
        return 1.0 if r == 0 else float(2 ** (1 - nu) / gamma(nu) * r**nu * kv(nu, r))

    return value


def mmd_by_loop(X: NDArray, Y: NDArray, kernel: PairKernel) -> tuple[float, float]:
    """MMD_b² and MMD_u², pair by pair (002, eq. 2 and 13)."""
    m, n = len(X), len(Y)
    own = [[kernel(a, b) for b in X] for a in X]
    other = [[kernel(a, b) for b in Y] for a in Y]
    between = 2 * sum(kernel(a, b) for a in X for b in Y) / (m * n)
    biased = np.sum(own) / m**2 + np.sum(other) / n**2 - between
    unbiased = -between
    for matrix, size in ((own, m), (other, n)):
        pairs = [matrix[i][j] for i in range(size) for j in range(size) if i != j]
        unbiased += sum(pairs) / (size * (size - 1))
    return float(biased), float(unbiased)


def linear_by_loop(X: NDArray, Y: NDArray, kernel: PairKernel) -> NDArray:
    """h of non-overlapping quadruples (003)."""
    n = min(len(X), len(Y)) // 2
    return np.array([
        kernel(X[2 * i], X[2 * i + 1]) + kernel(Y[2 * i], Y[2 * i + 1])
        - kernel(X[2 * i], Y[2 * i + 1]) - kernel(X[2 * i + 1], Y[2 * i])
        for i in range(n)
    ])  # fmt: skip


def circular_discrepancies(X: NDArray, Y: NDArray, frequencies: NDArray) -> tuple[float, float]:
    """MMD_b² and MMD_u² by sinusoids that are added one by one (002, Algorithm 1)."""
    biased, squares = 0.0, [0.0, 0.0]
    for w in frequencies.T:
        amplitudes, angles = [], []
        for points in (X, Y):
            A, theta = 0.0, 0.0
            for t in points @ w:
                s = A * math.sin(theta) + math.sin(t)
                c = A * math.cos(theta) + math.cos(t)
                A, theta = math.hypot(s, c), math.atan2(s, c)
            amplitudes.append(A / len(points))
            angles.append(theta)
        (A, B), (u, v) = amplitudes, angles
        biased += A**2 + B**2 - 2 * A * B * math.cos(u - v)
        squares = [squares[0] + A**2, squares[1] + B**2]
    L, m, n = frequencies.shape[1], len(X), len(Y)
    own = squares[0] / L / (m - 1) + squares[1] / L / (n - 1)
    return biased / L, biased / L + own - (m + n - 2) / ((m - 1) * (n - 1))


def hotelling_by_loop(first: NDArray, second: NDArray) -> float:
    """Δᵀ (S_x / n_x + S_y / n_y)⁻¹ Δ of the features of two samples."""
    gap = first.mean(axis=0) - second.mean(axis=0)
    joint = sum(np.cov(z.T, ddof=1) / len(z) for z in (first, second))
    return float(gap @ np.linalg.solve(np.atleast_2d(joint), gap))


def hotelling_shares(first: NDArray, second: NDArray) -> tuple[list[float], NDArray]:
    """Δ_j and Σ_k Δ_j (S_x / n_x + S_y / n_y)⁻¹_jk Δ_k of each feature."""
    gaps = [float(x.mean() - y.mean()) for x, y in zip(first.T, second.T, strict=True)]
    inverse = np.linalg.inv(sum(np.atleast_2d(np.cov(z.T)) / len(z) for z in (first, second)))
    J = range(len(gaps))
    return gaps, np.array([sum(gaps[j] * inverse[j, k] * gaps[k] for k in J) for j in J])


def hotelling_p_value(first: NDArray, second: NDArray) -> float:
    """T² with one covariance for both samples and a ridge of a hundredth, as a scaled F."""
    m, n, J = len(first), len(second), first.shape[1]
    own = [np.atleast_2d(np.cov(z.T, ddof=1)) * (len(z) - 1) for z in (first, second)]
    joint = (own[0] + own[1]) / (m + n - 2) * (1 / m + 1 / n)
    ridge = np.trace(joint) / J / 100
    gap = first.mean(axis=0) - second.mean(axis=0)
    value = gap @ np.linalg.inv(joint + ridge * np.eye(J)) @ gap
    shares = np.linalg.eigvalsh(joint)
    shares = shares / (shares + ridge)
    k, nu = shares.sum() ** 2 / (shares**2).sum(), m + n - 2
    f = value / ((shares**2).sum() / shares.sum()) * (nu - k + 1) / (nu * k)
    return float(stats.f.sf(f, k, nu - k + 1))
