"""The picture of a test: the statistic, and its distribution without an effect."""

from __future__ import annotations

import os
from pathlib import Path

from bagbasis.hypotheses import HypothesisResult
from bagbasis.plotting import plot_null

from .evaluation import new_figure, save_figure


def draw_null(path: str | os.PathLike[str], result: HypothesisResult) -> Path:
    """Draw the histogram of the null with the statistic and the threshold of level .05 in it."""
    figure = new_figure(6.4, 4.0)
    plot_null(result, ax=figure.subplots())
    return save_figure(figure, path)
