"""Output for people: tables on stdout, progress and messages on stderr."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import floor, isfinite, log10
from types import NoneType
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from bagbasis.core.errors import printable

if TYPE_CHECKING:
    from .pictures.parts import Part

Callback = Callable[[int, int], None]  # (units done, units in all)

SECONDS_BETWEEN_LINES = 10.0  # lines of progress where there is no terminal, such as in a log


class Terminal:
    """Tables, lines and progress of one job.

    Parameters
    ----------
    out, err : rich.console.Console, optional
        Default stdout and stderr.
    verbose : bool, default False
        Show details, too.
    tsv : bool, default False
        Tables are lines of cells with tabs in between, after a line with their title.

    Attributes
    ----------
    run : str or None
        The id of the submitted run whose job it is; None for another job, or a step of one.
    parts : list of Part
        Parts that the job and its steps put on the HTML report.
    """

    run: str | None = None

    def __init__(
        self,
        out: Console | None = None,
        err: Console | None = None,
        *,
        verbose: bool = False,
        tsv: bool = False,
    ) -> None:
        self.out = out or Console(highlight=False)
        self.err = err or Console(stderr=True, highlight=False)
        self.verbose, self.tsv = verbose, tsv
        self.parts: list[Part] = []

    @property
    def details(self) -> Terminal:
        """The terminal for what only ``--verbose`` shows: this one, or one that prints nothing."""
        return self if self.verbose else self.without_tables()

    def without_tables(self) -> Terminal:
        """Return this terminal for a step of a longer job: it shows progress and no tables."""
        return self._with_parts(Terminal(Console(quiet=True), self.err))

    def _with_parts(self, step: Terminal) -> Terminal:
        step.parts = self.parts
        return step

    def line(self, text: str) -> None:
        """Print one line on stdout, as it is."""
        self.out.print(printable(text), markup=False, soft_wrap=True)

    def heading(self, text: str) -> None:
        """Print a line that starts a part of a longer job."""
        self.out.print(f"\n{printable(text)}", markup=False, style="bold", soft_wrap=True)

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        whole: Sequence[str] = (),
    ) -> None:
        """Print a table; numbers are aligned to the right and have four digits.

        Cells of the columns ``whole`` are never broken into lines, so that names can be copied.
        Without a terminal there are no lines around cells, and none is broken. On a terminal too
        narrow for the words of a row, each cell has a line of its own.
        """
        texts = rows_of_texts(rows)
        numeric = [
            bool(rows) and all(isinstance(row[j], (int, float)) for row in rows)
            for j in range(len(columns))
        ]
        if self.tsv or not self.out.is_terminal:
            lines = _plain_lines(columns, texts, numeric, self.tsv)
            if self.tsv and not self.out.quiet:  # rich would make blanks of tabs
                print(f"# {printable(title)}", *lines, sep="\n", file=self.out.file)
            elif not self.tsv:
                self.out.print("\n".join([printable(title), *lines]), markup=False, soft_wrap=True)
            return
        if any(columns) and _least_width(columns, texts, whole) > self.out.width:
            self.out.print(Text(printable(title), style="bold"))
            for row in texts:
                cells = zip(columns, row, strict=True)
                lines = [f"{printable(name)}: {cell}" if name else cell for name, cell in cells]
                self.out.print(Text("\n  ".join(line for line in lines if line)))
            return
        table = Table(
            title=Text(printable(title), style="bold"),
            title_justify="left",
            show_header=any(columns),
        )
        for j, column in enumerate(columns):
            table.add_column(
                Text(printable(column)),
                justify="right" if numeric[j] else "left",
                overflow="fold",
                no_wrap=column in whole,
            )
        for row in texts:
            table.add_row(*map(Text, row))
        self.out.print(table)

    def values(self, title: str, values: Mapping[str, Any]) -> None:
        """Print a table of names and values."""
        self.table(title, ["", ""], [[key, cell_text(value)] for key, value in values.items()])

    @contextmanager
    def progress(self, label: str, unit: str = "bags") -> Iterator[Callback]:
        """Yield a ``progress(done, total)`` callable, shown during the block.

        It is a bar on a terminal, and elsewhere a plain line every ten seconds. Calls may come from
        any thread, and may start again at 0 for the next pass over the data.
        """
        if self.err.is_terminal:
            with _bar(self.err, label, unit) as callback:
                yield callback
        else:
            yield PlainProgress(self.err, label, unit)


class _Speaker:
    """Prints lines below a progress, each once."""

    def __init__(self, console: Console, label: str) -> None:
        self._console, self._label = console, label
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """Print a line that was not printed before."""
        if text not in self._said:
            self._said.add(text)
            line = printable(f"{self._label}: {text}")
            self._console.print(line, markup=False, soft_wrap=True)


class PlainProgress(_Speaker):
    """Prints ``label: done of total`` at most every ten seconds."""

    def __init__(
        self,
        console: Console,
        label: str,
        unit: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(console, label)
        self._unit = unit
        self._clock = clock
        self._lock = threading.Lock()
        self._last = self._begun = clock()
        self._done = 0
        self._note = ""

    def note(self, text: str) -> None:
        """Show this with the next lines, and at once if the last line is old enough."""
        with self._lock:
            self._note, now = f", {text}", self._clock()
            if now - self._last >= SECONDS_BETWEEN_LINES:
                self._last = now
                self._console.print(f"{self._label}{self._note}", markup=False, soft_wrap=True)

    def __call__(self, done: int, total: int) -> None:
        """Take the units done and in all; print a line if the last one is old enough."""
        with self._lock:
            now = self._clock()
            if done < self._done:
                self._begun = now
            self._done = done
            if now - self._last < SECONDS_BETWEEN_LINES:
                return
            self._last = now
            text = f"{self._label}{self._note}: {done:,} of {total:,} {self._unit}"
            if total and done:
                seconds = (now - self._begun) * (total - done) / done
                text += f" ({100 * done / total:.0f} %), about {seconds:.0f} s left"
            self._console.print(text, markup=False, soft_wrap=True)


class _BarProgress(_Speaker):
    """A bar, started again at 0 for the next pass over the data."""

    def __init__(self, bar: Progress, label: str) -> None:
        super().__init__(bar.console, label)
        self._bar, self._note = bar, ""
        self._lock = threading.Lock()
        self._task = bar.add_task(label, total=None)

    def note(self, text: str) -> None:
        """Show this next to the label, at once: a phase may have no counts."""
        self._note = f", {text}"
        self._bar.update(self._task, description=f"{self._label}{self._note}")

    def __call__(self, done: int, total: int) -> None:
        """Take the units done and in all."""
        with self._lock:
            if done < self._bar.tasks[0].completed:
                self._bar.reset(self._task, total=total)
            text = f"{self._label}{self._note}{', finishing' if done == total else ''}"
            self._bar.update(self._task, completed=done, total=total, description=text)


@contextmanager
def _bar(console: Console, label: str, unit: str) -> Iterator[Callback]:
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        yield _BarProgress(bar, label)


def rows_of_texts(rows: Sequence[Sequence[object]]) -> list[tuple[str, ...]]:
    """Return the rows of a table as it shows them."""
    columns = [column_texts(cells) for cells in zip(*rows, strict=True)]
    return [*zip(*columns, strict=True)]


def _least_width(
    columns: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[str]
) -> int:
    """Return the width of a table with lines around cells that breaks no word."""
    width = 1
    for name, *cells in zip(columns, *rows, strict=True):
        parts = [name, *cells] if name in whole else " ".join([name, *cells]).split()
        width += 3 + max(map(cell_len, parts), default=0)
    return width


def _plain_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], tsv: bool
) -> list[str]:
    """Return a table as lines: cells between tabs, or side by side without lines around them."""
    every = [*([[printable(name) for name in columns]] if any(columns) else []), *rows]
    if tsv:
        return ["\t".join(cell.replace("\t", " ") for cell in row) for row in every]
    widths = [max(map(cell_len, cells), default=0) for cells in zip(*every, strict=True)]
    lines = []
    for row in every:
        cells = []
        for cell, width, is_number in zip(row, widths, numeric, strict=True):
            pad = " " * (width - cell_len(cell))
            cells.append(pad + cell if is_number else cell + pad)
        lines.append(f"  {'  '.join(cells)}".rstrip())
    return lines


def column_texts(cells: Sequence[object]) -> list[str]:
    """Return the cells of a column as tables show them: floats with the same number of decimals.

    Columns over many powers of ten, such as p-values, have four digits a cell.
    """
    numbers = [cell for cell in cells if isinstance(cell, float) and isfinite(cell)]
    decimals = _decimals_of([abs(cell) for cell in numbers if cell])
    if decimals is None or any(not isinstance(cell, (int, float, NoneType)) for cell in cells):
        return [cell_text(cell) for cell in cells]
    return [
        f"{cell:,.{decimals}f}" if isinstance(cell, float) and isfinite(cell) else cell_text(cell)
        for cell in cells
    ]


def _decimals_of(sizes: Sequence[float]) -> int | None:
    """Return as many decimals as the largest of some numbers needs to have four digits."""
    if not sizes or max(sizes) >= 1e7 or max(sizes) / min(sizes) > 1e5:
        return None
    decimals = 4 if 0.1 <= max(sizes) <= 1 else min(8, max(0, 3 - floor(log10(max(sizes)))))
    return decimals if min(sizes) >= 0.5 * 10**-decimals else min(8, decimals + 2)


def cell_text(value: object) -> str:
    """Return a value as tables show it: four digits, and no brackets of Python's."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        pairs = [f"{printable(str(key))} {cell_text(item)}" for key, item in value.items()]
        return ", ".join(pairs) or "-"
    if isinstance(value, (list, tuple)):
        texts = [f"[{cell_text(x)}]" if isinstance(x, list) else cell_text(x) for x in value]
        return ", ".join(texts) or "-"
    return printable(str(value))
