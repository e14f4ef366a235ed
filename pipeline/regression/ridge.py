"""Solving (ZᵀZ + λI) ψ = ZᵀY from what is known of rows, for one λ or the best, with the intercept.

004, eq. 3.19-3.20; the papers have no intercept, here features and targets are centred, which
leaves the intercept unpenalised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..errors import DataError
from .spectrum import SPECTRUM_FACTORS, Solver, Spectrum
from .summary import Floats, Summary

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


def solve_bytes(n_features: int, is_path: bool, n_rows: int | None = None) -> int:
    """Return the memory of a solution for one λ, or a path, and of the statistics, or the rows."""
    if n_rows is not None:  # in double once more, and products, reflections and vectors
        return 8 * n_rows * (2 * n_features + (3 if is_path else 1) * n_rows)
    # packed statistics are half a square; a path adds those held out, or reflections and vectors
    return n_features**2 * 8 * (7 if is_path else 3) // 2


def solve(summary: Summary, alpha: float, noise: float) -> RidgeSolution:
    """Return the ridge solution at one λ ≥ 0.

    λ = 0 is least squares; where the centred ZᵀZ is singular (numerically: eigenvalues below
    ``noise`` times the trace of ZᵀZ, which is what its rounding goes with) the solution of least
    norm.
    """
    check_rows(summary)
    if alpha == 0:
        spectrum = Spectrum(summary)
        solved = spectrum.back(spectrum.least_norm(noise * summary.trace))
    else:
        solved = _solve_one(summary, alpha)
    return _solution(summary, solved, alpha, np.array([float(alpha)]), np.full(1, np.nan))


def solve_gcv(
    summary: Summary,
    alphas: Sequence[float] | NDArray[np.float64],
    units: NDArray[np.float64] | None = None,
) -> RidgeSolution:
    """Return the λ of least generalised cross-validation score.

    GCV(λ) = (1/n) RSS(λ) / (1 − df(λ)/n)² with df = 1 + Σ e/(e + λ) (the intercept counts one).
    With several targets one λ for all: each target's score is divided by its ``units``, shape
    (k,), by default its variance, and they are averaged.
    """
    check_rows(summary)
    grid = np.asarray(alphas, dtype=np.float64)
    solver = Spectrum(summary)
    scores = np.array([_gcv_score(summary, solver, float(alpha), units) for alpha in grid])
    best = least(grid, scores)
    return _solution(summary, solver.back(solver.solve(best)), best, grid, scores)


def solve_validation(
    train: Summary,
    held_out: Summary,
    alphas: Sequence[float] | NDArray[np.float64],
    noise: float,
    units: NDArray[np.float64] | None = None,
) -> RidgeSolution:
    """Return the λ of least error on held-out rows, see `score_validation`, fitted on all."""
    scores = score_validation(train, held_out, alphas, noise, units)
    return _refitted(train, held_out, alphas, noise, scores)


def score_validation(
    train: Summary,
    held_out: Summary,
    alphas: Sequence[float] | NDArray[np.float64],
    noise: float,
    units: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the error of each λ on held-out rows, from what is known of these.

    With several targets each one's error is divided by its ``units``, by default its variance,
    and they are averaged.
    """
    if held_out.n == 0:
        raise DataError("no labelled bag was held out for validation; hold out a larger fraction")
    held_out = held_out.in_units(np.maximum(held_out.exponents, train.exponents))
    mean_squared_error = held_out.judge()

    def error(fitted: RidgeSolution) -> float:
        psi = np.ldexp(fitted.coef.T, -held_out.exponents)
        squares = mean_squared_error(psi, np.ldexp(fitted.intercept, -held_out.exponents))
        return float(np.mean(_relative_error(held_out, squares, units)))

    return _errors(train, alphas, noise, error)


