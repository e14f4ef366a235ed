"""`PowerOverSizes`: what several tests find of several problems, over the size of the sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params, Scale
from ..kit.rates import shares

_LEVEL = 0.05
_Draw = Callable[..., Any]
"""From a generator and a size to the data of a test."""
Test = Callable[[Any, int], float]
"""From data and a seed to a p-value."""


class Sizes(Scale):
    """A scale of such an experiment."""

    n_points: list[int]
    n_tests: int


class PowerOverSizes(Experiment[Sizes]):
    """A point is a problem at a size, with the fractions of data sets in which each test rejects.

    Attributes
    ----------
    problems : mapping from a name to what draws the data of a test
    methods : mapping from a name to a test
    """

    kind = Sizes
    problems: ClassVar[Mapping[str, _Draw]]
    methods: ClassVar[Mapping[str, Test]]

    def measures(self) -> list[Measure]:
        s = self.settings
        axes: dict[str, Any] = {"problem": list(self.problems), "n": s.n_points}
        fixed = {"n_tests": s.n_tests, "methods": list(self.methods)}
        return [Measure("", self._power, "{problem} n {n}", axes, fixed)]

    def _power(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the fraction of rejections of each test, over the same data sets."""
        draw = self.problems[p["problem"]]

        def p_value(name: str, i: int) -> float:
            return self.methods[name](draw(self.rng(i), p["n"]), i)

        tests = {name: partial(p_value, name) for name in p["methods"]}
        return shares(tests, p["n_tests"], _LEVEL, progress)
