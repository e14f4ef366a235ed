"""Features of two samples compared by their cross-covariance: HSIC and canonical correlations.

`CrossMoments` are the fixed-size state of HSIC: they merge and subtract, in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from ...core.arrays import Floats, Integers
from ...core.sums import Sums

# Relative to the largest eigenvalue; directions with a smaller one are rounding and left out.
_MIN_EIGENVALUE = 1e-10


@dataclass(frozen=True, eq=False)
class CrossMoments(Sums):
    """Sums over pairs of feature vectors φ (p numbers) and ψ (q).

    Attributes
    ----------
    n : int
    x, y : float64, shape (p,), (q,)
        Σφ, Σψ.
    xx, xy, yy : float64, shape (p, p), (p, q), (q, q)
        Σφφᵀ, Σφψᵀ, Σψψᵀ.
    """

    n: int
    x: Floats
    y: Floats
    xx: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def of(cls, X: Floats, Y: Floats) -> CrossMoments:
        """Sum over rows, shapes (n, p) and (n, q)."""
        return cls(len(X), X.sum(axis=0), Y.sum(axis=0), X.T @ X, X.T @ Y, Y.T @ Y)

    def covariances(self) -> tuple[Floats, Floats, Floats]:
        """Return C_xx, C_xy, C_yy, each over n."""
        x, y = self.x / self.n, self.y / self.n
        return (
            self.xx / self.n - np.outer(x, x),
            self.xy / self.n - np.outer(x, y),
            self.yy / self.n - np.outer(y, y),
        )

    def spectra(self) -> tuple[Floats, Floats]:
        """Return the eigenvalues of C_xx and of C_yy, which are those of K̃ / n and L̃ / n."""
        xx, _, yy = self.covariances()
        return eigh(xx, eigvals_only=True), eigh(yy, eigvals_only=True)

    def hsic(self) -> float:
        """Return ‖C_xy‖²_F, the biased estimate HSIC_b with the kernels of the features."""
        cross = self.covariances()[1]
        return float(np.vdot(cross, cross))

    def alignment(self) -> float:
        """Return ‖C_xy‖²_F / (‖C_xx‖_F ‖C_yy‖_F), at most 1."""
        xx, _, yy = self.covariances()
        scale = float(np.linalg.norm(xx) * np.linalg.norm(yy))
        return self.hsic() / scale if scale else 0.0


@dataclass(frozen=True, eq=False)
class RowPair:
    """Rows of features of both samples, and the statistic for every permutation of Y.

    Attributes
    ----------
    X, Y : float64, shape (n, p), (n, q)
        Centred features along their principal axes; whitened for correlations.
    correlation : bool
        Whether the statistic is the largest singular value of XᵀY / n, instead of the sum of the
        squares of all singular values.
    """

    X: Floats
    Y: Floats
    correlation: bool

    @classmethod
    def centred(cls, X: Floats, Y: Floats) -> RowPair:
        """Return the pair whose statistic is HSIC_b."""
        return cls(_turned(X)[0], _turned(Y)[0], False)

    @classmethod
    def whitened(cls, X: Floats, Y: Floats, ridge: float) -> RowPair:
        """Return the pair whose statistic is the largest regularised canonical correlation.

        With ridge κ this is KCCA with (K̃ + (n κ / 2) I)² for the kernels of the features.
        """
        (X, x), (Y, y) = _turned(X), _turned(Y)
        return cls(
            X * (np.sqrt(x) / (x + ridge / 2)), Y * (np.sqrt(y) / (y + ridge / 2)), correlation=True
        )

    def value(self, order: Integers | slice = slice(None)) -> float:
        """Return the statistic with the rows of Y in another order."""
        cross = self.X.T @ self.Y[order] / len(self.X)
        return _largest_singular(cross) if self.correlation else float(np.vdot(cross, cross))

    def values(self, orders: Iterator[Integers]) -> Floats:
        """Return the statistic in blocks (m, n) of orders, shape (n_orders,)."""
        return np.array([self.value(order) for block in orders for order in block])

    def spectra(self) -> tuple[Floats, Floats]:
        """Return the variances of centred rows along the axes, like `CrossMoments.spectra`."""
        return (self.X**2).mean(axis=0), (self.Y**2).mean(axis=0)

    def standard_error(self) -> float:
        """Return the standard error of HSIC_b; see `GramSums.standard_error`."""
        influence = np.einsum("ij,ij->i", self.X @ (self.X.T @ self.Y / len(self.X)), self.Y)
        return float(2 * influence.std(ddof=1) / len(self.X) ** 0.5)


def nystroem_rows(gram: Floats, columns: Floats) -> Floats:
    """Return Φ = G_{n,r} G_{r,r}^{−½}; ΦΦᵀ is the Nyström approximation of the Gram matrix.

    Parameters
    ----------
    gram : shape (r, r)
        Gram matrix of the r landmarks.
    columns : shape (n, r)
        Kernel values of the rows and the landmarks.
    """
    values, vectors = eigh(gram)
    positive = values > _MIN_EIGENVALUE * values[-1]
    rows: Floats = columns @ (vectors[:, positive] / np.sqrt(values[positive]))
    return rows


def _turned(rows: Floats) -> tuple[Floats, Floats]:
    """Return centred rows along their principal axes, and the variance along each axis.

    This changes neither HSIC nor correlations. Axes with almost no variance are left out; random
    features have many of these, so that permutations take less time.
    """
    rows = rows - rows.mean(axis=0)
    n, p = rows.shape
    values, vectors = eigh((rows @ rows.T if n < p else rows.T @ rows) / n)
    positive = values > _MIN_EIGENVALUE * values[-1]
    values, vectors = values[positive], vectors[:, positive]
    return vectors * np.sqrt(n * values) if n < p else rows @ vectors, values


def _largest_singular(matrix: Floats) -> float:
    gram = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
    last = len(gram) - 1
    return float(float(eigh(gram, eigvals_only=True, subset_by_index=(last, last))[0]) ** 0.5)
