"""The pictures of `scaling`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result
from .scaling_measures import Size
from .scaling_report import MIB, NAMES, Ladder, block_bytes, ladder, memory_over
from .timing import upper_exponent


def draw_times(path: Path, results: Sequence[Result], middle: Size) -> Path:
    """CPU seconds of a fit, a panel a variable, beside the cost model's."""
    figure = new_figure(10.0, 5.8)
    axes = figure.subplots(2, 3).ravel()
    for axis, name in zip(axes, NAMES, strict=False):
        _panel(axis, ladder(results, middle, name), name)
        axis.axvline(middle.params[name], color=GREY, linewidth=0.8, linestyle="--")
    axes[0].set_ylabel("CPU seconds on one core")
    axes[3].set_ylabel("CPU seconds on one core")
    axes[5].axis("off")
    axes[5].text(0.05, 0.9, _explanation(middle), va="top", fontsize=8, transform=axes[5].transAxes)
    figure.suptitle("Time of one fit from a store")
    return save_figure(figure, path)


def _explanation(middle: Size) -> str:
    sizes = "\n".join(f"{text}: {middle.params[name]:,}" for name, text in NAMES.items())
    return (
        f"The middle (dashed lines), from which one\nvariable at a time is varied:\n\n{sizes}\n\n"
        "Exponents are fitted to the upper half of\neach ladder. The cost model has no solve."
    )


def _panel(axis: Axes, at: Ladder, name: str) -> None:
    curves = (
        ("fit, measured", at.fit, BLUE, "o-"),
        ("without its solve", at.passes, ORANGE, "s--"),
        ("cost model of the pass", at.model, GREY, "^:"),
    )
    for label, seconds, color, style in curves:
        slope = at.upper_exponent(seconds)
        axis.plot(at.sizes, seconds, style, color=color, label=f"{label}: ∝ {name}^{slope:.2f}")
    _log(axis, at.sizes.tolist(), NAMES[name])


def draw_memory(path: Path, results: Sequence[Result]) -> Path:
    """Peaks of arrays over N and over D."""
    figure = new_figure(11.0, 4.4)
    left, right = figure.subplots(1, 2)
    bags, least, peaks = memory_over(results, "N")
    params = next(r.point.params for r in results if r.point.params.get("over") == "N")
    points = bags * (4 * params["n"] * params["d"] / MIB)
    left.plot(bags, points, ":", color=GREY, label="points of all bags in the store")
    left.plot(bags, peaks / MIB, "o-", color=BLUE, label="largest peak of a fit's arrays")
    left.plot(bags, least / MIB, "s--", color=ORANGE, label="least peak")
    left.set_ylabel("MiB")
    _log(left, bags.tolist(), NAMES["N"])
    features, _, peaks = memory_over(results, "D")
    blocks = np.array([block_bytes(int(D)) for D in features])
    curves = (
        ("peak of a fit's arrays", peaks, BLUE, "o-"),
        ("without the block of rows", peaks - blocks, ORANGE, "s--"),
    )
    for label, values, color, style in curves:
        slope = upper_exponent(features, values)
        right.plot(features, values / MIB, style, color=color, label=f"{label}: ∝ D^{slope:.2f}")
    _log(right, features.tolist(), NAMES["D"])
    figure.suptitle("Memory of one fit from a store")
    return save_figure(figure, path)


def _log(axis: Axes, values: list[float], label: str) -> None:
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(values, labels=[f"{value:,.0f}" for value in values], fontsize=6)
    axis.set_xticks([], minor=True)
    axis.set_xlabel(label)
    low, high = axis.get_ylim()
    axis.set_ylim(low, high * (high / low) ** 0.35)  # room for the legend
    axis.grid(alpha=0.25)
    axis.legend(fontsize=7, loc="upper left")
