"""Features that are begun row by row, and completed in their sums by one triangle for all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from ...core.arrays import Floats


@dataclass(frozen=True, eq=False)
class Completion:
    """z = vT for features v of a row that are begun: what is linear in z needs no z.

    T is the identity, but for the block R⁻¹ of the features from ``first`` on.

    Attributes
    ----------
    first : int
    factor : float64, shape (m, m)
        R, upper triangular, column by column in memory. Without rows v is z.
    """

    first: int
    factor: Floats

    def __bool__(self) -> bool:
        """Return whether z differs from v."""
        return bool(len(self.factor))

    def sums(self, of_begun: Floats) -> Floats:
        """Return Tᵀa, shape (D, c): sums of rows z, of those of v."""
        return self._solved(of_begun, "T")

    def coefficients(self, of_whole: Floats) -> Floats:
        """Return Tψ, shape (D, c), which gives v what ψ gives z."""
        return self._solved(of_whole, "N")

    def complete_products(self, square: Floats) -> None:
        """Write TᵀGT over G = VᵀV; of both the upper triangle, by rows."""
        if not self:
            return
        first, stop = self.first, self.first + len(self.factor)
        above, own = square[:first, first:stop], square[first:stop, first:stop]
        above[:] = self._solve(above.T, "T").T
        own[:] = lapack.dsygst(np.asfortranarray(own), self.factor, itype=1, overwrite_a=1)[0]
        square[first:stop, stop:] = self._solve(square[first:stop, stop:], "T")

    def _solved(self, rows: Floats, trans: str) -> Floats:
        if not self:
            return rows
        out, places = rows.copy(), slice(self.first, self.first + len(self.factor))
        out[places] = self._solve(rows[places], trans)
        return out

    def _solve(self, rows: Floats, trans: str) -> Floats:
        solved: Floats = solve_triangular(self.factor, rows, trans=trans, check_finite=False)
        return solved


COMPLETE = Completion(0, np.empty((0, 0)))
"""Completion of features that `begin` writes whole."""
