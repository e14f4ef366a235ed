"""`Sums`: dataclasses of sums add, subtract and scale field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bagbasis.core.sums import Sums


@dataclass(frozen=True, eq=False)
class Counted(Sums):
    KEPT: ClassVar[tuple[str, ...]] = ("name",)
    name: str
    n: int
    squares: np.ndarray
    weights: float | None = None


def counted(rows, weights=None):
    return Counted("rows", len(rows), (rows**2).sum(axis=0), weights)


def test_parts_add_up_to_the_whole_and_are_subtracted_from_it():
    """And a part that counts three times is as the part added three times."""
    rows = np.arange(24.0).reshape(8, 3)
    first, second, whole = counted(rows[:5], 2.5), counted(rows[5:], 1.0), counted(rows, 3.5)
    for found, expected in [
        (first + second, whole),
        (whole - second, first),
        (first * 3, first + first + first),
    ]:
        assert (found.name, found.n, found.weights) == ("rows", expected.n, expected.weights)
        np.testing.assert_array_equal(found.squares, expected.squares)


def test_what_one_of_them_lacks_the_result_lacks():
    """None stays None; nothing is changed in place."""
    rows = np.ones((4, 2))
    one, other = counted(rows, 1.0), counted(rows)
    assert (one + other).weights is None
    assert (other * 2).weights is None
    assert (one.n, other.n) == (4, 4)
    np.testing.assert_array_equal(one.squares, [4, 4])
