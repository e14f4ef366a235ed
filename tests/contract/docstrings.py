"""What a docstring has to say of a parameter, from its constraint and its default."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from bagbasis.core import (
    Boolean,
    Constraint,
    False_,
    Integer,
    ListOf,
    None_,
    OneOf,
    Real,
    Seed,
    Text,
)
from bagbasis.core.constraints import members_of

PLAIN = {Boolean: "bool", Text: "str", False_: "False", Seed: "int from 0 to 2^64 − 1"}
MISSING = inspect.Parameter.empty
ENTRY = re.compile(r"^( *)(\w[\w, ]*) : ([^\n]*)$", re.MULTILINE)


def described(constraint: Constraint[Any], default: object) -> str | None:
    """The type of a numpydoc entry: 'int ≥ 1 or "auto", default 10'; None where words are free.

    Objects, mappings and what is checked where it is read are described in the author's words.
    """
    members = [word for word in members_of(constraint) if word != None_]
    words = [_words(word) for word in members]
    if None in words or not words:
        return None
    is_optional = len(members) < len(members_of(constraint))
    text = " or ".join(str(word) for word in words)
    if default is None and is_optional:
        return f"{text}, optional"
    text += " or None" if is_optional else ""
    return text if default in (MISSING, None) else f"{text}, default {_literal(default)}"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value}"


def _words(item: Constraint[Any]) -> str | None:
    if item in PLAIN:
        return PLAIN[item]
    if isinstance(item, OneOf):
        listed = ", ".join(map(_literal, item.choices))
        return listed if len(item.choices) == 1 else f"{{{listed}}}"
    if isinstance(item, Integer):
        return ("even " if item.even else "") + "int" + _bounds(item.ge, item.le)
    if isinstance(item, Real):
        if item.lt is None and item.gt is None:
            return "float" + _bounds(item.ge, item.le)
        if item.lt is None and item.le is None:
            return f"float > {item.gt:g}"
        left = f"({item.gt:g}" if item.gt is not None else f"[{item.ge:g}"
        right = f"{item.lt:g})" if item.lt is not None else f"{item.le:g}]"
        return f"float in {left}, {right}"
    if isinstance(item, ListOf):
        inner = described(item.item, MISSING)
        return None if inner is None else f"list of {inner}"
    return None


def _bounds(ge: float | None, le: float | None) -> str:
    if le is None:
        return "" if ge is None else f" ≥ {_number(ge)}"
    return f" ≤ {_number(le)}" if ge is None else f" from {_number(ge)} to {_number(le)}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def entries(docstring: str) -> Iterator[tuple[list[str], str]]:
    """The names and the type of each entry of "Parameters" in a docstring."""
    for match in ENTRY.finditer(_parameters(docstring)):
        if not match[1]:
            yield match[2].split(", "), match[3]


def written_entries(kind: type) -> set[str]:
    """The entries of "Parameters", with descriptions, that the source of a class has."""
    return {*re.split(r"\n(?=\S)", _parameters(_docstring_in_source(kind)))} - {""}


def _parameters(docstring: str) -> str:
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\w[\w ]*\n-+\n|\Z)", docstring, re.DOTALL)
    return section[1] if section else ""


def docstring_of(thing: Any) -> str:
    """The docstring of a class or a function, cleaned; from the source under ``python -OO``."""
    return inspect.cleandoc(thing.__doc__) if thing.__doc__ else _docstring_in_source(thing)


def _docstring_in_source(thing: Any) -> str:
    node = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    return ast.get_docstring(node) or ""  # type: ignore[arg-type]  # a class or a function
