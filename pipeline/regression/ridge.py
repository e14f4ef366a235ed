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
    """coef (k, D), intercept (k,), and for a path the score of each λ tried.

    Coefficients of targets too large for them are infinite; whoever knows the targets' names
    refuses them, see `Outcome.check_finite`.
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    alpha: float
    alphas: NDArray[np.float64]
    scores: NDArray[np.float64]


def default_alphas(n_rows: int) -> NDArray[np.float64]:
    """Return n · 10^−7 … n · 10 in half decades: trace(ZᵀZ) = n for paired random features."""
    return n_rows * 10.0**DEFAULT_EXPONENTS


def solve_bytes(n_features: int, is_path: bool) -> int:
    """Return the memory of a solution, its statistics included: for one λ, or a path of them."""
    # packed statistics are half a square; a path adds those held out, or reflections and vectors
    return n_features**2 * 8 * (7 if is_path else 3) // 2


def solve(statistics: RidgeStatistics, alpha: float, noise: float) -> RidgeSolution:
    """Return the ridge solution at one λ ≥ 0.

    λ = 0 is least squares; where the centred ZᵀZ is singular (numerically: eigenvalues below
    ``noise`` times the trace of ZᵀZ, which is what its rounding goes with) the solution of least
    norm.
    """
    check_rows(statistics)
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
    check_rows(statistics)
    grid = np.asarray(alphas, dtype=np.float64)
    spectrum = Spectrum(statistics)
    n = statistics.n
    scores = np.empty(len(grid))
    for i, alpha in enumerate(grid):
        freedom = 1.0 - (1.0 + spectrum.degrees_of_freedom(alpha)) / n
        rss = spectrum.residual_squares(alpha, statistics.centred_yy())
        error = np.mean(_relative_error(statistics, rss / n, units))
        scores[i] = error / freedom**2 if freedom > 1e-9 else np.inf
    best = least(grid, scores)
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
    check_rows(train)
    if held_out.n == 0:
        raise DataError("no labelled bag was held out for validation; hold out a larger fraction")
    held_out = held_out.in_units(np.maximum(held_out.exponents, train.exponents))
    gram = held_out.centred_gram()

    def error(fitted: RidgeSolution) -> float:
        squares = _mean_squared_error(held_out, gram, fitted)
        return float(np.mean(_relative_error(held_out, squares, units)))

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
    best = least(grid, scores)
    final = solve(train + held_out, best, noise)
    return RidgeSolution(final.coef, final.intercept, best, grid, scores)


def least(grid: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """Return the λ of least score.

    Raises
    ------
    DataError
        A score that is not a number.
    """
    if np.isnan(scores).any():
        raise DataError(
            f"the score of the penalty {grid[np.isnan(scores)][0]:g} is not a number: bring the "
            "targets to ordinary units (divide them by a constant), or give the penalty, alpha="
        )
    return float(grid[int(np.argmin(scores))])


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
    exponents = statistics.exponents
    with np.errstate(over="ignore"):  # refused where the target's name is known
        coef, intercept = np.ldexp(coef, exponents), np.ldexp(intercept, exponents)
    return RidgeSolution(np.ascontiguousarray(coef.T), intercept, alpha, alphas, scores)


def _mean_squared_error(
    rows: RidgeStatistics, gram: NDArray[np.float64], solution: RidgeSolution
) -> NDArray[np.float64]:
    """Mean squared error of a solution in the units of the rows that are judged, shape (k,).

    These are not smaller than those of the rows that were fitted.
    """
    psi = np.ldexp(solution.coef.T, -rows.exponents)
    intercept = np.ldexp(solution.intercept, -rows.exponents)
    quadratic = np.sum(psi * scipy.linalg.blas.dsymm(1.0, gram.T, psi, lower=1), axis=0)
    cross = np.sum(psi * rows.centred_cross(), axis=0)
    bias = (rows.sum_y - psi.T @ rows.sum_z) / rows.n - intercept
    return np.maximum(0.0, rows.centred_yy() - 2 * cross + quadratic) / rows.n + bias**2


def _relative_error(
    rows: RidgeStatistics, squares: NDArray[np.float64], units: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Divide squares in the rows' units by ``units``, or by the variance of each target."""
    if units is not None:
        return np.ldexp(squares, 2 * rows.exponents) / units
    variance = rows.centred_yy() / rows.n
    return squares / np.where(variance > 0, variance, 1.0)


def check_rows(statistics: RidgeStatistics) -> None:
    """Raise DataError where there is nothing to solve, or features that are not finite."""
    if statistics.n == 0:
        raise DataError("no labelled bags to fit: every target is NaN (or held out)")
    if not (np.isfinite(statistics.sum_z).all() and np.isfinite(statistics.diagonal).all()):
        raise DataError(
            "features of the bags are not finite: choose a larger scale of the random features, "
            "or precision='float64'"
        )
