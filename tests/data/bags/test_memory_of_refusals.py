"""Refusals take less memory than what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, DataError
from tests.traced import peak_of


def test_many_cells_that_are_not_finite():
    """The first of a million is named without a list of all."""
    points = np.full((500_000, 2), np.nan)
    points[0] = 0

    def refused():
        with pytest.raises(DataError, match="bag 0, row 1: coordinate 0 is nan"):
            Bags(points, np.array([0, len(points)]))

    assert peak_of(refused) < points.nbytes / 2
