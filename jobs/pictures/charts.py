"""Charts of a page: the positions of points, lines and ticks; the page's template draws them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

# Units of the drawing; it is as wide as a phone's screen, so that letters stay readable.
WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 12, 46
BAR, BAR_LEFT, BAR_LETTERS = 24, 150, 20  # height, and room and length of a name
PAD = 0.04  # fraction of an axis, on each side of the values
MAX_TICKS = 6
FEW_DECADES = 2  # an axis of at most so many has ticks between the powers of ten
LETTER, _LINE = 7.0, 16.0  # width of a letter of a label, and height of a line

_Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """Points of one colour.

    Attributes
    ----------
    label : str
        Label in the legend; empty for none.
    x, y : sequences of float
        Coordinates of the points; values that are not finite are left out.
    titles : sequence of str
        Text of a point under the mouse, or nothing.
    bars : sequence of float or of (float, float)
        Half the length of each error bar, or both its ends; or nothing.
    color : str
    joined : bool
        By a line.
    radius : float
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    titles: Sequence[str] = ()
    bars: Sequence[float] | Sequence[tuple[float, float]] = ()
    color: str = "blue"
    joined: bool = False
    radius: float = 3.0

    def points(self) -> list[tuple[float, float, float, float, str]]:
        """Return x, y, both ends of the bar and the title of each point that can be drawn."""
        bars = self.bars or [0.0] * len(self.x)
        titles = self.titles or [""] * len(self.x)
        ends: list[tuple[float, float]] = [
            bar if isinstance(bar, tuple) else (y - float(bar), y + float(bar))  # type: ignore[arg-type]
            for y, bar in zip(self.y, bars, strict=True)
        ]
        rows = [
            (x, y, *ends[i], titles[i]) for i, (x, y) in enumerate(zip(self.x, self.y, strict=True))
        ]
        return [row for row in rows if np.isfinite(row[:4]).all()]


