"""The eigendecomposition of a centred Gram matrix, for all that is solved with more than one λ.

G = Q T Qᵀ by Householder reflections and T = V diag(e) Vᵀ by divide and conquer. Q stays as
reflections: a path needs Q V times a few columns, and never the eigenvectors Q V themselves, whose
computation is half of an eigendecomposition's time.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import lapack

from .statistics import RidgeStatistics

Floats = NDArray[np.float64]


class Spectrum:
    """Solutions and degrees of freedom for any λ; eigenvalues below zero (rounding) are zero.

    Attributes
    ----------
    values : float64, shape (D,)
        e, ascending.
    cross : float64, shape (D, k)
        The centred ZᵀY in the eigenvectors' coordinates.
    """

    def __init__(self, statistics: RidgeStatistics) -> None:
        gram = statistics.centred_gram().T  # whose lower triangle alone is set
        work = int(lapack.dsytrd_lwork(len(gram), lower=1)[0])
        gram, diagonal, beside, self._tau, _ = lapack.dsytrd(
            gram, lower=1, lwork=work, overwrite_a=1
        )
        self._reflections = np.asfortranarray(gram[1:, :-1])
        del gram
        beside = beside if len(beside) else np.zeros(1)  # of one feature: not read
        values, self._vectors, failed = lapack.dstevd(diagonal, beside)
        if failed:
            raise scipy.linalg.LinAlgError("the eigenvalues of the Gram matrix did not converge")
        self.values: Floats = np.maximum(values, 0.0)
        self.cross: Floats = self._vectors.T @ self._reflected(statistics.centred_cross(), "T")

    def solve(self, alpha: float) -> Floats:
        """(G + λI)⁻¹ ZᵀY, shape (D, k)."""
        return self._back(self.cross / (self.values + alpha)[:, None])

    def least_norm(self, rounding: float) -> Floats:
        """Least squares without the eigenvalues up to ``rounding``, shape (D, k)."""
        keep = self.values > rounding
        inverse = np.divide(1.0, self.values, out=np.zeros_like(self.values), where=keep)
        return self._back(self.cross * inverse[:, None])

    def degrees_of_freedom(self, alpha: float) -> float:
        """Σ e/(e + λ)."""
        return float(np.sum(self.values / (self.values + alpha)))

    def residual_squares(self, alpha: float, yy: Floats) -> Floats:
        """Of the rows that were fitted, shape (k,), from their targets' squares."""
        e = self.values[:, None]
        return np.maximum(0.0, yy - np.sum(self.cross**2 * (e + 2 * alpha) / (e + alpha) ** 2, 0))

    def _back(self, coordinates: Floats) -> Floats:
        return self._reflected(self._vectors @ coordinates, "N")

    def _reflected(self, columns: Floats, trans: str) -> Floats:
        """Q or Qᵀ times columns: the first row stays, the others are those of a QR factor."""
        out = np.array(columns, dtype=np.float64, order="F")
        if len(out) > 1:
            rows, _, _ = lapack.dormqr(
                "L", trans, self._reflections, self._tau, out[1:], 64 * out.shape[1]
            )
            out[1:] = rows
        return out
