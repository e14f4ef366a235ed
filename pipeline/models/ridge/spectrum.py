"""Two solvers of (M + λI) s = b for many λ: the spectrum of M, or one factor per λ.

A spectrum costs about as much as seven factors, and then serves every λ. Both give solutions in
orthonormal coordinates of their own, which leave norms and inner products unchanged.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import lapack

from ...core.arrays import Floats
from .cholesky import cholesky, inverse_squares, solve_by_factor
from .summary import Summary

SPECTRUM_FACTORS = 7  # Cholesky factors in the time of a spectrum
# A search downhill tries at most two penalties after the best, whose solution is asked for again.
SOLUTIONS = 3
# Below this fraction of the trace the inverse of a factor in float32 loses the digits of its trace.
FLOAT32_TRACE = 1e-6
# By divide and conquer; scipy before 1.16 has only the slower iteration, of other last digits.
_EIGEN = getattr(lapack, "dstevd", None) or lapack.dstev


class ShiftedSystem(Protocol):
    """Solutions and degrees of freedom for any λ > 0.

    Attributes
    ----------
    rounding : float
        Rounding error of M's eigenvalues: a smaller λ is lost in the rounding of the sums, of which
        most were perhaps subtracted again. 0 where the solver refuses such λ by itself.
    """

    rounding: float

    def solve(self, alpha: float) -> Floats:
        """(M + λI)⁻¹ b in the solver's coordinates, shape (size, k)."""

    @property
    def right_side(self) -> Floats:
        """Return b in the solver's coordinates."""

    def back(self, solution: Floats) -> Floats:
        """Return a solution in M's coordinates."""

    def degrees_of_freedom(self, alpha: float) -> float:
        """Σ e/(e + λ) over the eigenvalues e of M."""


class Spectrum:
    """A `ShiftedSystem` by the eigendecomposition; eigenvalues below zero (rounding) are zero.

    M = Q T Qᵀ by Householder reflections and T = V diag(e) Vᵀ by divide and conquer. Q stays as
    reflections: a path needs Q V times a few columns, and never the eigenvectors Q V themselves,
    whose computation is half of an eigendecomposition's time.

    Attributes
    ----------
    values : float64, shape (size,)
        e, ascending.
    right_side : float64, shape (size, k)
        b in the eigenvectors' coordinates.
    rounding : float
        See `ShiftedSystem`: how far below zero M's least eigenvalue is.
    """

    def __init__(self, summary: Summary) -> None:
        matrix = summary.matrix()
        work = int(lapack.dsytrd_lwork(len(matrix), lower=1)[0])
        matrix, diagonal, beside, self._tau, _ = lapack.dsytrd(
            matrix, lower=1, lwork=work, overwrite_a=1
        )
        self._reflections = np.asfortranarray(matrix[1:, :-1])
        del matrix
        beside = beside if len(beside) else np.zeros(1)  # of one feature: not read
        values, self._vectors, failed = _EIGEN(diagonal, beside)
        if failed:
            raise scipy.linalg.LinAlgError("the eigenvalues of the Gram matrix did not converge")
        self.values: Floats = np.maximum(values, 0.0)
        self.rounding = max(0.0, -float(values.min()))
        self.right_side: Floats = self._vectors.T @ self._reflected(summary.right_side(), "T")

    def solve(self, alpha: float) -> Floats:
        """(M + λI)⁻¹ b in the solver's coordinates, shape (size, k).

        With λ = 0 eigenvalues that are 0 are left out.
        """
        shifted, right = (self.values + alpha)[:, None], self.right_side
        return np.divide(right, shifted, where=shifted > 0, out=np.zeros_like(right))

    def least_norm(self, rounding: float) -> Floats:
        """Return least squares without the eigenvalues up to ``rounding``, as `solve` does."""
        keep = self.values > rounding
        inverse = np.divide(1.0, self.values, out=np.zeros_like(self.values), where=keep)
        return self.right_side * inverse[:, None]

    def degrees_of_freedom(self, alpha: float) -> float:
        """Σ e/(e + λ) over the eigenvalues e of M."""
        shifted = self.values + alpha
        return float(np.sum(np.divide(self.values, shifted, where=shifted > 0, out=shifted)))

    def back(self, solution: Floats) -> Floats:
        """Return a solution in M's coordinates."""
        return self._reflected(self._vectors @ solution, "N")

    def _reflected(self, columns: Floats, trans: str) -> Floats:
        """Q or Qᵀ times columns: the first row stays, the others are those of a QR factor."""
        out = np.array(columns, dtype=np.float64, order="F")
        if len(out) > 1:
            rows, _, _ = lapack.dormqr(
                "L", trans, self._reflections, self._tau, out[1:], 64 * out.shape[1]
            )
            out[1:] = rows
        return out


