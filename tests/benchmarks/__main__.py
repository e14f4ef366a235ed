"""`make bench`: run the suites (or those named) and print each ratio when it is measured.

With ``--json`` each row is a line of JSON instead. ``--keep`` (`make bench-page`) also keeps the
rows in `docs/bench.jsonl`, instead of those of the same suites, and writes the tables of
`docs/performance.md` from them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict

from tests.passes import compiling_at_once

from .kept import keep
from .pairing import Row
from .suites import SUITES, one_worker

LINE = "{ratio:>9}  {range:<18}{ours:>11}{other:>11}  {target:<14}{name}"


def measured(names: list[str], is_kept: bool) -> Iterator[Row]:
    """Yield each suite's rows as they come, and say on standard error how far it is."""
    one_worker()
    started = time.monotonic()
    for i, name in enumerate(names):
        minutes = (time.monotonic() - started) / 60
        print(f"[{i + 1}/{len(names)}] {name}, after {minutes:.1f} min", file=sys.stderr)
        rows = []
        with compiling_at_once():  # rows time kernels, and not what stands in for them at first
            for row in SUITES[name]():
                yield row
                rows.append(asdict(row))
        if is_kept:
            keep(name, list(SUITES), rows)


def text(row: Row) -> str:
    """Return a row in one line: its numbers first, so that a long name wraps none of them."""
    return LINE.format(
        ratio=f"{row.ratio:.3g}",
        range=f"{row.low:.3g} to {row.high:.3g}",
        ours=f"{row.ours:.4g}",
        other=f"{row.other:.4g}",
        target=row.target,
        name=row.name,
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; all without any")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each row")
    parser.add_argument("--keep", action="store_true", help="show them in docs/performance.md")
    value = parser.parse_args(arguments)
    unknown = sorted(set(value.suites) - set(SUITES))
    if unknown:
        parser.error(f"unknown suite {unknown[0]!r}; there are {list(SUITES)}")
    if not value.json:
        print(f"{platform.machine()}, {os.cpu_count()} cores; medians in seconds, pairs in turn")
        columns = ("ratio", "range", "ours", "other", "target", "name")
        print(LINE.format(**{column: column for column in columns}))
    for row in measured(value.suites or list(SUITES), value.keep):
        print(json.dumps(asdict(row), ensure_ascii=False) if value.json else text(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
