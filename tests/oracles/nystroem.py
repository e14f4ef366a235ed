"""Nyström features by their definition: kernels pair by pair, and inverses in double."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gamma, kv

Floats = NDArray[np.float64]


def kernel_by_loop(a: NDArray, b: NDArray, name: str, scale: float, nu: float = 1.5) -> Floats:
    """k(a, b) of every pair of rows."""
    out = np.empty((len(a), len(b)))
    for i, x in enumerate(a.astype(np.float64)):
        for j, y in enumerate(b.astype(np.float64)):
            r = float(np.sqrt(((x - y) ** 2).sum())) / scale
            if name == "gaussian":
                out[i, j] = np.exp(-(r**2) / 2)
            elif name == "laplacian":
                out[i, j] = np.exp(-np.abs(x - y).sum() / scale)
            elif name == "cauchy":
                out[i, j] = 1 / (1 + r**2)
            else:
                t = np.sqrt(2 * nu) * r
                out[i, j] = 2 ** (1 - nu) / gamma(nu) * t**nu * kv(nu, t) if t > 0 else 1.0
    return out


def inner_products(
    rows: NDArray, landmarks: NDArray, name: str, scale: float, nu: float = 1.5
) -> Floats:
    """k(a, L) (k(L, L) + εI)⁻¹ k(L, b), with ε 1e-7 of the trace."""
    inner = kernel_by_loop(landmarks, landmarks, name, scale, nu)
    inner += 1e-7 * np.trace(inner) * np.eye(len(inner))
    beside = kernel_by_loop(rows, landmarks, name, scale, nu)
    products: Floats = beside @ np.linalg.solve(inner, beside.T)
    return products
