"""Pictures of tests of many widths: at which of them, or of which coordinates, samples differ."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bagbasis.hypotheses import HypothesisResult

from .evaluation import BLUE, ORANGE, new_figure, plain_log, save_figure
from .nulls import LEVEL

MOST_COORDINATES = 20  # whose bars have room for their numbers
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
    plain_log(axis.xaxis)
    axis.set_xlabel("bandwidth: the scale of the difference")
    if weights is None:
        axis.set_yscale("log")
        plain_log(axis.yaxis)
        axis.axhline(LEVEL, color="black", linestyle="--", linewidth=1, label=f"level {LEVEL:g}")
        axis.set_ylabel("p-value, corrected for all bandwidths")
    else:
        axis.set_ylim(bottom=0)
        axis.set_ylabel("weight in the statistic")
    axis.legend(fontsize=8)
    axis.set_title(f"{result.name.partition('(')[0]}: where the samples differ, "
                   f"p = {result.p_value:.3g}", fontsize=10)  # fmt: skip
    return save_figure(figure, path)


def draw_coordinates(path: str | os.PathLike[str], result: HypothesisResult) -> Path:
    """Draw how much of a test with a bandwidth per coordinate is lost without each coordinate.

    Parameters
    ----------
    result : HypothesisResult
        With "coordinates" among its details.
    """
    lost = np.array(result.details["coordinates"]["lost_without"])
    order = np.argsort(-lost, kind="stable")[:MOST_COORDINATES]
    figure = new_figure(6.4, 4.0)
    axis = figure.subplots()
    axis.bar([str(k) for k in order], lost[order], color=BLUE)
    axis.set_xlabel("coordinate" if len(order) == len(lost) else
                    f"coordinate, the first {len(order)} of {len(lost):,}")  # fmt: skip
    axis.set_ylabel("share of t that is lost without it")
    axis.set_title(f"Coordinates that differ, p = {result.p_value:.3g}", fontsize=10)
    return save_figure(figure, path)
