"""Ridge regression together with the columns of a baseline, which λ does not penalise.

A baseline is linear in columns a, next to the features z. For any λ, the problem that remains
without the part of the baseline is solved. It has D columns, as without a baseline. The solution
has coefficients of both.

"linear": ‖y − Zψ − Aβ‖² + λ‖ψ‖² + λ₀‖β‖². With P = I − A(AᵀA + λ₀I)⁻¹Aᵀ of centred columns that
is (ZᵀPZ + λI) ψ = ZᵀPy and β = (AᵀA + λ₀I)⁻¹Aᵀ(y − Zψ) (Wahba 1990, ch. 1, for λ₀ = 0). Both are
solved together: Z loses to A what y loses, where a second regression on the residuals of a first
one would be biased towards 0. λ₀ is not 0, because a long embedding may have as many columns as
there are bags. It is the best penalty of a ridge on A alone. If A alone has no predictive power, λ₀
is large, and the baseline shrinks to zero. λ is chosen by generalised cross-validation of both
parts: their residuals are P(y − Zψ) with PP = P − λ₀WᵀW, W = (AᵀA + λ₀I)⁻¹Aᵀ, and their degrees of
freedom are tr WA + tr (ZᵀPZ + λI)⁻¹ZᵀPPZ.

"own": each response coefficient b is regressed on the bag's own coefficient a, with the slope
w = Cov(a, b) / Var(a), and ψ learns b − wa. A single slope from many bags needs no penalty, and its
bias is negligible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.linalg

from ...core.arrays import Floats
from .cholesky import cholesky
from .gram_products import add_upper
from .penalties import Penalties
from .ridge import score_validation, solve_gcv
from .rows import RidgeRows
from .summary import Summary
from .sums import RidgeStatistics

RidgeSums = RidgeStatistics | RidgeRows
# Columns with a lesser fraction of variance in their squares are constant, in float32.
_MIN_RELATIVE_VARIANCE = 1e-6
# Attributes of a `Summary` that describe the matrix M which is solved.
_OF_MATRIX = ("size", "trace", "part", "matrix", "sizes", "is_graded", "significant")


class Beside(NamedTuple):
    """A ridge on columns A alone: λ₀, its degrees of freedom tr WA, Wy and WZ."""

    alpha: float
    df: float
    of_y: Floats
    of_z: Floats


@dataclass(frozen=True)
class PartialSummary:
    """A `Summary` of z and a baseline's columns; its M is that of ``remainder``.

    Attributes
    ----------
    whole : RidgeStatistics or RidgeRows
        Statistics of all columns.
    remainder : RidgeStatistics or RidgeRows
        Normal equations without the part of the baseline.
    complete : callable
        From ψ, shape (D, k), to the coefficients of all columns.
    again : callable
        Makes the same of another ``whole``.
    beside : Beside, optional
        What GCV has to know of "linear".
    is_scored : bool
        Whether b has the columns of ZᵀWᵀ, too.
    """

    whole: RidgeSums
    remainder: RidgeSums
    complete: Callable[[Floats], Floats]
    again: Callable[[RidgeSums], PartialSummary]
    beside: Beside | None = None
    is_scored: bool = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as `Summary` has it
        """Return what describes M from the remainder, and what the rows are from the whole."""
        return getattr(self.remainder if name in _OF_MATRIX else self.whole, name)

    def __add__(self, other: RidgeSums) -> PartialSummary:
        """Return the same of more rows."""
        return self.again(self.whole + other)  # type: ignore[operator]  # of one kind

    @property
    def alpha(self) -> float:
        """λ₀."""
        return 0.0 if self.beside is None else self.beside.alpha

    def right_side(self) -> Floats:
        """Return b, shape (size, k)."""
        right_side = self.remainder.right_side()
        if not self.is_scored or self.beside is None:
            return right_side
        return np.hstack([right_side, self.beside.of_z.T])

    def scored(self) -> PartialSummary:
        """Return the same for generalised cross-validation; b may have more columns."""
        return replace(self, is_scored=True)

    def coefficients(self, solution: Floats) -> Floats:
        """Return ψ (D, k) of a solution s (size, k)."""
        return self.complete(self.remainder.coefficients(solution[:, : len(self.remainder.sum_y)]))

    def residual_squares(
        self, solution: Floats, right_side: Floats, alpha: float, df: float
    ) -> tuple[Floats, float]:
        """Return these rows' residual squares, and the fit's degrees of freedom; M alone has df."""
        k = len(self.remainder.sum_y)
        squares, df = self.remainder.residual_squares(solution[:, :k], right_side[:, :k], alpha, df)
        if self.beside is None:
            return squares, df
        of_z = right_side[:, k:]
        beta = self.beside.of_y - of_z.T @ solution[:, :k]
        df += self.beside.df - self.alpha * float((of_z * solution[:, k:]).sum())
        return np.maximum(0.0, squares - self.alpha * (beta**2).sum(axis=0)), df


def beside_own(whole: RidgeSums, n_features: int) -> PartialSummary:
    """Return the residual targets after a regression on each target's own column a."""
    d, again = n_features, partial(beside_own, n_features=n_features)
    if isinstance(whole, RidgeRows):
        z, a = whole.z[:, :d], whole.z[:, d:].astype(np.float64)
        centred = a - replace(whole, z=a).sum_z / whole.weight
        weighted = centred if whole.weights is None else centred * whole.weights[:, None]
        cov = (weighted * (whole.scaled_y - whole.sum_y / whole.weight)).sum(axis=0)
        slopes = _slopes(cov, (weighted * centred).sum(axis=0), (a**2).sum(axis=0))
        residual: RidgeSums = replace(whole, z=z, y=whole.y - a * np.ldexp(slopes, whole.exponents))
    else:
        of_z, of_a, both = whole.split(d)
        squares, products = of_a.diagonal, of_a.cross.diagonal()
        cov = products - of_a.sum_z * whole.sum_y / whole.weight
        slopes = _slopes(cov, squares - of_a.sum_z**2 / whole.weight, squares)
        residual = replace(
            of_z,
            sum_y=whole.sum_y - slopes * of_a.sum_z,
            cross=of_z.cross - slopes[:, None] * both.T,
            sum_yy=whole.sum_yy - 2 * slopes * products + slopes**2 * squares,
        )
    return PartialSummary(whole, residual, lambda psi: np.vstack([psi, np.diag(slopes)]), again)


