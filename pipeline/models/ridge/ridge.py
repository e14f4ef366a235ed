"""Solving (ZᵀZ + λI) ψ = ZᵀY for one λ or for the best of several, with an intercept.

Oliva 2018, eq. 3.19-3.20. The papers have no intercept. Here features and targets are centred,
which leaves the intercept unpenalised.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce

import numpy as np
import scipy.linalg

from ...core.arrays import Floats, Integers
from ...core.errors import DataError, warn
from ...execution.worker_threads import one_blas_thread
from .cholesky import cholesky, solve_by_factor
from .penalties import Path, Penalties, search, try_all
from .rows import RidgeRows
from .spectrum import SPECTRUM_FACTORS, Factors, ShiftedSystem, Spectrum, Truncated
from .summary import MeanSquaredError, Summary

ROWS_BYTES = 2**31  # memory that any process has for a fit from rows, even if sums would take less
FOLD_BYTES = 2**30  # solvers of all folds
PART_SIZE = 512  # rows, or features, of the part on which a search begins
# Fractions of the rows that must be left as degrees of freedom. Residuals of sums are differences,
# with a rounding of 1e-13 of the squares, which the score divides by the square of this fraction.
MIN_FREEDOM, MIN_FREEDOM_OF_SUMS = 1e-9, 1e-5
# Products whose rounding is a larger fraction of the trace are in float32.
FLOAT32_NOISE = 1e-10
# A factor serves as it is where the least eigenvalue is so many times the rounding. In double that
# leaves errors of 1e-7, also where rows are fewer than features, so that eigenvalues are surely 0.
# In float32, whose rounding is a hundredth of what is allowed for it, such penalties are in use.
SURE, SURE_OF_FEW, SURE_FLOAT32 = 1e4, 1e6, 1e-2


@dataclass(frozen=True)
class RidgeSolution:
    """coef (k, D), intercept (k,), and for a path the score of each λ tried.

    ``baseline_alpha`` is the penalty of a linear baseline, of a fit that has one.

    If targets are too large, coefficients are infinite; a caller that knows the targets' names
    refuses them, see `Outcome.check_finite`.
    """

    coef: Floats
    intercept: Floats
    alpha: float
    alphas: Floats
    scores: Floats
    baseline_alpha: float | None = None

    def in_units(self, exponents: Integers) -> tuple[Floats, Floats]:
        """Return ψ (D, k) and the intercept (k,) for targets in units 2^exponents, shape (k,)."""
        return np.ldexp(self.coef.T, -exponents), np.ldexp(self.intercept, -exponents)


def solve_bytes(n_features: int, is_path: bool, n_rows: int | None = None, n_parts: int = 1) -> int:
    """Return the memory of the statistics, or the rows, and of a solution for one λ, or a path.

    ``n_parts`` is 2 with a validation set, and one more than the folds with folds.
    """
    d, n, n_folds = n_features, n_rows, n_parts - 1 if n_parts > 2 else 0
    keeps_solvers = n_folds > 0 and _keep_solvers(n_folds, d if n is None else n)
    if n is not None:  # in double once more, and products, reflections and vectors
        of_parts = 2 * d * min(1, n_parts - 1) + (d if n_folds else 0)
        if keeps_solvers:
            of_parts += 2 * n_folds * (d + n)
        return 8 * n * (2 * d + (3 if is_path else 1) * n + of_parts)
    # packed statistics are half a square; a path adds reflections and vectors, folds the other ones
    n_halves = (6 if is_path else 2) + n_parts + (1 if n_folds else 0)
    return 4 * d * d * (n_halves + (7 * n_folds if keeps_solvers else 0))


def targets_bytes(
    n_features: int, n_targets: int, n_parts: int = 1, n_rows: int | None = None
) -> int:
    """Return the memory that targets take while a fit is solved.

    A part (all bags, those held out, or a fold) has its sums ZᵀY, or its rows of targets, and the
    sums of the other parts. Right sides, solutions, residuals and coefficients come once.
    """
    coefficients = 8 * n_targets * (n_features + 1)
    of_part = coefficients if n_rows is None else 8 * n_targets * n_rows
    return 4 * coefficients + (4 + 2 * n_parts) * of_part


def rows_serve(n_bags: int, n_features: int, is_path: bool) -> bool:
    """Return whether to solve from the rows of bags: they are few, and need no more memory.

    The answer depends on sizes alone, so that it is the same on any machine.
    """
    of_rows = solve_bytes(n_features, is_path, n_bags)
    most = max(ROWS_BYTES, solve_bytes(n_features, is_path))
    return n_bags <= n_features and of_rows <= most


def solve(summary: Summary, alpha: float, noise: float) -> RidgeSolution:
    """Return the ridge solution at one λ ≥ 0.

    λ = 0 is least squares; where the centred ZᵀZ is singular (numerically: eigenvalues below
    ``noise`` · trace(ZᵀZ), the size of its rounding errors) the solution of least
    norm. A penalty below the rounding leaves out the same directions.
    """
    return next(solve_each(summary, [alpha], noise))


def solve_each(summary: Summary, alphas: Sequence[float], noise: float) -> Iterator[RidgeSolution]:
    """Yield the ridge solution at each λ ≥ 0, see `solve`."""
    check_rows(summary)
    truncated = cache(lambda: Truncated(summary, noise))
    for alpha in alphas:
        with one_blas_thread():
            if alpha == 0:
                solved = _least_squares(summary, noise, truncated)
            else:
                solved = _solve_one(summary, alpha, noise, truncated)
        yield as_solution(summary, solved, alpha)


def solve_gcv(
    summary: Summary, penalties: Penalties, units: Floats | None = None, noise: float = 0.0
) -> RidgeSolution:
    """Return the λ of least generalised cross-validation score.

    GCV(λ) = (1/n) RSS(λ) / (1 − df(λ)/n)² with df = 1 + Σ e/(e + λ) (the intercept counts one).
    With weights n is how many are not 0, so that their unit does not matter, and RSS/n the
    weighted mean. With several targets one λ for all: each target's score is divided by its
    ``units``, shape (k,), by default its variance, and they are averaged. Penalties below
    ``noise`` · trace(ZᵀZ) leave out what `solve` leaves out.
    """
    check_rows(summary)
    summary = summary.scored()
    with one_blas_thread():
        solvers = _Solvers(summary, _solver(summary, penalties), noise)

        def score(alpha: float) -> float:
            return _gcv_score(summary, solvers.at(alpha), alpha, units)

        path = _path(summary, penalties, solvers.usual, score)
        return solvers.solution(path.best, path)


def solve_validation(
    train: Summary,
    held_out: Summary,
    penalties: Penalties,
    noise: float,
    units: Floats | None = None,
) -> RidgeSolution:
    """Return the λ of least error on held-out rows, see `score_validation`, fitted on all."""
    path = score_validation(train, held_out, penalties, noise, units)
    return _refitted(train, held_out, noise, path)


def score_validation(
    train: Summary,
    held_out: Summary,
    penalties: Penalties,
    noise: float,
    units: Floats | None = None,
) -> Path:
    """Return the errors of penalties on held-out rows, from the sums over these rows.

    With several targets each one's error is divided by its ``units``, by default its variance,
    and they are averaged.
    """
    check_held_out(held_out)
    held_out = held_out.in_units(np.maximum(held_out.exponents, train.exponents))
    mean_squared_error = held_out.judge()

    def error(fitted: RidgeSolution) -> float:
        squares = mean_squared_error(*fitted.in_units(held_out.exponents))
        return float(np.mean(relative_error(held_out, squares, units)))

    return _errors(train, penalties, noise, error)


def solve_folds(
    parts: Sequence[Summary],
    penalties: Penalties,
    noise: float,
    units: Floats | None = None,
    exponents: Integers | int = 0,
) -> RidgeSolution:
    """Return the λ of least error over folds, each predicted from the others, fitted on all.

    ``parts`` are of two folds at least. A fold's penalty is in proportion to the weight of the
    others. Errors are divided by ``units`` · 4^``exponents``, by default the variance of each
    target in all folds.
    """
    whole = reduce(operator.add, parts)
    check_rows(whole)
    if units is None:
        variance = whole.centred_yy() / whole.weight
        units, exponents = np.where(variance > 0, variance, 1.0), whole.exponents
    with one_blas_thread():
        folds = [_Fold.of(parts, j, penalties, noise) for j in range(len(parts))]

        def score(alpha: float) -> float:
            per_row = alpha / whole.weight
            return sum(fold.error(per_row, noise, units, exponents) for fold in folds)

        if all(fold.is_spectrum for fold in folds) or not penalties.searched:
            path = try_all(penalties, score)
        else:
            path = search(
                penalties, score, _start(parts, whole, penalties, noise, units, exponents)
            )
    scored = Path(path.alphas, path.scores / whole.weight)
    final = solve(whole, scored.best, noise)
    return replace(final, alphas=scored.alphas, scores=scored.scores)


def _start(
    parts: Sequence[Summary],
    whole: Summary,
    penalties: Penalties,
    noise: float,
    units: Floats,
    exponents: Integers | int,
) -> int:
    """Return where a search over folds begins: near what is given, or at the best of a part.

    Errors of groups have several valleys over the penalty, and a search goes down the nearest.
    """
    if penalties.near:
        return int(np.abs(np.log(penalties.values / penalties.near)).argmin())
    size = PART_SIZE // len(parts) if isinstance(whole, RidgeRows) else PART_SIZE
    few = [part.part(size) for part in parts]
    share = reduce(operator.add, few).size / whole.size
    scores = solve_folds(few, Penalties(penalties.values * share), noise, units, exponents).scores
    return len(scores) - 1 - int(np.argmin(scores[::-1]))  # of equal ones the largest


@dataclass(frozen=True, eq=False)
class _Fold:
    """The rows of a fold, and what they are predicted from.

    ``solvers`` are there where all folds' fit in memory; else each penalty is solved for anew.
    """

    parts: Sequence[Summary]
    fold: int
    solvers: _Solvers | None

    @property
    def is_spectrum(self) -> bool:
        """Whether all penalties cost about as much as one: not with more targets than features."""
        if self.solvers is None or not isinstance(self.solvers.usual, Spectrum):
            return False
        n_features, n_targets = self.solvers.usual.right_side.shape
        return bool(n_targets <= n_features)

    @classmethod
    def of(cls, parts: Sequence[Summary], fold: int, penalties: Penalties, noise: float) -> _Fold:
        made = cls(parts, fold, None)
        train = made.train
        if not _keep_solvers(len(parts), train.size):
            return made
        return replace(made, solvers=_Solvers(train, _solver(train, penalties), noise))

    @property
    def train(self) -> Summary:
        """The other folds, in one."""
        if self.solvers is not None:
            return self.solvers.summary
        return reduce(operator.add, [*self.parts[: self.fold], *self.parts[self.fold + 1 :]])

    @cached_property
    def held(self) -> Summary:
        """The fold, in units that serve all."""
        exponents = reduce(np.maximum, [part.exponents for part in self.parts])
        return self.parts[self.fold].in_units(exponents)

    @cached_property
    def _judge(self) -> MeanSquaredError:
        return self.held.judge()

    def error(self, alpha: float, noise: float, units: Floats, exponents: Integers | int) -> float:
        """Return the sum of the errors with a penalty per row."""
        train = self.train
        penalty = alpha * train.weight
        if self.solvers is None:
            fitted, judge = solve(train, penalty, noise), self.held.judge()
        else:
            fitted, judge = self.solvers.solution(penalty), self._judge
        squares = judge(*fitted.in_units(self.held.exponents))
        errors = relative_error(self.held, squares, units, exponents)
        return float(np.mean(errors)) * self.held.weight


def _keep_solvers(n_folds: int, size: int) -> bool:
    """Return whether the solvers of all folds are kept for all penalties."""
    return n_folds * 16 * size**2 <= FOLD_BYTES


def solve_judged(
    train: Summary,
    held_out: Summary,
    penalties: Penalties,
    noise: float,
    error: Callable[[RidgeSolution], float],
) -> RidgeSolution:
    """Return the λ whose solution on ``train`` has the least error, then fitted on all."""
    return _refitted(train, held_out, noise, _errors(train, penalties, noise, error))


def _errors(
    train: Summary,
    penalties: Penalties,
    noise: float,
    error: Callable[[RidgeSolution], float],
) -> Path:
    """Return the errors of solutions on ``train``."""
    check_rows(train)
    if not penalties.searched and len(penalties) <= SPECTRUM_FACTORS:
        return try_all(penalties, lambda alpha: error(solve(train, alpha, noise)))
    with one_blas_thread():
        solvers = _Solvers(train, _solver(train, penalties), noise)
        return _path(train, penalties, solvers.usual, lambda alpha: error(solvers.solution(alpha)))


def _refitted(train: Summary, held_out: Summary, noise: float, path: Path) -> RidgeSolution:
    final = solve(train + held_out, path.best, noise)
    return replace(final, alphas=path.alphas, scores=path.scores)


@dataclass(frozen=True, eq=False)
class _Solvers:
    """The usual solver of a summary, and one for penalties below the rounding of its sums."""

    summary: Summary
    usual: ShiftedSystem
    noise: float

    def at(self, alpha: float) -> ShiftedSystem:
        """Return the solver of a penalty."""
        bound = self.summary.rounding(self.noise)
        if self.summary.n_weighted <= self.summary.size or bound > FLOAT32_NOISE:
            bound = _sure(self.summary, self.noise)  # some eigenvalues are surely 0
        return self.usual if alpha >= bound * self.summary.trace else self._truncated

    def solution(self, alpha: float, path: Path | None = None) -> RidgeSolution:
        """Return the solution of a penalty, with the scores of the penalties tried."""
        solver = self.at(alpha)
        return as_solution(self.summary, solver.back(solver.solve(alpha)), alpha, path)

    @cached_property
    def _truncated(self) -> ShiftedSystem:
        return Truncated(self.summary, self.noise)


def _solver(summary: Summary, penalties: Penalties) -> ShiftedSystem:
    """Return factors if few penalties are tried and the problem is large, else a spectrum."""
    is_long = penalties.searched and summary.size > PART_SIZE
    return Factors(summary) if is_long else Spectrum(summary)


def _path(
    summary: Summary, penalties: Penalties, solver: ShiftedSystem, score: Callable[[float], float]
) -> Path:
    """Score the penalties: all of them, or only those near the best, located on a small part."""
    if isinstance(solver, Spectrum):
        return try_all(penalties, score)
    if penalties.near is not None:
        start = int(np.abs(np.log(penalties.values / penalties.near)).argmin())
        return search(penalties, score, start)
    part = summary.part(PART_SIZE)
    spectrum, share = Spectrum(part), part.size / summary.size
    scores = try_all(
        penalties.times(share), lambda alpha: _gcv_score(part, spectrum, alpha, None)
    ).scores
    best = len(scores) - 1 - int(np.argmin(scores[::-1]))  # of equal ones the largest
    return search(penalties, score, best)


def _gcv_score(
    summary: Summary, solver: ShiftedSystem, alpha: float, units: Floats | None
) -> float:
    if alpha < solver.rounding:
        return np.inf
    df, rounding = solver.degrees_of_freedom(alpha), 1e-6 * summary.size
    # negative eigenvalues, which come from rounding, may leave any number of degrees of freedom
    if not -rounding <= df <= summary.size + rounding:
        return np.inf
    rss, df = summary.residual_squares(solver.solve(alpha), solver.right_side, alpha, df)
    freedom = 1.0 - (1.0 + df) / summary.n_weighted
    if not freedom > (MIN_FREEDOM_OF_SUMS if _is_summed(summary) else MIN_FREEDOM):
        return np.inf
    return float(np.mean(relative_error(summary, rss / summary.weight, units)) / freedom**2)


def _least_squares(summary: Summary, noise: float, truncated: Callable[[], Truncated]) -> Floats:
    """Return the solution of least norm at λ = 0."""
    spectrum, bound = Spectrum(summary), noise * summary.trace
    if summary.is_graded and (spectrum.values <= bound).any():
        by_size = truncated()
        if np.count_nonzero(by_size.values) > np.count_nonzero(spectrum.values > bound):
            return by_size.back(by_size.solve(0.0))
    return spectrum.back(spectrum.least_norm(bound))


def _solve_one(
    summary: Summary, alpha: float, noise: float, truncated: Callable[[], Truncated]
) -> Floats:
    """Return the solution at one λ > 0, in a single array, apart from the summary."""
    bound = _sure(summary, noise)
    try:
        factor = cholesky(summary.matrix(alpha))
        if alpha >= bound * summary.trace or _least_eigenvalue(factor, summary) >= bound:
            return solve_by_factor(factor, summary.right_side())
        del factor
    except scipy.linalg.LinAlgError:
        pass
    if summary.rounding(noise) > FLOAT32_NOISE:
        warn(
            f"alpha = {alpha:g} is below the rounding of the float32 products; solving without "
            "the directions that rounding hides (precision='float64' resolves smaller ones)"
        )
    solver = truncated()
    return solver.back(solver.solve(alpha))


def _sure(summary: Summary, noise: float) -> float:
    """Return the fraction of the trace from which on penalties need no care."""
    noise = summary.rounding(noise)
    if not _is_summed(summary):  # coefficients are sums of rows, which hide null directions
        return noise
    if noise > FLOAT32_NOISE:
        return noise * SURE_FLOAT32
    return noise * (SURE_OF_FEW if summary.n_weighted <= summary.size else SURE)


def _is_summed(summary: Summary) -> bool:
    return not isinstance(getattr(summary, "left", summary), RidgeRows)


def _least_eigenvalue(factor: Floats, summary: Summary) -> float:
    """Estimate the least eigenvalue of LLᵀ, scaled to a diagonal of 1, relative to its trace.

    The estimate is LAPACK's, from few solutions with the factor; it is rather too small.
    """
    scaled = np.asfortranarray(factor / summary.sizes()[:, None])
    inverse_norm, _ = scipy.linalg.lapack.dpocon(scaled, 1.0, uplo="L")
    return float(inverse_norm) / len(factor)


def as_solution(
    summary: Summary, solved: Floats, alpha: float, path: Path | None = None
) -> RidgeSolution:
    """Return a solution for these rows in the targets' own units."""
    coef = summary.coefficients(solved)
    intercept = (summary.sum_y - summary.sum_z @ coef) / summary.weight
    with np.errstate(over="ignore"):  # refused where the target's name is known
        coef = np.ldexp(coef, summary.exponents)
        intercept = np.ldexp(intercept, summary.exponents)
    path = path or Path(np.array([float(alpha)]), np.full(1, np.nan))
    psi = np.ascontiguousarray(coef.T)
    return RidgeSolution(psi, intercept, float(alpha), path.alphas, path.scores)


def relative_error(
    rows: Summary, squares: Floats, units: Floats | None, exponents: Integers | int = 0
) -> Floats:
    """Divide squares by ``units`` · 4^``exponents``, or by the variance of each target."""
    if units is not None:
        scaled: Floats = np.ldexp(squares, 2 * (rows.exponents - exponents)) / units
        return scaled
    variance = rows.centred_yy() / rows.weight
    return squares / np.where(variance > 0, variance, 1.0)


def check_rows(summary: Summary) -> None:
    """Raise DataError if there is nothing to solve, or if features are not finite."""
    if summary.n == 0:
        raise DataError("no labelled bags to fit: every target is NaN (or held out)")
    if not summary.weight > 0:
        raise DataError("the weights of all labelled bags to fit are 0: there is nothing to fit")
    if not summary.is_finite:
        raise DataError(
            "features of the bags are not finite: choose a larger scale of the random features, "
            "or precision='float64'"
        )


def check_held_out(held_out: Summary) -> None:
    """Raise DataError if no bag is held out."""
    if held_out.n == 0:
        raise DataError("no labelled bag was held out for validation; hold out a larger fraction")
    if not held_out.weight > 0:
        raise DataError("the weights of all bags held out for validation are 0")
