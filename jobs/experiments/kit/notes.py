"""Remarks below tables: Markdown with places for figures, in ``notes/NAME.md``."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "notes"
_CONDITION = re.compile(r"\{\?(\w+)\} ")  # before a paragraph that is left out where it is empty


def remarks(name: str, section: str, /, **values: object) -> list[str]:
    """Return the paragraphs of a section, with values filled in.

    A paragraph that begins with ``{?key}`` is left out if the value of ``key`` is empty or false.
    Values are filled in as by `str.format`: ``{ratio:.2f}``, ``{row[n_points]:,}``.
    """
    found = []
    for text in sections(name)[section]:
        condition = _CONDITION.match(text)
        if condition is None:
            found.append(text.format(**values))
        elif values[condition.group(1)]:
            found.append(text[condition.end() :].format(**values))
    return found


@lru_cache
def sections(name: str) -> dict[str, list[str]]:
    """Return the paragraphs under each heading; a paragraph is one line."""
    found: dict[str, list[str]] = {}
    for part in (FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        paragraphs = [" ".join(text.split()) for text in body.split("\n\n")]
        found[heading.strip()] = [text for text in paragraphs if text]
    return found
