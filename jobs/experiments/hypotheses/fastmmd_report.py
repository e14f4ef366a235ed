"""Tables and pictures of `fastmmd`: 002, Figures 5 to 8 and Table 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...pictures import BLUE, GREY, ORANGE
from ..kit.experiment import Experiment, Result, Table
from ..kit.frame import column, frame, pair, whole_table
from ..kit.notes import remarks
from ..kit.plots import BLACK, GREEN, PURPLE, Curve, lines
from ..kit.timing import DISTURBED, exponent

LEVEL = 0.05
RATIO = 4.0  # ε of errors
NAMES = {
    "fourier": "Fourier",
    "fastfood": "Fastfood",
    "mmd_block": "B-test",
    "mmd_linear": "MMD-linear",
    "mmd_u": "exact",
}
COLORS = dict(zip(NAMES, (BLUE, PURPLE, GREEN, GREY, ORANGE), strict=True))
FAST = ("fourier", "fastfood")
FEW = (*FAST, "mmd_block", "mmd_linear")  # that do not take all pairs
PAPER_SPEEDUP, PAPER_SIZE = 2000, 100_000  # 002, §4.3, N = 10^5
PAPER_TABLE = {  # 002, Table 1: error of the mean of MMD in %, deviation / mean in %, seconds
    "mmd_u": (0.0, 0.0, 15590.1),
    "mmd_linear": (24.6, 64.6, 185.5),
    "mmd_block": (0.277, 4.78, 211.7),
    "fourier": (0.0923, 1.06, 13.08),
    "fastfood": (0.0923, 1.16, 6.45),
}


def tables(results: Sequence[Result]) -> list[Table]:
    """Return the tables, in the order of the figures."""
    times = [frame(results, measure="time", over=over) for over in ("points", "dims")]
    return [
        _error_table(frame(results, measure="error")),
        _spread_table(frame(results, measure="spread")),
        _time_table(times[0], "points"),
        _time_table(times[1], "dims"),
        _power_table(frame(results, measure="power")),
        _ratio_table(frame(results, measure="test")),
        _null_table(frame(results, measure="null")),
        _vector_table(frame(results, measure="vectors").iloc[0]),
    ]


def _error_table(rows: pd.DataFrame) -> Table:
    """Make the table of 002, Figure 5."""
    shown, slopes = {"L": rows["L"]}, {}
    for name in FAST:
        for form in ("biased", "unbiased"):
            shown[f"{NAMES[name]}, {form}"] = rows[f"{name}.{form}"]
            slopes[f"{name}_{form}"] = exponent(*pair(rows, "L", f"{name}.{form}"))
    exact = {form: rows[f"exact.{form}"][0] for form in ("biased", "unbiased")}
    title = f"Mean relative error of MMD², {rows['n_points'][0]:,} points per set"
    notes = remarks("fastmmd", "error", **exact, **slopes)
    return whole_table(title, pd.DataFrame(shown), notes)


def _spread_table(rows: pd.DataFrame) -> Table:
    """Make the table of 002, Figure 6."""
    shown = pd.DataFrame({"σ": [f"{sigma:.3g}" for sigma in rows["sigma"]], "exact": rows["exact"]})
    for i, what in enumerate(("mean", "deviation")):
        for name in FEW:
            shown[f"{what}, {NAMES[name]}"] = rows[name].str[i]
    deviations = {name: np.array(rows[name].tolist())[:, 1] for name in FEW}
    gains = deviations["mmd_block"] / deviations["fourier"]
    own = deviations["fastfood"] / deviations["fourier"]
    notes = remarks("fastmmd", "spread", least=gains.min(), most=gains.max(),
                    low=own.min(), high=own.max())  # fmt: skip
    return whole_table("Unbiased MMD² of 200 points of a ring and 200 around it", shown, notes)


def _time_table(rows: pd.DataFrame, over: str) -> Table:
    """Make a table of 002, Figure 7."""
    shown = pd.DataFrame({"N": rows["n_points"]} if over == "points" else {"d": rows["d"]})
    for name, text in NAMES.items():
        shown[f"{text}, ms"] = 1e3 * rows[name]
    for name in FAST:
        shown[f"exact / {NAMES[name]}"] = rows["mmd_u"] / rows[name]
    last = rows.iloc[-1]
    faster = rows["fourier"] / rows["fastfood"]
    upper = rows.iloc[-3:]
    slopes = ", ".join(
        f"{text} N^{exponent(*pair(upper, 'n_points', name)):.2f}" for name, text in NAMES.items()
    ) if over == "points" else ""  # fmt: skip
    notes = remarks(
        "fastmmd", over, last=last, slopes=slopes, of_fourier=last["mmd_u"] / last["fourier"],
        of_fastfood=last["mmd_u"] / last["fastfood"], of_b_test=last["mmd_block"] / last["fourier"],
        least=faster.min(), most=faster.max(), disturbed=DISTURBED,
        crossed=", ".join(f"{d:,}" for d in shown.iloc[:, 0][faster > 1]) or "none",
    )  # fmt: skip
    of = "d = 16" if over == "points" else f"N = {last['n_points']:,}"
    return whole_table(f"Milliseconds an MMD², {of}, L = {last['L']:,}", shown, notes)


def _power_table(rows: pd.DataFrame) -> Table:
    shown = {"L": rows["L"], **{NAMES[name]: 1 - rows[name] for name in FAST}}
    title = f"Error of the second kind over L, ε = {rows['ratio'][0]:g}"
    return whole_table(title, pd.DataFrame(shown), remarks("fastmmd", "power", p=rows.iloc[0]))


def _ratio_table(rows: pd.DataFrame) -> Table:
    null = rows["ratio"] == 1
    what = [f"{ratio:g}" if ratio != 1 else "1: error of the first kind" for ratio in rows.ratio]
    shown = pd.DataFrame({"ε": what})
    for name, text in NAMES.items():
        shown[text] = rows[name].where(null, 1 - rows[name])
    shown["data sets"] = rows["n_tests"]
    notes = remarks("fastmmd", "ratios", L=rows["L"][0])
    return whole_table("Errors of the second kind over ε", shown, notes)


def _null_table(rows: pd.DataFrame) -> Table:
    """Make the table of 002, Figure 8: what each null finds, and how long it takes."""
    shown = {
        "statistic": rows["method"],
        "null": rows["null"],
        "error of the first kind": rows["first"],
        "error of the second kind": 1 - rows["found"],
        "ms per test": 1e3 * rows["seconds"],
    }
    notes = remarks("fastmmd", "nulls", p=rows.iloc[0])
    return whole_table("Every null", pd.DataFrame(shown), notes)


def _vector_table(row: pd.Series[Any]) -> Table:
    """Make the table of 002, Table 1."""
    exact = row["mmd_u"][0] ** 0.5
    shown: list[dict[str, Any]] = []
    for name in ("mmd_u", "mmd_linear", "mmd_block", *FAST):
        mean, deviation = row[name]
        mmd = max(mean, 0.0) ** 0.5
        seconds, theirs = row[f"seconds.{name}"], PAPER_TABLE[name]
        shown.append({
            "method": NAMES[name], "MMD": mmd, "error of the mean, %": 100 * abs(mmd / exact - 1),
            "deviation, %": 100 * deviation / (2 * exact**2), "seconds": seconds,
            "speed-up": row["seconds.mmd_u"] / seconds,
            "002: error, %": theirs[0], "002: deviation, %": theirs[1],
            "002: speed-up": PAPER_TABLE["mmd_u"][2] / theirs[2],
        })  # fmt: skip
    m, n = row["sizes"]
    title = f"{m:,} and {n:,} sparse vectors of {row['d']:,} numbers, L = {row['L']:,}"
    notes = remarks("fastmmd", "vectors", row=row, disturbed=DISTURBED)
    return whole_table(title, pd.DataFrame(shown), notes)


def draw(experiment: Experiment[Any], results: Sequence[Result]) -> None:
    """Draw 002, Figures 5 to 8."""
    _draw_errors(experiment, frame(results, measure="error"))
    _draw_spreads(experiment, frame(results, measure="spread"))
    _draw_times(experiment, results)
    _draw_tests(experiment, frame(results, measure="power"), frame(results, measure="test"))


def _draw_errors(experiment: Experiment[Any], rows: pd.DataFrame) -> None:
    curves = []
    for name in FAST:
        for form, style in (("biased", "o-"), ("unbiased", "s--")):
            x, y = pair(rows, "L", f"{name}.{form}")
            label = f"{NAMES[name]}, {form}: ∝ L^{exponent(x, y):.3f}"
            curves.append(Curve(x, y, label, COLORS[name], style))
    curves.append(Curve(x, y[0] * (x / x[0]) ** -0.5, "∝ L^(−1/2), as 002 proves", BLACK, ":"))
    title = "Error of MMD² from random features, blobs with ε = 4"
    with experiment.picture("errors.png", title, 1, 7.5, 5.0) as (_, [axis]):
        lines(axis, curves, "number of frequencies L (two features each)",
              "mean |MMD² − exact| / exact", log="xy")  # fmt: skip


def _draw_spreads(experiment: Experiment[Any], rows: pd.DataFrame) -> None:
    sigma = column(rows, "sigma")
    means = [Curve(sigma, rows["exact"], "exact", ORANGE, "-", more={"linewidth": 4})]
    deviations = []
    for i, name in enumerate(reversed(FEW)):
        mean, deviation = np.array(rows[name].tolist()).T
        aside = sigma * 1.06 ** (i - 1.5)  # so that bars do not hide each other
        label, color = NAMES[name], COLORS[name]
        means.append(Curve(aside, mean, f"{label}, ± one deviation", color, "", deviation))
        deviations.append(Curve(sigma, deviation, label, color))
    title = "200 points of a ring against 200 around it, L = 1,024, blocks of 14 points"
    x = "bandwidth σ of the kernel"
    with experiment.picture("spreads.png", title, 2, 12.5, 5.0) as (_, [left, right]):
        lines(left, means, x, "unbiased MMD²", log="x")
        lines(right, deviations, x, "standard deviation of the unbiased MMD²", log="xy")


def _draw_times(experiment: Experiment[Any], results: Sequence[Result]) -> None:
    panels = (("points", "n_points", "points in each set N"), ("dims", "d", "dimensions d"))
    with experiment.picture("times.png", "Time of one MMD²", 2, 11.5, 4.6) as (_, axes):
        for axis, (over, param, label) in zip(axes, panels, strict=True):
            rows = frame(results, measure="time", over=over)
            last = rows.iloc[-1]
            curves = [Curve(*pair(rows, param, name), NAMES[name], COLORS[name]) for name in NAMES]
            if last["n_points"] == PAPER_SIZE:
                star, text = PAPER_SPEEDUP * last["fourier"], f"002: {PAPER_SPEEDUP:,} × Fourier"
                curves.append(Curve([PAPER_SIZE], [star], text, BLACK, "*"))
            of = "d = 16" if over == "points" else f"N = {last['n_points']:,}"
            title = f"over {label[-1]}, {of}, L = {last['L']:,}"
            lines(axis, curves, label, "seconds an MMD², one thread", log="xy", title=title)


def _draw_tests(experiment: Experiment[Any], powers: pd.DataFrame, tests: pd.DataFrame) -> None:
    over_frequencies = [
        Curve(column(powers, "L"), 1 - column(powers, k), NAMES[k], COLORS[k]) for k in FAST
    ]
    ratio, over_ratios = column(tests, "ratio"), []
    for name, text in NAMES.items():
        rejected = column(tests, name)
        label = f"{text} (first kind: {rejected[ratio == 1][0]:.3f})"
        other = ratio > 1
        over_ratios.append(Curve(ratio[other], 1 - rejected[other], label, COLORS[name]))
    p = tests.iloc[0]
    title = (
        f"Tests of level .05, {p['n_points']:,} points per set (right: L = {p['L']}; in brackets "
        "the error of the first kind, ε = 1)"
    )
    known, y = {"a test that knows nothing": 1 - LEVEL}, "error of the second kind"
    with experiment.picture("tests.png", title, 2, 12.5, 5.0) as (_, [left, right]):
        lines(left, over_frequencies, "number of frequencies L",
              f"{y}, ε = {powers['ratio'][0]:g}", log="x", levels=known)  # fmt: skip
        lines(right, over_ratios, "ratio ε of Q's eigenvalues", y, levels=known)
        for axis in (left, right):
            axis.set_ylim(-0.03, 1.03)
