"""`FastMMD`: MMD² from random features against all pairs of points, few pairs, and blocks of pairs.

002, §4.1-4.3 and 4.5, Figures 5 to 8: errors over the number L of frequencies, spreads over
bandwidths, times over the number of points N and of dimensions d, and tests of shuffled sets over
L and over how much the two densities differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bagbasis.divergences import divergence_matrix
from bagbasis.embeddings import MeanMapEmbedding

from ..terminal import Callback
from .data.samples import blobs, ring, uniform
from .kit.experiment import Experiment, Measure, Params, Result, Scale, Table
from .kit.frame import Floats, column, frame, pair, table, whole_table
from .kit.notes import remarks
from .kit.plots import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, Curve, lines
from .kit.timing import DISTURBED, exponent, one_thread, timed_in_turn, timed_once
from .two_sample import (
    LEVEL,
    block_mmds,
    exact_mmd,
    exact_rejects,
    mean_test_rejects,
    pair_mmds,
    random_feature_mmd,
    random_feature_rejects,
    splits,
)

SIGMA, RATIO = 1.0, 4.0  # of the kernel, and ε of errors
BLOCK = 14  # points of a block of the B-test in the spread: the root of 200, as in 002
FREQUENCIES_OF_SPREAD = 1024  # L, as in 002
ONCE = 10.0  # seconds: a call that is likely to take longer is made once
SECONDS_PER_PAIR = 1e-9  # of points: a rough one, which only decides how often a call is made
LONG = 2**32  # products of a call's points, dimensions and frequencies from which it is made once
MOST_DOUBLE = 10_000  # points of the exact MMD² in double precision: four times as long each
NAMES = {
    "random features": "random features",
    "mean map": "MeanMapEmbedding",
    "B-test": "B-test",
    "linear": "MMD-linear",
    "exact": "exact",
    "exact, double": "exact, double precision",
}
COLORS = dict(zip(NAMES, (BLUE, PURPLE, GREEN, GREY, ORANGE, BLACK), strict=True))
TIMED = {
    "points": tuple(NAMES),
    "dims": ("random features", "B-test", "linear", "exact"),
}
TESTED = ("random features", "exact", "B-test", "linear")
SPREAD = ("random features", "B-test", "linear")
PAPER_SHUFFLES = 1000
PAPER_SPEEDUP, PAPER_SIZE = 2000, 100_000  # 002, §4.3, N = 10^5


class Sizes(Scale):
    """See ``configs/experiments/fastmmd.yaml``."""

    n_points: int
    n_frequencies: list[int]
    n_trials: int
    bandwidths: list[float]
    n_spread: int
    sizes: list[int]
    dims: list[int]
    size_of_dims: int
    frequencies_of_dims: int
    power_frequencies: list[int]
    power_ratio: float
    ratios: list[float]
    frequencies_of_ratios: int
    n_tests: int
    n_shuffles: int
    n_null: int


class FastMMD(Experiment[Sizes]):
    """See the module."""

    name = "fastmmd"
    title = "Maximum mean discrepancy from random features"
    source = "002, §4"
    kind = Sizes

    @property
    def size(self) -> str:
        s = self.settings
        return (
            f"Errors: {s.n_points:,} points per set, {s.n_trials} draws of frequencies (the paper: "
            f"1,000 and 1,000). Times: N from {s.sizes[0]:,} to {s.sizes[-1]:,} with d = 16 (the "
            f"paper: 1,000 to 100,000), d from {s.dims[0]} to {s.dims[-1]:,} with "
            f"{s.size_of_dims:,} points (8 to 1,024, 10,000). Tests: {s.n_tests} data sets, "
            f"{s.n_shuffles} shuffles (100 and 1,000), ε up to {max(s.ratios):g} (3). The "
            "photographs of §4.4 are not to be had."
        )

    def measures(self) -> list[Measure]:
        s = self.settings
        tests = {"n_points": s.n_points, "n_shuffles": s.n_shuffles, "n_tests": s.n_tests}
        of_ratios = {**tests, "L": s.frequencies_of_ratios}
        of_dims = {"over": "dims", "n_points": s.size_of_dims, "L": s.frequencies_of_dims}
        return [
            Measure("error", self._errors, "error L {L}", {"L": s.n_frequencies},
                    {"n_points": s.n_points, "n_trials": s.n_trials}),
            Measure("spread", self._spread, "spread sigma {sigma:g}", {"sigma": s.bandwidths},
                    {"n_trials": s.n_spread}),
            Measure("time", self._times, "time N {n_points} d {d}", {"n_points": s.sizes},
                    {"over": "points", "d": 16, "L": 128}),
            Measure("time", self._times, "time N {n_points} d {d}", {"d": s.dims}, of_dims),
            Measure("power", self._power, "power L {L}", {"L": s.power_frequencies},
                    {**tests, "ratio": s.power_ratio}),
            Measure("test", self._tests, "test ratio 1", {},
                    {**of_ratios, "ratio": 1.0, "n_tests": s.n_null}),
            Measure("test", self._tests, "test ratio {ratio:g}", {"ratio": s.ratios}, of_ratios),
        ]  # fmt: skip

    # ------------------------------------------------------------------ what is measured

    def _errors(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure relative differences from the exact MMD² of one pair of sets."""
        rng = self.rng(0)
        X, Y = (blobs(rng, p["n_points"], ratio) for ratio in (1.0, RATIO))
        seeds: list[int] = np.ravel(
            self.rng(2, p["L"]).integers(2**32, size=p["n_trials"])
        ).tolist()
        found: list[tuple[float, float]] = []
        with one_thread():
            exact = np.array(exact_mmd(X, Y, SIGMA, "float64"))
            for done, seed in enumerate(seeds, 1):
                found.append(random_feature_mmd(X, Y, SIGMA, p["L"], seed))
                progress(done, len(seeds))
        relative = np.abs(np.array(found) - exact) / exact
        return {
            "biased": relative[:, 0].mean(),
            "unbiased": relative[:, 1].mean(),
            "exact_biased": exact[0],
            "exact_unbiased": exact[1],
        }

    def _spread(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Measure means and deviations of unbiased MMD², over frequencies and over orders."""
        rng, n_trials, sigma = self.rng(3), p["n_trials"], p["sigma"]
        X, Y = ring(rng, 200)
        found: dict[str, list[float]] = {"random features": [], "linear": [], "B-test": []}
        with one_thread():
            for done in range(1, n_trials + 1):
                P, Q = rng.permutation(X), rng.permutation(Y)
                seed = int(rng.integers(2**32))
                fast = random_feature_mmd(X, Y, sigma, FREQUENCIES_OF_SPREAD, seed)
                found["random features"].append(fast[1])
                found["linear"].append(float(pair_mmds(P, Q, sigma).mean()))
                found["B-test"].append(float(block_mmds(P, Q, sigma, BLOCK).mean()))
                progress(done, n_trials)
            exact = exact_mmd(X, Y, sigma, "float64")[1]
        return {
            "exact": exact,
            **{name: [np.mean(v), np.std(v, ddof=1)] for name, v in found.items()},
        }

    def _times(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Time an MMD² on one thread."""
        n, d, n_frequencies = p["n_points"], p["d"], p["L"]
        X, Y = uniform(self.rng(4), n, d)
        box = [(0.0, 1.0)] * d
        embedding = MeanMapEmbedding(n_features=2 * n_frequencies, bandwidth=SIGMA, box=box)
        calls: dict[str, Callable[[], Any]] = {
            "random features": lambda: random_feature_mmd(X, Y, SIGMA, n_frequencies, 0),
            "linear": lambda: pair_mmds(X, Y, SIGMA),
            "B-test": lambda: block_mmds(X, Y, SIGMA, int(n**0.5)),
        }
        if p["over"] == "points":
            calls["mean map"] = lambda: embedding.fit_transform([X, Y])
        exact = {"exact": lambda: exact_mmd(X, Y, SIGMA)}
        double = {"exact, double": lambda: divergence_matrix([X], [Y], "mmd", bandwidth=SIGMA)}
        with one_thread():
            seconds = timed_in_turn(calls, 5 if n * d * n_frequencies < LONG else 1)
            progress(1, 2)
            short = n**2 * SECONDS_PER_PAIR * max(2, d / 16) < ONCE
            seconds |= timed_in_turn(exact, 3) if short else timed_once(exact)
            if p["over"] == "points" and n <= MOST_DOUBLE:
                seconds |= timed_once(double)
        progress(2, 2)
        return seconds

    def _power(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Count rejections of the test by random features alone."""
        return self._rejections(p, progress, ("random features",))

    def _tests(self, p: Params, progress: Callback) -> dict[str, Any]:
        """Count rejections of all tests."""
        return self._rejections(p, progress, ("random features", "exact", "B-test", "linear"))

    def _rejections(self, p: Params, progress: Callback, methods: Sequence[str]) -> dict[str, Any]:
        """Count how often each test finds a difference, over the same data sets."""
        n, ratio, n_tests = p["n_points"], p["ratio"], p["n_tests"]
        shuffles = splits(n, p["n_shuffles"], self.seed)
        counts = dict.fromkeys(methods, 0)
        with one_thread():
            for done in range(n_tests):
                rng = self.rng(5, done, round(100 * ratio))
                X, Y = blobs(rng, n, 1.0), blobs(rng, n, ratio)
                tests = _tests_of(X, Y, p["L"], int(rng.integers(2**32)), shuffles)
                for method in methods:
                    counts[method] += tests[method]()
                progress(done + 1, n_tests)
        return {method: n_rejected / n_tests for method, n_rejected in counts.items()}

    # ------------------------------------------------------------------ tables

    def tables(self, results: Sequence[Result]) -> list[Table]:
        return [
            _error_table(frame(results, measure="error")),
            _spread_table(frame(results, measure="spread")),
            _times_over_points(frame(results, measure="time", over="points")),
            _times_over_dims(frame(results, measure="time", over="dims")),
            *_rejection_tables(frame(results, measure="power"), frame(results, measure="test")),
        ]

    # ------------------------------------------------------------------ pictures

    def draw(self, results: Sequence[Result]) -> None:
        self._draw_errors(frame(results, measure="error"))
        self._draw_spreads(frame(results, measure="spread"))
        self._draw_times(results)
        self._draw_tests(frame(results, measure="power"), frame(results, measure="test"))

    def _draw_errors(self, rows: pd.DataFrame) -> None:
        """Draw 002, Figure 5."""
        curves = []
        for form, color in (("biased", BLUE), ("unbiased", ORANGE)):
            x, y = pair(rows, "L", form)
            curves.append(Curve(x, y, f"{form} MMD²: ∝ L^{exponent(x, y):.3f}", color))
            label = "∝ L^(−1/2), as 002 proves" if form == "biased" else None
            curves.append(Curve(x, y[0] * (x / x[0]) ** -0.5, label, BLACK, ":"))
        title = "Error of MMD² from random features, blobs with ε = 4"
        with self.picture("errors.png", title, 1, 7.5, 5.0) as (_, [axis]):
            lines(axis, curves, "number of frequencies L (two features each)",
                  "mean |MMD² − exact| / exact", log="xy")  # fmt: skip

    def _draw_spreads(self, rows: pd.DataFrame) -> None:
        """Draw 002, Figure 6."""
        sigma = column(rows, "sigma")
        means = [Curve(sigma, rows["exact"], "exact", ORANGE, "-", more={"linewidth": 4})]
        deviations = []
        for i, method in enumerate(("linear", "B-test", "random features")):
            mean, deviation = np.array(rows[method].tolist()).T
            aside = sigma * 1.06 ** (i - 1)  # so that bars do not hide each other
            label, color = NAMES[method], COLORS[method]
            means.append(Curve(aside, mean, f"{label}, ± one deviation", color, "", deviation))
            deviations.append(Curve(sigma, deviation, label, color))
        title = "200 points of a ring against 200 around it, L = 1,024, blocks of 14 points"
        x = "bandwidth σ of the kernel"
        with self.picture("spreads.png", title, 2, 12.5, 5.0) as (_, [left, right]):
            lines(left, means, x, "unbiased MMD²", log="x")
            lines(right, deviations, x, "standard deviation of the unbiased MMD²", log="xy")

    def _draw_times(self, results: Sequence[Result]) -> None:
        """Draw 002, Figure 7."""
        panels = (("points", "n_points", "points in each set N"), ("dims", "d", "dimensions d"))
        with self.picture("times.png", "Time of one MMD²", 2, 11.5, 4.6) as (_, axes):
            for axis, (over, param, label) in zip(axes, panels, strict=True):
                rows = frame(results, measure="time", over=over)
                largest = rows.iloc[-1]
                curves = []
                for method in TIMED[over]:
                    x, y = pair(rows, param, method)
                    color, n = COLORS[method], largest[param]
                    curves.append(Curve(x, y, NAMES[method], color))
                    if x[-1] < n:
                        far = [y[-1], y[-1] * (n / x[-1]) ** 2]
                        curves.append(
                            Curve([x[-1], n], far, "extrapolated, not measured", color, ":")
                        )
                if largest["n_points"] == PAPER_SIZE:
                    star = PAPER_SPEEDUP * largest["random features"]
                    text = f"002: {PAPER_SPEEDUP:,} × our random features"
                    curves.append(Curve([PAPER_SIZE], [star], text, BLACK, "*"))
                of = "d = 16" if over == "points" else f"N = {largest['n_points']:,}"
                title = f"over {label[-1]}, {of}, L = {largest['L']:,}"
                lines(axis, curves, label, "seconds an MMD², one thread", log="xy", title=title)

    def _draw_tests(self, powers: pd.DataFrame, tests: pd.DataFrame) -> None:
        """Draw 002, Figure 8."""
        x, power = pair(powers, "L", "random features")
        over_ratios = []
        for method in TESTED:
            ratio, rejected = pair(tests, "ratio", method)
            other = ratio > 1
            label = f"{NAMES[method]} (first kind: {rejected[~other][0]:.3f})"
            over_ratios.append(Curve(ratio[other], 1 - rejected[other], label, COLORS[method]))
        p = tests.iloc[0]
        title = (
            f"Tests of level .05, {p['n_points']:,} points per set (right: L = {p['L']}; in "
            "brackets the error of the first kind, ε = 1)"
        )
        known = {"a test that knows nothing": 1 - LEVEL}
        y = f"error of the second kind, ε = {powers['ratio'][0]:g}"
        with self.picture("tests.png", title, 2, 12.5, 5.0) as (_, [left, right]):
            lines(left, [Curve(x, 1 - power, "random features")], "number of frequencies L", y,
                  log="x", levels=known)  # fmt: skip
            lines(right, over_ratios, "ratio ε of Q's eigenvalues", "error of the second kind",
                  levels=known)  # fmt: skip
            for axis in (left, right):
                axis.set_ylim(-0.03, 1.03)


def _tests_of(
    X: Floats, Y: Floats, n_frequencies: int, seed: int, shuffles: NDArray[np.float32]
) -> dict[str, Callable[[], bool]]:
    """Return functions that say whether each test finds a difference of two sets."""
    block = int(len(X) ** 0.5)
    return {
        "random features": lambda: random_feature_rejects(
            X, Y, SIGMA, n_frequencies, seed, shuffles
        ),
        "exact": lambda: exact_rejects(X, Y, SIGMA, shuffles),
        "B-test": lambda: mean_test_rejects(block_mmds(X, Y, SIGMA, block)),
        "linear": lambda: mean_test_rejects(pair_mmds(X, Y, SIGMA)),
    }


def _error_table(rows: pd.DataFrame) -> Table:
    """Make the table of 002, Figure 5."""
    slopes = {form: exponent(*pair(rows, "L", form)) for form in ("biased", "unbiased")}
    title = f"Mean relative error of MMD², {rows['n_points'][0]:,} points per set"
    columns = {"frequencies L": "L", "biased": "biased", "unbiased": "unbiased"}
    return table(title, rows, columns, remarks("fastmmd", "error", first=rows.iloc[0], **slopes))


def _spread_table(rows: pd.DataFrame) -> Table:
    """Make the table of 002, Figure 6."""
    shown = pd.DataFrame({"σ": [f"{sigma:.3g}" for sigma in rows["sigma"]], "exact": rows["exact"]})
    for i, what in enumerate(("mean", "deviation")):
        for method in SPREAD:
            shown[f"{what}, {NAMES[method]}"] = rows[method].str[i]
    pairs = zip(rows["B-test"], rows["random features"], strict=True)
    gains = [blocks[1] / features[1] for blocks, features in pairs]
    title = "Unbiased MMD² of 200 points of a ring and 200 around it"
    return whole_table(
        title, shown, remarks("fastmmd", "spread", least=min(gains), most=max(gains))
    )


def speedup(
    rows: pd.DataFrame, fast: str = "random features", slow: str = "exact"
) -> tuple[float, bool]:
    """Return how many times as long one takes as the other at the largest N.

    And whether that was measured: a slow one that was not is extrapolated as N² from the largest
    N at which it was.
    """
    n, seconds = pair(rows, "n_points", fast)
    sizes, slow_seconds = pair(rows, "n_points", slow)
    at_largest = slow_seconds[-1] * (n[-1] / sizes[-1]) ** 2
    return float(at_largest / seconds[-1]), bool(sizes[-1] == n[-1])


def _time_table(title: str, rows: pd.DataFrame, over: str, notes: list[str]) -> Table:
    shown = pd.DataFrame({"N": rows["n_points"]} if over == "points" else {"d": rows["d"]})
    for method in TIMED[over]:
        if method in rows:
            shown[f"{NAMES[method]}, ms"] = 1e3 * rows[method]
    shown["exact / random features"] = rows["exact"] / rows["random features"]
    return whole_table(title, shown, notes)


def _times_over_points(rows: pd.DataFrame) -> Table:
    """Make the table of 002, Figure 7, over the number of points."""
    ratio, _ = speedup(rows)
    of_mean_map, _ = speedup(rows, "mean map")
    double, measured = speedup(rows, "mean map", "exact, double")
    b_test, _ = speedup(rows, slow="B-test")
    of_b_test, _ = speedup(rows, "mean map", "B-test")
    how = "" if measured else ", extrapolated as N² and not measured there"
    before, last, upper = rows.iloc[-2], rows.iloc[-1], rows.iloc[-3:]
    growth = (last["n_points"] / before["n_points"]) ** 2
    slopes = [
        f"{NAMES[m]} N^{exponent(*pair(upper, 'n_points', m)):.2f}"
        for m in TIMED["points"]
        if len(pair(upper, "n_points", m)[0]) > 1
    ]
    notes = remarks(
        "fastmmd", "points", last=last, before=before, ratio=ratio, of_mean_map=of_mean_map,
        b_test=b_test, of_b_test=of_b_test, double=double, how=how, slopes=", ".join(slopes),
        by_growth=before["exact"] * growth / last["random features"], disturbed=DISTURBED,
    )  # fmt: skip
    return _time_table("Milliseconds an MMD², d = 16, L = 128", rows, "points", notes)


def _times_over_dims(rows: pd.DataFrame) -> Table:
    """Make the table of 002, Figure 7, over dimensions."""
    n, n_frequencies = rows["n_points"][0], rows["L"][0]
    ratios = rows["exact"] / rows["random features"]
    verdict = (
        "Random features are faster at every d"
        if ratios.min() > 1
        else "Random features lose to the exact MMD² at some d"
    )
    notes = remarks("fastmmd", "dims", verdict=verdict, least=ratios.min(), most=ratios.max(),
                    share=n_frequencies / n, disturbed=DISTURBED)  # fmt: skip
    title = f"Milliseconds an MMD², N = {n:,}, L = {n_frequencies:,}"
    return _time_table(title, rows, "dims", notes)


def _rejection_tables(powers: pd.DataFrame, tests: pd.DataFrame) -> list[Table]:
    """Make the tables of 002, Figure 8, and of the error of the first kind."""
    p = powers.iloc[0]
    ours, theirs = ((0.05 * 0.95 / n) ** 0.5 for n in (p["n_shuffles"], PAPER_SHUFFLES))
    null = tests["ratio"] == 1
    what = [f"{ratio:g}" if ratio != 1 else "1: error of the first kind" for ratio in tests.ratio]
    over_ratios = pd.DataFrame({"ε": what})
    for method in TESTED:
        over_ratios[NAMES[method]] = tests[method].where(null, 1 - tests[method])
    over_ratios["data sets"] = tests["n_tests"]
    power = {"L": powers["L"], "random features": 1 - powers["random features"]}
    notes = remarks(
        "fastmmd", "power", p=p, ours=ours, theirs=theirs, more=PAPER_SHUFFLES / p["n_shuffles"],
        seconds=powers["took"].sum() + tests["took"].sum(),
    )  # fmt: skip
    title = f"Error of the second kind over L, ε = {p['ratio']:g}"
    return [
        whole_table(title, pd.DataFrame(power), notes),
        whole_table(
            "Errors of the second kind over ε",
            over_ratios,
            remarks("fastmmd", "ratios", L=tests["L"][0]),
        ),
    ]
