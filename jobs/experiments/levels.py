"""`Levels`: how often each two-sample test rejects where there is no difference.

Two samples of points from one normal law, and two samples of bags of unequal sizes that differ from
each other within a sample; every statistic with every null that it admits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis.embeddings import MeanMapEmbedding
from bagbasis.execution.lanes import use_cores
from bagbasis.hypotheses import TWO_SAMPLE, two_sample_test

from ..terminal import Callback
from .kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from .kit.frame import column, frame, table
from .kit.notes import remarks
from .kit.plots import BLUE, GREEN, ORANGE, Curve, lines

ALPHAS = (0.01, 0.05, 0.1)
COLORS = dict(zip(ALPHAS, (GREEN, BLUE, ORANGE), strict=True))
N_FIRST, N_SECOND = 100, 80  # points of each sample
N_BAGS = (60, 40)  # of each sample, of 10 to 30 points around a mean of deviation ½
OF_BAGS = (("fourier", "spectral"), ("me", "chi_square"))
WITHIN = 3.0  # standard errors of a rate


class Sizes(Scale):
    """See ``configs/experiments/levels.yaml``."""

    n_tests: int
    n_permutations: int
    statistics: list[str]


class Levels(Experiment[Sizes]):
    """See the module; a point is a statistic with a null, on points or on bags."""

    name = "levels"
    title = "How often two-sample tests reject without a difference"
    source = "002, §5; 003"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"{s.n_tests:,} pairs of samples per test, {s.n_permutations} permutations; points: "
            f"{N_FIRST} against {N_SECOND} in R²; bags: {N_BAGS[0]} against {N_BAGS[1]} of 10 to "
            "30 points. No paper prints such rates."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        tests = [(name, null) for name in s.statistics for null in TWO_SAMPLE[name].nulls]
        of_bags = [test for test in OF_BAGS if test[0] in s.statistics]
        fixed = {"n_tests": s.n_tests, "n_permutations": s.n_permutations}
        return [
            Measure("points", self._rates, "points {statistic} {null}",
                    {"statistic null": tests}, fixed),
            Measure("bags", self._rates, "bags {statistic} {null}",
                    {"statistic null": of_bags}, fixed),
        ]  # fmt: skip

    def _rates(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the share of p-values up to each α."""
        draw = _points if p["measure"] == "points" else _bags
        embedding = None if p["measure"] == "points" else MeanMapEmbedding(n_features=32)
        values = np.empty(p["n_tests"])
        with use_cores(1):  # of products of so few rows more threads wait for each other
            for i in range(len(values)):
                a, b = draw(self.rng(i))
                values[i] = two_sample_test(
                    a, b, statistic=p["statistic"], null=p["null"], seed=i,
                    n_permutations=p["n_permutations"], embedding=embedding,
                ).p_value  # fmt: skip
                progress(i + 1, len(values))
        return {f"{alpha:g}": float((values <= alpha).mean()) for alpha in ALPHAS}

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make the table of rates, with the standard errors that each is away from α."""
        rows = frame(results)
        columns: dict[str, Any] = {"sample of": "measure", "statistic": "statistic", "null": "null"}
        far = {}
        for alpha in ALPHAS:
            columns[f"α = {alpha:g}"] = f"{alpha:g}"
            far[alpha] = _away(column(rows, f"{alpha:g}"), alpha, column(rows, "n_tests"))
        columns["most standard errors above α"] = lambda _: np.max(list(far.values()), axis=0)
        above = np.max(list(far.values()), axis=0)
        names = (rows["statistic"] + " with " + rows["null"]).to_numpy()
        liberal = ", ".join(dict.fromkeys(names[above > WITHIN]))
        found = remarks("levels", "rates", n=len(rows), n_in=int((above <= WITHIN).sum()),
                        liberal=liberal, within=WITHIN)  # fmt: skip
        return [table("Rates of rejection without a difference", rows, columns, found)]

    def draw(self, results: Sequence[Result]) -> None:
        rows = frame(results)
        at = np.arange(len(rows))
        curves = []
        for alpha, color in COLORS.items():
            error = WITHIN * (alpha * (1 - alpha) / column(rows, "n_tests")) ** 0.5
            curves.append(
                Curve(at, column(rows, f"{alpha:g}"), f"α = {alpha:g}", color, "o", error)
            )
        title = "Rates of rejection without a difference, ± three standard errors"
        levels = {f"{alpha:g}": alpha for alpha in ALPHAS}
        with self.picture("levels.png", title, 1, 12.0, 5.5) as (_, [axis]):
            lines(axis, curves, "", "share of tests that reject", levels=levels)
            names = rows["measure"] + ": " + rows["statistic"] + ", " + rows["null"]
            axis.set_xticks(at, labels=names.tolist(), rotation=90, fontsize=7)


def _points(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return rng.standard_normal((N_FIRST, 2)), rng.standard_normal((N_SECOND, 2))


def _bags(rng: np.random.Generator) -> list[list[NDArray[np.float64]]]:
    return [
        [
            0.5 * rng.standard_normal(2) + rng.standard_normal((rng.integers(10, 31), 2))
            for _ in range(n)
        ]
        for n in N_BAGS
    ]


def _away(rates: NDArray[Any], alpha: float, n: NDArray[Any]) -> NDArray[Any]:
    """Return the standard errors that rates are above α."""
    found: NDArray[Any] = (rates - alpha) / (alpha * (1 - alpha) / n) ** 0.5
    return found
