"""The picture of a test of many widths: at which of them the samples differ."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bagbasis.hypotheses import HypothesisResult

from .evaluation import BLUE, ORANGE, new_figure, save_figure
from .nulls import LEVEL

COLORS = {"gaussian": BLUE, "laplacian": ORANGE, "matern": BLUE}


def draw_scales(path: str | os.PathLike[str], result: HypothesisResult) -> Path:
    """Draw what each bandwidth says: its weight in `fuse`, or its corrected p-value in `agg`.

    Parameters
    ----------
    result : HypothesisResult
        With "scales" among its details.
    """
    scales = result.details["scales"]
    names, widths = np.array(scales["kernel"]), np.array(scales["bandwidth"])
    weights = scales.get("weight")
    values = np.array(scales["corrected"] if weights is None else weights)
    figure = new_figure(6.4, 4.0)
    axis = figure.subplots()
    for name in dict.fromkeys(scales["kernel"]):
        of = names == name
        axis.plot(
            widths[of], values[of], "o-", color=COLORS.get(name, BLUE), label=f"{name} kernel"
        )
    axis.set_xscale("log")
    axis.set_xlabel("bandwidth: the scale of the difference")
    if weights is None:
        axis.set_yscale("log")
        axis.axhline(LEVEL, color="black", linestyle="--", linewidth=1, label=f"level {LEVEL:g}")
        axis.set_ylabel("p-value, corrected for all bandwidths")
    else:
        axis.set_ylim(bottom=0)
        axis.set_ylabel("weight in the statistic")
    axis.legend(fontsize=8)
    axis.set_title(f"{result.name.partition('(')[0]}: where the samples differ, "
                   f"p = {result.p_value:.3g}", fontsize=10)  # fmt: skip
    return save_figure(figure, path)
