"""`FastMMD`: MMD² from random features and Fastfood compared with all pairs, few pairs and blocks.

002, §4, Figures 5 to 8 and Table 1: errors, spreads over bandwidths, times, tests with every null,
and vectors of the shape of an image collection's.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bagbasis.core.arrays import Floats
from bagbasis.hypotheses import TWO_SAMPLE, HypothesisResult, two_sample_test
from bagbasis.hypotheses.nulls.wild_bootstrap import WILD

from ..data.samples import blobs, histograms, ring, uniform
from ..kit import Callback, Curves, Experiment, Measure, Params, counted
from ..kit.rates import shares
from ..timing import one_thread, timed_in_turn, timed_once

_LEVEL = 0.05
_RATIO = 4.0  # ε of errors
_FAST = ("fourier", "fastfood")
_FEW = (*_FAST, "mmd_block", "mmd_linear")  # that do not take all pairs
_METHODS = (*_FEW, "mmd_u")
FREQUENCIES_OF_SPREAD = 1024  # L, as in 002
_ONCE = 10_000  # points of each set from which a call of all pairs is made once
LONG = 2**32  # products of a call's points, dimensions and frequencies from which it is made once


class FastMMD(Experiment):
    name = "fastmmd"
    title = "Maximum mean discrepancy from random features"
    source = "002, §4"
    pictures = (
        Curves("errors.png", ("fourier.unbiased", "fastfood.unbiased"), measure="error", x="L",
               log="xy"),
        Curves("times.png", _METHODS, measure="time", x="n_points", where={"over": "points"},
               log="xy", label="seconds"),
        Curves("tests.png", _METHODS, measure="test", x="ratio", label="share that rejects"),
    )  # fmt: skip

    def measures(self) -> list[Measure]:
        s = self.settings
        tests = {"n_points": s.n_points, "n_shuffles": s.n_shuffles, "n_tests": s.n_tests}
        of_ratios = {**tests, "L": s.frequencies_of_ratios, "methods": list(_METHODS)}
        few = {"n_tests": s.n_tests_of_nulls, "ratio": s.power_ratio}
        nulls = [(name, null) for name in ("mmd_b", "fourier") for null in TWO_SAMPLE[name].nulls
                 if null != WILD]  # fmt: skip
        return [
            Measure("error", self._errors, "error L {L}", {"L": s.n_frequencies},
                    {"n_points": s.n_points, "n_trials": s.n_trials}),
            Measure("spread", self._spread, "spread sigma {sigma:g}", {"sigma": s.bandwidths},
                    {"n_trials": s.n_spread}),
            Measure("time", self._times, "time N {n_points} d {d}", {"n_points": s.sizes},
                    {"over": "points", "d": 16, "L": 128}),
            Measure("time", self._times, "time N {n_points} d {d}", {"d": s.dims},
                    {"over": "dims", "n_points": s.size_of_dims, "L": s.frequencies_of_dims}),
            Measure("power", self._tests, "power L {L}", {"L": s.power_frequencies},
                    {**tests, "ratio": s.power_ratio, "methods": list(_FAST)}),
            Measure("test", self._tests, "test ratio 1", {},
                    {**of_ratios, "ratio": 1.0, "n_tests": s.n_null}),
            Measure("test", self._tests, "test ratio {ratio:g}", {"ratio": s.ratios}, of_ratios),
            Measure("null", self._null, "null {method} {null}", {"method null": nulls},
                    {**of_ratios, **few}),
            Measure("vectors", self._vectors, "vectors of {d} numbers", {},
                    {"sizes": s.vectors, "d": s.vector_dims, "L": s.vector_frequencies,
                     "n_repeats": s.n_repeats}),
        ]  # fmt: skip

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure relative differences from the exact MMD² of one pair of sets."""
        rng = self.rng(0)
        X, Y = (blobs(rng, p["n_points"], ratio) for ratio in (1.0, _RATIO))
        with one_thread():
            exact = [compare_statistics(X, Y, name).statistic for name in ("mmd_b", "mmd_u")]
            estimates = []
            for i in counted(range(p["n_trials"]), progress):
                options = {"L": p["L"], "seed": self.seed + i}
                both = [compare_statistics(X, Y, name, **options) for name in _FAST]
                estimates.append([[r.details["biased"], r.statistic] for r in both])
        errors = np.abs(np.array(estimates) - exact).mean(axis=0) / exact
        rows = {"exact": exact, **dict(zip(_FAST, errors, strict=True))}
        return {name: {"biased": b, "unbiased": u} for name, (b, u) in rows.items()}

    def _spread(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure means and deviations of unbiased MMD², over frequencies and over orders."""
        X, Y = ring(self.rng(3), 200)
        with one_thread():
            exact = compare_statistics(X, Y, "mmd_u", p["sigma"]).statistic
            drawn = p["sigma"], FREQUENCIES_OF_SPREAD, p["n_trials"]
            spreads = self._repeated(X, Y, *drawn, progress)
        return {"exact": exact, **spreads}

    def _repeated(
        self, X: Floats, Y: Floats, sigma: float, L: int, n: int, progress: Callback
    ) -> dict[str, tuple[float, float]]:
        """Return mean and deviation of each MMD² that is drawn, of frequencies or of orders."""
        rng, values = self.rng(3, 1), np.empty((n, len(_FEW)))
        for i in counted(range(n), progress):
            P, Q = rng.permutation(X), rng.permutation(Y)
            seed = int(rng.integers(2**32))
            values[i] = [compare_statistics(P, Q, name, sigma, L, seed).statistic for name in _FEW]
        spread = zip(_FEW, values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)
        return {name: (float(mean), float(deviation)) for name, mean, deviation in spread}

    def _times(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Time an MMD², with a permutation where it has these, on one thread."""
        n, d, L = p["n_points"], p["d"], p["L"]
        X, Y = uniform(self.rng(4), n, d)
        calls = {name: partial(compare_statistics, X, Y, name, L=L) for name in _METHODS}
        exact = {"mmd_u": calls.pop("mmd_u")}
        with one_thread():
            seconds = timed_in_turn(calls, 5 if n * d * L < LONG else 1)
            progress(1, 2)
            seconds |= timed_in_turn(exact, 3) if n < _ONCE else timed_once(exact)
        progress(2, 2)
        return seconds

    def _tests(self, p: Params, progress: Callback) -> dict[str, Any]:
        def p_value(name: str, i: int) -> float:
            X, Y, seed = self._blobs(p, i)
            return compare_statistics(X, Y, name, L=p["L"], seed=seed, n=p["n_shuffles"]).p_value

        tests = {name: partial(p_value, name) for name in p["methods"]}
        return dict(shares(tests, p["n_tests"], _LEVEL, progress))

    def _null(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Return rejections with one null, without a difference and with one, and time it."""
        seconds = []

        def p_value(ratio: float, i: int) -> float:
            X, Y, seed = self._blobs({**p, "ratio": ratio}, i)
            result = compare_statistics(X, Y, p["method"], L=p["L"], seed=seed, n=p["n_shuffles"],
                             null=p["null"])  # fmt: skip
            seconds.append(result.seconds)
            return result.p_value

        tests = {"first": partial(p_value, 1.0), "found": partial(p_value, p["ratio"])}
        rates = shares(tests, p["n_tests"], _LEVEL, progress)
        return {**rates, "seconds": float(np.median(seconds))}

    def _blobs(self, p: Params, i: int) -> tuple[Floats, Floats, int]:
        rng = self.rng(5, i, round(100 * p["ratio"]))
        X, Y = (blobs(rng, p["n_points"], ratio) for ratio in (1.0, p["ratio"]))
        return X, Y, int(rng.integers(2**32))

    def _vectors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure Table 1: unbiased MMD² of long sparse vectors, and seconds of one of each."""
        X, Y = histograms(self.rng(6), p["sizes"], p["d"])
        n = min(p["sizes"])
        sigma = float(np.sqrt(((X[:n] - Y[:n]) ** 2).sum(axis=1).mean()))
        with one_thread():
            once = {name: compare_statistics(X, Y, name, sigma, p["L"]) for name in _METHODS}
            spreads = self._repeated(X, Y, sigma, p["L"], p["n_repeats"], progress)
        seconds = {name: result.seconds for name, result in once.items()}
        exact = once["mmd_u"].statistic, 0.0
        return {"sigma": sigma, "seconds": seconds, "mmd_u": exact, **spreads}


def compare_statistics(
    X: Floats, Y: Floats, name: str, sigma: float = 1.0, L: int = 0, seed: int = 0, n: int = 1,
    null: str | None = None,
) -> HypothesisResult:  # fmt: skip
    """Compare two sets by a statistic, the fast ones with L frequencies, with n permutations."""
    kind: Any = TWO_SAMPLE[name]
    statistic = kind(n_frequencies=L) if name in _FAST else kind()
    return two_sample_test(
        X, Y, statistic=statistic, kernel="gaussian", bandwidth=sigma, null=null,
        n_permutations=n, seed=seed, standardize=False,
    )  # fmt: skip
