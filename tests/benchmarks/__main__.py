"""`make bench`: run the suites (or those named) and print their ratios."""

from __future__ import annotations

import os
import platform
import sys

from rich.console import Console
from rich.table import Table

from .suites import SUITES, one_lane


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(SUITES))
    if unknown:
        print(f"unknown suite {unknown[0]!r}; there are {list(SUITES)}", file=sys.stderr)
        return 2
    one_lane()
    console = Console()
    table = Table(title=f"{platform.machine()}, {os.cpu_count()} cores; medians, pairs in turn")
    for column in ("what", "ours", "other", "ratio", "range", "target"):
        table.add_column(column)
    for name in names or SUITES:
        with console.status(f"{name} …"):
            for row in SUITES[name]():
                table.add_row(
                    row.name,
                    f"{row.ours:.4g}",
                    f"{row.other:.4g}",
                    f"{row.ratio:.2f}",
                    f"{row.low:.2f} to {row.high:.2f}",
                    row.target,
                )
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
