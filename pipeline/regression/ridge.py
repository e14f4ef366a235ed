"""Solving (ZᵀZ + λI) ψ = ZᵀY from statistics, for one λ or a path, with the intercept.

004, eq. 3.19-3.20; the papers have no intercept, here features and targets are centred, which
leaves the intercept unpenalised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..errors import DataError
from .spectrum import Spectrum
from .statistics import RidgeStatistics

logger = logging.getLogger(__name__)

DEFAULT_EXPONENTS = np.arange(-7.0, 1.5, 0.5)


@dataclass(frozen=True)
class RidgeSolution:
    """coef (k, D), intercept (k,), and for a path the score of each λ tried."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    alpha: float
    alphas: NDArray[np.float64]
    scores: NDArray[np.float64]


def default_alphas(n_rows: int) -> NDArray[np.float64]:
    """Return n · 10^−7 … n · 10 in half decades: trace(ZᵀZ) = n for paired random features."""
    return n_rows * 10.0**DEFAULT_EXPONENTS


def solve(statistics: RidgeStatistics, alpha: float, noise: float) -> RidgeSolution:
    """Return the ridge solution at one λ ≥ 0.

    λ = 0 is least squares; where the centred ZᵀZ is singular (numerically: eigenvalues below
    ``noise`` times the trace of ZᵀZ, which is what its rounding goes with) the solution of least
    norm.
    """
    _check_rows(statistics)
    alphas, scores = np.array([float(alpha)]), np.full(1, np.nan)
    if alpha == 0:
        coef = Spectrum(statistics).least_norm(noise * statistics.trace)
    else:
        coef = _cholesky(statistics, alpha)
    return _solution(statistics, coef, float(alpha), alphas, scores)


def solve_gcv(
    statistics: RidgeStatistics,
    alphas: Sequence[float] | NDArray[np.float64],
    units: NDArray[np.float64] | None = None,
) -> RidgeSolution:
    """Return the λ of least generalised cross-validation score, from one eigendecomposition.

    GCV(λ) = (1/n) RSS(λ) / (1 − df(λ)/n)² with df = 1 + Σ e/(e + λ) (the intercept counts one).
    With several targets one λ for all: each target's score is divided by its ``units``, shape
    (k,), by default its variance, and they are averaged.
    """
    _check_rows(statistics)
    grid = np.asarray(alphas, dtype=np.float64)
    spectrum = Spectrum(statistics)
    n = statistics.n
    units = _target_variance(statistics) if units is None else units
    scores = np.empty(len(grid))
    for i, alpha in enumerate(grid):
        freedom = 1.0 - (1.0 + spectrum.degrees_of_freedom(alpha)) / n
        rss = spectrum.residual_squares(alpha, statistics.centred_yy())
        scores[i] = np.mean(rss / n / units) / freedom**2 if freedom > 1e-9 else np.inf
    best = float(grid[int(np.argmin(scores))])
    return _solution(statistics, spectrum.solve(best), best, grid, scores)


def solve_validation(
    train: RidgeStatistics,
    held_out: RidgeStatistics,
    alphas: Sequence[float] | NDArray[np.float64],
    noise: float,
    units: NDArray[np.float64] | None = None,
) -> RidgeSolution:
    """Return the λ of least error on held-out rows, from their own statistics, then fitted on all.

    With several targets each one's error is divided by its ``units``, by default its variance,
    and they are averaged.
    """
    _check_rows(train)
    if held_out.n == 0:
        raise DataError("no labelled bag was held out for validation; hold out a larger fraction")
    units = _target_variance(held_out) if units is None else units
    gram = held_out.centred_gram()

    def error(fitted: RidgeSolution) -> float:
        return float(np.mean(_mean_squared_error(held_out, gram, fitted) / units))

    return solve_judged(train, held_out, alphas, noise, error)


def solve_judged(
    train: RidgeStatistics,
    held_out: RidgeStatistics,
    alphas: Sequence[float] | NDArray[np.float64],
    noise: float,
    error: Callable[[RidgeSolution], float],
) -> RidgeSolution:
    """Return the λ whose solution on ``train`` has the least error, then fitted on all."""
    grid = np.asarray(alphas, dtype=np.float64)
    scores = np.array([error(solve(train, float(alpha), noise)) for alpha in grid])
    best = float(grid[int(np.argmin(scores))])
    final = solve(train + held_out, best, noise)
    return RidgeSolution(final.coef, final.intercept, best, grid, scores)


def _cholesky(statistics: RidgeStatistics, alpha: float) -> NDArray[np.float64]:
    try:
        factor = scipy.linalg.cho_factor(
            statistics.centred_gram(alpha).T, lower=True, overwrite_a=True, check_finite=False
        )
        solved: NDArray[np.float64] = scipy.linalg.cho_solve(
            factor, statistics.centred_cross(), check_finite=False
        )
        return solved
    except scipy.linalg.LinAlgError:
        logger.warning(
            "alpha = %g is below the rounding of the float32 products; solving with the "
            "eigenvalues clipped at zero (precision='float64' resolves smaller ones)",
            alpha,
        )
        return Spectrum(statistics).solve(alpha)


def _solution(
    statistics: RidgeStatistics,
    coef: NDArray[np.float64],
    alpha: float,
    alphas: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> RidgeSolution:
    intercept = (statistics.sum_y - statistics.sum_z @ coef) / statistics.n
    return RidgeSolution(np.ascontiguousarray(coef.T), intercept, alpha, alphas, scores)


def _mean_squared_error(
    rows: RidgeStatistics, gram: NDArray[np.float64], solution: RidgeSolution
) -> NDArray[np.float64]:
    """Mean squared error of a solution on rows known by their statistics, shape (k,)."""
    psi = solution.coef.T
    quadratic = np.sum(psi * scipy.linalg.blas.dsymm(1.0, gram.T, psi, lower=1), axis=0)
    cross = np.sum(psi * rows.centred_cross(), axis=0)
    bias = (rows.sum_y - psi.T @ rows.sum_z) / rows.n - solution.intercept
    return np.maximum(0.0, rows.centred_yy() - 2 * cross + quadratic) / rows.n + bias**2


def _target_variance(statistics: RidgeStatistics) -> NDArray[np.float64]:
    variance = statistics.centred_yy() / statistics.n
    return np.where(variance > 0, variance, 1.0)


def _check_rows(statistics: RidgeStatistics) -> None:
    if statistics.n == 0:
        raise DataError("no labelled bags to fit: every target is NaN (or held out)")
