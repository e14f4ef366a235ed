"""`checked`: what the decorator makes of arguments besides the checks of `test_constraints`."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pytest

from bagbasis import ParameterError
from bagbasis.core import Integer, RandomSeed, Real, checked

Share = Annotated[float, Real(0)]


def test_a_generator_in_place_of_a_seed():
    """It draws the seed and moves on; `rng` is another name; both at once are refused."""

    @checked
    def drawn(x: int, seed: RandomSeed = 0) -> tuple[int, int]:
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


def test_arguments_by_place_and_by_name():
    """Each way of a call gives the function plain, checked values; defaults stay the function's."""

    class Owner:
        @checked
        def call(self, n: Annotated[int, Integer(1)], /, *rest, share: Share = 0.5, **more):
            return n, rest, share, more

        @checked
        def named(self, n: Annotated[int, Integer(1)], m=7, *, share: Share = 0.5):
            return n, m, share

    owner = Owner()
    assert owner.named(np.int64(3)) == (3, 7, 0.5)
    assert type(owner.named(np.int64(3))[0]) is int
    assert owner.named(share=1, m=2, n=4) == (4, 2, 1)
    assert Owner.named(owner, 3, 4, share=0) == (3, 4, 0)
    assert owner.call(1, 2, 3, share=2, other=4) == (1, (2, 3), 2, {"other": 4})
    for wrong, words in (
        (lambda: owner.named(), "n"),
        (lambda: owner.named(1, 2, 3), "positional"),
        (lambda: owner.named(1, n=1), "n"),
        (lambda: owner.named(1, shares=1), "did you mean 'share'"),
    ):
        with pytest.raises(TypeError, match=words):
            wrong()
    for call in (owner.named, owner.call):
        with pytest.raises(ParameterError, match="n is 0"):
            call(0)
