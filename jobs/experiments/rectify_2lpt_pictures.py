"""The pictures of `rectify-2lpt`: errors, slices of densities, and times over N."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from bagbasis import Bags, BagStore, TripleBasisRegressor
from bagbasis.densities import Densities

from ..pictures.densities import draw_densities
from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result
from .rectify_2lpt_tables import (
    METHODS,
    PAPER_MSE,
    PAPER_SECONDS,
    WAYS,
    Times,
    determination,
    errors_by_method,
    gain,
    of_kind,
)

NAMES = {
    "3BE": "3BE",
    "LSE": "kernel smoother\n(LSE)",
    "2LPT": "the input\n(2LPT)",
    "AD": "average density\n(AD)",
}
COORDINATES = [f"{axis} / 16 Mpc/h" for axis in "xyz"]
STYLES = {"single": ("-", BLUE), "batch": ("--", ORANGE)}  # the colour that of ratios


def draw_errors(path: Path, results: Sequence[Result]) -> Path:
    """MSE over that of the average density, ours beside the paper's."""
    ours = errors_by_method(results)
    figure = new_figure(8.0, 4.6)
    axis = figure.subplots()
    at = np.arange(len(METHODS))
    for offset, errors, label, color in ((-0.2, ours, "here", BLUE), (0.2, PAPER_MSE, "004", GREY)):
        bars = axis.bar(
            at + offset,
            [errors[method] / errors["AD"] for method in METHODS],
            width=0.38,
            color=color,
            label=f"{label}: R² of 3BE {determination(errors, '3BE'):.3f}, of 2LPT "
            f"{determination(errors, '2LPT'):.3f} ({gain(errors):+.0%})",
        )
        axis.bar_label(bars, fmt="%.3f", fontsize=8)
    [errors] = of_kind(results, "errors")
    axis.axhline(
        errors["noise_mse"] / ours["AD"],
        color=ORANGE,
        linestyle=":",
        label="noise of the responses here: no method falls below",
    )
    axis.set_xticks(at, labels=[NAMES[method] for method in METHODS])
    axis.set_ylim(0, 1.45)
    axis.set_ylabel("MSE / MSE of the average density (1 − R²)")
    axis.legend(loc="upper left", fontsize=9)
    figure.suptitle(f"Error of predicted densities on {errors['n']:,} cubes of held-out boxes")
    return save_figure(figure, path)


def draw_slices(path: Path, model: TripleBasisRegressor, store: BagStore, n: int) -> Path:
    """Slices of n cubes as in 004, Figure 3.21."""
    spec = model.response_spec_
    present = np.flatnonzero(np.diff(store.response_offsets(0, store.n_bags)) > 0)
    rows = present[np.linspace(0, len(present) - 1, min(n, len(present))).astype(int)].tolist()
    bags = Bags.from_list([store.read(row, row + 1)[0] for row in rows])
    answers = Bags.from_list([store.responses(row, row + 1).points for row in rows])

    def densities(points: Bags) -> Densities:
        coefficients = np.empty((len(points), spec.n_features))
        spec.embed(points, coefficients)
        return Densities(coefficients, spec.indices, spec.basis, spec.box)

    columns = {
        "input: 2LPT": densities(bags),
        "output: particle mesh": densities(answers),
        "predicted: 3BE": model.densities(bags),
    }
    return draw_densities(path, columns, [f"test cube {row}" for row in rows], COORDINATES)


def draw_times(path: Path, results: Sequence[Result], n_paper: int) -> Path:
    """Seconds a bag, and their ratio, over the number of training pairs."""
    figure = new_figure(12.5, 5.2)
    left, right = figure.subplots(1, 2)
    ways = {way: Times.of(results, way) for way in WAYS}
    for way, times in ways.items():
        style, color = STYLES[way]
        reach = [times.n_pairs[-1], n_paper]
        ends = np.array([times.at(n) for n in reach])
        lse_exponent, ratio_exponent = times.exponents()
        left.plot(times.n_pairs, times.lse, style, marker="o", color=ORANGE,
                  label=f"LSE, {WAYS[way]} (∝ N^{lse_exponent:.2f})")  # fmt: skip
        left.plot(times.n_pairs, times.three_be, style, marker="s", color=BLUE,
                  label=f"3BE, {WAYS[way]}")  # fmt: skip
        left.plot(reach, ends[:, 0], ":", color=ORANGE)
        left.plot(reach, ends[:, 1], ":", color=BLUE)
        right.plot(times.n_pairs, times.ratios, style, marker="o", color=color,
                   label=f"{WAYS[way]} (∝ N^{ratio_exponent:.2f})")  # fmt: skip
        extrapolated = ends[:, 0] / ends[:, 1]
        right.plot(reach, extrapolated, ":", color=color,
                   label=f"extrapolated, not measured: {extrapolated[1]:,.0f}×")  # fmt: skip
    left.plot([], [], ":", color=GREY, label="extrapolated, not measured")
    paper = PAPER_SECONDS["LSE"], PAPER_SECONDS["3BE"]
    left.plot(n_paper, paper[0], "*", markersize=13, color=ORANGE, label="LSE in 004: 4.977 s")
    left.plot(n_paper, paper[1], "*", markersize=13, color=BLUE, label="3BE in 004: 0.009 s")
    right.plot(n_paper, paper[0] / paper[1], "*", markersize=13, color=GREY,
               label=f"004: {paper[0] / paper[1]:.0f}×, against its own smoother")  # fmt: skip
    _finish(left, "seconds a bag")
    _finish(right, "time of the LSE / time of the 3BE")
    figure.suptitle("Prediction time, points in memory to coefficients of the density")
    return save_figure(figure, path)


def _finish(axis: Axes, label: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("training pairs N")
    axis.set_ylabel(label)
    axis.grid(alpha=0.25)
    axis.legend(loc="best", fontsize=8)
