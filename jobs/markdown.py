"""Tables in Markdown, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format a table; columns of numbers are aligned to the right.

    Numbers have four digits, or are whole; a missing one is a dash.
    """
    numeric = [
        all(row[j] is None or isinstance(row[j], (int, float)) for row in rows)
        for j in range(len(columns))
    ]
    lines = [list(columns), ["---:" if right else "---" for right in numeric]]
    lines += [[_cell(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: object) -> str:
    """Format one cell; a bar in a text does not end it."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell).replace("|", "\\|")
