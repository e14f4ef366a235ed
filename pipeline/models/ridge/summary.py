"""`Summary`: the interface of the statistics of rows from which a ridge is solved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ...core.arrays import Floats, Integers


class Summary(Protocol):
    """The statistics of rows (z, y) from which ridge regression is solved.

    The system is (M + λI) s = b. The symmetric matrix M of order ``size`` has the eigenvalues of
    the centred ZᵀZ, and possibly additional zeros.
    """

    @property
    def exponents(self) -> Integers:
        """Exponents of the targets' units, shape (k,); see `units.units_of`."""

    @property
    def n(self) -> int:
        """Rows."""

    @property
    def weight(self) -> float:
        """Σ of the rows' weights; n without weights, as a row of weight 1 counts once."""

    @property
    def n_weighted(self) -> int:
        """Rows whose weight is not 0."""

    @property
    def size(self) -> int:
        """Order of M."""

    @property
    def n_bytes(self) -> int:
        """Bytes of its arrays."""

    @property
    def sum_z(self) -> Floats:
        """Σz, shape (D,)."""

    @property
    def sum_y(self) -> Floats:
        """Σy, shape (k,), in the targets' units."""

    @property
    def trace(self) -> float:
        """Trace of ZᵀZ."""

    @property
    def is_finite(self) -> bool:
        """Whether all features are."""

    def __add__(self, other: Any, /) -> Summary:  # noqa: ANN401 - a summary of its own kind
        """Return the summary of both sets of rows."""

    def in_units(self, exponents: Integers) -> Summary:
        """Return the same with targets in other units, none of them smaller."""

    def statistics(self) -> Any:  # noqa: ANN401  # `RidgeStatistics`, which imports this
        """Return the sums of the rows."""

    def part(self, size: int) -> Summary:
        """Return a part of order ``size``: evenly spaced rows, or features."""

    def matrix(self, shift: float = 0.0) -> Floats:
        """M + shift·I, in Fortran order, a new array; only the lower triangle is set."""

    def right_side(self) -> Floats:
        """Return b, shape (size, k)."""

    def coefficients(self, solution: Floats) -> Floats:
        """Return ψ (D, k) of a solution s (size, k)."""

    def centred_yy(self) -> Floats:
        """Σ (y − ȳ)², shape (k,)."""

    def rounding(self, noise: float) -> float:
        """Return the fraction of the trace below which eigenvalues of M come from rounding.

        ``noise`` is this fraction for sums of products in the precision of the features.
        """

    def sizes(self) -> Floats:
        """Return s, shape (size,): entry (i, j) of M is rounded in proportion to s_i s_j."""

    @property
    def is_graded(self) -> bool:
        """Whether features are of so different sizes that one bound of rounding hides some."""

    def significant(self, noise: float) -> tuple[Floats, Floats, float]:
        """Return eigenvalues of M, shape (r,), eigenvectors, shape (size, r), and a bound.

        Eigenvalues up to the bound cannot be distinguished from rounding. Those that surely come
        from rounding are 0, or left out if b has no component in their directions.
        """

    def scored(self) -> Summary:
        """Return the same for generalised cross-validation; b may have more columns."""

    def residual_squares(
        self, solution: Floats, right_side: Floats, alpha: float, df: float
    ) -> tuple[Floats, float]:
        """Return these rows' residual squares, and the fit's degrees of freedom; M alone has df.

        s and b may be in any orthonormal coordinates.
        """

    def judge(self) -> MeanSquaredError:
        """Return the function that computes the mean squared errors on these rows."""


MeanSquaredError = Callable[[Floats, Floats], Floats]
"""Mean squared errors (k,) of ψ (D, k) and an intercept (k,), all in the targets' units."""
