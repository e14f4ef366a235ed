"""The tables of `fastmmd`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .experiment import Result, Table
from .timing import DISTURBED, exponent

Floats = NDArray[np.float64]

NAMES = {
    "random features": "random features",
    "mean map": "MeanMapEmbedding",
    "B-test": "B-test",
    "linear": "MMD-linear",
    "exact": "exact",
    "exact, double": "exact, double precision",
}
TIMED = {
    "points": ("random features", "mean map", "B-test", "linear", "exact", "exact, double"),
    "dims": ("random features", "B-test", "linear", "exact"),
}
TESTED = ("random features", "exact", "B-test", "linear")
PAPER_SHUFFLES = 1000
PAPER_SPEEDUP, PAPER_SIZE, PAPER_B_TEST = 2000, 100_000, 5  # 002, §4.3, N = 10^5


def of_kind(results: Sequence[Result], **params: Any) -> list[Result]:
    """The points with these parameters."""
    return [r for r in results if all(r.point.params.get(k) == v for k, v in params.items())]


def values_over(results: Sequence[Result], param: str, name: str) -> tuple[Floats, Floats]:
    """A parameter of the points, and a value that they measured; points without it are left
    out."""
    pairs = [(r.point.params[param], r.values[name]) for r in results if name in r.values]
    x, y = np.array(pairs, dtype=float).T
    return x, y


def error_exponent(results: Sequence[Result], form: str) -> float:
    """Of L in the relative error of "biased" or "unbiased" MMD²."""
    return exponent(*values_over(of_kind(results, measure="error"), "L", form))


def error_table(results: Sequence[Result]) -> Table:
    """002, Figure 5."""
    found = of_kind(results, measure="error")
    rows = [[f"{r.point.params['L']:,}", r.values["biased"], r.values["unbiased"]] for r in found]
    slopes = {form: error_exponent(results, form) for form in ("biased", "unbiased")}
    title = f"Mean relative error of MMD², {found[0].point.params['n_points']:,} points a set"
    columns = ["frequencies L", "biased", "unbiased"]
    first = found[0].values
    return Table(title, columns, rows, [
        f"Errors ∝ L^{slopes['biased']:.3f} (biased) and L^{slopes['unbiased']:.3f} (unbiased); "
        "002 has O(L^(−1/2)). It draws its errors and prints none.",
        f"Of the exact {first['exact_biased']:.5f} and {first['exact_unbiased']:.5f}: the two "
        "have the same absolute error, relative to a smaller value.",
    ])  # fmt: skip


def spread_table(results: Sequence[Result]) -> Table:
    """002, Figure 6."""
    found = of_kind(results, measure="spread")
    methods = ("random features", "B-test", "linear")
    rows = [
        [
            f"{r.point.params['sigma']:.3g}",
            r.values["exact"],
            *(r.values[method][i] for i in (0, 1) for method in methods),
        ]
        for r in found
    ]
    columns = ["σ", "exact"]
    columns += [f"{what}, {NAMES[m]}" for what in ("mean", "deviation") for m in methods]
    title = "Unbiased MMD² of 200 points of a ring and 200 around it"
    gains = [r.values["B-test"][1] / r.values["random features"][1] for r in found]
    return Table(title, columns, rows, [
        f"L = 1,024; blocks of 14 points. The standard deviation is over draws of frequencies, and "
        f"over orders of the points; that of the B-test is {min(gains):.1f} to {max(gains):.1f} "
        "times that of random features (002 draws it as much larger, without numbers).",
    ])  # fmt: skip


def speedup(
    results: Sequence[Result], fast: str = "random features", slow: str = "exact"
) -> tuple[float, bool]:
    """How many times as long one takes as the other at the largest N, and whether that was
    measured; else the slow one is extrapolated as N² from the largest N at which it was."""
    found = of_kind(results, measure="time", over="points")
    n, seconds = values_over(found, "n_points", fast)
    sizes, slow_seconds = values_over(found, "n_points", slow)
    at_largest = slow_seconds[-1] * (n[-1] / sizes[-1]) ** 2
    return float(at_largest / seconds[-1]), bool(sizes[-1] == n[-1])


def time_tables(results: Sequence[Result]) -> list[Table]:
    """002, Figure 7."""
    return [_times_over_points(results), _times_over_dims(results)]


def _time_rows(found: Sequence[Result], param: str, methods: Sequence[str]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for r in found:
        seconds = [r.values.get(method) for method in methods]
        ratio = r.values["exact"] / r.values["random features"]
        cells = [None if s is None else 1e3 * s for s in seconds]
        rows.append([f"{r.point.params[param]:,}", *cells, ratio])
    return rows


def _times_over_points(results: Sequence[Result]) -> Table:
    found, methods = of_kind(results, measure="time", over="points"), TIMED["points"]
    largest = found[-1].point.params["n_points"]
    ratio, _ = speedup(results)
    of_mean_map, _ = speedup(results, "mean map")
    double, measured = speedup(results, "mean map", "exact, double")
    b_test, _ = speedup(results, slow="B-test")
    of_b_test, _ = speedup(results, "mean map", "B-test")
    how = "" if measured else ", extrapolated as N² and not measured there"
    n, before = found[-1].point.params["n_points"], found[-2].point.params["n_points"]
    by_growth = found[-2].values["exact"] * (n / before) ** 2 / found[-1].values["random features"]
    slopes = [
        f"{NAMES[m]} N^{exponent(*values_over(found[-3:], 'n_points', m)):.2f}"
        for m in methods
        if sum(m in r.values for r in found[-3:]) > 1
    ]
    columns = ["N", *(f"{NAMES[m]}, ms" for m in methods), "exact / random features"]
    remarks = [
        f"At N = {largest:,} the exact MMD² takes {ratio:,.0f} times as long as random features "
        f"through matrix products and {of_mean_map:,.0f} times as long as `MeanMapEmbedding`, "
        f"which sums the same features as it makes them (the paper: {PAPER_SPEEDUP:,} at N = "
        f"{PAPER_SIZE:,}); the B-test {b_test:.1f} and {of_b_test:.1f} times (the paper: "
        f"{PAPER_B_TEST}); the exact one in double precision from distances "
        f"(`divergence_matrix`) {double:,.0f} times as long as `MeanMapEmbedding`{how}.",
        f"Fitted to the three largest N: {', '.join(slopes)}.",
        f"The exact one's time at N = {before:,} times the growth of N² gives {by_growth:,.0f} "
        "times at the largest N. On a machine that is not alone a call of a minute, made once, "
        "suffers more from others than the median of short ones: the lower of the two ratios is "
        "the safer.",
        "All on one thread, in single precision but for the last. The exact one is a matrix "
        "product and an exponential a tile of pairs, symmetric tiles once: several times faster "
        "than a pass over all pairs without, so that the ratio falls short of the paper's, whose "
        "methods are Matlab's.",
        DISTURBED,
    ]
    return Table("Milliseconds an MMD², d = 16, L = 128", columns, _time_rows(
        found, "n_points", methods), remarks)  # fmt: skip


def _times_over_dims(results: Sequence[Result]) -> Table:
    found, methods = of_kind(results, measure="time", over="dims"), TIMED["dims"]
    params = found[0].point.params
    n, n_frequencies = params["n_points"], params["L"]
    ratios = [r.values["exact"] / r.values["random features"] for r in found]
    columns = ["d", *(f"{NAMES[m]}, ms" for m in methods), "exact / random features"]
    verdict = (
        "Random features are faster at every d"
        if min(ratios) > 1
        else "Random features lose to the exact MMD² at some d"
    )
    rows = _time_rows(found, "d", methods)
    return Table(f"Milliseconds an MMD², N = {n:,}, L = {n_frequencies:,}", columns, rows, [
        f"{verdict}: {min(ratios):.2f} to {max(ratios):.2f} times as fast. They make 2 N L inner "
        "products of length d and as many sines and cosines, the exact MMD² 2 N² products and as "
        f"many exponentials: with L / N = {n_frequencies / n:.2g} there is little to gain. 002 "
        "draws its exact MMD² as far slower, without matrix products. What is gained is gained "
        "over N, at a fixed L.",
        DISTURBED,
    ])  # fmt: skip


def rejection_tables(results: Sequence[Result]) -> list[Table]:
    """002, Figure 8, and the error of the first kind."""
    return [_power_table(results), _ratio_table(results)]


def _power_table(results: Sequence[Result]) -> Table:
    found = of_kind(results, measure="power")
    rows = [[f"{r.point.params['L']:,}", 1 - r.values["random features"]] for r in found]
    p = found[0].point.params
    title = f"Error of the second kind over L, ε = {p['ratio']:g}"
    return Table(title, ["L", "random features"], rows, [
        f"Level .05, {p['n_points']:,} points a set, {p['n_tests']} data sets, {p['n_shuffles']} "
        "shuffles. It falls with L, as drawn in 002.",
        _shuffles(results),
    ])  # fmt: skip


def _shuffles(results: Sequence[Result]) -> str:
    """Why there are fewer of them than in the paper, and what that costs."""
    found = [*of_kind(results, measure="power"), *of_kind(results, measure="test")]
    n, seconds = found[0].point.params["n_shuffles"], sum(r.seconds for r in found)
    ours, theirs = ((0.05 * 0.95 / count) ** 0.5 for count in (n, PAPER_SHUFFLES))
    return (
        f"{n} shuffles save time where the paper has {PAPER_SHUFFLES:,}: this table and the next "
        f"took {seconds:.0f} s, and would take up to {PAPER_SHUFFLES / n:.1f} times that. A "
        f"p-value of .05 has a standard error of {ours:.3f} instead of {theirs:.3f}."
    )


def _ratio_table(results: Sequence[Result]) -> Table:
    found = of_kind(results, measure="test")
    rows: list[list[Any]] = []
    for r in found:
        null = r.point.params["ratio"] == 1
        rejected = [r.values[m] if null else 1 - r.values[m] for m in TESTED]
        what = "1: error of the first kind" if null else f"{r.point.params['ratio']:g}"
        rows.append([what, *rejected, r.point.params["n_tests"]])
    columns = ["ε", *(NAMES[m] for m in TESTED), "data sets"]
    n_frequencies = found[0].point.params["L"]
    return Table("Errors of the second kind over ε", columns, rows, [
        f"Level .05, L = {n_frequencies}. Random features and the exact MMD² are compared with "
        "the same shuffles; B-test (blocks of √N points) and MMD-linear with the normal limit. In "
        "the first row both sets have one density, and .05 is right.",
        "Where random features have more error than the exact MMD² (002 finds them comparable), it "
        "is the finite L: more frequencies close the gap (the table over L). 002 does not print "
        "the spacing, the direction or the scale of its blobs; its problem may be an easier one.",
    ])  # fmt: skip
