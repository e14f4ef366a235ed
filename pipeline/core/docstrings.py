"""Entries of parameters in numpydoc docstrings; types and defaults come from the signature."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

from .constraints import (
    Boolean,
    Constraint,
    False_,
    Integer,
    None_,
    OneOf,
    Real,
    Text,
    members_of,
)
from .containers import ListOf

REQUIRED: Final = ...
"""Default of a parameter that is required."""

Entries = Mapping[str, tuple[str, str]]
"""Type and description of each parameter; the type is empty or begins with " : "."""

_PLAIN = {Boolean: "bool", Text: "str", False_: "False"}
_LITERALS = (bool, int, float, str)
_FLOAT_CHARACTERS = 10  # 1/6 is shown as 0.1667
_ENTRY = re.compile(r"^(\*{0,2}\w[\w, *]*?)( : [^\n]*)?\n((?:(?: {4}[^\n]*)?\n?)*)", re.MULTILINE)
_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^\w[\w ]*\n-+\n|\Z", re.MULTILINE)


def entries_of(docstring: str) -> dict[str, tuple[str, str]]:
    r"""Return the entries of "Parameters" in a docstring, by name.

    Examples
    --------
    >>> from bagbasis.core import entries_of
    >>> entries_of('Count.\n\nParameters\n----------\nn : bags\n    Number of bags.')
    {'n': (' : bags', '    Number of bags.')}
    """
    section = _SECTION.search(inspect.cleandoc(docstring) + "\n")
    entries: dict[str, tuple[str, str]] = {}
    for names, type_text, text in _ENTRY.findall(section[1] if section else ""):
        entries |= dict.fromkeys(_names(names), (type_text, text.rstrip()))
    return entries


def with_entries(docstring: str, entries: Entries) -> str:
    """Return a docstring with further entries at the end of "Parameters"."""
    if not entries:
        return docstring
    docstring = inspect.cleandoc(docstring) + "\n"
    section = _SECTION.search(docstring)
    end = section.end() if section else _HEADING.search(docstring).start()  # type: ignore[union-attr]  # \Z matches
    more = "\n".join("{}{}\n{}".format(name, *entry) for name, entry in entries.items())
    begun = docstring[:end].rstrip() + ("\n" if section else "\n\nParameters\n----------\n")
    return f"{begun}{more}\n\n{docstring[end:]}".rstrip()


def with_types(
    docstring: str, declared: Mapping[str, tuple[Constraint[Any] | None, object]]
) -> str:
    """Return a docstring whose entries have the types and defaults of a signature.

    An entry without a type gets the constraint in words. A type in the author's words stays. Either
    is followed by the default. Names that share an entry get one each if their types differ.

    Parameters
    ----------
    docstring
    declared
        Constraint and default of each parameter.
    """
    docstring = inspect.cleandoc(docstring) + "\n"
    section = _SECTION.search(docstring)
    if not section:
        return docstring.rstrip()

    def typed(entry: re.Match[str]) -> str:
        words, text = entry[2] or "", f"\n{entry[3]}".rstrip()
        types = {
            name: _typed(words.removeprefix(" : "), *declared[name]) if name in declared else ""
            for name in _names(entry[1])
        }
        differ = len({*types.values()}) > 1
        if not any(types.values()) or (words and differ):
            return entry[0]
        shown = types if differ else {entry[1]: next(iter(types.values()))}
        entries = [f"{name}{kind and f' : {kind}'}{text}" for name, kind in shown.items()]
        return "\n".join(entries) + f"\n{entry[3]}"[len(text) :]

    start, end = section.span(1)
    return f"{docstring[:start]}{_ENTRY.sub(typed, section[1])}{docstring[end:]}".rstrip()


def type_text(constraint: Constraint[Any], default: object) -> str | None:
    """Return the type of an entry: 'int ≥ 1 or "auto", default 10'.

    None for objects, mappings and values that are checked where they are read: the author's words
    describe them.

    Examples
    --------
    >>> from bagbasis.core import Integer, OneOf, type_text
    >>> type_text(Integer(1) | OneOf('auto'), 10)
    'int ≥ 1 or "auto", default 10'
    """
    members = [member for member in members_of(constraint) if member != None_]
    words = [_words(member) for member in members]
    if None in words or not words:
        return None
    is_optional = len(members) < len(members_of(constraint))
    text = " or ".join(str(word) for word in words)
    if default is None and is_optional:
        return f"{text}, optional"
    text += " or None" if is_optional else ""
    return text if default is None else text + _default_words(default)


def _typed(written: str, constraint: Constraint[Any] | None, default: object) -> str:
    """Return the type of an entry, which the author has or has not written."""
    if not written:
        return (constraint and type_text(constraint, default)) or ""
    if re.search(r"\b(default|optional)\b", written):
        return written
    if default is None:
        return f"{written}, {'default None' if 'None' in written else 'optional'}"
    return written + _default_words(default)


def _default_words(default: object) -> str:
    if default == ():
        return ", optional"
    items = default if isinstance(default, tuple) else (default,)
    is_literal = all(isinstance(item, _LITERALS) for item in items)
    return f", default {_literal(default)}" if is_literal else ""


def _literal(value: object) -> str:
    if isinstance(value, float) and len(f"{value}") > _FLOAT_CHARACTERS:
        return f"{value:.4g}"
    return f'"{value}"' if isinstance(value, str) else f"{value}"


def _words(item: Constraint[Any]) -> str | None:
    if item in _PLAIN:
        return _PLAIN[item]
    if isinstance(item, OneOf):
        listed = ", ".join(map(_literal, item.choices))
        return listed if len(item.choices) == 1 else f"{{{listed}}}"
    if isinstance(item, Integer):
        return ("even " if item.even else "") + "int" + _bounds(item.ge, item.le)
    if isinstance(item, Real):
        return _real(item)
    if isinstance(item, ListOf):
        inner = type_text(item.item, REQUIRED)
        alone = f"{inner} or " if item.or_one else ""
        return None if inner is None else f"{alone}list of {inner}"
    return None


def _real(item: Real) -> str:
    if item.lt is None and item.gt is None:
        return "float" + _bounds(item.ge, item.le)
    if item.lt is None and item.le is None:
        return f"float > {item.gt:g}"
    if item.ge is None and item.gt is None:
        return f"float < {item.lt:g}"
    left = f"({item.gt:g}" if item.gt is not None else f"[{item.ge:g}"
    right = f"{item.lt:g})" if item.lt is not None else f"{item.le:g}]"
    return f"float in {left}, {right}"


def _bounds(ge: float | None, le: float | None) -> str:
    if le is None:
        return "" if ge is None else f" ≥ {_number(ge)}"
    return f" ≤ {_number(le)}" if ge is None else f" from {_number(ge)} to {_number(le)}"


def _number(value: float) -> str:
    if not isinstance(value, int):
        return f"{value:g}"
    bits = (value + 1).bit_length() - 1
    is_word = bits >= 32 and value + 1 == 2**bits
    return f"2^{bits} − 1" if is_word else f"{value:,}"


def _names(text: str) -> list[str]:
    return re.split(r",\s*", text)


__all__ = ["REQUIRED", "entries_of", "type_text", "with_entries", "with_types"]
