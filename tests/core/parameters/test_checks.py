"""`checked`: what the decorator makes of arguments beside the checks of `test_constraints`."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.core import Seed, checked
from bagbasis.core.errors import ParameterError


def test_a_generator_in_place_of_a_seed():
    """It draws the seed and moves on; `rng` is another name; both at once are refused."""

    @checked(seed=Seed)
    def drawn(x: int, seed: int = 0) -> tuple[int, int]:
        return x, seed

    rng = np.random.default_rng(3)
    expected = np.random.default_rng(3).integers(2**63, size=2).tolist()
    assert [drawn(1, seed=rng)[1], drawn(1, rng=rng)[1]] == expected
    assert drawn(2, rng=7) == (2, 7)
    assert drawn(2, np.random.default_rng(3)) == (2, expected[0])
    with pytest.raises(ParameterError, match="seed and rng are given"):
        drawn(1, seed=1, rng=2)
    with pytest.raises(ParameterError, match="seed is -1"):
        drawn(1, rng=-1)
