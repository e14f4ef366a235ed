"""Entries of parameters as the source has them, before the types of the signature are added."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

from bagbasis.core import entries_of


def source_entries(thing: Any) -> dict[str, tuple[str, str]]:
    """The type and the description of each parameter in the source of a class or a function."""
    entries = entries_of(_docstring_in_source(thing))
    return {name: (kind.removeprefix(" : "), text) for name, (kind, text) in entries.items()}


def _docstring_in_source(thing: Any) -> str:
    node = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    return ast.get_docstring(node) or ""  # type: ignore[arg-type]  # a class or a function


def shown_entries(thing: Any) -> dict[str, str]:
    """The type of each parameter in the docstring that `help` shows."""
    lines = re.findall(r"^(\w[\w, ]*) : (.*)$", inspect.getdoc(thing) or "", re.MULTILINE)
    return {name: kind for names, kind in lines for name in names.split(", ")}
