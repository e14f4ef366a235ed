"""`TwoSamplesAtManyScales`: fine differences of wide samples, against the powers printed for FUSE.

The problems and the printed powers are those of Biggs, Schrab and Gretton (2023): mixtures of four
Gaussians, and uniform distributions with a perturbation. What people get who give no option,
``two_sample_test(a, b)``, is tested on more data sets than the other statistics, and of the
perturbed distribution of the plane also on the very data sets that the printed powers are of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import two_sample_test

from ...terminal import Callback
from ..data.fine_differences import (
    mixtures,
    perturbed_uniforms,
    published_perturbed_uniforms,
)
from ..kit.experiment import Experiment, Measure, Params, Scale
from ..kit.plots import Curves
from ..kit.rates import shares

_LEVEL = 0.05

_Draw = Callable[[np.random.Generator, int], tuple[Floats, Floats]]

MIXTURE, _WIDE = "mixture, std 1.3", "mixture, std 2"
_LINE, PLANE = "perturbed, d = 1", "perturbed, d = 2"
_NOTHING = ("mixture, std 1", "uniform, d = 2")
_PROBLEMS: Mapping[str, _Draw] = {
    MIXTURE: partial(mixtures, deviation=1.3),
    _WIDE: partial(mixtures, deviation=2.0),
    _LINE: partial(perturbed_uniforms, n_dims=1, scale=0.2),
    PLANE: partial(perturbed_uniforms, n_dims=2, scale=0.4),
    _NOTHING[0]: partial(mixtures, deviation=1.0),
    _NOTHING[1]: partial(perturbed_uniforms, n_dims=2, scale=0.0),
}
PUBLISHED: Mapping[str, Callable[[int, int], tuple[Floats, Floats]]] = {
    PLANE: partial(published_perturbed_uniforms, n_dims=2, scale=0.4),
}
_DEFAULT, ON_THEIRS = "default", "published"
OTHERS = ("agg", "scf", "mmd_u")


class Sizes(Scale):
    """Numbers of points, of tests in blocks, and of permutations.

    The call without options has ``n_blocks`` of each size; the other statistics have one block.
    """

    n_points: dict[str, list[int]]
    n_tests: int
    n_blocks: dict[str, int]
    published: dict[str, list[int]]
    n_permutations: int


class TwoSamplesAtManyScales(Experiment[Sizes]):
    """A point is a problem at a size, in a block of data sets."""

    name = "two-samples-at-many-scales"
    title = "Fine differences of wide samples"
    source = "Biggs, Schrab and Gretton 2023"
    kind = Sizes
    pictures = (Curves(file="power.png", measure="default", x="n", y="default", panels="problem"),)

    def measures(self) -> list[Measure]:
        s = self.settings
        problems = [(name, n) for name, sizes in s.n_points.items() for n in sizes]
        label = "{problem} n {n} block {block}"
        fixed = {"n_tests": s.n_tests}
        others = {**fixed, "n_permutations": s.n_permutations, "methods": list(OTHERS)}
        blocks = [(block, name, n) for block in range(max(s.n_blocks.values()))
                  for name, n in problems if block < s.n_blocks[str(n)]]  # fmt: skip
        return [
            Measure(_DEFAULT, self._default, f"default {label}",
                    {"block problem n": blocks}, fixed),
            Measure(ON_THEIRS, self._on_theirs, f"{ON_THEIRS} {label}",
                    {"problem n block": [(name, int(n), block) for name in PUBLISHED
                                         for n, of in s.published.items() for block in of]},
                    fixed),
            Measure("others", self._others, f"others {label}",
                    {"block": [0], "problem n": problems}, others),
        ]  # fmt: skip

    def _default(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the fraction of a block's data sets in which the default call rejects."""

        def p_value(i: int) -> float:
            return two_sample_test(*self._data(p, i), seed=i).p_value

        return dict(shares({_DEFAULT: p_value}, p["n_tests"], _LEVEL, progress))

    def _on_theirs(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the fraction of the authors' own data sets, a block of them."""

        def p_value(i: int) -> float:
            number = p["block"] * p["n_tests"] + i
            return two_sample_test(*PUBLISHED[p["problem"]](number, p["n"]), seed=i).p_value

        return dict(shares({ON_THEIRS: p_value}, p["n_tests"], _LEVEL, progress))

    def _others(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return those of other statistics, of the same data sets."""

        def p_value(name: str, i: int) -> float:
            X, Y = self._data(p, i)
            n = p["n_permutations"]
            return two_sample_test(
                X, Y, statistic=name, n_permutations=n, seed=i, standardize=False
            ).p_value

        tests = {name: partial(p_value, name) for name in p["methods"]}
        return dict(shares(tests, p["n_tests"], _LEVEL, progress))

    def _data(self, p: Params, i: int) -> tuple[Floats, Floats]:
        which = [*_PROBLEMS].index(p["problem"])
        return _PROBLEMS[p["problem"]](self.rng(which, p["n"], p["block"], i), p["n"])
