"""Statistics of rows for ridge regression besides ZᵀZ: mergeable, subtractable, of size O(k D)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core.arrays import Floats, Integers
from ...core.sums import Sums
from ...core.units import NO_UNIT, in_units, units_of
from ...embeddings.random_features.completion import Completion
from ...execution.pool import even_edges, run_kernel
from ...execution.products import multiply
from .statistics_kernels import ROWS_AT_ONCE, STRIPE_COLUMNS, add_sums

_SECONDS_PER_SUM = 3e-10  # of a number that is read from a cache
MANY_TARGETS = 32  # from here on a matrix product beats exact sums target by target


@dataclass(frozen=True)
class RidgeMoments(Sums):
    """n, Σz, Σy, ZᵀY and Σy² of rows (z, y); all sums in float64.

    Each target is summed in its own unit, a power of two, see `units_of`. Targets of any size then
    have finite sums and squares, and sums in different units are converted without rounding.

    Attributes
    ----------
    n : int
    sum_z : shape (D,)
    sum_y : shape (k,)
    cross : shape (k, D)
        YᵀZ.
    sum_yy : shape (k,)
    exponents : int64, shape (k,)
        Exponents of the targets' units: ``sum_y``, ``cross`` and ``sum_yy`` are of y / 2^e.
    weights : float64, shape (2,), optional
        For weighted rows, the sum of the weights, which multiply the rows in all other sums, and
        the number of weights that are not 0. None: all are 1.
    """

    n: int
    sum_z: Floats
    sum_y: Floats
    cross: Floats
    sum_yy: Floats
    exponents: Integers
    weights: Floats | None = field(default=None, kw_only=True)

    @property
    def weight(self) -> float:
        """Σ of the rows' weights; n without weights, as a row of weight 1 counts once."""
        return self.n if self.weights is None else float(self.weights[0])

    @property
    def n_weighted(self) -> int:
        """Rows whose weight is not 0."""
        return self.n if self.weights is None else int(self.weights[1])

    def scored(self) -> Self:
        """Return the same for generalised cross-validation; b may have more columns."""
        return self

    @property
    def n_features(self) -> int:
        """Features of a row, D."""
        return len(self.sum_z)

    @property
    def n_targets(self) -> int:
        """Targets of a row, k."""
        return len(self.sum_y)

    @property
    def n_bytes(self) -> int:
        """Bytes of the large arrays."""
        return self.cross.nbytes

    @property
    def is_finite(self) -> bool:
        """Whether all features are."""
        return bool(np.isfinite(self.sum_z).all())

    def in_units(self, exponents: Integers) -> Self:
        """Return the same sums in other units, none of them smaller."""
        shift = self.exponents - exponents
        if not shift.any():
            return self
        return replace(
            self,
            sum_y=np.ldexp(self.sum_y, shift),
            cross=np.ldexp(self.cross, shift[:, None]),
            sum_yy=np.ldexp(self.sum_yy, 2 * shift),
            exponents=exponents,
        )

    def completed(self, by: Completion) -> Self:
        """Return the sums of complete rows z, from the sums of rows that are begun."""
        cross = np.ascontiguousarray(by.sums(self.cross.T).T)
        return replace(self, sum_z=by.sums(self.sum_z), cross=cross)

    def centred_cross(self) -> Floats:
        """ZᵀY − n z̄ȳᵀ, shape (D, k), in the targets' units."""
        return (self.cross - np.outer(self.sum_y, self.sum_z) / self.weight).T

    def centred_yy(self) -> Floats:
        """Σ (y − ȳ)², shape (k,), in the targets' units."""
        return np.maximum(0.0, self.sum_yy - self.sum_y**2 / self.weight)

    def coefficients(self, solution: Floats) -> Floats:
        """Return ψ (D, k) of a solution s (size, k)."""
        return solution

    @override
    def combined(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        # both are brought to one unit, without rounding
        exponents = np.maximum(self.exponents, other.exponents)
        a, b = self.in_units(exponents), other.in_units(exponents)
        apart = ("exponents", "weights", *self.KEPT)
        names = [declared.name for declared in fields(self) if declared.name not in apart]
        sums = {name: combine(getattr(a, name), getattr(b, name)) for name in names}
        if self.weights is not None or other.weights is not None:
            counts = [np.array([moments.weight, moments.n_weighted]) for moments in (self, other)]
            sums["weights"] = combine(*counts)
        return replace(self, **sums, exponents=exponents)


class MomentsBuilder:
    """Adds blocks of rows into `RidgeMoments`."""

    def __init__(self, n_features: int, n_targets: int) -> None:
        self._n = 0
        self._sum_z = np.zeros(n_features)
        self._sum_y = np.zeros(n_targets)
        self._cross = np.zeros((n_targets, n_features))
        self._sum_yy = np.zeros(n_targets)
        self._exponents = np.full(n_targets, NO_UNIT)
        self._weights: Floats | None = None

    def add(self, z: NDArray[Any], y: Floats, weights: Floats | None = None) -> None:
        """Count rows: z (n, D), y (n, k), all with weights (n,) or all without."""
        y = self._in_units(y)
        if weights is None:
            self._add_cross(z, y)
            weighted = y
        else:
            weighted = y * weights[:, None]
            self._add_weighted_cross(z, y, weights)
            counts = np.array([weights.sum(), np.count_nonzero(weights)])
            self._weights = counts if self._weights is None else self._weights + counts
        self._sum_y += weighted.sum(axis=0)
        self._sum_yy += (weighted * y).sum(axis=0)
        self._n += len(z)

    def finish(self) -> RidgeMoments:
        """Return the sums of all rows."""
        return RidgeMoments(
            self._n,
            self._sum_z,
            self._sum_y,
            self._cross,
            self._sum_yy,
            self._exponents,
            weights=self._weights,
        )

    def _in_units(self, y: Floats) -> Floats:
        """Return targets in the units of the sums, which grow first where they are too small."""
        exponents = np.maximum(self._exponents, units_of(y))
        shift = self._exponents - exponents
        if shift.any():
            self._sum_y = np.ldexp(self._sum_y, shift)
            self._cross = np.ldexp(self._cross, shift[:, None])
            self._sum_yy = np.ldexp(self._sum_yy, 2 * shift)
            self._exponents = exponents
        return in_units(y, exponents)

    def _add_cross(self, z: NDArray[Any], y: Floats) -> None:
        if y.shape[1] < MANY_TARGETS:
            _add_sums(z, y, self._sum_z, self._cross)
            return
        sums = np.zeros_like(self._sum_z)
        _add_sums(z, y[:, :0], sums, self._cross[:0])
        # centred, so that the working precision goes to what varies within the block
        mean = y.mean(axis=0)
        self._cross += multiply((y - mean).astype(z.dtype).T, z)
        self._cross += np.outer(mean, sums)
        self._sum_z += sums

    def _add_weighted_cross(self, z: NDArray[Any], y: Floats, weights: Floats) -> None:
        """Add Σ w z, the products of z with one more target, and Σ w y z."""
        mean = np.zeros(y.shape[1])
        if y.shape[1] < MANY_TARGETS:
            columns = np.column_stack([weights, y * weights[:, None]])
        else:
            columns = weights[:, None]
            mean = (weights @ y) / (weights.sum() or 1.0)
            centred = (y - mean) * weights[:, None]
            self._cross += multiply(centred.astype(z.dtype).T, z)
        products = np.zeros((columns.shape[1], z.shape[1]))
        _add_sums(z, columns, np.zeros_like(self._sum_z), products)
        self._sum_z += products[0]
        self._cross += products[1:] if len(products) > 1 else np.outer(mean, products[0])


def _add_sums(z: NDArray[Any], y: Floats, sums: Floats, cross: Floats) -> None:
    """Add Σ z to ``sums`` (D,), and yᵀz to ``cross`` (k, D)."""
    n, d = z.shape
    edges = even_edges(
        -(-d // STRIPE_COLUMNS), _SECONDS_PER_SUM * n * STRIPE_COLUMNS * (1 + y.shape[1])
    )
    whole, y = n - n % ROWS_AT_ONCE, np.ascontiguousarray(y)
    run_kernel(add_sums, edges, z[:whole], y[:whole], sums, cross)
    if whole < n:
        last, of_last = (
            np.concatenate([rows[whole:], np.zeros_like(rows, shape=(whole + ROWS_AT_ONCE - n, c))])
            for rows, c in ((z, d), (y, y.shape[1]))
        )
        run_kernel(add_sums, edges, last, of_last, sums, cross)
