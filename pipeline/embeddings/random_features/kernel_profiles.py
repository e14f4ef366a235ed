"""Closed forms of kernels with k(x, x) = 1, as functions of distances over the kernel's width."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gamma, kv

KERNELS_OF_DISTANCES = ("gaussian", "laplacian", "matern", "cauchy")
LAPLACIAN = "laplacian"  # the kernel of L1 distances


def kernel_profile(name: str, distances: NDArray[Any], nu: float) -> NDArray[Any]:
    """Return kernel values, in place where that is possible.

    Parameters
    ----------
    name : {"gaussian", "laplacian", "matern", "cauchy"}
        exp(−r² / 2), exp(−‖Δ‖₁), Matérn's of ν and length 1, or 1 / (1 + r²).
    distances : array
        r², squares of Euclidean distances; of the Laplacian ‖Δ‖₁. Overwritten.
    nu : float ≥ ½
        ν of the Matérn kernel.
    """
    if name == LAPLACIAN:
        np.negative(distances, out=distances)
        np.exp(distances, out=distances)
        return distances
    if name == "gaussian":
        distances *= -0.5
        np.exp(distances, out=distances)
        return distances
    if name == "cauchy":
        distances += 1
        np.reciprocal(distances, out=distances)
        return distances
    distances *= 2 * nu
    return _matern(np.sqrt(distances, out=distances), nu)


def _matern(r: NDArray[Any], nu: float) -> NDArray[Any]:
    """Return 2^{1−ν} / Γ(ν) · r^ν K_ν(r)."""
    values: NDArray[Any]
    if nu == 0.5:
        values = np.exp(-r)
        return values
    if nu == 1.5:
        values = (1 + r) * np.exp(-r)
        return values
    if nu == 2.5:
        values = (1 + r + r**2 / 3) * np.exp(-r)
        return values
    near = r < 1e-10  # where r^ν K_ν(r) is 0 · ∞
    far = np.where(near, 1.0, r)
    values = 2 ** (1 - nu) / gamma(nu) * far**nu * kv(nu, far)
    return np.where(near, 1.0, values).astype(r.dtype, copy=False)
