"""Pictures of an experiment's frame, declared by the names of its columns.

Each draws one file; repeats are drawn as their median, with their range.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bagbasis.core.arrays import Floats

from ...pictures.evaluation import new_figure

PANEL = (5.0, 4.2)  # inches


@dataclass(frozen=True)
class Picture(ABC):
    """A file with a panel per value of a column.

    ``y`` has the columns that are drawn, or a pattern: ``*`` stands for any text, the label. There
    is a panel for each value of ``panels``, a curve or a colour for each of ``by``. ``measure``
    and ``where`` choose the rows, ``log`` the logarithmic axes: "x", "y" or "xy".
    """

    file: str
    y: str | tuple[str, ...]
    _: KW_ONLY
    measure: str = ""
    panels: str = ""
    by: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    log: str = ""
    label: str = ""

    def draw(self, rows: pd.DataFrame, title: str) -> Figure:
        """Return the figure of an experiment's frame."""
        wanted = {"measure": self.measure, **self.where} if self.measure else self.where
        for name, value in wanted.items():
            rows = rows[rows[name] == value]
        panels = list(_groups(rows, self.panels))
        figure = new_figure(PANEL[0] * len(panels), PANEL[1])
        figure.suptitle(title)
        axes = np.atleast_1d(figure.subplots(1, len(panels)))
        for axis, (name, part) in zip(axes, panels, strict=True):
            axis.set_title(name)
            self.fill(axis, part)
        return figure

    @abstractmethod
    def fill(self, axis: Axes, rows: pd.DataFrame) -> None:
        """Draw the rows of one panel."""

    def series(self, rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield a label and the rows of all that a panel compares, with the numbers as "value"."""
        for group, part in _groups(rows, self.by):
            for label, name in _columns(part, self.y).items():
                present = part[part[name].notna()]
                yield ", ".join(filter(None, [label, group])), present.assign(value=present[name])

    def finish(self, axis: Axes) -> None:
        """Set scales, grid and legend of a panel."""
        if "x" in self.log:
            axis.set_xscale("log")
        if "y" in self.log:
            axis.set_yscale("log")
        axis.grid(alpha=0.25)
        if any(axis.get_legend_handles_labels()[1]):
            axis.legend(fontsize=8)


@dataclass(frozen=True, kw_only=True)
class Curves(Picture):
    """Lines over a column ``x``; without it over the positions in cells that are lists."""

    x: str = ""

    def fill(self, axis: Axes, rows: pd.DataFrame) -> None:
        for label, part in self.series(rows):
            if self.x:
                groups = part.assign(value=part["value"].map(np.mean)).groupby(self.x)["value"]
                at: list[Any] = list(groups.groups)
                drawn = groups.agg(["median", "min", "max"]).to_numpy().T
            else:
                cells = np.array([np.atleast_2d(cell).mean(axis=0) for cell in part["value"]])
                at = list(range(1, cells.shape[1] + 1))
                drawn = np.array([np.median(cells, axis=0), cells.min(axis=0), cells.max(axis=0)])
            look: dict[str, Any] = {"capsize": 2, "markersize": 4, "label": label}
            axis.errorbar(at, drawn[0], _spread(drawn), fmt="o-", **look)
        axis.set(xlabel=self.x, ylabel=self.label)
        self.finish(axis)


@dataclass(frozen=True, kw_only=True)
class GroupedBars(Picture):
    """Bars of columns in groups by the values of ``x``; without it a bar for each column."""

    x: str = ""

    def fill(self, axis: Axes, rows: pd.DataFrame) -> None:
        series = dict(self.series(rows))
        if not self.x:
            drawn = np.array([_range(part["value"]) for part in series.values()]).T
            axis.barh(list(series), drawn[0], xerr=_spread(drawn), capsize=3)
            axis.set_xlabel(self.label)
            if self.log:
                axis.set_xscale("log")
            return
        groups = [name for name, _ in _groups(rows, self.x)]
        width = 0.8 / len(series)
        for k, (label, part) in enumerate(series.items()):
            at = np.arange(len(groups)) + width * (k - (len(series) - 1) / 2)
            cells = [part["value"][part[self.x].map(str) == group] for group in groups]
            drawn = np.array([_range(cell) for cell in cells]).T
            axis.bar(at, drawn[0], 0.95 * width, yerr=_spread(drawn), capsize=3, label=label)
        axis.set_xticks(range(len(groups)), labels=groups, rotation=30, ha="right", fontsize=8)
        axis.set_ylabel(self.label)
        self.finish(axis)


@dataclass(frozen=True, kw_only=True)
class Images(Picture):
    """The matrices in the columns of the first row that has them, side by side."""

    def draw(self, rows: pd.DataFrame, title: str) -> Figure:
        """Return the figure of an experiment's frame."""
        columns = _columns(rows, self.y)
        cells = rows.dropna(subset=list(columns.values())).iloc[0]
        figure = new_figure(3.2 * len(columns), 3.6)
        figure.suptitle(title)
        axes = np.atleast_1d(figure.subplots(1, len(columns)))
        for axis, (label, name) in zip(axes, columns.items(), strict=True):
            axis.imshow(np.asarray(cells[name], dtype=float), cmap="gray")
            axis.set_title(label, fontsize=10)
            axis.set_axis_off()
        return figure

    def fill(self, axis: Axes, rows: pd.DataFrame) -> None:
        raise NotImplementedError


def _groups(rows: pd.DataFrame, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
    if not name:
        yield "", rows
        return
    for value, part in rows.groupby(name, sort=False):
        yield str(value), part


def _columns(rows: pd.DataFrame, names: str | tuple[str, ...]) -> dict[str, str]:
    """Return columns by their labels: of a pattern the text that its star stands for."""
    known = [str(name) for name in rows if rows[name].notna().any()]
    if isinstance(names, tuple):
        return {name: name for name in names if name in known}
    expression = re.escape(names).replace(r"\*", "(.+)")
    matches = [re.fullmatch(expression, name) for name in known]
    return {(match[1] if match.groups() else ""): match[0] for match in matches if match}


def _range(cells: Iterable[Any]) -> tuple[float, float, float]:
    """Return the median of numbers, or of the means of lists, the least and the largest."""
    values = [float(np.mean(cell)) for cell in cells]
    return (float(np.median(values)), min(values), max(values)) if values else (np.nan,) * 3


def _spread(drawn: Floats) -> Floats | None:
    """Return lengths of error bars from medians and ranges; None where nothing was repeated."""
    middle, low, high = drawn
    if np.array_equal(low, high, equal_nan=True):
        return None
    return np.array([middle - low, high - middle])
