"""The rows of `make bench` that are kept, and the tables that `docs/performance.md` makes of them.

`docs/bench.jsonl` has a line of JSON for each row, with its suite, and where and when it was
measured. A suite that is measured again replaces its rows; `python -m tests.benchmarks.kept` writes
the tables.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
KEPT, PAGE = DOCS / "bench.jsonl", DOCS / "performance.md"
BEGIN, END = "<!-- tables of bench.jsonl -->\n", "<!-- end of tables -->\n"
COLUMNS = "| measured: a / b | a | b | ratio | aim |\n|---|--:|--:|--:|---|\n"
TITLES = {
    "table": "Embeddings, compared with other packages",
    "floor": "A fit, compared with its matrix product",
    "peers": "A fit, compared with scikit-learn and Dask",
    "memory": "Memory of a fit",
    "first": "The first example of the README",
    "commands": "The command line",
    "solving": "Solving with GCV",
    "gradients": "Conjugate gradients",
    "nystroem": "Nyström features",
    "fractions": "Points as 16-bit fractions",
    "folds": "Cross-validation",
    "choice": "Choosing the embedding",
    "hdd": "HDD embeddings",
    "hypotheses": "Hypothesis tests",
    "serving": "Predicted densities",
    "requests": "HTTP requests",
}
"""Headings of the suites; `tests/benchmarks/suites.py` has the suites."""
AIM = re.compile(r"(?P<sign>[≤≥>]?) *(?P<number>[\d.]+)(?P<unit> s)?")


def read_rows() -> list[dict[str, Any]]:
    """Return the kept rows, those of a suite one after the other."""
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def keep(suite: str, suites: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Replace the rows of a suite, order all by ``suites``, and write the page's tables anew."""
    from bagbasis.jobs.experiments.kit.machine import cpu_name, machine

    where = {
        "suite": suite,
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": (
            f"{cpu_name()}, {machine()['cores']} cores, "
            f"load {os.getloadavg()[1]:.1f} in five minutes"
        ),
    }
    kept = [row for row in read_rows() if row["suite"] != suite]
    kept += [where | row for row in rows]
    kept.sort(key=lambda row: suites.index(row["suite"]) if row["suite"] in suites else -1)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in kept]
    KEPT.write_text("".join(lines))
    write_tables()


def write_tables() -> None:
    """Put the tables of the kept rows between the page's marks."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + tables(read_rows()) + END + after)


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table for each suite, with where and when it was measured."""
    return "".join(_table(list(some)) for _, some in groupby(rows, key=lambda row: row["suite"]))


def _table(rows: Sequence[dict[str, Any]]) -> str:
    first = rows[0]
    lines = "".join(map(_line, rows))
    when = f"{first['measured']}, {first['machine']}."
    return f"\n### {heading(first['suite'])}\n\n{when}\n\n{COLUMNS}{lines}\n"


def heading(suite: str) -> str:
    """Return the title of a suite, followed by its name."""
    return f"{TITLES[suite]}: `{suite}`" if suite in TITLES else f"`{suite}`"


def _line(row: dict[str, Any]) -> str:
    ratio = f"{row['ratio']:.3g}{'' if row['is_of_first'] else ' ×'}"
    if row["low"] != row["high"]:
        ratio += f" ({row['low']:.3g} to {row['high']:.3g})"
    aim = row["target"] + (" **missed**" if is_missed(row) else "")
    name = row["name"].replace("|", "\\|")
    cells = (name, number(row["ours"]), number(row["other"]), ratio, aim)
    return f"| {' | '.join(cells)} |\n"


def is_missed(row: dict[str, Any]) -> bool:
    """Return whether a row falls short of its aim: of the ratio, or of seconds of the first."""
    aim = AIM.match(row["target"])
    if aim is None or row["target"] == "10 is linear":
        return False
    value = row["ours"] if aim["unit"] else row["ratio"]
    limit = float(aim["number"])
    return bool(value < limit if aim["sign"] in ("≥", ">") else value > limit)


def number(value: float) -> str:
    """Return three digits, of a large number all."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    write_tables()
