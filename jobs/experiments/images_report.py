"""The tables and pictures of `images`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

from ..pictures.evaluation import new_figure, save_figure
from .experiment import Result, Table
from .gmm_components_report import HDD, OTHERS, STYLES, log_seconds
from .order import MEANING, PICKED, lead_text, order_verdict

DIGITS = (
    "Why digits give another order was not tested. Likely: an image has 8 × 8 pixels of 17 grey "
    "values, so that smooth embeddings as those of L2 and MMD lose little of it, while bins cut "
    "between neighbouring values that mean the same.",
)


def accuracies(results: Sequence[Result], name: str) -> dict[str, NDArray[np.float64]]:
    """Of each method on these images, shape (n_splits, sizes): KL has the smallest size alone."""
    return {
        result.point.params["method"]: np.array(result.values["accuracies"])
        for result in results
        if result.point.params["images"] == name
    }


def image_table(results: Sequence[Result], name: str, n_train: Sequence[int]) -> Table:
    """Accuracies and times over the number of training images."""
    found = accuracies(results, name)
    chosen = {r.point.params["method"]: r for r in results if r.point.params["images"] == name}
    rows: list[list[Any]] = []
    for method, shares in found.items():
        blank = [None] * (len(n_train) - shares.shape[1])
        means = [float(value) for value in shares.mean(axis=0)]
        deviation = float(shares[:, -1].std(ddof=1)) if len(shares) > 1 else None
        seconds = list(chosen[method].values["seconds"])
        rows.append([method, *means, *blank, deviation, *seconds, *blank])
    columns = ["", *(f"accuracy, {n:,}" for n in n_train), "standard deviation at the last", *(
        f"s, {n:,}" for n in n_train)]  # fmt: skip
    n_splits = max(len(shares) for shares in found.values())
    n_test = next(iter(chosen.values())).values["n_test"]
    title = f"{name}: accuracy and time over the number of training images"
    remarks = [
        f"Means over {n_splits} split{'s' * (n_splits > 1)}, {n_test:,} test images each: the "
        f"standard error of an accuracy of 0.97 on one split is "
        f"{(0.97 * 0.03 / n_test) ** 0.5:.3f}.",
        _verdict(found, n_train[-1]),
        *(DIGITS if name == "digits" else ()),
        "Seconds: one fit, λ chosen by a held-out tenth, and predictions of all test images; "
        "medians over splits. All methods are one-hot ridge regressions, where the paper has "
        "support vector machines. KL is one with the full kernel matrix, of points spread over "
        "their pixels, for it needs continuous densities; the paper too could run it for the "
        "smallest training set only. On the digits it learns little, at the edge of the σ and λ "
        "that it may choose from: 64 points, at the same (x, y) in all bags, are poor data for "
        "distances of neighbours.",
        f"Chosen on the first split: {_choices(chosen)}.",
        "The paper prints no number: its figure has JS and Hellinger level with Hist JS, TV above "
        "them, and L2 and MMD below all.",
    ]
    return Table(title, columns, rows, remarks)


def _verdict(found: dict[str, NDArray[np.float64]], largest: int) -> str:
    """Whether the paper's order holds, by the differences on the same splits."""
    last = {method: shares[:, -1] for method, shares in found.items() if method != "KL"}
    best = max(HDD, key=lambda method: last[method].mean())
    parts = [f"{other} {lead_text(last[best], last[other], 4)}" for other in OTHERS]
    claims = [("TV", ">", "JS"), (best, "≥", "Hist JS")]
    claims += [(one, ">", other) for one in (best, "Hist JS") for other in ("L2", "MMD")]
    return (
        f"With {largest:,} training images the best HDD is {best}, "
        f"{last[best].mean():.4f}; its lead: {', '.join(parts)} (± standard errors over splits; "
        f"negative: it loses). {PICKED} The paper's order: TV > JS; HDD ≥ Hist JS > L2, MMD. "
        f"{order_verdict(last, claims, 4)} {MEANING}"
    )


def _choices(chosen: dict[str, Result]) -> str:
    parts = []
    for method, result in chosen.items():
        choice = result.values["choices"][0]
        params = {
            k: v
            for k, v in choice.get("embedding", {}).items()
            if k not in ("embedding", "distance")
        }
        shown = ", ".join(f"{key}={value}" for key, value in params.items())
        parts.append(f"{method} {shown + ', ' if shown else ''}σ {choice['multiplier']:g}")
    return "; ".join(parts)


def draw_images(path: Path, results: Sequence[Result], name: str, n_train: Sequence[int]) -> Path:
    """001, Figure 4: the error rate over training images, and over time."""
    figure = new_figure(12.0, 5.0)
    left, right = figure.subplots(1, 2, sharey=True)
    seconds = {r.point.params["method"]: r.values["seconds"] for r in results
               if r.point.params["images"] == name}  # fmt: skip
    n_splits = max(len(shares) for shares in accuracies(results, name).values())
    for method, shares in accuracies(results, name).items():
        color, marker = STYLES[method]
        errors = 100 * (1 - shares)
        spread = errors.std(axis=0, ddof=1) if len(errors) > 1 else None
        at = n_train[: errors.shape[1]]
        left.errorbar(at, errors.mean(axis=0), yerr=spread, color=color, marker=marker,
                      capsize=3, linewidth=1.2, label=method)  # fmt: skip
        right.plot(seconds[method], errors.mean(axis=0), color=color, marker=marker, label=method)
    left.set_xlabel("training images")
    left.set_ylabel("error rate on test images, %")
    left.set_yscale("log", nonpositive="clip")
    left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_locator(NullLocator())
    log_seconds(right)
    for axis in (left, right):
        axis.grid(alpha=0.25)
        axis.legend(fontsize=9)
    bars = f": means of {n_splits} splits; bars: one standard deviation" if n_splits > 1 else ""
    figure.suptitle(f"{name.capitalize()} as bags of pixels (x, y, v){bars}")
    return save_figure(figure, path)
