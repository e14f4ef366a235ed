"""The table and the pictures of `js-gram`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result, Table

Floats = NDArray[np.float64]

PAPER = {"entropies": 0.9812, "coefficients": 0.9735, "random features": 0.9662}  # 001, Table 2
NAMES = {"js": "JS", "hellinger": "Hellinger", "tv": "TV", "chi2": "χ²"}


def figures(results: Sequence[Result], distance: str, estimate: str, name: str) -> Floats:
    """``name`` ("r2" or "determination") of an estimate over the data sets."""
    return np.array([result.values[distance][estimate][name] for result in results])


def gram_table(results: Sequence[Result]) -> Table:
    """001, Table 2, and the distances that are not in it."""
    rows: list[list[Any]] = []
    for distance, estimates in results[0].values.items():
        for estimate in estimates:
            r2 = figures(results, distance, estimate, "r2")
            determination = figures(results, distance, estimate, "determination")
            rows.append(
                [
                    NAMES[distance],
                    estimate,
                    float(np.median(r2)),
                    float(r2.min()),
                    float(np.median(determination)),
                    float(determination.min()),
                    PAPER.get(estimate) if distance == "js" else None,
                ]
            )
    columns = ["distance", "kernel from", "R²", "R², least", "1 − SSE/SST", "1 − SSE/SST, least",
               "R², paper"]  # fmt: skip
    title = f"Agreement with the kernel of the true densities, {len(results)} data sets"
    return Table(title, columns, rows, _remarks(results))


def _remarks(results: Sequence[Result]) -> list[str]:
    behind = [
        name
        for name, printed in PAPER.items()
        if figures(results, "js", name, "r2").min() < printed
    ]
    verdict = (
        "R² of JS is above the paper's on every data set, in all three of its rows."
        if not behind
        else f"R² of JS is below the paper's on some data set: {', '.join(behind)}."
    )
    return [
        f"Medians over the data sets, and the worst of them. {verdict}",
        "R² is the squared correlation, as in the paper. It does not see a wrong scale; "
        "1 − SSE/SST does: the estimates lie a little high, for smoothing takes distance away, "
        "most of χ².",
        "Random features are paired sines and cosines of one set of frequencies; orthogonal ones "
        "have less variance. TV's R² suffers most, for the values of its kernel lie closest "
        "together: their standard deviation is little more than half of JS's.",
    ]


def draw_scatter(path: Path, true: Floats, estimates: Mapping[str, Floats], result: Result) -> Path:
    """001, Figure 6: estimated against true values of the JS kernel."""
    figure = new_figure(4.1 * len(estimates), 4.5)
    axes = figure.subplots(1, len(estimates), sharex=True, sharey=True)
    least = 0.95 * true.min()
    for axis, (name, estimate) in zip(axes, estimates.items(), strict=True):
        axis.plot(
            true, estimate, ".", color=BLUE, markersize=2, alpha=0.5, label="pair of mixtures"
        )
        axis.plot([least, 1], [least, 1], "--", color=ORANGE, linewidth=1, label="estimate = truth")
        r2 = result.values["js"][name]["r2"]
        paper = f" (001: {PAPER[name]:.4f})" if name in PAPER else " (not in 001)"
        axis.set_title(f"{name}\nR² {r2:.4f}{paper}", fontsize=10)
        axis.set_xlabel("kernel of the true densities")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("estimated kernel")
    axes[0].legend(loc="upper left", fontsize=9)
    params = result.point.params
    which = f"{params['n_mixtures']} mixtures, from {params['n_points']:,} points each"
    figure.suptitle(f"exp(−JS / 2σ²) of {which}")
    return save_figure(figure, path)


def draw_agreement(path: Path, results: Sequence[Result]) -> Path:
    """1 − R² of each distance and estimate, the paper's beside it."""
    figure = new_figure(9.0, 4.6)
    axis = figure.subplots()
    estimates = list(results[0].values["js"])
    colors = dict(zip(estimates, (GREY, BLUE, ORANGE, "#5a9e6f"), strict=True))
    distances = list(results[0].values)
    for k, estimate in enumerate(estimates):
        having = [d for d in distances if estimate in results[0].values[d]]
        at = np.array([distances.index(d) + 0.2 * (k - 1.5) for d in having])
        gaps = [1 - figures(results, d, estimate, "r2") for d in having]
        middle = np.array([np.median(gap) for gap in gaps])
        spread = [middle - [g.min() for g in gaps], [g.max() for g in gaps] - middle]
        axis.bar(at, middle, width=0.18, color=colors[estimate], yerr=spread, capsize=3,
                 error_kw={"linewidth": 1}, label=estimate)  # fmt: skip
        if estimate in PAPER:
            gap = 1 - PAPER[estimate]
            label = "001, Table 2" if k == 0 else None
            axis.plot([at[0] - 0.1, at[0] + 0.1], [gap, gap], color="black", linewidth=2.5,
                      label=label)  # fmt: skip
    axis.set_xticks(range(len(distances)), labels=[NAMES[d] for d in distances])
    axis.set_ylabel("1 − R² of the kernel (less is better)")
    axis.set_xlabel("distance of densities")
    axis.legend(fontsize=9)
    axis.grid(axis="y", alpha=0.25)
    figure.suptitle(f"Median and range over {len(results)} data sets")
    return save_figure(figure, path)
