"""The picture of a test: the statistic, and its distribution without an effect."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bagbasis.hypotheses import HypothesisResult

from .evaluation import BLUE, ORANGE, new_figure, save_figure

LEVEL = 0.05  # whose threshold is drawn
FAR = 3.0  # times the null's range: a statistic beyond is named, not drawn


def draw_null(path: str | os.PathLike[str], result: HypothesisResult) -> Path:
    """Draw the histogram of the null with the statistic and the threshold of level .05 in it."""
    values = result.null_distribution
    figure = new_figure(6.4, 4.0)
    axis = figure.subplots()
    axis.hist(values, bins=40, color=BLUE, alpha=0.7, label=f"null: {result.null}")
    threshold = float(np.quantile(values, 1 - LEVEL))
    axis.axvline(threshold, color=BLUE, linestyle="--", label=f"level {LEVEL:g}: {threshold:.4g}")
    width = float(np.ptp(values)) or 1.0
    label = f"statistic: {result.statistic:.4g}, p = {result.p_value:.3g}"
    if result.statistic < values.max() + FAR * width:
        axis.axvline(result.statistic, color=ORANGE, linewidth=2, label=label)
    else:
        axis.plot([], [], color=ORANGE, label=f"{label}, far to the right")
    axis.set_xlabel(result.name)
    axis.set_ylabel("permutations" if result.null == "permutation" else "share")
    axis.legend(fontsize=8)
    axis.set_title(f"{result.question}: {', '.join(f'{k} {n:,}' for k, n in result.n.items())}")
    return save_figure(figure, path)
