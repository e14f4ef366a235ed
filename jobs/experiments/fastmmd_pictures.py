"""The pictures of `fastmmd`, after Figures 5 to 8 of 002."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result
from .fastmmd_tables import (
    NAMES,
    PAPER_SIZE,
    PAPER_SPEEDUP,
    TESTED,
    TIMED,
    error_exponent,
    of_kind,
    values_over,
)
from .two_sample import LEVEL

GREEN, PURPLE, BLACK = "#5a9e6f", "#8064a2", "black"
COLORS = {
    "random features": BLUE, "mean map": PURPLE, "B-test": GREEN, "linear": GREY,
    "exact": ORANGE, "exact, double": BLACK,
}  # fmt: skip


def draw_errors(path: Path, results: Sequence[Result]) -> Path:
    """002, Figure 5."""
    figure = new_figure(7.5, 5.0)
    axis = figure.subplots()
    for form, color in (("biased", BLUE), ("unbiased", ORANGE)):
        x, y = values_over(of_kind(results, measure="error"), "L", form)
        slope = error_exponent(results, form)
        axis.plot(x, y, "o-", color=color, label=f"{form} MMD²: ∝ L^{slope:.3f}")
        label = "∝ L^(−1/2), as 002 proves" if form == "biased" else None
        axis.plot(x, y[0] * (x / x[0]) ** -0.5, ":", color=BLACK, label=label)
    _log(axis, "number of frequencies L (two features each)", "mean |MMD² − exact| / exact")
    figure.suptitle("Error of MMD² from random features, blobs with ε = 4")
    return save_figure(figure, path)


def draw_spreads(path: Path, results: Sequence[Result]) -> Path:
    """002, Figure 6."""
    found = of_kind(results, measure="spread")
    sigma = np.array([r.point.params["sigma"] for r in found])
    figure = new_figure(12.5, 5.0)
    left, right = figure.subplots(1, 2)
    left.plot(sigma, [r.values["exact"] for r in found], color=ORANGE, linewidth=4, alpha=0.5,
              label="exact")  # fmt: skip
    for i, method in enumerate(("linear", "B-test", "random features")):
        mean, deviation = np.array([r.values[method] for r in found]).T
        aside = sigma * 1.06 ** (i - 1)  # so that bars do not hide each other
        left.errorbar(aside, mean, deviation, color=COLORS[method], capsize=2, linewidth=1,
                      label=f"{NAMES[method]}, ± one deviation")  # fmt: skip
        right.plot(sigma, deviation, "o-", color=COLORS[method], label=NAMES[method])
    left.set_xscale("log")
    _label(left, "bandwidth σ of the kernel", "unbiased MMD²")
    _log(right, "bandwidth σ of the kernel", "standard deviation of the unbiased MMD²")
    figure.suptitle("200 points of a ring against 200 around it, L = 1,024, blocks of 14 points")
    return save_figure(figure, path)


def draw_times(path: Path, results: Sequence[Result]) -> Path:
    """002, Figure 7."""
    figure = new_figure(11.5, 4.6)
    left, right = figure.subplots(1, 2)
    for axis, over, param in ((left, "points", "n_points"), (right, "dims", "d")):
        found = of_kind(results, measure="time", over=over)
        for method in TIMED[over]:
            x, y = values_over(found, param, method)
            axis.plot(x, y, "o-", color=COLORS[method], label=NAMES[method])
            largest = found[-1].point.params[param]
            if x[-1] < largest:
                axis.plot([x[-1], largest], [y[-1], y[-1] * (largest / x[-1]) ** 2], ":",
                          color=COLORS[method], label="extrapolated, not measured")  # fmt: skip
    fast = of_kind(results, measure="time", over="points")[-1]
    if fast.point.params["n_points"] == PAPER_SIZE:
        left.plot(PAPER_SIZE, PAPER_SPEEDUP * fast.values["random features"], "*", color=BLACK,
                  markersize=13, label=f"002: {PAPER_SPEEDUP:,} × our random features")  # fmt: skip
    params = of_kind(results, measure="time", over="dims")[0].point.params
    left.set_title("over N, d = 16, L = 128", fontsize=10)
    right.set_title(f"over d, N = {params['n_points']:,}, L = {params['L']:,}", fontsize=10)
    _log(left, "points in each set N", "seconds an MMD², one thread")
    _log(right, "dimensions d", "seconds an MMD², one thread")
    figure.suptitle("Time of one MMD²")
    return save_figure(figure, path)


def draw_tests(path: Path, results: Sequence[Result]) -> Path:
    """002, Figure 8."""
    figure = new_figure(12.5, 5.0)
    left, right = figure.subplots(1, 2)
    powers = of_kind(results, measure="power")
    x, power = values_over(powers, "L", "random features")
    left.plot(x, 1 - power, "o-", color=BLUE, label="random features")
    left.set_xscale("log")
    _label(
        left,
        "number of frequencies L",
        f"error of the second kind, ε = {powers[0].point.params['ratio']:g}",
    )
    found = of_kind(results, measure="test")
    for method in TESTED:
        ratio, power = values_over(found, "ratio", method)
        other = ratio > 1
        right.plot(ratio[other], 1 - power[other], "o-", color=COLORS[method],
                   label=f"{NAMES[method]} (first kind: {power[~other][0]:.3f})")  # fmt: skip
    _label(right, "ratio ε of Q's eigenvalues", "error of the second kind")
    for axis in (left, right):
        axis.axhline(1 - LEVEL, color=BLACK, linestyle=":", linewidth=1,
                     label="a test that knows nothing")  # fmt: skip
        axis.set_ylim(-0.03, 1.03)
        axis.legend(fontsize=8)
    p = found[0].point.params
    figure.suptitle(
        f"Tests of level .05, {p['n_points']:,} points a set (right: L = {p['L']}; in brackets the "
        "error of the first kind, ε = 1)"
    )
    return save_figure(figure, path)


def _log(axis: Axes, x: str, y: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    _label(axis, x, y)


def _label(axis: Axes, x: str, y: str) -> None:
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(alpha=0.25, which="both")
    axis.legend(fontsize=8)
