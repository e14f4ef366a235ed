"""`KernelChoice`: the power over the bandwidth, and of bandwidths that criteria choose (000, §6.4).

Problems: N(0, I) and N(0, I + e₁e₁ᵀ) in R², blobs, and no difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import two_sample_test
from bagbasis.hypotheses.two_samples.kernel_choice import KERNEL_CRITERIA

from ..data.samples import blobs
from ..kit import Callback, Curves, Experiment, Measure, Params
from ..kit.rates import shares

_LEVEL = 0.1  # α, as in 000
_RATIO = 6.0  # ε of blobs
_PROBLEMS = ("variance", "blobs", "none")
_CRITERIA = ("median", "max_mmd", "t", "tau")


class KernelChoice(Experiment):
    name = "kernel-choice"
    title = "The choice of the bandwidth"
    source = "000, §6.4"
    pictures = (
        Curves("power.png", "share", measure="width", x="bandwidth", panels="problem", log="x"),
    )

    def measures(self) -> list[Measure]:
        s = self.settings
        fixed = {"n_tests": s.n_tests, "n_permutations": s.n_permutations}
        problems = [(name, s.n_points[name]) for name in _PROBLEMS]
        return [
            Measure("width", self._rate, "{problem} sigma {bandwidth:.3g}",
                    {"problem n": problems[:2], "bandwidth": s.widths}, fixed),
            Measure("criterion", self._rate, "{problem} by {bandwidth}",
                    {"problem n": problems, "bandwidth": list(_CRITERIA)}, fixed),
        ]  # fmt: skip

    def _rate(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return the fraction of rejections, and the bandwidths that were chosen.

        A criterion that chooses on half of the rows gets twice as many: the test has n of each.
        """
        chosen = np.empty(p["n_tests"])
        n = p["n"] * (2 if p["bandwidth"] in KERNEL_CRITERIA else 1)

        def p_value(i: int) -> float:
            X, Y = _draw(self.rng(i), p["problem"], n)
            result = two_sample_test(
                X, Y, bandwidth=p["bandwidth"], n_permutations=p["n_permutations"], seed=i,
                standardize=False,
            )  # fmt: skip
            chosen[i] = float(result.kernel.rpartition(" ")[2])
            return result.p_value

        rates = shares({"share": p_value}, p["n_tests"], _LEVEL, progress)
        low, middle, high = np.quantile(chosen, (0.25, 0.5, 0.75))
        return {**rates, "low": low, "middle": middle, "high": high}


def _draw(rng: np.random.Generator, problem: str, n: int) -> tuple[Floats, Floats]:
    if problem == "blobs":
        return blobs(rng, n, 1.0), blobs(rng, n, _RATIO)
    X, Y = rng.standard_normal((2, n, 2))
    if problem == "variance":
        Y[:, 0] *= 2**0.5
    return X, Y
