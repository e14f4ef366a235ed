"""Pictures of tests of many widths: at which of them, or of which coordinates, samples differ."""

from __future__ import annotations

import os
from pathlib import Path

from bagbasis.hypotheses import HypothesisResult
from bagbasis.hypotheses.result import LEVEL
from bagbasis.plotting import plot_coordinates, plot_scales

from .evaluation import new_figure, save_figure


def draw_scales(
    path: str | os.PathLike[str], result: HypothesisResult, level: float = LEVEL
) -> Path:
    """Draw what each bandwidth says: its weight in `fuse`, or its corrected p-value in `agg`.

    Parameters
    ----------
    result : HypothesisResult
        With "scales" among its details.
    level : float, default 0.05
    """
    figure = new_figure(6.4, 4.0)
    plot_scales(result, level=level, ax=figure.subplots())
    return save_figure(figure, path)


def draw_coordinates(path: str | os.PathLike[str], result: HypothesisResult) -> Path:
    """Draw how much of a test with a bandwidth per coordinate is lost without each coordinate.

    Parameters
    ----------
    result : HypothesisResult
        With "coordinates" among its details.
    """
    figure = new_figure(6.4, 4.0)
    plot_coordinates(result, ax=figure.subplots())
    return save_figure(figure, path)
