"""Learnt frequencies by their definition: a multivariate t, and one proposal after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.stats import multivariate_t

Floats = NDArray[np.float64]

SHAPE, RATE = 1e-3, 1e-3  # a₀ and b₀


def features_by_loop(rows: Floats, omega: Floats) -> Floats:
    """√(1/m) [sin ωᵀx; cos ωᵀx], each row and frequency by itself; ω in rows (m, d)."""
    out = np.empty((len(rows), 2 * len(omega)))
    for i, x in enumerate(rows):
        for j, w in enumerate(omega):
            out[i, j], out[i, j + len(omega)] = np.sin(w @ x), np.cos(w @ x)
    return out / np.sqrt(len(omega))


def log_evidence(rows: Floats, targets: Floats, omega: Floats, penalty: float) -> float:
    """Log density of contrasts of the targets (n, q), of variance 1, which have no intercept."""
    contrasts = helmert(len(rows))
    z = contrasts @ features_by_loop(rows, omega)
    shape = RATE / SHAPE * (np.eye(len(z)) + z @ z.T / penalty)
    return sum(
        float(multivariate_t.logpdf(contrasts @ (y / y.std()), None, shape, 2 * SHAPE))
        for y in targets.T
    )


def metropolis_hastings(
    rows: Floats,
    targets: Floats,
    omega: Floats,
    proposed: Floats,
    penalty: float,
    log_chances: Floats,
) -> NDArray[np.bool_]:
    """Decide of each frequency in turn, with a pass over all rows for each."""
    omega, taken = omega.copy(), np.zeros(len(omega), bool)
    before = log_evidence(rows, targets, omega, penalty)
    for j, new in enumerate(proposed):
        other = omega.copy()
        other[j] = new
        after = log_evidence(rows, targets, other, penalty)
        if log_chances[j] < after - before:
            omega, before, taken[j] = other, after, True
    return taken
