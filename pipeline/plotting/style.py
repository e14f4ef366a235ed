"""Colours, labels and Axes for all figures."""

from __future__ import annotations

from unicodedata import category

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from ..core.errors import ParameterError, printable, shown

BLUE, ORANGE, GREY = "#3b6fb6", "#e07b39", "#7a7a7a"
MAX_LETTERS = 40  # largest number of characters of a name in a figure
NO_LETTERS = frozenset(("Cn", "Co", "Cs"))  # categories of characters that no font has


def axes_of(ax: Axes | None, width: float = 6.4, height: float = 4.2) -> Axes:
    """Return ``ax``, or the Axes of a new figure if ``ax`` is None.

    Raises
    ------
    ParameterError
        If ``ax`` is neither None nor matplotlib's Axes.
    """
    if ax is None:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - sets a backend, which jobs do not want

        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise ParameterError(f"ax is {shown(ax)}; expected matplotlib's Axes or None")
    return ax


def label_of(name: object, most: int = MAX_LETTERS) -> str:
    """Return a name for a figure: on one line, and shortened if it is long."""
    text = drawable("\\n".join(str(name).splitlines()))
    return text if len(text) <= most else f"{text[: most - 10]}…{text[-9:]}"


def drawable(text: str) -> str:
    """Return a text in which characters that no font has are escaped."""
    return "".join(
        letter.encode("unicode_escape").decode() if category(letter) in NO_LETTERS else letter
        for letter in printable(text)
    )


def plain_log(axis: Axis) -> None:
    """Label a logarithmic x or y axis with plain numbers: 1, 2 and 5 times powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())
