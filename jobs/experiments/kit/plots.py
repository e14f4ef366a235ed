"""Pictures of measurements: lines and bars, with the same labels, scales and legends everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from ...pictures import BLUE, GREY, ORANGE, plain_log

__all__ = ["AT_ENDS", "BLUE", "GREY", "ORANGE", "Curve", "bars", "finish", "lines", "plain_log"]

AT_ENDS = "at ends"
LINE_HEIGHT = 0.045  # of a panel's height: of a label at the end of a line
STAR = 12  # points: of what a paper prints, so that it is seen beside lines
GREEN, PURPLE, RED, BLACK = "#5a9e6f", "#8064a2", "#c0392b", "black"


@dataclass(frozen=True)
class Curve:
    """A line through points, or points alone.

    Attributes
    ----------
    x, y : sequences of numbers
    label : str or None
        In the legend.
    color, style : str
        The style is matplotlib's: ``"o-"`` has dots and a line.
    spread : array_like or None
        Half the length of the bars at the points, or two of these: below and above.
    more : mapping
        Further properties of matplotlib's `Line2D`.
    """

    x: Any
    y: Any
    label: str | None = None
    color: str = BLUE
    style: str = "o-"
    spread: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)


def lines(
    axis: Axes,
    curves: Sequence[Curve],
    x: str,
    y: str,
    *,
    log: str = "",
    ticks: Sequence[float] | NDArray[Any] = (),
    levels: Mapping[str, float] | None = None,
    title: str = "",
    legend: Mapping[str, Any] | str | None = None,
) -> None:
    """Draw curves on a panel and label it.

    Parameters
    ----------
    x, y : str
        Labels of the axes.
    log : str
        The axes that are logarithmic: "x", "y" or "xy".
    ticks : sequence of float
        All that the x axis has; none: matplotlib's own.
    levels : mapping from label to y
        Heights of dotted horizontal lines.
    legend : mapping or "at ends", optional
        Of `Axes.legend`; or labels stand beside the last points of the curves.
    """
    for curve in curves:
        label = None if legend == AT_ENDS else curve.label
        look = {"color": curve.color, "label": label, **curve.more}
        if curve.style == "*":
            look.setdefault("markersize", STAR)
        if curve.spread is None:
            axis.plot(curve.x, curve.y, curve.style, **look)
        else:
            axis.errorbar(curve.x, curve.y, curve.spread, fmt=curve.style, capsize=3, **look)
    for label, level in (levels or {}).items():
        axis.axhline(level, color=BLACK, linestyle=":", linewidth=1, label=label)
    if "x" in log:
        axis.set_xscale("log")
    if "y" in log:
        axis.set_yscale("log")
    if len(ticks):
        axis.set_xticks(list(ticks), labels=[f"{tick:,g}" for tick in ticks], fontsize=8)
        axis.set_xticks([], minor=True)
    finish(axis, x, y, title, legend if isinstance(legend, Mapping) else None)
    if legend == AT_ENDS:
        _label_ends(axis, [curve for curve in curves if curve.label])


def _label_ends(axis: Axes, curves: Sequence[Curve]) -> None:
    """Write labels right of the panel, at the height of the last points, none over another."""
    to_panel = axis.transData + axis.transAxes.inverted()
    ends = [float(to_panel.transform((curve.x[-1], curve.y[-1]))[1]) for curve in curves]
    height = -np.inf
    for i in np.argsort(ends, kind="stable").tolist():
        height = max(ends[i], height + LINE_HEIGHT)
        look = {"color": curves[i].color, "fontsize": 8, "va": "center"}
        axis.text(1.02, height, curves[i].label, transform=axis.transAxes, **look)


def bars(
    axis: Axes,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    y: str,
    *,
    colors: Sequence[str] = (BLUE, ORANGE, GREY, GREEN),
    spread: Mapping[str, Any] | None = None,
    fmt: str = "",
) -> None:
    """Draw bars of several series side by side in groups.

    Parameters
    ----------
    groups : sequence of str
        Below the axis.
    series : mapping from a label to a height per group
        None where there is no bar.
    spread : mapping from a label to distances below and above each height
    fmt : str
        Format of the numbers above the bars; "" writes none.
    """
    width = 0.8 / len(series)
    for k, ((label, heights), color) in enumerate(zip(series.items(), colors, strict=False)):
        at = np.arange(len(groups)) + width * (k - (len(series) - 1) / 2)
        drawn = [0.0 if height is None else height for height in heights]
        error = (spread or {}).get(label)
        found = axis.bar(at, drawn, 0.95 * width, color=color, label=label, yerr=error, capsize=3)
        if fmt:
            axis.bar_label(found, fmt=fmt, fontsize=8)
    axis.set_xticks(range(len(groups)), labels=list(groups))
    finish(axis, "", y)


def finish(
    axis: Axes, x: str, y: str, title: str = "", legend: Mapping[str, Any] | None = None
) -> None:
    """Label a panel; a legend where anything has a label."""
    if x:
        axis.set_xlabel(x)
    if y:
        axis.set_ylabel(y)
    if title:
        axis.set_title(title, fontsize=10)
    axis.grid(alpha=0.25)
    if axis.get_legend_handles_labels()[1]:
        axis.legend(**{"fontsize": 8, "loc": "best", **(legend or {})})
