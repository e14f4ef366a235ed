"""The kernel smoother as it is written down: one training bag after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def smooth(
    training: NDArray, targets: NDArray, queries: NDArray, bandwidth: float, own: bool = False
) -> NDArray[np.float64]:
    """Σ w_i y_i / Σ w_i, w_i = exp(−‖a_i − q‖² / 2h²); with ``own`` query j leaves row j out."""
    out = []
    for j, query in enumerate(queries.astype(np.float64)):
        numerator, denominator = np.zeros(targets.shape[1]), 0.0
        exponents = [
            -np.sum((row.astype(np.float64) - query) ** 2) / (2 * bandwidth**2) for row in training
        ]
        largest = max(e for i, e in enumerate(exponents) if not (own and i == j))
        for i, exponent in enumerate(exponents):
            if own and i == j:
                continue
            weight = np.exp(exponent - largest)
            numerator += weight * targets[i]
            denominator += weight
        out.append(numerator / denominator)
    return np.array(out)


def leave_one_out_errors(
    training: NDArray, targets: NDArray, bandwidths: NDArray
) -> NDArray[np.float64]:
    """Squared errors of leave-one-out predictions, summed over targets, mean over rows."""
    return np.array(
        [
            ((smooth(training, targets, training, h, own=True) - targets) ** 2).sum(axis=1).mean()
            for h in bandwidths
        ]
    )
