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
WITHDRAWN = "withdrawn"
"""In an aim that arithmetic shows to be out of reach: its table has the reason below it."""
REASONS = {
    "floor": (
        "**1.15 is withdrawn.** On one core, 4,096 bags cost 0.67 CPU s for the product (SYRK). "
        "Reading and embedding them and their features cost another 0.06 CPU s (8 %), sums in "
        "float64 0.09 CPU s (13 %), and the Cholesky factor, shared by 200,000 bags, 2 %. The sum "
        "is 1.24. Sums in float32 would be faster, but lose the digits that small penalties need."
    ),
    "nystroem": (
        "**1.3 is withdrawn for 2,048 landmarks.** With D = 2,048, 4,096 bags "
        "cost 0.17 CPU s for SYRK on one core, and 0.01 CPU s for their Fourier features. Nyström "
        "features are a kernel and a product with a triangle of D², which has as many operations "
        "as SYRK: 0.22 CPU s. So 50,000 bags cost 2.1 times as much, and choosing landmarks takes "
        "another 0.9 CPU s. Fewer landmarks are faster at a smaller error than 2,048 Fourier "
        "features have: 1,024 of 50,000 bags, 512 of 1,257."
    ),
    "folds": (
        "**1.3 is withdrawn.** Five folds take five more solutions (0.09 CPU s each at D = "
        "1,024), five sums instead of one, and the errors of each fold; one fit of 200,000 bags "
        "takes three seconds. The range of the rounds includes 1.3. The ratio falls with more "
        "bags, because only the pass grows with them."
    ),
    "hypotheses": (
        "**hyppo's MMD is faster on means that differ in 16 dimensions.** It compares with one "
        "kernel and approximates the null distribution. The default joins three statistics, two "
        "of them over many kernels, by permutations: it also detects the Gaussian that is twice "
        "as wide (1.00 against 0.15). The same statistic with the same approximation takes a "
        "fifth of hyppo's time."
    ),
}
"""Below the table of a suite: why aims are withdrawn, or rows are slower than others."""
AIM = re.compile(r"(?P<sign>[≤≥>]?) *(?P<number>[\d.]+)(?P<unit> s)?")


def read_rows() -> list[dict[str, Any]]:
    """Return the kept rows, those of a suite one after the other."""
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def keep(suite: str, suites: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Replace the rows of a suite, order all by ``suites``, and write the page's tables anew."""
    from bagbasis.jobs.experiments.machine import cpu_name, machine

    where = {
        "suite": suite,
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": (
            f"{cpu_name()}, {machine()['cores']} cores, "
            f"load {os.getloadavg()[1]:.1f} in five minutes"
        ),
    }
    selected = [row for row in read_rows() if row["suite"] != suite]
    selected += [where | row for row in rows]
    selected.sort(key=lambda row: suites.index(row["suite"]) if row["suite"] in suites else -1)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in selected]
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
    reason = REASONS.get(first["suite"], "")
    below = f"\n{reason}\n" if reason else ""
    return f"\n### {heading(first['suite'])}\n\n{when}\n\n{COLUMNS}{lines}{below}\n"


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
    """Return whether a row falls short of its aim: of the ratio, or of seconds of the first.

    A withdrawn aim is not missed.
    """
    aim = AIM.match(row["target"])
    if aim is None or row["target"] == "10 is linear" or WITHDRAWN in row["target"]:
        return False
    value = row["ours"] if aim["unit"] else row["ratio"]
    limit = float(aim["number"])
    return bool(value < limit if aim["sign"] in ("≥", ">") else value > limit)


def number(value: float) -> str:
    """Return three digits, of a large number all."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    write_tables()
