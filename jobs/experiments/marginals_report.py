"""The tables and the picture of `marginals`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pictures.evaluation import BLUE, ORANGE, new_figure, save_figure
from .experiment import Result, Table
from .gmm_components_report import HDD
from .order import MEANING, PICKED, lead_text, order_verdict

BESIDE = ("MMD", "L2", "Hist JS", "moments")
WAYS = {"linear": "linear", "rbf": "random features (RBF)"}


def accuracies(results: Sequence[Result], kind: str, way: str) -> dict[str, NDArray[np.float64]]:
    """Of each method on one kind of filters, shape (n_repeats,)."""
    return {
        result.point.params["method"]: np.array(result.values[way])
        for result in results
        if result.point.params["filters"] == kind
    }


def marginal_table(results: Sequence[Result], kind: str) -> Table:
    """Accuracies of all methods on one kind of filters."""
    found = {way: accuracies(results, kind, way) for way in WAYS}
    n_repeats = len(next(iter(found["rbf"].values())))
    rows: list[list[Any]] = []
    for method in found["rbf"]:
        row: list[Any] = [method]
        for way in WAYS:
            shares = found[way][method]
            deviation = float(shares.std(ddof=1)) if n_repeats > 1 else None
            row += [float(shares.mean()), deviation]
        rows.append(row)
    columns = ["", "linear", "standard deviation", "RBF", "standard deviation"]
    repeats = f"{n_repeats} repeat{'s' * (n_repeats > 1)} with other classes"
    about = {
        "independent": "Each filter of a patch sees a part of its own: marginals hold all that "
        "there is.",
        "dependent": "All filters of a patch see the same part. The marginals are those of the "
        "independent filters; which filters fire together they do not show, and MMD and moments "
        "(all covariances), which take all dimensions at once, do.",
    }
    remarks = [
        about[kind],
        *(_verdict(found[way], text) for way, text in WAYS.items()),
        f"{MEANING} {PICKED} Why leads are small was not tested. Likely: in "
        "generated bags classes differ in how often and how strongly each filter fires, which a "
        "mean, a histogram or a projection of each dimension shows nearly as well as a density "
        "does, and moments too.",
        "The paper prints no numbers of these methods: its figure, on photographs, has HDD at or "
        "above MMD and both far above L2 and histograms. Its best is about 92 %, with features of "
        "a network.",
    ]
    return Table(f"{kind} filters: accuracy on test images, {repeats}", columns, rows, remarks)


def _verdict(shares: dict[str, NDArray[np.float64]], way: str) -> str:
    """The lead of the best HDD over each other method, on the same images."""
    best = max(HDD, key=lambda method: shares[method].mean())
    parts = [f"{other} {lead_text(shares[best], shares[other], 3)}" for other in BESIDE]
    claims = [(best, "≥", "MMD")]
    claims += [(one, "≫", other) for one in (best, "MMD") for other in ("L2", "Hist JS")]
    return (
        f"Best HDD, {way}: {best}, {shares[best].mean():.3f}; its lead: {', '.join(parts)} "
        "(± standard errors over repeats; negative: it loses). The paper's order: HDD ≥ MMD ≫ "
        f"L2, Hist JS. {order_verdict(shares, claims, 3)}"
    )


def draw_marginals(path: Path, results: Sequence[Result]) -> Path:
    """001, Figure 5: accuracies of all methods, linear and with random features."""
    kinds = list(dict.fromkeys(result.point.params["filters"] for result in results))
    figure = new_figure(6.4 * len(kinds), 4.8)
    axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axis, kind in zip(axes, kinds, strict=True):
        for k, (way, color) in enumerate((("linear", "black"), ("rbf", BLUE))):
            found = accuracies(results, kind, way)
            at = np.arange(len(found)) + 0.2 * (k - 0.5)
            means = [100 * shares.mean() for shares in found.values()]
            spread = [100 * shares.std() for shares in found.values()]
            axis.errorbar(at, means, yerr=spread, fmt="o" if k == 0 else "s", color=color,
                          capsize=3, label=WAYS[way])  # fmt: skip
            best = max(found[method].mean() for method in HDD)
            axis.axhline(100 * best, color=color, linestyle=":", linewidth=1,
                         label=f"best HDD, {WAYS[way]}")  # fmt: skip
        axis.axvspan(-0.5, len(HDD) - 0.5, color=ORANGE, alpha=0.12, label="HDD")
        axis.set_xticks(range(len(found)), labels=list(found), rotation=30)
        axis.set_title(f"{kind} filters", fontsize=10)
        axis.set_xlabel("geometry of the embedding")
        axis.grid(axis="y", alpha=0.25)
    axes[0].set_ylabel("accuracy on test images, %")
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, ncols=5,
                  loc="outside lower center")  # fmt: skip
    n = len(results[0].values["rbf"])
    bars = f", means of {n} repeats; bars: one standard deviation" if n > 1 else ""
    figure.suptitle(f"Bags in 64 dimensions{bars}")
    return save_figure(figure, path)
