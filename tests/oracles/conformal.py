"""Intervals from folds by the definition: every model fitted by itself, all sums in one sorted row.

Barber, Candès, Ramdas and Tibshirani (2021), "Predictive inference with the jackknife+", §3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def ridge(z: Floats, y: Floats, alpha: float, weights: Floats) -> tuple[Floats, Floats]:
    """Coefficients (D, k) and intercept (k,), which is not penalised."""
    w = weights[:, None]
    z_mean, y_mean = (w * z).sum(axis=0) / w.sum(), (w * y).sum(axis=0) / w.sum()
    centred = z - z_mean
    matrix = centred.T @ (w * centred) + alpha * np.eye(z.shape[1])
    psi = np.linalg.solve(matrix, centred.T @ (w * (y - y_mean)))
    return psi, y_mean - z_mean @ psi


def intervals_by_folds(
    z: Floats,
    y: Floats,
    new: Floats,
    folds: NDArray[np.int64],
    alpha_per_weight: float,
    coverage: float,
    counted: NDArray[np.int64] | None = None,
    weights: Floats | None = None,
    scales: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Lower and upper ends (n_new, k) for features z (n, D), labels y (n, k), new (n_new, D).

    ``counted`` are the bags whose errors count; default all. ``scales`` are those of the bags
    (n, k, K) and of the new ones (n_new, k, K); default 1.
    """
    w = np.ones(len(z)) if weights is None else weights
    below, above = [], []
    for i in range(len(z)) if counted is None else counted:
        rest = folds != folds[i]
        psi, intercept = ridge(z[rest], y[rest], alpha_per_weight * w[rest].sum(), w[rest])
        error = np.abs(y[i] - (z[i] @ psi + intercept))
        if scales is not None:
            own, of_new = scales
            error = error / own[i, :, folds[i]] * of_new[:, :, folds[i]]
        below.append(new @ psi + intercept - error)
        above.append(new @ psi + intercept + error)
    m = len(below)
    lower, upper = np.sort(below, axis=0), np.sort(above, axis=0)
    rank = int(np.ceil((m + 1) * coverage - 1e-9))
    return lower[m - rank], upper[rank - 1]
