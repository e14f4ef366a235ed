"""`AdditiveSums`, the base of states of a fixed size: sums over disjoint sets of rows."""

from __future__ import annotations

from typing import Self


class AdditiveSums:
    """Base of dataclasses whose fields are all sums, so that they merge and subtract."""

    n: int

    def __add__(self, other: Self) -> Self:
        """Return the sums over both sets of rows."""
        return type(self)(*(value + vars(other)[name] for name, value in vars(self).items()))

    def __sub__(self, other: Self) -> Self:
        """Return the sums over the rows that ``other`` does not have; it has no others."""
        return type(self)(*(value - vars(other)[name] for name, value in vars(self).items()))
