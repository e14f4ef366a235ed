"""Tables of results and data: as text, and in HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def text_table(title: str, rows: Mapping[str, str]) -> str:
    """Return a title and a line for each row, whose values begin in one column."""
    width = max(map(len, rows), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in rows.items())])


def html_table(title: str, rows: Mapping[str, object]) -> str:
    """Return names and values as a table in HTML; numbers have separators, texts are escaped."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(_text(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<div><b>{escape(title)}</b><table>{cells}</table></div>"


def html_rows(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in HTML with a heading for each column; texts are escaped."""
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in columns)
    cells = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{escape(_text(cell))}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<div><b>{escape(title)}</b><table><tr>{head}</tr>{cells}</table></div>"


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)
