"""Mean maps and maximum mean discrepancies the slow way: numpy's sines, sums over all pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gamma, kv

from .series import confined, to_unit

CHECK_MMD = {  # (biased, unbiased) MMD² of `check_samples`, Gaussian kernel of that width
    0.5: (0.1763539318, 0.1261937895),
    1.0: (0.0530276874, 0.0134723850),
}


def check_samples() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """X_ij = sin(ij), i ≤ 40, and Y_ij = cos(0.7 ij) + 0.3, i ≤ 30, j ≤ 3."""
    i, j = np.arange(1, 41)[:, None], np.arange(1, 4)
    return np.sin(i * j), np.cos(0.7 * i[:30] * j) + 0.3


def kernel(name: str, x: NDArray, y: NDArray, width: float, nu: float = 1.5) -> NDArray[np.float64]:
    """k(x, y) for every pair of rows, from its definition."""
    delta = x[:, None, :] - y[None, :, :]
    if name == "gaussian":
        return np.exp(-(delta**2).sum(axis=-1) / (2 * width**2))
    if name == "laplacian":
        return np.exp(-np.abs(delta).sum(axis=-1) / width)
    r = np.sqrt(2 * nu * (delta**2).sum(axis=-1)) / width
    safe = np.where(r > 0, r, 1.0)
    return np.where(r > 0, 2 ** (1 - nu) / gamma(nu) * safe**nu * kv(nu, safe), 1.0)


def mmd_squared_by_pairs(k_xx: NDArray, k_yy: NDArray, k_xy: NDArray, unbiased: bool) -> float:
    """Biased or unbiased MMD² from the kernel matrices of two samples, k(x, x) = 1."""
    m, n = k_xy.shape
    if unbiased:
        within = (k_xx.sum() - np.trace(k_xx)) / (m * (m - 1))
        within += (k_yy.sum() - np.trace(k_yy)) / (n * (n - 1))
    else:
        within = k_xx.mean() + k_yy.mean()
    return float(within - 2 * k_xy.mean())


def mean_map_by_loop(
    bags: Sequence[NDArray],
    frequencies: NDArray,
    lo: Sequence[float],
    hi: Sequence[float],
    mode: str = "clip",
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Means of √(2/D) [sin ωᵀx, cos ωᵀx] over each bag, and its points outside the box."""
    means, n_outside = [], []
    for bag in bags:
        selected, outside = confined(to_unit(bag, lo, hi), mode)
        phases = selected @ frequencies
        means.append(np.hstack([np.sin(phases), np.cos(phases)]).mean(axis=0))
        n_outside.append(outside)
    return np.array(means) / np.sqrt(frequencies.shape[1]), np.array(n_outside)


def phases_of(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each pair of a sine and a cosine divided by its length, all pairs together of length 1."""
    n_pairs = means.shape[1] // 2
    pairs = np.stack([means[:, :n_pairs], means[:, n_pairs:]])
    return np.hstack(list(pairs / np.linalg.norm(pairs, axis=0))) / np.sqrt(n_pairs)
