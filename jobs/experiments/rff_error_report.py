"""The table and the pictures of `rff-error`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from ..pictures.evaluation import BLUE, GREY, ORANGE, new_figure, save_figure
from .experiment import Result, Table
from .timing import exponent

Floats = NDArray[np.float64]

FORMS = ("paired", "phase")
NAMES = {"paired": "paired (ours)", "phase": "phase (scikit-learn's RBFSampler)"}
COLORS = {"paired": BLUE, "phase": ORANGE}
SURVIVAL_FEATURES = 500  # D of 000, Figure 3.5
AT_RADIUS_3 = 5  # place of b = 3 among the radii
PAPER_SQUARE = {"paired": 0.66, "phase": 0.83}  # D · E‖f‖² in 000, §3.5
PAPER_EXPONENT = {"paired": (-0.502, -0.496), "phase": (-0.503, -0.497)}
DRAWN_OVER_RADIUS = (50, 200, 1000, 10_000)


def columns_of(results: Sequence[Result], form: str) -> dict[str, Floats]:
    """D, repeats, mean ‖f‖_∞ on [−3, 3]², D · E‖f‖², and standard errors of both, of the points."""
    n = np.array([r.point.params["n_features"] for r in results], dtype=float)
    values = [r.values[form] for r in results]
    return {
        "n_features": n,
        "n_repeats": np.array([r.point.params["n_repeats"] for r in results], dtype=float),
        "largest": np.array([v["largest"][AT_RADIUS_3] for v in values]),
        "largest_error": np.array([v["largest_error"] for v in values]),
        "square": n * np.array([v["square"] for v in values]),
        "square_error": n * np.array([v["square_error"] for v in values]),
    }


def mean_square(columns: Mapping[str, Floats]) -> float:
    """D · E‖f‖² of all draws of frequencies together, whose relative variance is one at all D."""
    return float(np.average(columns["square"], weights=columns["n_repeats"]))


def error_table(results: Sequence[Result], expected: Mapping[str, float]) -> Table:
    """Mean maximum errors, and squared errors times D, on [−3, 3]."""
    paired, phase = (columns_of(results, form) for form in FORMS)
    rows: list[list[Any]] = []
    for i, d in enumerate(paired["n_features"]):
        largest, other = (float(c["largest"][i]) for c in (paired, phase))
        squares = [
            value
            for form, c in zip(FORMS, (paired, phase), strict=True)
            for value in (float(c["square"][i]), PAPER_SQUARE[form])
        ]
        rows.append([f"{d:,.0f}", largest, other, largest / other, *squares])
    columns = ["D", "E max error, paired", "phase", "paired / phase",
               "D · E‖f‖², paired", "paper", "D · E‖f‖², phase", "paper"]  # fmt: skip
    return Table("Errors on [−3, 3], σ = 1", columns, rows, _remarks(results, expected))


def _remarks(results: Sequence[Result], expected: Mapping[str, float]) -> list[str]:
    remarks = []
    for form in FORMS:
        columns = columns_of(results, form)
        low, high = PAPER_EXPONENT[form]
        remarks.append(
            f"{NAMES[form]}: D · E‖f‖² {mean_square(columns):.4f} over all D (exactly, by "
            f"Proposition {'3.4' if form == 'paired' else '3.5'} on these points: "
            f"{expected[form]:.4f}; the paper: {PAPER_SQUARE[form]}). E max error ∝ D^"
            f"{exponent(columns['n_features'], columns['largest']):.3f} (the paper's interval: "
            f"{low} to {high})."
        )
    remarks.append(
        "The paper prints no mean maximum errors, it draws them (Figure 3.4). Its D · E‖f‖² is "
        "that of the squared norm, whose square is missing in print. Paired features have less "
        "error at every D: D/2 frequencies with sine and cosine, and 1 on the diagonal exactly."
        if _always_better(results)
        else "Paired features do not have less error at every D here, as the theory has it."
    )
    return remarks


def _always_better(results: Sequence[Result]) -> bool:
    paired, phase = (columns_of(results, form) for form in FORMS)
    return all((paired[name] < phase[name]).all() for name in ("largest", "square"))


def draw_over_features(path: Path, results: Sequence[Result], expected: Any) -> Path:
    """000, Figure 3.4, and the squared error beside it."""
    figure = new_figure(12.5, 5.0)
    left, right = figure.subplots(1, 2)
    for form in FORMS:
        c = columns_of(results, form)
        slope = exponent(c["n_features"], c["largest"])
        low, high = PAPER_EXPONENT[form]
        left.errorbar(c["n_features"], c["largest"], 2 * c["largest_error"], color=COLORS[form],
                      marker="o", markersize=4, capsize=2,
                      label=f"{NAMES[form]}: ∝ D^{slope:.3f} (000: {low} … {high})")  # fmt: skip
        aside = 0.98 if form == "paired" else 1.02  # so that bars do not hide each other
        right.errorbar(aside * c["n_features"], c["square"], 2 * c["square_error"], marker="o",
                       color=COLORS[form], markersize=4, linestyle="", capsize=2,
                       label=f"{NAMES[form]}, measured")  # fmt: skip
        right.axhline(expected[form], color=COLORS[form], linewidth=1,
                      label=f"exact expectation: {expected[form]:.4f}")  # fmt: skip
        right.axhline(PAPER_SQUARE[form], color="black", linestyle=":",
                      label=f"000, {form}: {PAPER_SQUARE[form]}")  # fmt: skip
    left.set_yscale("log")
    left.set_ylabel("mean of the largest error |z(x)ᵀz(y) − k(x, y)|")
    right.set_ylabel("D × mean squared error")
    right.set_ylim(0.5, 1.15)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xlabel("number of features D")
        axis.grid(alpha=0.25, which="both")
        axis.legend(fontsize=8, loc="upper right")
    figure.suptitle("Gaussian kernel on [−3, 3], σ = 1 (bars: two standard errors)")
    return save_figure(figure, path)


def draw_over_radius(
    path: Path, results: Sequence[Result], radii: Sequence[float], quantiles: Floats
) -> Path:
    """000, Figures 3.3 and 3.5."""
    figure = new_figure(12.5, 5.0)
    left, right = figure.subplots(1, 2)
    for form, style in zip(FORMS, ("-", "--"), strict=True):
        _over_radius(left, results, form, style, radii)
    left.set_xlabel("radius b of the interval [−b, b], in bandwidths σ")
    left.set_ylabel("mean of the largest error within b")
    left.set_yscale("log")
    left.set_ylim(bottom=8e-4)
    [at] = [r for r in results if r.point.params["n_features"] == SURVIVAL_FEATURES]
    for form in FORMS:
        right.plot(at.values[form]["quantiles"], 1 - quantiles, color=COLORS[form],
                   label=NAMES[form])  # fmt: skip
        mean = at.values[form]["largest"][AT_RADIUS_3]
        right.axvline(mean, color=COLORS[form], linestyle=":", label=f"its mean, {mean:.4f}")
    right.set_xlabel(f"ε (D = {SURVIVAL_FEATURES}, b = 3)")
    right.set_ylabel("share of draws with a largest error above ε")
    for axis in (left, right):
        axis.grid(alpha=0.25, which="both")
        axis.legend(fontsize=8, ncols=2 if axis is left else 1)
    figure.suptitle("Largest error of random features of the Gaussian kernel")
    return save_figure(figure, path)


def _over_radius(
    axis: Axes, results: Sequence[Result], form: str, style: str, radii: Sequence[float]
) -> None:
    drawn = [r for r in results if r.point.params["n_features"] in DRAWN_OVER_RADIUS]
    for result, color in zip(drawn, (BLUE, ORANGE, GREY, "#5a9e6f"), strict=False):
        axis.plot(radii, result.values[form]["largest"], style, color=color, marker=".",
                  label=f"D = {result.point.params['n_features']:,}, {form}")  # fmt: skip
