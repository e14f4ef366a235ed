"""`Traps`: what tests of bags find where there is nothing, if the bag is not the unit (003).

Points of one bag are alike: a test that pools them takes that for a difference. Points that are
pooled have one law only, so that what differs between bags is not seen; embeddings of single bags
see it, and the bags' sizes as well, unless bags are thinned to one size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis.hypotheses import two_sample_test

from ...pictures import BLUE, GREY
from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import column, frame, table
from ..kit.notes import remarks
from ..kit.plots import Curve, lines
from ..kit.rates import p_values, share_error

LEVEL = 0.05
BETWEEN = 0.7  # deviation of the bags' means, beside 1 of a bag's points
CLOSE = 0.2  # that of bags of two sizes, whose means are noise for the most part
FEW = 20  # points of a bag
Bags = list[NDArray[np.float64]]
Draw = Callable[[np.random.Generator, int], tuple[Bags, Bags]]
"""From a generator and the number of bags of each sample to both samples."""


def one_law(
    rng: np.random.Generator,
    n_bags: int,
    sizes: tuple[int, int] = (FEW, FEW),
    between: float = BETWEEN,
) -> tuple[Bags, Bags]:
    """Draw two samples of bags of one law, which differ from each other within a sample."""
    a, b = (
        [between * rng.standard_normal(2) + rng.standard_normal((n, 2)) for _ in range(n_bags)]
        for n in sizes
    )
    return a, b


def one_pooled_law(rng: np.random.Generator, n_bags: int) -> tuple[Bags, Bags]:
    """Draw bags whose points have one law if pooled: all of its spread within bags, or not."""
    whole = (1 + BETWEEN**2) ** 0.5
    return one_law(rng, n_bags)[0], [whole * rng.standard_normal((FEW, 2)) for _ in range(n_bags)]


@dataclass(frozen=True)
class Trap:
    """Data, a test of them, and what a rerun of the source's setting found; None: no such.

    Attributes
    ----------
    draw : see `Draw`
    test : mapping of arguments of `two_sample_test`
    per_bag : bool
        Whether a group of pooled points is a bag, so that bags are permuted.
    first_points : bool
        Whether samples are the first point of each bag.
    """

    draw: Draw
    test: dict[str, Any] = field(default_factory=dict)
    before: float | None = None
    per_bag: bool = False
    first_points: bool = False

    def p_value(self, rng: np.random.Generator, n_bags: int, seed: int) -> float:
        """Return that of one data set."""
        a, b = self.draw(rng, n_bags)
        given: dict[str, Any] = {
            "n_permutations": 199, "seed": seed, "standardize": False, **self.test
        }  # fmt: skip
        if self.first_points:
            first = [np.array([bag[0] for bag in bags]) for bags in (a, b)]
            return two_sample_test(first[0], first[1], **given).p_value
        if self.per_bag:
            sizes = [[len(bag) for bag in bags] for bags in (a, b)]
            labels = np.repeat(np.arange(2 * n_bags), np.concatenate(sizes))
            given["groups"] = np.split(labels, [sum(sizes[0])])
        return two_sample_test(a, b, **given).p_value


POOLED: dict[str, Any] = {"unit": "point"}
MEANS = {**POOLED, "statistic": "fourier"}  # whose groups are bags: MMD² of the mean embeddings
SMALLER, MUCH_LARGER = (
    partial(one_law, sizes=sizes, between=CLOSE) for sizes in ((50, 20), (20, 200))
)
TRAPS = {
    "ME, points pooled": Trap(one_law, {**POOLED, "statistic": "me", "null": "chi_square"}, 0.61),
    "ME, embeddings of bags": Trap(one_law, {"statistic": "me", "null": "chi_square"}, 0.053),
    "MMD-linear, points pooled": Trap(one_law, {**POOLED, "statistic": "mmd_linear"}, 1.0),
    "MMD-linear, a point per bag": Trap(one_law, {"statistic": "mmd_linear"}, 0.058,
                                        first_points=True),
    "one pooled law, mean embeddings": Trap(one_pooled_law, MEANS, 0.07, per_bag=True),
    "one pooled law, embeddings of bags": Trap(one_pooled_law, {}, 1.0),
    "50 and 20 points, not thinned": Trap(SMALLER, {"thin": False}, 0.41),
    "50 and 20 points, thinned": Trap(SMALLER, {}, 0.06),
    "50 and 20 points, mean embeddings": Trap(SMALLER, MEANS, 0.058, per_bag=True),
    "20 and 200 points, not thinned": Trap(MUCH_LARGER, {"thin": False}, 0.87),
    "20 and 200 points, thinned": Trap(MUCH_LARGER, {}, 0.065),
    "20 and 200 points, mean embeddings": Trap(MUCH_LARGER, MEANS, 0.062, per_bag=True),
}  # fmt: skip
DIFFERENT = "one pooled law, embeddings of bags"  # the only one with a difference that it sees


class Sizes(Scale):
    """See ``configs/experiments/traps.yaml``."""

    n_bags: int
    n_tests: int


class Traps(Experiment[Sizes]):
    """See the module; a point is a trap, or the way around it."""

    name = "traps"
    title = "Traps of testing bags"
    source = "003"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_tests:,} data sets per row, {s.n_bags} against {s.n_bags} bags of {FEW} points "
            f"of R² unless said otherwise, the means of bags with deviation {BETWEEN:g} ({CLOSE:g} "
            "of bags of two sizes) beside 1 within them; level .05. 003 prints no such rates; "
            "those of an earlier rerun had 100 or 200 bags of other laws."
        )

    def measures(self) -> list[Measure]:
        fixed = {"n_tests": self.settings.n_tests, "n_bags": self.settings.n_bags}
        return [Measure("", self._rate, "{trap}", {"trap": list(TRAPS)}, fixed)]

    def _rate(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the share of data sets that are rejected."""
        trap = TRAPS[p["trap"]]
        values = p_values(
            p["n_tests"], lambda i: trap.p_value(self.rng(i), p["n_bags"], i), progress
        )
        return {"share": float((values <= LEVEL).mean())}

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make the table of rates."""
        rows = frame(results)
        columns: dict[str, Any] = {
            "test": "trap",
            "difference": lambda _: [("yes" if t == DIFFERENT else "no") for t in rows["trap"]],
            "share that rejects": "share",
            "±": lambda _: share_error(column(rows, "share"), column(rows, "n_tests")),
            "an earlier rerun": lambda _: [TRAPS[t].before for t in rows["trap"]],
        }
        found = remarks(
            self.name, "rates", **dict(zip(("trap", "bags"), rows["share"], strict=False))
        )
        return [table("Share that rejects at .05", rows, columns, found)]

    def draw(self, results: Sequence[Result]) -> None:
        rows = frame(results)
        at, shares = np.arange(len(rows)), column(rows, "share")
        before = np.array([TRAPS[t].before for t in rows["trap"]], dtype=float)
        curves = [
            Curve(at, shares, "here", BLUE, "o", share_error(shares, column(rows, "n_tests"))),
            Curve(at, before, "an earlier rerun", GREY, "x"),
        ]
        with self.picture("traps.png", self.title, 1, 9.0, 6.0) as (_, [axis]):
            lines(axis, curves, "", "share of data sets that reject", levels={".05": LEVEL})
            axis.set_xticks(at, labels=rows["trap"].tolist(), rotation=90, fontsize=8)
