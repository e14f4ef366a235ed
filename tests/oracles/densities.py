"""Densities the slow way: functions one by one, thresholds by bisection, kernel estimates and
their leave-one-out scores as loops over pairs of points."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .series import product_function

IMAGES = range(-4, 5)  # reflections at both edges: enough for bandwidths up to a box


def density_by_loop(
    coefficients: Sequence[float],
    indices: Sequence[Sequence[int]],
    basis: str,
    box: Sequence[Sequence[float]],
    points: NDArray,
    threshold: float | None = None,
) -> NDArray[np.float64]:
    """p at points in the units of the data, one function after the other; zero outside."""
    lo, hi = np.array(box, dtype=np.float64).T
    values = np.zeros(len(points))
    for i, point in enumerate(np.asarray(points, dtype=np.float64)):
        if not ((point >= lo) & (point <= hi)).all():
            continue
        unit = ((point - lo) / (hi - lo))[None]
        for a, alpha in zip(coefficients, indices, strict=True):
            values[i] += a * product_function(basis, alpha, unit)[0]
        if threshold is not None:
            values[i] = max(values[i] - threshold, 0.0)
    return values / (hi - lo).prod()


def threshold_by_bisection(values: NDArray) -> float:
    """c with mean(max(values − c, 0)) = 1."""
    below, above = values.min() - 2.0, values.max()
    for _ in range(200):
        c = 0.5 * (below + above)
        if np.maximum(values - c, 0).mean() > 1:
            below = c
        else:
            above = c
    return 0.5 * (below + above)


def reflected_kernel(x: NDArray, y: NDArray, bandwidth: float) -> NDArray[np.float64]:
    """k_h(x, ·) at y, each a point of the unit cube: Gaussians at the mirror images of x."""
    value = np.float64(1.0)
    for a, b in zip(x, y, strict=True):
        one_d = 0.0
        for image, sign in itertools.product(IMAGES, (-1, 1)):
            gap = (b - (2 * image + sign * a)) / bandwidth
            one_d += np.exp(-0.5 * gap**2) / (np.sqrt(2 * np.pi) * bandwidth)
        value = value * one_d
    return value


def kernel_density_by_loop(unit: NDArray, at: NDArray, bandwidth: float) -> NDArray[np.float64]:
    """(1/n) Σ_i k_h(x_i, ·) at points of the unit cube (004, eq. 2.27)."""
    return np.array([np.mean([reflected_kernel(x, y, bandwidth) for x in unit]) for y in at])


def kernel_score_by_loop(unit: NDArray, bandwidth: float) -> float:
    """Ŝ_h of 004, eq. 2.31: ∫ p̂² as inner products of all pairs, each a Gaussian of bandwidth
    √2 h, over n², and the density without point i at point i."""
    n = len(unit)
    wider = np.sqrt(2) * bandwidth
    square = sum(reflected_kernel(x, y, wider) for x in unit for y in unit) / n**2
    left_out = 0.0
    for i in range(n):
        others = np.delete(unit, i, axis=0)
        left_out += kernel_density_by_loop(others, unit[i : i + 1], bandwidth)[0]
    return float(square - 2 / n * left_out)
