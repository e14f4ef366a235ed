"""Random Fourier features by numpy's sine and cosine."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray


def features(embeddings: NDArray, frequencies: NDArray) -> NDArray[np.float64]:
    """√(2/D) [sin(ωᵀa), cos(ωᵀa)] in double precision, shape (n, 2 · n_frequencies)."""
    phases = embeddings.astype(np.float64) @ frequencies.astype(np.float64)
    return np.hstack([np.sin(phases), np.cos(phases)]) / np.sqrt(frequencies.shape[1])


def gaussian_kernel(a: NDArray, b: NDArray, scale: float) -> NDArray[np.float64]:
    """exp(−‖a − b‖² / 2σ²) for every pair of rows."""
    squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1)
    return np.exp(-squares / (2 * scale**2))


def paired_variance(delta: NDArray, scale: float, n_features: int) -> NDArray[np.float64]:
    """(1/D) [1 + k(2Δ) − 2 k(Δ)²]: of z(x)ᵀz(y) over the draw of D paired features."""
    squares = (delta**2).sum(axis=-1)
    k, k_double = np.exp(-squares / (2 * scale**2)), np.exp(-4 * squares / (2 * scale**2))
    return (1 + k_double - 2 * k**2) / n_features


def median_distance_by_loop(rows: NDArray) -> float:
    """The median over all pairs of rows of their distance."""
    return float(np.median([np.linalg.norm(a - b) for a, b in itertools.combinations(rows, 2)]))
