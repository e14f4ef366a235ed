"""The report of an experiment as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .experiment import Experiment, Table


def markdown(
    experiment: Experiment[Any], tables: Sequence[Table], report: Mapping[str, Any]
) -> str:
    """Tables with their remarks, links to the pictures, and where it was measured."""
    parts = [f"# {experiment.title}", introduction(experiment, report)]
    for table in tables:
        parts += [f"## {table.title}", table_lines(table.columns, table.rows), *table.remarks]
    parts += [f"![{name}]({name})" for name in report["pictures"]]
    where, packages = report["machine"], report["versions"]
    parts.append(
        f"Seed {report['seed']}; {report['seconds']:.0f} s on {where['cores']} cores of "
        f"{where['cpu']}, {where['memory_gib']} GiB, {where['system']}; "
        + ", ".join(f"{name} {version}" for name, version in packages.items())
        + "."
    )
    return "\n\n".join(parts) + "\n"


def introduction(experiment: Experiment[Any], report: Mapping[str, Any]) -> str:
    """Where the paper has the experiment, how to run it, and how large it was."""
    return (
        f"{experiment.source}, `bags experiment {experiment.name} --scale {report['scale']}`. "
        f"{report['size']}"
    )


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; columns of numbers are aligned to the right."""
    numeric = [
        all(row[j] is None or isinstance(row[j], (int, float)) for row in rows)
        for j in range(len(columns))
    ]
    lines = [columns, ["---:" if right else "---" for right in numeric]]
    lines += [[cell_text(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell_text(cell: object) -> str:
    """A number with four digits or whole, a missing one as a dash; a bar does not end the cell."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell).replace("|", "\\|")
