"""Rows of features kept as they are, to solve few bags as an N × N problem instead of D × D."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.arrays import Floats, Integers
from ...core.units import units_of
from ...data.store.sampling import spread_rows
from ...execution.costs import Cost
from ...execution.products import gram_matrix, multiply
from .summary import MeanSquaredError
from .sums import RidgeStatistics, StatisticsBuilder, are_graded, squared_singular_values

DOUBLE_NOISE = 1e-14  # eigenvalues below this fraction of the trace are rounding of double products


@dataclass(frozen=True)
class RidgeRows:
    """Rows (z, y): mergeable in order, and solved in the dual form (K + λI) a = Y, ψ = Zᵀa.

    A `Summary` as `RidgeStatistics` is. Products are in double, whatever the features are, so
    that small penalties are not lost in the rounding of their sums.

    Attributes
    ----------
    z : float32 or float64, shape (n, D)
    y : float64, shape (n, k)
    exponents : int64, shape (k,)
        Exponents of the targets' units, see `units_of`.
    weights : float64, shape (n,), optional
        None: all are 1.
    """

    z: NDArray[Any]
    y: Floats
    exponents: Integers
    weights: Floats | None = None

    @classmethod
    def of(cls, z: NDArray[Any], y: Floats, weights: Floats | None = None) -> RidgeRows:
        """Return rows in the units that fit their targets."""
        return cls(z, y, units_of(y), weights)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.z)

    @property
    def weight(self) -> float:
        """Σ of the rows' weights; n without weights, as a row of weight 1 counts once."""
        return self.n if self.weights is None else float(self.weights.sum())

    @property
    def n_weighted(self) -> int:
        """Rows whose weight is not 0."""
        return self.n if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def size(self) -> int:
        """Order of the matrix that is solved."""
        return len(self.z)

    @property
    def n_bytes(self) -> int:
        """Bytes of the rows, and of their copy in double while they are solved."""
        return self.z.nbytes + self.y.nbytes + 8 * self.z.size

    def __add__(self, other: RidgeRows) -> RidgeRows:
        """Return the rows of both, these first."""
        z, y = np.concatenate([self.z, other.z]), np.concatenate([self.y, other.y])
        weights = None
        if self.weights is not None or other.weights is not None:
            both = (np.ones(r.n) if r.weights is None else r.weights for r in (self, other))
            weights = np.concatenate(list(both))
        return RidgeRows(z, y, np.maximum(self.exponents, other.exponents), weights)

    def statistics(self) -> RidgeStatistics:
        """Return the sums of the rows, as a pass that keeps no rows makes them."""
        builder = StatisticsBuilder(self.z.shape[1], self.y.shape[1], self.z.dtype)
        builder.add(self.z, self.y, self.weights)
        return builder.finish()

    def part(self, size: int) -> RidgeRows:
        """Return a part of order ``size``: evenly spaced rows, or features."""
        rows = spread_rows(np.arange(self.n), size)
        weights = None if self.weights is None else self.weights[rows]
        return RidgeRows(self.z[rows], self.y[rows], self.exponents, weights)

    def in_units(self, exponents: Integers) -> RidgeRows:
        """Return the same with targets in other units, none of them smaller."""
        return replace(self, exponents=exponents)

    # ------------------------------------------------------------------ what solvers ask

    @cached_property
    def sum_z(self) -> Floats:
        """Σz, shape (D,)."""
        total: Floats = (
            self.z.sum(axis=0, dtype=np.float64) if self.weights is None else self.weights @ self.z
        )
        return total

    def _weighted(self, rows: Floats) -> Floats:
        """Multiply by the weights' roots."""
        return rows if self.weights is None else rows * np.sqrt(self.weights)[:, None]

    @cached_property
    def scaled_y(self) -> Floats:
        """The targets in their units, shape (n, k)."""
        scaled: Floats = np.ldexp(self.y, -self.exponents)
        return scaled

    @property
    def sum_y(self) -> Floats:
        """Σy in the targets' units, shape (k,)."""
        scaled = self.scaled_y
        total: Floats = scaled.sum(axis=0) if self.weights is None else self.weights @ scaled
        return total

    @property
    def trace(self) -> float:
        """The trace of ZᵀZ."""
        if self.weights is not None:
            return float(self.weights @ np.einsum("ij,ij->i", self.z, self.z, dtype=np.float64))
        return float(np.einsum("ij,ij->", self.z, self.z, dtype=np.float64))

    @property
    def is_finite(self) -> bool:
        """Whether all features are."""
        return bool(np.isfinite(self.sum_z).all())

    @cached_property
    def _centred(self) -> Floats:
        """The weighted rows without their mean, in double: made once for all penalties."""
        return self._weighted(self.z - self.sum_z / self.weight)

    def matrix(self, shift: float = 0.0) -> Floats:
        """M + shift·I, in Fortran order, a new array; only the lower triangle is set.

        The products of centred rows.
        """
        product = gram_matrix(self._centred)
        product[np.diag_indices(self.n)] += shift
        return product

    def rounding(self, noise: float) -> float:
        """Return the fraction of the trace below which eigenvalues of M come from rounding.

        Products are in double.
        """
        return min(noise, DOUBLE_NOISE)

    def sizes(self) -> Floats:
        """Return s, shape (size,): entry (i, j) of M is rounded in proportion to s_i s_j.

        The norms of centred rows; 1 for rows at the mean.
        """
        norms = np.linalg.norm(self._centred, axis=1)
        return np.where(norms > 0, norms, 1.0)

    @property
    def is_graded(self) -> bool:
        """Whether features are of so different sizes that one bound of rounding hides some."""
        return are_graded((self._centred**2).sum(axis=0))

    def significant(self, noise: float) -> tuple[Floats, Floats, float]:
        """Return eigenvalues of M, shape (r,), eigenvectors, shape (size, r), and a bound.

        By the singular values of the centred rows.
        """
        return *squared_singular_values(self._centred, full=True), 0.0

    def right_side(self) -> Floats:
        """Return b, shape (size, k).

        The centred targets.
        """
        return self._weighted(self.scaled_y - self.sum_y / self.weight)

    def coefficients(self, solution: Floats) -> Floats:
        """Return ψ (D, k) of a solution s (size, k)."""
        return multiply(self._centred.T, solution)

    def centred_yy(self) -> Floats:
        """Σ (y − ȳ)², shape (k,), in the targets' units."""
        squares: Floats = (self.right_side() ** 2).sum(axis=0)
        return squares

    def scored(self) -> RidgeRows:
        """Return the same for generalised cross-validation; b may have more columns."""
        return self

    def residual_squares(
        self, solution: Floats, right_side: Floats, alpha: float, df: float
    ) -> tuple[Floats, float]:
        """Return these rows' residual squares, and the fit's degrees of freedom; M alone has df.

        What is left of the targets is λa.
        """
        return alpha**2 * (solution**2).sum(axis=0), df

    def judge(self) -> MeanSquaredError:
        """Return the function that computes the mean squared errors on these rows."""
        mean = self.sum_z / self.weight
        if self.weights is None:
            targets, ones = self.scaled_y, np.ones((1, 1))
        else:
            ones = self._weighted(np.ones((self.n, 1)))
            targets = self._weighted(self.scaled_y)

        def mean_squared_error(coef: Floats, intercept: Floats) -> Floats:
            errors = targets - (multiply(self._centred, coef) + ones * (mean @ coef + intercept))
            squares: Floats = (errors**2).sum(axis=0) / self.weight
            return squares

        return mean_squared_error


