"""`Sums`: dataclasses of sums add, subtract and scale field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

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
    for actual, expected in [
        (first + second, whole),
        (whole - second, first),
        (first * 3, first + first + first),
    ]:
        assert (actual.name, actual.n, actual.weights) == ("rows", expected.n, expected.weights)
        np.testing.assert_array_equal(actual.squares, expected.squares)


def test_what_one_of_them_lacks_the_result_lacks():
    """None stays None; nothing is changed in place."""
    rows = np.ones((4, 2))
    first, other = counted(rows, 1.0), counted(rows)
    assert (first + other).weights is None
    assert (other * 2).weights is None
    assert (first.n, other.n) == (4, 4)
    np.testing.assert_array_equal(first.squares, [4, 4])


@dataclass(frozen=True, eq=False)
class Rows(Sums):
    ROWS: ClassVar[tuple[str, ...]] = ("values",)
    values: np.ndarray
    counts: tuple[int, ...]


def test_rows_are_joined_in_order_and_tuples_add_item_by_item():
    """Several parts at once give the same; rows are not subtracted."""
    parts = [Rows(np.arange(n), (n, 1)) for n in (2, 0, 3)]
    total = parts[0] + parts[1] + parts[2]
    np.testing.assert_array_equal(total.values, [0, 1, 0, 1, 2])
    assert total.counts == (5, 3)
    at_once = Rows.total(parts)
    np.testing.assert_array_equal(at_once.values, total.values)
    assert at_once.counts == total.counts
    for combine in (lambda: total - parts[0], lambda: total * 2):
        with pytest.raises(TypeError, match="rows of Rows add up"):
            combine()
