"""Pictures of an evaluation: predicted against true, residuals, confusion matrix."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import (
    FixedFormatter,
    FuncFormatter,
)
from numpy.typing import NDArray

from bagbasis.data.storage.files import writing
from bagbasis.plotting.predictions import draw_predictions, errors_in_words
from bagbasis.plotting.style import BLUE, GREY, ORANGE, drawable, label_of

DOTS_PER_INCH = 120  # of the PNG files
LAYOUT: Literal["constrained"] | None = "constrained"  # takes half of the time of a figure
_MAX_BINS = 60  # bins of a histogram
MAX_PANELS = 9  # targets that are drawn
MAX_LABELS = 40  # classes named on an axis
# Letters of a class next to an axis; longer ones make a picture larger.
MAX_TICK_LETTERS, _SHORT = 24, 8
LETTER_INCHES = 0.085
MAX_LINE_LENGTH = 200  # letters in a line of a figure

_Array = NDArray[Any]


def new_figure(width: float, height: float) -> Figure:
    """Make a figure on the Agg canvas; nothing is global, so any thread may draw."""
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout=LAYOUT)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a PNG, atomically; texts are drawn as they are, and none is mathematics.

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


def drawn_text(text: str) -> str:
    """Return a text of several lines as pictures show it."""
    lines = [drawable(line) for line in text.split("\n")]
    return "\n".join(
        line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}…" for line in lines
    )


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


def draw_judged_predictions(
    path: str | os.PathLike[str],
    pairs: Sequence[_Array],
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
        draw_predictions(axis, pair[:, 0], pair[:, 1], name)
        axis.set_title(errors_in_words(error), fontsize=10)
    figure.suptitle(f"Predicted against true targets of {_which(pairs, errors)}")
    return save_figure(figure, path)


def draw_residuals(
    path: str | os.PathLike[str],
    pairs: Sequence[_Array],
    names: Sequence[str],
    errors: Sequence[dict[str, Any]],
) -> Path:
    """Draw the histogram of predicted − true, a panel per target; see `draw_judged_predictions`."""
    figure, axes = _panels(len(pairs), 3.8)
    for axis, pair, name, error in zip(axes, pairs, names, errors, strict=False):
        n_bins = int(np.clip(len(pair) ** 0.5, 5, _MAX_BINS))  # of few bags more are noise
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
    path: str | os.PathLike[str], matrix: _Array, names: Sequence[str], target: str, accuracy: float
) -> Path:
    """Draw a confusion matrix: counts, coloured by their fraction of the true class."""
    counts = np.asarray(matrix)
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    step = -(-len(names) // MAX_LABELS)
    at = range(0, len(names), step)
    labels = [label_of(name, MAX_TICK_LETTERS) for name in names[::step]]
    size = min(12.0, 3.2 + 0.42 * len(names)) + LETTER_INCHES * max(
        0, max(map(len, labels)) - _SHORT
    )
    figure = new_figure(size + 1.0, size)
    axis = figure.subplots()
    image = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axis, label="fraction of the true class", shrink=0.85)
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
    n = min(n, MAX_PANELS)
    columns = min(3, n)
    rows = -(-n // columns)
    figure = new_figure(5.6 * columns, height * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[n:]:
        axis.remove()
    return figure, axes[:n]


def _which(pairs: Sequence[_Array], errors: Sequence[dict[str, Any]]) -> str:
    """Return a line that says which bags are drawn."""
    n, drawn = errors[0]["n"], len(pairs[0])
    bags = f"{n:,} bags" if drawn == n else f"{drawn:,} of {n:,} bags, drawn at random"
    return bags if len(errors) <= MAX_PANELS else f"{bags} (first {MAX_PANELS} targets)"


def _long(names: Sequence[str]) -> bool:
    return max(len(name) for name in names) > 3
