"""A progress bar in the output of a notebook's cell, for work that has no other display."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import TYPE_CHECKING

from .progress import Progress, silent

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

SECONDS_BETWEEN_UPDATES = 1.0  # also before the first update: a pass that is quicker shows no bar


def watched(progress: Progress | None) -> Progress:
    """Return the given progress; by default a bar in a notebook, else a silent one."""
    if progress is not None:
        return progress
    return NotebookBar() if in_notebook() else silent


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def bar_html(text: str, done: int, total: int) -> str:
    """Return a line of text, and a bar below it unless ``total`` is 0, as HTML."""
    bar = f'<br><progress value="{done}" max="{total}" style="width:30em"></progress>'
    return f"<div>{escape(text)}{bar if total else ''}</div>"


class NotebookBar:
    """Progress bar in a cell's output; calls may come from any thread.

    The bar disappears at the end, so that a cell with many passes does not keep many bars.
    """

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None
        self._last = time.monotonic()
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """Show a line, once."""
        if text not in self._said:
            self._said.add(text)
            _show(text)

    def __call__(self, done: int, total: int) -> None:
        """Show the number of units done and of all units."""
        now, is_over = time.monotonic(), done >= total
        if is_over and self._handle is not None:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)
            self._handle = None
        if is_over or now - self._last < SECONDS_BETWEEN_UPDATES:
            return
        self._last = now
        text = f"{done:,} of {total:,} ({100 * done / total:.0f} %)"
        self._handle = _show(text, done, total, self._handle)


def _show(
    text: str, done: int = 0, total: int = 0, handle: DisplayHandle | None = None
) -> DisplayHandle:
    """Replace the output by a line and a bar."""
    from IPython.display import display

    bundle = {"text/html": bar_html(text, done, total), "text/plain": text}
    if handle is None:
        shown: DisplayHandle = display(bundle, raw=True, display_id=True)
        return shown
    handle.update(bundle, raw=True)
    return handle
