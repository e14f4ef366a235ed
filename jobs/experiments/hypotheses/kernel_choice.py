"""`KernelChoice`: the power of a test over its bandwidth, and of bandwidths that criteria choose.

000, §6.4. The problems are: another variance (N(0, I) and N(0, I + e₁e₁ᵀ) in R²), blobs, and no
difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bagbasis.hypotheses import two_sample_test
from bagbasis.hypotheses.two_samples.kernel_choice import CRITERIA

from ....core.arrays import Floats
from ...pictures import BLUE, GREY, ORANGE
from ...terminal import Callback
from ..data.samples import blobs
from ..kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from ..kit.frame import column, frame, whole_table
from ..kit.notes import remarks
from ..kit.plots import GREEN, PURPLE, Curve, lines
from ..kit.rates import share_error, shares

LEVEL = 0.1  # α, as in 000
RATIO = 6.0  # ε of blobs
PROBLEMS = ("variance", "blobs", "none")
NAMES = {"median": "median", "max_mmd": "MMD", "t": "t̂", "tau": "τ̂"}
COLORS = dict(zip(NAMES, (GREY, GREEN, PURPLE, ORANGE), strict=True))


class Sizes(Scale):
    """See ``configs/experiments/kernel-choice.yaml``."""

    n_points: dict[str, int]
    widths: list[float]
    n_tests: int
    n_permutations: int


class KernelChoice(Experiment[Sizes]):
    """See the module; a point is a problem at a bandwidth, or with a criterion."""

    name = "kernel-choice"
    title = "The choice of the bandwidth"
    source = "000, §6.4"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        sizes = ", ".join(f"{name} {n:,}" for name, n in s.n_points.items())
        return (
            f"{s.n_tests} data sets per point, {s.n_permutations} permutations, points per sample: "
            f"{sizes}; {len(s.widths)} bandwidths from {s.widths[0]:.2g} to {s.widths[-1]:.3g}. "
            "000 has 100 and 1,000; variance 100, blobs 500; 30 bandwidths from 0.02 to 50."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        fixed = {"n_tests": s.n_tests, "n_permutations": s.n_permutations}
        problems = [(name, s.n_points[name]) for name in PROBLEMS]
        return [
            Measure("width", self._rate, "{problem} sigma {bandwidth:.3g}",
                    {"problem n": problems[:2], "bandwidth": s.widths}, fixed),
            Measure("criterion", self._rate, "{problem} by {bandwidth}",
                    {"problem n": problems, "bandwidth": list(NAMES)}, fixed),
        ]  # fmt: skip

    def _rate(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the share of rejections, and the bandwidths that were chosen.

        A criterion that chooses on half of the rows gets twice as many: the test has n of each.
        """
        chosen = np.empty(p["n_tests"])
        n = p["n"] * (2 if p["bandwidth"] in CRITERIA else 1)

        def p_value(i: int) -> float:
            X, Y = draw(self.rng(i), p["problem"], n)
            result = two_sample_test(
                X, Y, bandwidth=p["bandwidth"], n_permutations=p["n_permutations"], seed=i,
                standardize=False,
            )  # fmt: skip
            chosen[i] = float(result.kernel.rpartition(" ")[2])
            return result.p_value

        found = shares({"share": p_value}, p["n_tests"], LEVEL, progress)
        low, middle, high = np.quantile(chosen, (0.25, 0.5, 0.75))
        return {**found, "low": low, "middle": middle, "high": high}

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Make the tables of criteria and of bandwidths."""
        rows = frame(results, measure="criterion")
        shown = pd.DataFrame({
            "problem": rows["problem"], "chosen by": [NAMES[c] for c in rows["bandwidth"]],
            "share that rejects": rows["share"],
            "±": share_error(rows["share"], rows["n_tests"]),
            "bandwidth, median": rows["middle"],
            "quartiles": [f"{a:.3g} – {b:.3g}" for a, b in zip(rows.low, rows.high, strict=True)],
        })  # fmt: skip
        widths = frame(results, measure="width")
        best = {}
        for problem in PROBLEMS[:2]:
            of = widths[widths["problem"] == problem]
            best[problem] = of.iloc[int(column(of, "share").argmax())]
        at = widths.pivot(index="bandwidth", columns="problem", values="share")[[*best]]
        at.insert(0, "σ", [f"{width:.3g}" for width in at.index])
        return [
            whole_table("Chosen bandwidths", shown, remarks("kernel-choice", "criteria", **best)),
            whole_table("Share that rejects over the bandwidth", at,
                        remarks("kernel-choice", "widths", **best)),
        ]  # fmt: skip

    def draw(self, results: Sequence[Result]) -> None:
        """Draw the power over the bandwidth, and where the criteria are on it."""
        title = f"Share that rejects at {LEVEL:g}"
        with self.picture("power.png", title, 2, 12.0, 4.8, sharey=True) as (_, axes):
            for axis, problem in zip(axes, PROBLEMS, strict=False):
                rows = frame(results, measure="width", problem=problem)
                shares = column(rows, "share")
                error = share_error(shares, column(rows, "n_tests"))
                curves = [Curve(column(rows, "bandwidth"), shares, "fixed", BLUE, "o-", error)]
                of = frame(results, measure="criterion", problem=problem).set_index("bandwidth")
                for name, text in NAMES.items():
                    row = of.loc[name]
                    curves.append(Curve([row["middle"]], [row["share"]], text, COLORS[name], "*"))
                lines(axis, curves, "bandwidth σ", "share", log="x", levels={"level": LEVEL},
                      title=f"{problem}, {rows['n'][0]:,} points per sample")  # fmt: skip


def draw(rng: np.random.Generator, problem: str, n: int) -> tuple[Floats, NDArray[np.float64]]:
    """Draw two samples of n points of a problem."""
    if problem == "blobs":
        return blobs(rng, n, 1.0), blobs(rng, n, RATIO)
    X, Y = rng.standard_normal((2, n, 2))
    if problem == "variance":
        Y[:, 0] *= 2**0.5
    return X, Y
