"""Pictures of an evaluation: predicted against true, residuals, confusion matrix."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from unicodedata import category

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import (
    FixedFormatter,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    StrMethodFormatter,
)
from numpy.typing import NDArray

from bagbasis.core.errors import printable
from bagbasis.data.storage.files import writing

DOTS_PER_INCH = 120  # of the PNG files
LAYOUT: Literal["constrained"] | None = "constrained"  # half of the time of a picture
MOST_VALUES = 30  # of an integer target that gets one violin per value
MOST_BINS = 60  # of a histogram
MOST_PANELS = 9  # targets that are drawn
MOST_LABELS = 40  # classes named on an axis
OVERSHOOT = 0.25  # share of the true range: an axis shows predictions this far beyond it
NO_LETTERS = frozenset(("Cn", "Co", "Cs"))  # categories of characters that no font has
MOST_LETTERS = 40  # of a name in a picture
MOST_TICK_LETTERS, SHORT = 24, 8  # of a class beside an axis; longer ones make a picture larger
LETTER = 0.085  # inches
MOST_LINE = 200  # letters of a line of a picture
MOST_DOTS = 3000  # with more dots a scatter plot hides its density
BLUE, ORANGE, GREY = "#3b6fb6", "#e07b39", "#7a7a7a"

Array = NDArray[Any]


def new_figure(width: float, height: float) -> Figure:
    """Make a figure on the Agg canvas; nothing is global, so any thread may draw."""
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout=LAYOUT)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a PNG, whole or not at all; texts are drawn as they are, and none is mathematics.

    Control characters are escaped, long texts shortened, and glyphs that the font lacks are boxes.
    """
    with writing(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing")
        numbers = set(_labels_of_numbers(figure))
        for text in figure.findobj(Text):
            if text not in numbers and text.get_text():
                text.set_parse_math(False)
                text.set_text(drawn_text(text.get_text()))
        figure.savefig(temporary, format="png")
    return Path(path)


def label_of(name: object, most: int = MOST_LETTERS) -> str:
    """Return a name of the data as pictures show it: on one line, and shortened if long."""
    text = _drawable("\\n".join(str(name).splitlines()))
    return text if len(text) <= most else f"{text[: most - 10]}…{text[-9:]}"


def _drawable(text: str) -> str:
    """Return a text with the characters escaped that no font has, such as those of private use."""
    return "".join(
        letter.encode("unicode_escape").decode() if category(letter) in NO_LETTERS else letter
        for letter in printable(text)
    )


def drawn_text(text: str) -> str:
    """Return a text of several lines as pictures show it."""
    lines = [_drawable(line) for line in text.split("\n")]
    return "\n".join(line if len(line) <= MOST_LINE else f"{line[:MOST_LINE]}…" for line in lines)


def _labels_of_numbers(figure: Figure) -> Iterator[Text]:
    """Yield the texts that axes make of numbers themselves, such as powers of ten."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            yield axis.get_offset_text()
            axis.get_ticklabels()  # makes the ticks
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            # set_ticks(labels=…) makes one of these; the texts of a log axis are powers of ten
            if not isinstance(axis.get_major_formatter(), (FixedFormatter, FuncFormatter)):
                yield from (label for tick in ticks for label in (tick.label1, tick.label2))


def plain_log(axis: Axis) -> None:
    """Label a logarithmic x or y axis with plain numbers: 1, 2 and 5 times powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_predictions(
    path: str | os.PathLike[str],
    pairs: Sequence[Array],
    names: Sequence[str],
    errors: Sequence[dict[str, Any]],
) -> Path:
    """Draw predicted against true values, one panel per target.

    Parameters
    ----------
    pairs : one array of shape (n, 2) per target
        True and predicted values.
    names : sequence of str
    errors : of `Errors.values`, one per target
    """
    figure, axes = _panels(len(pairs), 5.0)
    for axis, pair, name, error in zip(axes, pairs, names, errors, strict=False):
        _predictions(axis, pair[:, 0], pair[:, 1], name)
        r2 = f", R² {error['r2']:.3f}"
        constant = f", best constant {error['constant_rmse']:.3g}"
        axis.set_title(f"RMSE {error['rmse']:.3g}{constant}{r2}", fontsize=10)
    figure.suptitle(f"Predicted against true targets of {_which(pairs, errors)}")
    return save_figure(figure, path)


def draw_residuals(
    path: str | os.PathLike[str],
    pairs: Sequence[Array],
    names: Sequence[str],
    errors: Sequence[dict[str, Any]],
) -> Path:
    """Draw the histogram of predicted − true, one panel per target; see `draw_predictions`."""
    figure, axes = _panels(len(pairs), 3.8)
    for axis, pair, name, error in zip(axes, pairs, names, errors, strict=False):
        n_bins = int(np.clip(len(pair) ** 0.5, 5, MOST_BINS))  # of few bags more are noise
        axis.hist(pair[:, 1] - pair[:, 0], bins=n_bins, color=BLUE)
        axis.axvline(0, color=GREY, linewidth=1)
        label = f"mean error {error['bias']:.3g}"
        axis.axvline(error["bias"], color=ORANGE, linestyle="--", label=label)
        axis.set_xlabel(f"predicted − true {label_of(name)}")
        axis.set_ylabel("bags")
        axis.legend(loc="upper right", fontsize=9)
    figure.suptitle(f"Prediction errors of {_which(pairs, errors)}")
    return save_figure(figure, path)


def draw_confusion(
    path: str | os.PathLike[str], matrix: Array, names: Sequence[str], target: str, accuracy: float
) -> Path:
    """Draw a confusion matrix: counts, coloured by their share of the true class."""
    counts = np.asarray(matrix)
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    step = -(-len(names) // MOST_LABELS)
    at = range(0, len(names), step)
    labels = [label_of(name, MOST_TICK_LETTERS) for name in names[::step]]
    size = min(12.0, 3.2 + 0.42 * len(names)) + LETTER * max(0, max(map(len, labels)) - SHORT)
    figure = new_figure(size + 1.0, size)
    axis = figure.subplots()
    image = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axis, label="share of the true class", shrink=0.85)
    if len(names) <= 25:
        for i, j in np.argwhere(counts > 0):
            color = "white" if shares[i, j] > 0.6 else "black"
            axis.text(j, i, f"{counts[i, j]:,}", ha="center", va="center", color=color, fontsize=8)
    axis.set_xticks(at, labels=labels, rotation=90 if _long(labels) else 0)
    axis.set_yticks(at, labels=labels)
    axis.set_xlabel(f"predicted {label_of(target)}")
    axis.set_ylabel(f"true {label_of(target)}")
    figure.suptitle(f"Confusion matrix of {counts.sum():,} bags, accuracy {accuracy:.3f}")
    return save_figure(figure, path)


def _panels(n: int, height: float) -> tuple[Figure, Any]:
    """Make a figure with one panel per target, three per row, for the first nine targets."""
    n = min(n, MOST_PANELS)
    columns = min(3, n)
    rows = -(-n // columns)
    figure = new_figure(5.6 * columns, height * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[n:]:
        axis.remove()
    return figure, axes[:n]


def _which(pairs: Sequence[Array], errors: Sequence[dict[str, Any]]) -> str:
    """Return a line that says which bags are drawn."""
    n, drawn = errors[0]["n"], len(pairs[0])
    bags = f"{n:,} bags" if drawn == n else f"{drawn:,} of {n:,} bags, drawn at random"
    return bags if len(errors) <= MOST_PANELS else f"{bags} (first {MOST_PANELS} targets)"


def _predictions(axis: Axes, true: Array, predicted: Array, name: str) -> None:
    least, most = float(true.min()), float(true.max())
    over = OVERSHOOT * (most - least) or np.inf
    lo = min(least, max(float(predicted.min()), least - over))
    hi = max(most, min(float(predicted.max()), most + over))
    pad = 0.04 * (hi - lo) or 0.5
    beyond = int(((predicted < lo) | (predicted > hi)).sum())
    seen = (least - pad, most + pad, lo - pad, hi + pad)
    values = np.unique(true)
    if len(values) <= MOST_VALUES and (values == np.round(values)).all():
        _violins(axis, true, predicted, values)
    elif len(true) > MOST_DOTS:
        image = axis.hexbin(
            true, predicted, gridsize=55, cmap="viridis", mincnt=1, bins="log", extent=seen
        )
        axis.figure.colorbar(image, ax=axis, label="bags in a cell")
    else:
        axis.plot(true, predicted, ".", color=BLUE, alpha=0.5, markersize=4, label="bag")
    axis.plot([lo, hi], [lo, hi], color=ORANGE, linestyle="--", label="predicted = true")
    if beyond:
        axis.plot([], [], " ", label=f"{beyond:,} bags lie beyond the axis")
    axis.set_xlim(*seen[:2])
    axis.set_ylim(*seen[2:])
    axis.set_xlabel(f"true {label_of(name)}")
    axis.set_ylabel(f"predicted {label_of(name)}")
    axis.legend(loc="upper left", fontsize=9)


def _violins(axis: Axes, true: Array, predicted: Array, values: Array) -> None:
    """Draw one violin per value of an integer target, or dots for a value with few bags."""
    groups = [predicted[true == value] for value in values]
    wide = [(v, g) for v, g in zip(values, groups, strict=True) if len(g) >= 5 and np.ptp(g) > 0]
    few = [(v, g) for v, g in zip(values, groups, strict=True) if len(g) < 5 or np.ptp(g) == 0]
    if wide:
        parts = axis.violinplot(
            [g for _, g in wide], [float(v) for v, _ in wide], widths=0.8, showextrema=False
        )
        bodies: Any = parts["bodies"]
        for body in bodies:
            body.set_facecolor(BLUE)
            body.set_alpha(0.45)
        bodies[0].set_label("predictions")
        low, middle, high = np.array([np.percentile(g, [25, 50, 75]) for _, g in wide]).T
        at = [v for v, _ in wide]
        axis.vlines(at, low, high, color=BLUE, linewidth=3, label="middle half")
        axis.plot(at, middle, "o", color="white", markeredgecolor=BLUE, label="median")
    for value, group in few:
        axis.plot(np.full(len(group), value), group, ".", color=BLUE)


def _long(names: Sequence[str]) -> bool:
    return max(len(name) for name in names) > 3
