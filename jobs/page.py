"""The page next to a JSON report: one HTML file without scripts, fonts or network access."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from bagbasis.core.versions import RECORDED_PACKAGES, versions_of
from bagbasis.core.yaml_text import yaml_text

from .job import called
from .pictures.charts import BAR_LEFT, BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from .pictures.parts import Part, Table, facts
from .terminal import cell_text, rows_of_texts

NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?%?( ± [\d.,]+(e[+-]?\d+)?%?)?")
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")
_SIZE = {
    **{"width": WIDTH, "height": HEIGHT, "left": LEFT, "top": TOP},
    **{"right": WIDTH - RIGHT, "bottom": HEIGHT - BOTTOM},
    "bar_left": BAR_LEFT,
}


def render(
    job: str, parts: Sequence[Part], config: Mapping[str, Any], warnings: Sequence[str] = ()
) -> str:
    """Return the page of a job as HTML; every text in it is escaped.

    Parameters
    ----------
    job : str
    parts : sequence of Part
    config : mapping
        Shown as YAML; empty: not at all.
    warnings : sequence of str
        Log of the job, in its own words.
    """
    several = len(parts) > 1
    header: dict[str, Any] = {"made": datetime.now(UTC).isoformat(" ", "seconds")}
    worries: list[str] = []
    for part in parts:
        before = f"{part.title}: " if several else ""
        header |= {f"{before}{key}": value for key, value in part.header.items()}
        worries += [f"{before}{text}" for text in part.worries]
    worries += [f"{text[:1].upper()}{text[1:]}." for text in dict.fromkeys(warnings)]
    answers = [(part.title, part.answer) for part in parts if part.answer]
    heading = ""
    if len(answers) == 1:  # the first sentence of the only answer
        [(title, text)] = answers
        heading, *rest = SENTENCE.split(text, maxsplit=1)
        answers = [(title, text) for text in rest]
    seeds = seeds_of(config)
    header |= {"seeds": ", ".join(f"{k} {v}" for k, v in seeds.items())} if seeds else {}
    return _template().render(
        title=f"bags {called(job)}",
        heading=heading,
        job=called(job),
        header=facts(header | _versions()),
        worries=worries,
        checks=[*dict.fromkeys(text for part in parts for text in part.checks)],
        answers=answers,
        steps=[*dict.fromkeys(part.next for part in parts if part.next)],
        parts=parts,
        config=yaml_text(dict(config)) if config else "",
        size=_SIZE,
    )


@cache
def _template() -> Template:
    """Return the page's template, compiled once for all pages of a process."""
    environment = Environment(
        autoescape=True,
        loader=PackageLoader(__package__, ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["texts"] = texts_of
    environment.filters["unbroken"] = unbroken
    environment.tests["numeric"] = is_numeric
    environment.tests["numeric_column"] = is_numeric_column
    return environment.get_template("page.html")


def texts_of(table: Table) -> Sequence[Sequence[str]]:
    """Return the cells of a table as the page shows them."""
    if table.facts:
        return [[cell_text(cell) for cell in row] for row in table.rows]
    return rows_of_texts(table.rows)


def is_numeric(cell: object) -> bool:
    """Return whether a cell holds a number, maybe as a text or with its standard error."""
    if not isinstance(cell, str):
        return cell is None or isinstance(cell, Real)
    return NUMBER.fullmatch(cell) is not None


def is_numeric_column(cells: Sequence[object]) -> bool:
    """Return whether a column holds numbers, or nothing in some rows."""
    return any(cells) and all(is_numeric(cell) or cell == "" for cell in cells)


def unbroken(text: str) -> str:
    """Return a text whose numbers are in one line with their units and standard errors."""
    return text.replace(" %", "\u00a0%").replace(" ± ", "\u00a0±\u00a0")


def seeds_of(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return every seed of a config, by its dotted key."""
    seeds: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            seeds |= seeds_of(value, f"{prefix}{key}.")
        elif key == "seed":
            seeds[f"{prefix}{key}"] = value
    return seeds


def _versions() -> dict[str, str]:
    """Return the versions that made a report, and the commit where the package is a checkout."""
    packages = ", ".join(map(" ".join, versions_of(RECORDED_PACKAGES).items()))
    made_by = {"versions": f"{packages}, Python {platform.python_version()}"}
    commit = _commit()
    return made_by | ({"commit of bagbasis": commit} if commit else {})


@cache  # what this process has imported does not change with the checkout
def _commit() -> str | None:
    """Return the commit of the repository that tracks this file, if one does."""
    here, git = Path(__file__).resolve(), shutil.which("git")
    if git is None:
        return None
    asked = (("ls-files", "--error-unmatch", here.name), ("rev-parse", "HEAD"))
    for arguments in asked:
        answer = subprocess.run(
            [git, "-C", str(here.parent), *arguments], capture_output=True, text=True, check=False
        )
        if answer.returncode:
            return None
    return answer.stdout.strip()
