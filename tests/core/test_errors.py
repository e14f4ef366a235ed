"""Where warnings point to."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from bagbasis import DoubleBasisRegressor, MomentsEmbedding
from bagbasis.core.errors import BagbasisWarning, printable


def test_a_warning_points_to_the_line_that_called_the_library(recwarn):
    """However many of its functions, and of its checks of parameters, lie between."""
    bags = list(np.random.default_rng(0).random((60, 5, 1)))
    y = np.array([bag.mean() for bag in bags])
    model = DoubleBasisRegressor(MomentsEmbedding(), alphas=[1.0, 1e3])
    line = inspect.currentframe().f_lineno + 1
    model.fit(bags, y)
    (one,) = [one for one in recwarn if one.category is BagbasisWarning]
    assert "of those allowed" in str(one.message)
    assert (one.filename, one.lineno) == (__file__, line)


@pytest.mark.parametrize("mark", "\u061c\u200e\u200f\u202a\u202e\u2066\u2069")
def test_marks_of_direction_are_escaped(mark):
    """What shows a name in another order than it has, is shown itself."""
    assert printable(f"a{mark}b") == f"a\\u{ord(mark):04x}b"