class Truncated:
    """A `ShiftedSystem` without the directions that rounding of the sums cannot tell from none.

    There the right side is rounding, too, and a penalty that is smaller than the rounding of M
    would blow it up. A larger one does not: directions that rows can have count, however small.
    """

    rounding = 0.0

    def __init__(self, summary: Summary, noise: float) -> None:
        directions = summary.significant(summary.rounding(noise))
        self.values, self._vectors, self._bound = directions
        self.right_side: Floats = self._vectors.T @ summary.right_side()

    def solve(self, alpha: float) -> Floats:
        """(M + λI)⁻¹ b in the solver's coordinates, shape (size, k).

        With λ = 0 eigenvalues that are 0 are left out.
        """
        shifted, right = (self.values + alpha)[:, None], self.right_side
        keep = self._keep(alpha)[:, None]
        return np.divide(right, shifted, where=keep, out=np.zeros_like(right))

    def degrees_of_freedom(self, alpha: float) -> float:
        """Σ e/(e + λ) over the eigenvalues e of M."""
        eigenvalues = self.values[self._keep(alpha)]
        return float(np.sum(eigenvalues / (eigenvalues + alpha)))

    def _keep(self, alpha: float) -> NDArray[np.bool_]:
        least = self._bound if alpha < self._bound else 0.0
        return self.values > least

    def back(self, solution: Floats) -> Floats:
        """Return a solution in M's coordinates.

        Without what is left of directions whose eigenvalue is 0.
        """
        keep = self.values > 0
        return self._vectors[:, keep] @ solution[keep]


class Factors:
    """A `ShiftedSystem` by one Cholesky factor per λ; the last one and some solutions are kept.

    All factors use the same memory, because new pages of zeros cost half as much time as a factor.

    Raises
    ------
    scipy.linalg.LinAlgError
        If λ is below the rounding of M; raised by `solve`.
    """

    rounding = 0.0

    def __init__(self, summary: Summary) -> None:
        self._matrix = summary.matrix()
        self._trace = float(np.trace(self._matrix))
        self._buffer = np.empty(self._matrix.shape, order="F")
        self.right_side: Floats = summary.right_side()
        self._last: tuple[float, Floats] | None = None
        self._solved: dict[float, Floats] = {}

    def solve(self, alpha: float) -> Floats:
        """(M + λI)⁻¹ b in the solver's coordinates, shape (size, k)."""
        if alpha not in self._solved:
            if len(self._solved) == SOLUTIONS:
                del self._solved[next(iter(self._solved))]
            self._solved[alpha] = solve_by_factor(self._factor(alpha), self.right_side)
        return self._solved[alpha]

    def back(self, solution: Floats) -> Floats:
        """Return a solution in M's coordinates."""
        return solution

    def degrees_of_freedom(self, alpha: float) -> float:
        """Σ e/(e + λ) over the eigenvalues e of M.

        Size − λ tr (M + λI)⁻¹, and the trace is ‖L⁻¹‖² of the factor L.
        """
        factor: NDArray[Any] = self._factor(alpha)
        if alpha > FLOAT32_TRACE * self._trace:
            np.copyto(self._float32, factor, casting="same_kind")
            factor = self._float32
        return len(factor) - alpha * inverse_squares(factor)

    @cached_property
    def _float32(self) -> NDArray[np.float32]:
        return np.empty(self._matrix.shape, np.float32, order="F")

    def _factor(self, alpha: float) -> Floats:
        if self._last is None or self._last[0] != alpha:
            self._last = None  # it is written over
            np.copyto(self._buffer, self._matrix)
            self._buffer[np.diag_indices(len(self._buffer))] += alpha
            self._last = (alpha, cholesky(self._buffer))
        return self._last[1]