def _slopes(covariances: Floats, variances: Floats, squares: Floats) -> Floats:
    """Return Cov/Var, and 0 where a column is constant."""
    varies = variances > _MIN_RELATIVE_VARIANCE * squares
    return np.divide(covariances, variances, out=np.zeros_like(covariances), where=varies)


def beside_linear(whole: RidgeSums, n_features: int, alpha: float) -> PartialSummary:
    """Return the residual sums after a ridge with penalty λ₀ on the columns after the features."""
    again = partial(beside_linear, n_features=n_features, alpha=alpha)
    axes: Floats | None = None
    statistics = whole
    if isinstance(whole, RidgeRows):  # they span at most as many directions as there are rows
        axes, rows = scipy.linalg.qr(whole.z[:, :n_features].T.astype(np.float64), mode="economic")
        turned = replace(whole, z=np.hstack([rows.T, whole.z[:, n_features:]]))
        statistics, n_features = turned.statistics().in_units(whole.exponents), len(rows)
    assert isinstance(statistics, RidgeStatistics)
    residual, linear = _eliminate(statistics, n_features, alpha)

    def complete(psi: Floats) -> Floats:
        return np.vstack([psi if axes is None else axes @ psi, linear.of_y - linear.of_z @ psi])

    return PartialSummary(whole, residual, complete, again, linear)


def _eliminate(whole: RidgeStatistics, d: int, alpha: float) -> tuple[RidgeStatistics, Beside]:
    """Return ZᵀPZ, ZᵀPy and yᵀPy; and what GCV has to know of A."""
    matrix, right_side = whole.matrix(), whole.right_side()
    factor, alpha = _factor(matrix[d:, d:], alpha)
    inverse, _ = scipy.linalg.lapack.dtrtri(factor, lower=1)
    df = len(factor) - alpha * float((inverse**2).sum())
    rest = partial(scipy.linalg.solve_triangular, factor, lower=True, check_finite=False)
    half_z, half_y = rest(matrix[d:, :d]), rest(right_side[d:])
    of_z = np.asfortranarray(matrix[:d, :d])
    del matrix
    options = {"beta": 1.0, "trans": 1, "lower": 1, "overwrite_c": 1}
    square = scipy.linalg.blas.dsyrk(-1.0, half_z, c=of_z, **options)
    gram = np.zeros(d * (d + 1) // 2)
    add_upper(gram, square.T)
    yy = whole.centred_yy() - (half_y**2).sum(axis=0)
    cross = right_side[:d].T - half_y.T @ half_z
    residual = replace(whole, gram=gram, cross=cross, sum_yy=np.maximum(0.0, yy))
    residual = replace(residual, sum_z=np.zeros(d), sum_y=np.zeros(len(yy)))  # all is centred
    return residual, Beside(alpha, df, rest(half_y, trans=1), rest(half_z, trans=1))


def _factor(matrix: Floats, alpha: float) -> tuple[Floats, float]:
    """Return a Cholesky factor at λ₀, or the least penalty that rounding of the sums allows."""
    try:
        shifted = np.array(matrix, order="F")
        shifted[np.diag_indices(len(shifted))] += alpha
        return cholesky(shifted), alpha
    except scipy.linalg.LinAlgError:
        return _factor(matrix, 10 * alpha)


def choose_linear(
    train: RidgeSums,
    held_out: RidgeSums | None,
    n_features: int,
    penalties: Penalties,
    units: Floats | None,
) -> float:
    """Return the best penalty λ₀ of a ridge on the columns after the features alone.

    It is best on the rows held out, without any by generalised cross-validation.
    """
    of_a = cast(Summary, _columns(train, n_features))
    if held_out is None:
        return solve_gcv(of_a, penalties, units).alpha
    held = cast(Summary, _columns(held_out, n_features))
    return score_validation(of_a, held, penalties, 0.0, units).best


def _columns(rows: RidgeSums, n_features: int) -> RidgeSums:
    if isinstance(rows, RidgeRows):
        return replace(rows, z=rows.z[:, n_features:])
    return rows.split(n_features)[1]