class AxisScale:
    """The scale of one axis, from values to positions.

    Parameters
    ----------
    values : iterable of float
        That are drawn.
    first, last : float
        Where the axis begins and ends.
    log : bool
        Logarithmic, where all values are above 0.
    """

    def __init__(self, values: Iterable[float], first: float, last: float, log: bool) -> None:
        numbers = np.array([*values], dtype=float)
        self._log = log and bool((numbers > 0).all())
        numbers = np.log10(numbers) if self._log else numbers
        low, high = (numbers.min(), numbers.max()) if len(numbers) else (0.0, 1.0)
        # rounds and numbers of points; 0 and 1 alone are the ends of shares
        self._is_counted = bool((numbers == numbers.round()).all()) and (low, high) != (0, 1)
        pad = PAD * (high - low) or 0.5
        self._low, self._high = low - pad, high + pad
        self._first, self._last = first, last

    def __call__(self, value: float) -> float:
        """Return the position of a value; a value without a logarithm lies at the edge."""
        if self._log:
            value = np.log10(value) if value > 0 else self._low
        share = (value - self._low) / (self._high - self._low)
        return round(float(self._first + np.clip(share, 0, 1) * (self._last - self._first)), 2)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value that the axis shows."""
        low, high = float(self._low), float(self._high)
        return (10**low, 10**high) if self._log else (low, high)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels: 1, 2 and 5 times powers of ten, as many as do not touch."""
        low, high = self.ends
        at: list[float] = _one_two_five(self._low, self._high) if self._log else []
        at = [value for value in at if low <= value <= high]
        if len(at) < 2:
            whole = {"integer": True, "min_n_ticks": 1} if self._is_counted else {}
            locator = MaxNLocator(MAX_TICKS, steps=[1, 2, 5, 10], **whole)
            at = [v for v in np.array(locator.tick_values(low, high)).tolist() if low <= v <= high]
        return self._apart([(self(value), f"{value:.6g}") for value in at])

    def _apart(self, ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
        """Leave out ticks whose labels would touch the one before."""
        spaced: list[tuple[float, str]] = []
        for at, label in ticks:
            distance = _LINE
            if spaced and self._first < self._last:  # labels stand side by side
                distance = LETTER * (len(label) + len(spaced[-1][1]) + 2) / 2
            if not spaced or abs(at - spaced[-1][0]) >= distance:
                spaced.append((at, label))
        return spaced


@dataclass(frozen=True)
class Bars:
    """A chart of horizontal bars, one below the other.

    Attributes
    ----------
    title, x_label : str
    names : sequence of str
    values, spreads : sequences of float
        Ends of the bars, which begin at 0, and half the lengths of their error bars.
    note : str
    """

    title: str
    x_label: str
    names: Sequence[str]
    values: Sequence[float]
    spreads: Sequence[float]
    note: str = ""

    @property
    def bottom(self) -> float:
        """Where the last bar ends."""
        return TOP + BAR * len(self.names)

    @property
    def scale(self) -> AxisScale:
        """The axis."""
        pairs = [*zip(self.values, self.spreads, strict=True)]
        ends = [value + sign * spread for value, spread in pairs for sign in (-1, 1)]
        return AxisScale([0.0, *ends], BAR_LEFT, WIDTH - RIGHT, False)

    def drawn(self) -> list[tuple[str, float, float, float, float, float, str]]:
        """Return of each bar its name, middle, both ends, those of its error bar, and a title."""
        x, bars = self.scale, []
        for i, row in enumerate(zip(self.names, self.values, self.spreads, strict=True)):
            name, value, spread = row
            short = name if len(name) <= BAR_LETTERS else f"{name[: BAR_LETTERS - 1]}…"
            title, y = f"{name}: {value:.4g} ± {spread:.2g}", TOP + BAR * (i + 0.5)
            start, end = sorted((x(0.0), x(value)))
            bars.append((short, y, start, end, x(value - spread), x(value + spread), title))
        return bars


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes
    ----------
    title, x_label, y_label : str
    series : sequence of Series
    note : str
        Note on points that are left out, or on how to read the chart.
    log_x, log_y : bool
    guide : {"", "diagonal", "zero"}
        A line for the eye: predicted = true, or 0.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    note: str = ""
    log_x: bool = False
    log_y: bool = False
    guide: str = ""

    @property
    def legend(self) -> list[Series]:
        """The series with a label that have a point."""
        return [series for series in self.series if series.label and series.points()]

    @property
    def says_something(self) -> bool:
        """Whether points differ in x: a single round, rung or size of bags shows nothing."""
        return len({point[0] for series in self.series for point in series.points()}) > 1

    @property
    def scales(self) -> tuple[AxisScale, AxisScale]:
        """Both axes."""
        points = [point for series in self.series for point in series.points()]
        x = [point[0] for point in points]
        y = [value for point in points for value in (point[2], point[3])]
        if self.guide == "zero":
            y.append(0.0)
        if self.guide == "diagonal":
            x = y = x + y
        bottom = HEIGHT - BOTTOM
        horizontal = AxisScale(x, LEFT, WIDTH - RIGHT, self.log_x)
        return horizontal, AxisScale(y, bottom, TOP, self.log_y)

    def line(self) -> tuple[_Point, _Point] | None:
        """Return the ends of the guide; None without one."""
        x, y = self.scales
        low, high = x.ends
        if not self.guide:
            return None
        of = (lambda value: value) if self.guide == "diagonal" else (lambda _: 0.0)
        return (x(low), y(of(low))), (x(high), y(of(high)))

    def drawn(self) -> list[tuple[Series, list[tuple[float, float, float, float, str]]]]:
        """Return each series with its points: x, y, both ends of the bar, title."""
        x, y = self.scales
        return [
            (series, [(x(a), y(b), y(low), y(high), t) for a, b, low, high, t in series.points()])
            for series in self.series
        ]


def _one_two_five(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between two logarithms, or some powers of many."""
    span = high - low
    step = max(1, math.ceil(span / MAX_TICKS))
    powers = range(math.floor(low) // step * step, math.ceil(high) + 1, step)
    factors = (1, 2, 5) if span <= FEW_DECADES else (1,)
    return [float(f"{factor}e{power}") for power in powers for factor in factors]


def thin(n: int, most: int) -> NDArray[np.int64]:
    """Return up to ``most`` of the rows 0 … n − 1, ascending: all, or the same random ones."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))
