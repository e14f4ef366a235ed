"""`PowerOverSizes`: what several tests find of several problems, over the size of the sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ....core.arrays import Floats
from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import column, frame, whole_table
from ..kit.notes import remarks
from ..kit.plots import BLACK, GREEN, PURPLE, RED, Curve, lines
from ..kit.rates import share_error, shares
from ..kit.verdicts import listing

LEVEL = 0.05
COLORS = (BLUE, PURPLE, GREEN, ORANGE, GREY, RED, BLACK)
SURE = 2.0  # standard errors from which a method's lead is one
Draw = Callable[..., Any]
"""From a generator and a size to the data of a test."""
Test = Callable[[Any, int], float]
"""From data and a seed to a p-value."""


class Sizes(Scale):
    """A scale of such an experiment."""

    n_points: list[int]
    n_tests: int


class PowerOverSizes(Experiment[Sizes]):
    """A point is a problem at a size, with the shares of data sets in which each test rejects.

    Attributes
    ----------
    problems : mapping from a name to what draws the data of a test
    methods : mapping from a name to a test
    nothing : str
        The problem without an effect.
    of_paper : str
        What the source has, in a clause.
    """

    kind = Sizes
    problems: ClassVar[Mapping[str, Draw]]
    methods: ClassVar[Mapping[str, Test]]
    nothing: ClassVar[str]
    of_paper: ClassVar[str]

    @property
    def size(self) -> str:
        s = self.settings
        each = f"{s.n_tests:,} data sets per problem and size, {listing(s.n_points)} points"
        return f"{each}; {self.of_paper}."

    def measures(self) -> list[Measure]:
        s = self.settings
        axes: dict[str, Any] = {"problem": list(self.problems), "n": s.n_points}
        fixed = {"n_tests": s.n_tests, "methods": list(self.methods)}
        return [Measure("", self._power, "{problem} n {n}", axes, fixed)]

    def _power(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the share of rejections of each test, over the same data sets."""
        draw = self.problems[p["problem"]]

        def p_value(name: str, i: int) -> float:
            return self.methods[name](draw(self.rng(i), p["n"]), i)

        tests = {name: partial(p_value, name) for name in p["methods"]}
        return shares(tests, p["n_tests"], LEVEL, progress)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make a table per problem, and say who finds most."""
        made = []
        for problem in self.problems:
            rows = frame(results, problem=problem)
            shown = pd.DataFrame({"n": rows["n"], **{name: rows[name] for name in self.methods}})
            section = "nothing" if problem == self.nothing else "power"
            notes = remarks(self.name, section, n_tests=rows["n_tests"][0], best=self._best(rows))
            made.append(whole_table(f"Share that rejects at .05: {problem}", shown, notes))
        return made

    def _best(self, rows: pd.DataFrame) -> str:
        """Name the tests that are not surely behind the best, at the size that tells most apart."""
        rates: Floats = rows[list(self.methods)].to_numpy(dtype=float)
        at = int((rates.max(axis=1) - rates.min(axis=1)).argmax())
        best, n_tests = rates[at].max(), rows["n_tests"][0]
        error = SURE * np.hypot(share_error(rates[at], n_tests), share_error(best, n_tests))
        pairs = zip(self.methods, rates[at], best - rates[at] <= error, strict=True)
        leading = [f"{name} ({share:.2f})" for name, share, leads in pairs if leads]
        return f"of {rows['n'][at]:,} points: {listing(leading)}"

    def draw(self, results: Sequence[Result]) -> None:
        """Draw a panel per problem."""
        n_panels, known = len(self.problems), {"level .05": LEVEL}
        title = f"{self.title}: share of data sets that reject at .05"
        with self.picture("power.png", title, n_panels, 4.2 * n_panels, 4.4) as (_, axes):
            for axis, problem in zip(axes, self.problems, strict=True):
                rows = frame(results, problem=problem)
                curves = [
                    Curve(rows["n"], column(rows, name), name, color, "o-",
                          share_error(column(rows, name), column(rows, "n_tests")))
                    for name, color in zip(self.methods, COLORS, strict=False)
                ]  # fmt: skip
                lines(axis, curves, "points n", "share", log="x", ticks=list(rows["n"]),
                      levels=known, title=problem)  # fmt: skip
                axis.set_ylim(-0.03, 1.03)
