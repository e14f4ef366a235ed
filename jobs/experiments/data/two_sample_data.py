"""Pairs of sets of points that the experiments of 002 compare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SPACING = 10.0  # of the grid of blobs, in standard deviations of a round one


def blobs(rng: np.random.Generator, n: int, ratio: float) -> Floats:
    """Draw n points of 5 × 5 Gaussians, shape (n, 2) (002, §4.1).

    Variances are 1 and the correlation (ε − 1) / (ε + 1), so that the eigenvalues of the covariance
    have the ratio ε; 1 is round. The paper prints neither the spacing nor the direction.
    """
    correlation = (ratio - 1) / (ratio + 1)
    centres = SPACING * rng.integers(0, 5, size=(n, 2))
    covariance = [[1.0, correlation], [correlation, 1.0]]
    return centres + rng.multivariate_normal([0.0, 0.0], covariance, size=n)


def ring(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Draw n points of [−5, 5]² at 1 to 4 from its middle, and n elsewhere in it (002, §4.2)."""
    points = rng.uniform(-5, 5, size=(20 * n, 2))
    squares = (points**2).sum(axis=1)
    inside = (squares > 1) & (squares < 16)
    return points[inside][:n], points[~inside][:n]


def uniform(rng: np.random.Generator, n: int, d: int) -> tuple[Floats, Floats]:
    """Draw n points of [0, 0.95]^d and n of [0.95, 1]^d (002, §4.3)."""
    return rng.uniform(0, 0.95, size=(n, d)), rng.uniform(0.95, 1, size=(n, d))
