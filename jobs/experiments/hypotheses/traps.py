"""`Traps`: what tests of bags find where there is nothing, if the bag is not the unit (003).

Points of one bag are alike, which a test that pools them takes for a difference; embeddings of
single bags see the bags' sizes, unless bags are thinned to one size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import two_sample_test

from ..kit import Callback, Experiment, GroupedBars, Measure, Params
from ..kit.rates import shares

_LEVEL = 0.05
_BETWEEN = 0.7  # deviation of the bags' means; it is 1 for a bag's points
CLOSE = 0.2  # that of bags of two sizes, whose means are noise for the most part
_FEW = 20  # points of a bag
_Samples = tuple[list[Floats], list[Floats]]
_Draw = Callable[[np.random.Generator, int], _Samples]
"""From a generator and the number of bags of each sample to both samples."""


def one_distribution(
    rng: np.random.Generator,
    n_bags: int,
    sizes: tuple[int, int] = (_FEW, _FEW),
    between: float = _BETWEEN,
) -> _Samples:
    """Draw two samples of bags of one distribution, which differ within a sample."""
    a, b = (
        [between * rng.standard_normal(2) + rng.standard_normal((n, 2)) for _ in range(n_bags)]
        for n in sizes
    )
    return a, b


def one_pooled_distribution(rng: np.random.Generator, n_bags: int) -> _Samples:
    """Draw bags whose pooled points have one distribution: its spread within bags, or not."""
    a, whole = one_distribution(rng, n_bags)[0], (1 + _BETWEEN**2) ** 0.5
    return a, [whole * rng.standard_normal((_FEW, 2)) for _ in range(n_bags)]


@dataclass(frozen=True)
class Trap:
    """Data and a test of them, of whole bags where groups are, or of the first point of each."""

    draw: _Draw
    test: dict[str, Any] = field(default_factory=dict)
    per_bag: bool = False
    first_points: bool = False

    def p_value(self, rng: np.random.Generator, n_bags: int, seed: int) -> float:
        a, b = self.draw(rng, n_bags)
        options: dict[str, Any] = {
            "n_permutations": 199, "seed": seed, "standardize": False, **self.test
        }  # fmt: skip
        if self.first_points:
            a, b = ([bag[:1] for bag in bags] for bags in (a, b))
            return two_sample_test(np.concatenate(a), np.concatenate(b), **options).p_value
        if self.per_bag:
            sizes = [[len(bag) for bag in bags] for bags in (a, b)]
            labels = np.repeat(np.arange(2 * n_bags), np.concatenate(sizes))
            options["groups"] = np.split(labels, [sum(sizes[0])])
        return two_sample_test(a, b, **options).p_value


POOLED: dict[str, Any] = {"unit": "point"}
_MEANS = {**POOLED, "statistic": "fourier"}  # whose groups are bags: MMD² of the mean embeddings
SMALLER, MUCH_LARGER = (
    partial(one_distribution, sizes=sizes, between=CLOSE) for sizes in ((50, 20), (20, 200))
)
TRAPS = {
    "ME, points pooled": Trap(
        one_distribution, {**POOLED, "statistic": "me", "null": "chi_square"}
    ),
    "ME, embeddings of bags": Trap(one_distribution, {"statistic": "me", "null": "chi_square"}),
    "MMD-linear, points pooled": Trap(one_distribution, {**POOLED, "statistic": "mmd_linear"}),
    "MMD-linear, a point per bag": Trap(one_distribution, {"statistic": "mmd_linear"},
                                        first_points=True),
    "one pooled distribution, mean embeddings": Trap(one_pooled_distribution, _MEANS, per_bag=True),
    "one pooled distribution, embeddings of bags": Trap(one_pooled_distribution, {}),
    "50 and 20 points, not thinned": Trap(SMALLER, {"thin": False}),
    "50 and 20 points, thinned": Trap(SMALLER, {}),
    "50 and 20 points, mean embeddings": Trap(SMALLER, _MEANS, per_bag=True),
    "20 and 200 points, not thinned": Trap(MUCH_LARGER, {"thin": False}),
    "20 and 200 points, thinned": Trap(MUCH_LARGER, {}),
    "20 and 200 points, mean embeddings": Trap(MUCH_LARGER, _MEANS, per_bag=True),
}  # fmt: skip


class Traps(Experiment):
    name = "traps"
    title = "Traps of testing bags"
    source = "003"
    pictures = (GroupedBars("traps.png", "share", by="trap", label="share that rejects"),)

    def measures(self) -> list[Measure]:
        fixed = {"n_tests": self.settings.n_tests, "n_bags": self.settings.n_bags}
        return [Measure("", self._rate, "{trap}", {"trap": list(TRAPS)}, fixed)]

    def _rate(self, p: Params, progress: Callback) -> dict[str, Any]:
        trap = TRAPS[p["trap"]]
        tests = {"share": lambda i: trap.p_value(self.rng(i), p["n_bags"], i)}
        return dict(shares(tests, p["n_tests"], _LEVEL, progress))