def solve_judged(
    train: Summary,
    held_out: Summary,
    alphas: Sequence[float] | NDArray[np.float64],
    noise: float,
    error: Callable[[RidgeSolution], float],
) -> RidgeSolution:
    """Return the λ whose solution on ``train`` has the least error, then fitted on all."""
    return _refitted(train, held_out, alphas, noise, _errors(train, alphas, noise, error))


def _errors(
    train: Summary,
    alphas: Sequence[float] | NDArray[np.float64],
    noise: float,
    error: Callable[[RidgeSolution], float],
) -> NDArray[np.float64]:
    """Return the error of the solution at each λ: all from one spectrum where that is cheaper."""
    check_rows(train)
    if len(alphas) <= SPECTRUM_FACTORS:
        return np.array([error(solve(train, float(alpha), noise)) for alpha in alphas])
    spectrum = Spectrum(train)
    scores = []
    for alpha in alphas:
        solved = spectrum.back(spectrum.solve(float(alpha)))
        scores.append(error(_solution(train, solved, float(alpha), alphas, np.empty(0))))
    return np.array(scores)


def _refitted(
    train: Summary,
    held_out: Summary,
    alphas: Sequence[float] | NDArray[np.float64],
    noise: float,
    scores: NDArray[np.float64],
) -> RidgeSolution:
    grid = np.asarray(alphas, dtype=np.float64)
    final = solve(train + held_out, least(grid, scores), noise)
    return replace(final, alphas=grid, scores=scores)


def _gcv_score(
    summary: Summary, solver: Solver, alpha: float, units: NDArray[np.float64] | None
) -> float:
    n = summary.n
    freedom = 1.0 - (1.0 + solver.degrees_of_freedom(alpha)) / n
    if not freedom > 1e-9:
        return np.inf
    rss = summary.residual_squares(solver.solve(alpha), solver.right_side, alpha)
    return float(np.mean(_relative_error(summary, rss / n, units)) / freedom**2)


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


def _solve_one(summary: Summary, alpha: float) -> Floats:
    """Return the solution at one λ > 0, in a single array beside the summary."""
    try:
        factor = scipy.linalg.cho_factor(
            summary.matrix(alpha), lower=True, overwrite_a=True, check_finite=False
        )
        solved: Floats = scipy.linalg.cho_solve(factor, summary.right_side(), check_finite=False)
        return solved
    except scipy.linalg.LinAlgError:
        logger.warning(
            "alpha = %g is below the rounding of the float32 products; solving with the "
            "eigenvalues clipped at zero (precision='float64' resolves smaller ones)",
            alpha,
        )
        spectrum = Spectrum(summary)
        return spectrum.back(spectrum.solve(alpha))


def _solution(
    summary: Summary,
    solved: Floats,
    alpha: float,
    alphas: Sequence[float] | NDArray[np.float64],
    scores: NDArray[np.float64],
) -> RidgeSolution:
    coef = summary.coefficients(solved)
    intercept = (summary.sum_y - summary.sum_z @ coef) / summary.n
    with np.errstate(over="ignore"):  # refused where the target's name is known
        coef = np.ldexp(coef, summary.exponents)
        intercept = np.ldexp(intercept, summary.exponents)
    psi = np.ascontiguousarray(coef.T)
    return RidgeSolution(psi, intercept, float(alpha), np.asarray(alphas, np.float64), scores)


def _relative_error(
    rows: Summary, squares: NDArray[np.float64], units: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Divide squares in the rows' units by ``units``, or by the variance of each target."""
    if units is not None:
        return np.ldexp(squares, 2 * rows.exponents) / units
    variance = rows.centred_yy() / rows.n
    return squares / np.where(variance > 0, variance, 1.0)


def check_rows(summary: Summary) -> None:
    """Raise DataError where there is nothing to solve, or features that are not finite."""
    if summary.n == 0:
        raise DataError("no labelled bags to fit: every target is NaN (or held out)")
    if not summary.is_finite:
        raise DataError(
            "features of the bags are not finite: choose a larger scale of the random features, "
            "or precision='float64'"
        )
