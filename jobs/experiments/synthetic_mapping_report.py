"""Tables and the picture of `synthetic-mapping`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter
from numpy.typing import NDArray

from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result, Table

PAPER_RATIOS = {10_000: 12, 100_000: 67, 1_000_000: 139}
WAYS = {"batch": "batches", "single": "one bag a call"}

Floats = NDArray[np.float64]


def by_n_train(results: Sequence[Result], kind: str) -> dict[int, dict[str, Any]]:
    """Values of the points that measure this, over N."""
    return {
        result.point.params.get("n_timed", result.point.params["n_train"]): dict(result.values)
        for result in results
        if result.point.params["measure"] == kind
    }


def ratios(results: Sequence[Result], way: str) -> tuple[Floats, Floats]:
    """(training bags, KK's time over the 2BE's) of a way to predict, in ascending order."""
    timed = sorted({**by_n_train(results, "time"), **by_n_train(results, "kk")}.items())
    found = [values["seconds"][f"kk_{way}"] / values["seconds"][f"2be_{way}"]
             for _, values in timed]  # fmt: skip
    return np.array([n for n, _ in timed], dtype=float), np.array(found)


def crossing(sizes: Floats, values: Floats, level: float) -> float | None:
    """Where a line through the points, straight in logarithms, first rises to a level.

    None where it does not, or begins above it.
    """
    for i in range(1, len(sizes)):
        if values[i - 1] < level <= values[i]:
            share = np.log(level / values[i - 1]) / np.log(values[i] / values[i - 1])
            return float(sizes[i - 1] * (sizes[i] / sizes[i - 1]) ** share)
    return None


def mapping_tables(results: Sequence[Result]) -> list[Table]:
    """Errors, and times with their ratio."""
    return [_errors(results), _times(results)]


def _errors(results: Sequence[Result]) -> Table:
    double, kernel = by_n_train(results, "2be"), by_n_train(results, "kk")
    n_points = {r.point.params["n_train"]: r.point.params["n_points"] for r in results}
    rows = [
        [f"{n:,}", f"{n_points[n]:,}", two["mse"], two["se"], two["first"]["mse"], kk["mse"],
         kk["se"], f"{kk['n']:,}", two["first"]["mse"] / kk["mse"], two["variance"]]
        for n, two in sorted(double.items())
        for kk in [kernel[n]]
    ]  # fmt: skip
    columns = ["training bags", "points a bag", "2BE", "± of 2BE", "2BE, KK's bags", "KK",
               "± of KK", "KK's test bags", "2BE / KK", "variance of f"]  # fmt: skip
    lost = [f"N = {n:,}" for n, two in double.items() if two["first"]["mse"] >= kernel[n]["mse"]]
    candidates = next(r for r in results if "candidates" in r.point.params).point.params[
        "candidates"
    ]
    chosen = "; ".join(
        f"N = {n:,}: {two['choice']['n_per_dim']} functions, σ {two['choice']['multiplier']:g} "
        f"medians, λ/N {two['choice']['alpha_a_bag']:.0e}, KDE bandwidth "
        f"{kernel[n]['choice']['density_bandwidth']:g} ({kernel[n]['choice']['n_coefficients']} "
        f"coefficients); chosen and fitted in {two['choice']['seconds']:.0f} s (2BE) and "
        f"{kernel[n]['choice']['seconds']:.0f} s (KK)"
        for n, two in sorted(double.items())
    )
    remarks = [
        "The paper: both are alike, the 2BE somewhat better at each N (its errors are in a figure "
        "and not printed). Here: "
        + (
            f"the 2BE is not better at {', '.join(lost)}."
            if lost
            else "the 2BE is better at each N."
        ),
        "KK: Gaussian kernel density estimates with reflection at the walls, the L2 distance "
        "between them and a Gaussian kernel of it (004, eq. 3.4); the estimates are compared by "
        "their cosine coefficients down to those that the kernel damps to 3 %. It costs a pass "
        "over the training bags, so that it predicts fewer test bags.",
        f"± is a standard error over test bags. Chosen by training bags alone: {chosen}. The first "
        f"basis and its kernel width, and KDE's bandwidth, by the first "
        f"{candidates['n_choose']:,} of them at any N, so that what suits more bags is not "
        "looked for: a likely reason where the 2BE is not better.",
    ]
    return Table("Mean squared error", columns, rows, remarks)


def _times(results: Sequence[Result]) -> Table:
    few, many = by_n_train(results, "time"), by_n_train(results, "kk")
    rows: list[list[Any]] = []
    for n, values in sorted({**few, **many}.items()):
        seconds = values["seconds"]
        cells = [
            cell
            for way in WAYS
            for kk, two in [(seconds[f"kk_{way}"], seconds[f"2be_{way}"])]
            for cell in (1e3 * two, 1e3 * kk, kk / two)
        ]
        rows.append([f"{n:,}", *cells, PAPER_RATIOS.get(n)])
    columns = ["training bags"]
    for text in WAYS.values():
        columns += [f"2BE, {text}, ms", f"KK, {text}, ms", f"ratio, {text}"]
    n_queries = next(iter(many.values()))["seconds"]["n_queries"]
    remarks = [
        "From points to predictions, in memory, the least of calls in turn; a batch has "
        f"{n_queries} bags. KK is not the paper's, of whose code nothing is said: it compares "
        "coefficients by one matrix product, keeps rows and norms in float32, and one bag a call "
        "is one product, one exponential and one sum over all rows. Its matrix products run on "
        "all cores, its exponentials on one: on c cores its time could fall by less than c. "
        "One bag a call, most of the 2BE's time is that of the call, which many bags share.",
        *[_crossings(results, way) for way in WAYS],
    ]
    if few:
        remarks.append(
            f"Below N = {min(many):,} nothing but the number of KK's rows changes: bags and 2BE "
            f"are those of N = {min(many):,}."
        )
    return Table("Time a query", [*columns, "ratio, paper"], rows, remarks)


def _crossings(results: Sequence[Result], way: str) -> str:
    sizes, found = ratios(results, way)
    parts = []
    for level in (1, PAPER_RATIOS[1_000_000]):
        at = crossing(sizes, found, level)
        if at is not None:
            parts.append(f"{level}× at about {_rounded(at):,} training bags")
        else:
            side = "above" if found[0] >= level else "below"
            parts.append(f"{side} {level}× at all numbers measured")
    return f"KK's time over the 2BE's, {WAYS[way]}: {'; '.join(parts)}."


def _rounded(value: float) -> int:
    """Two digits: the rest is noise."""
    return int(float(f"{value:.1e}"))


def draw_mapping(path: Path, results: Sequence[Result]) -> Path:
    """004, Figure 3.17, and the ratio of the times."""
    figure = new_figure(15.0, 4.9)
    errors, seconds, ratio = figure.subplots(1, 3)
    double, kernel = by_n_train(results, "2be"), by_n_train(results, "kk")
    n_train = sorted(double)
    for name, found, color, marker in (("2BE", double, BLUE, "o"), ("KK", kernel, ORANGE, "s")):
        values = [(found[n]["mse"], found[n]["se"]) for n in n_train]
        errors.errorbar(n_train, *np.array(values).T, color=color, marker=marker, label=name)
    variance = [double[n]["variance"] for n in n_train]
    errors.plot(n_train, variance, ":", color=GREY, label="best constant")
    timed = dict(sorted({**by_n_train(results, "time"), **kernel}.items()))
    for way, text in WAYS.items():
        line = {"batch": "--", "single": "-"}[way]
        for name, color, marker in (("2be", BLUE, "o"), ("kk", ORANGE, "s")):
            values = [found["seconds"][f"{name}_{way}"] for found in timed.values()]
            seconds.plot(list(timed), values, line, color=color, marker=marker,
                         label=f"{name.upper()}, {text}")  # fmt: skip
        ratio.plot(*ratios(results, way), line, color=BLUE, marker="o", label=f"here, {text}")
    ratio.plot(list(PAPER_RATIOS), list(PAPER_RATIOS.values()), "*", color=GREY, markersize=12,
               label="004: 12×, 67×, 139×")  # fmt: skip
    ratio.axhline(1, color=GREY, linestyle=":", label="the same time")
    _finish(errors, "mean squared error (units of f²)")
    _finish(seconds, "seconds a query")
    _finish(ratio, "time of KK / time of the 2BE")
    figure.suptitle("A known function of densities: errors, and times of a prediction")
    return save_figure(figure, path)


def _finish(axis: Axes, label: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("training bags N")
    axis.set_ylabel(label)
    axis.grid(alpha=0.25)
    axis.yaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(1.3, 0.7)))
    axis.legend(loc="best", fontsize=8, handlelength=3.5)
