"""The contents of a job's page: tables, charts, and what to worry about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .charts import Bars, Chart


@dataclass(frozen=True)
class Table:
    """A table of a page; numbers stand at the right and have four digits.

    Attributes
    ----------
    title, note : str
    columns : sequence of str
    rows : sequence of sequences
    shaded : bool
        Counts, coloured by their fraction of the row.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    shaded: bool = False

    @property
    def facts(self) -> bool:
        """Whether the table has two columns, names and values, and no header."""
        return not self.columns


def facts(values: Mapping[str, Any]) -> Table:
    """Return a table of names and values."""
    return Table("", (), [*values.items()])


@dataclass(frozen=True)
class Part:
    """What one job puts on a page.

    Attributes
    ----------
    title : str
    header : mapping
        Where it comes from, for the foot of the page.
    worries : sequence of str
        Sentences: what a reader has to know before anything else.
    tables, charts, details
        In this order.
    card : Table or None
        Facts that a user of the model has to know.
    bars
        They follow the charts.
    answer : str
        The result next to what it has to beat, in a sentence or two: the page begins with it.
    checks : sequence of str
        Checks that ran, for the case that there is nothing to worry about.
    files : sequence of str
        Names of files next to the page, such as pictures.
    next : str
        Next step: a command, or a sentence.
    """

    title: str
    header: Mapping[str, Any] = field(default_factory=dict)
    worries: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    details: Sequence[Table] = ()
    card: Table | None = None
    bars: Sequence[Bars] = ()
    answer: str = ""
    checks: Sequence[str] = ()
    files: Sequence[str] = ()
    next: str = ""
