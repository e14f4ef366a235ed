"""Statistics of tests, the slow way: loops over pairs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
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


def golden_samples() -> tuple[NDArray, NDArray]:
    """X_ij = sin(ij), i ≤ 40, j ≤ 3, and Y_ij = cos(.7 ij) + .3, i ≤ 30."""
    i, j = np.arange(1, 41)[:, None], np.arange(1, 4)
    return np.sin(i * j), np.cos(0.7 * i[:30] * j) + 0.3
