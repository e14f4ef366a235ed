"""Where warnings point to."""

from __future__ import annotations

import inspect

import numpy as np

from bagbasis import DoubleBasisRegressor, MomentsEmbedding
from bagbasis.errors import BagbasisWarning


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