class RowsBuilder:
    """Collects rows; filled as a `StatisticsBuilder` is."""

    def __init__(self, n_features: int, n_targets: int, dtype: DTypeLike = np.float32) -> None:
        self._z = [np.empty((0, n_features), dtype)]
        self._y = [np.empty((0, n_targets))]
        self._weights: list[Floats] = []
        self._buffer = self._z[0]

    def buffer(self, n_rows: int) -> NDArray[Any]:
        """Return a buffer for the next rows."""
        self._buffer = np.empty((n_rows, self._z[0].shape[1]), self._z[0].dtype)
        return self._buffer

    def commit(self, y: Floats, weights: Floats | None = None) -> None:
        """Count the rows of the buffer as filled, with targets (n, k), perhaps weights (n,)."""
        if weights is not None:
            self._weights.append(np.array(weights))
        self._z.append(self._buffer)
        self._y.append(np.array(y))

    def finish(self) -> RidgeRows:
        """Return all rows."""
        weights = np.concatenate(self._weights) if self._weights else None
        return RidgeRows.of(np.concatenate(self._z), np.concatenate(self._y), weights)


def rows_cost(n_features: int, n_targets: int, precision: str, n_rows: int) -> Cost:
    """Return the cost of `RowsBuilder` for up to so many rows, which are copied when merged."""
    row = np.dtype(precision).itemsize * n_features + 8 * n_targets
    return Cost(bytes_per_bag=8 * n_targets, bytes_per_task=2 * n_rows * row)
