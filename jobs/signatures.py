"""The parameters of a class of the library, read from its source.

The library declares a parameter once: name and default in a constructor (or a dataclass), range and
meaning in its numpydoc. Configs are made from that. The source is read, and the class is not
imported, for two reasons: the library takes seconds to import, and a wrong config should be refused
before; and ``python -OO`` drops docstrings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

import bagbasis

LIBRARY = Path(bagbasis.__file__)
REQUIRED = ...  # the default of a parameter that has none, or none that is a plain value

_TYPES = {"int": int, "float": float, "str": str, "bool": bool, "None": None, "optional": None}
_KINDS = "|".join(_TYPES)
_NUMBER = r"-?[\d.]+"
_BOUNDS = {"≥": "ge", ">": "gt", "≤": "le", "<": "lt"}
_PAIR = Annotated[list[float], Field(min_length=2, max_length=2)]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a constructor.

    Attributes
    ----------
    type : type
        As pydantic takes it, with the bounds that the docstring states; Any where it states none.
    default : object
        `REQUIRED` without one.
    text : str
        First sentence of its description.
    """

    type: Any
    default: Any
    text: str


@lru_cache
def parameters_of(name: str, module: str = "", library: Path = LIBRARY) -> dict[str, Parameter]:
    """Return the parameters of a class, by name.

    Parameters
    ----------
    name : str
        The class.
    module : str
        Where it can be imported from, below `bagbasis`: "retraining".
    library : Path
        The file that imports are followed from; default the library's own.
    """
    path = library if not module else library.parent / module / "__init__.py"
    found = _find(path, name)
    if found is None:
        raise LookupError(f"no class {name!r} in {path}")
    file, node = found
    texts = _documented(file, node)
    return {
        key: Parameter(type_of(texts[key][0]) if key in texts else Any, default, _text(texts, key))
        for key, default in _signature(file, node)
    }


def registered(table: str, module: str) -> dict[str, str]:
    """Return the classes of a registry: a dictionary of tuples that begin with one.

    What it takes over from another dictionary, as ``**PARTS``, is followed.
    """
    return _registered(table, LIBRARY.parent / module / "__init__.py")


def _registered(table: str, path: Path) -> dict[str, str]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and table in [alias.name for alias in node.names]:
            return _registered(table, _imported(path, node))
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if [one.id for one in targets if isinstance(one, ast.Name)] == [table]:
            values = getattr(node, "value", None)
            assert isinstance(values, ast.Dict)
            found: dict[str, str] = {}
            for key, value in zip(values.keys, values.values, strict=True):
                first = value.elts[0] if isinstance(value, ast.Tuple) else value
                assert isinstance(first, ast.Name)
                found |= {ast.literal_eval(key): first.id} if key else _registered(first.id, path)
            return found
    raise LookupError(f"no {table} in {path}")


def type_of(text: str) -> object:
    """Return the type that a numpydoc states: "int ≥ 1, optional", "float in (0, 1)", '{"a", "b"}'.

    Any for other words, such as the name of a class.
    """
    members: list[Any] = []
    if text.startswith("mapping from "):
        values: Any = type_of(text.partition(" to ")[2].removesuffix(", optional"))
        return dict[str, values] | None
    if '{"quantile": share}' in text:
        members.append(dict[Literal["quantile"], float])
        text = text.replace('{"quantile": share}', "")
    choices = re.findall(r'"([^"]*)"', text)
    text = re.sub(r'\{[^}]*\}|"[^"]*"|\(default\)|,? default .*', "", text)
    if "(lo, hi)" in text:
        members.append(list[_PAIR])
    for part in re.split(r",\s+(?![^()\[\]]*[)\]])|\s+or\s+", text):
        match = re.fullmatch(rf"\s*(even )?((?:list|sequence) of )?({_KINDS})\b(.*)", part)
        number = re.fullmatch(r"\s*(\d+)\s*", part)
        if number is not None:
            members.append(Annotated[Literal[int(number[1])], BeforeValidator(_refuse_equals)])
        elif match is not None:
            inner: Any = _bounded(_TYPES[match[3]], match[4], bool(match[1]))
            is_list = match[2] is not None
            members.append(Annotated[list[inner], Field(min_length=1)] if is_list else inner)
    if choices:
        members.append(Literal[tuple(choices)])
    if all(member is None for member in members):
        return Any
    members.sort(key=lambda member: member is None)  # messages then end with "or null"
    return Union[tuple(members)]  # noqa: UP007 - made of a list


def _refuse_equals(value: object) -> object:
    """Refuse True and 1.0 for 1, which `Literal` takes for equal."""
    if isinstance(value, (bool, float)):
        raise PydanticCustomError("literal_error", "expected an integer")
    return value


def _bounded(kind: object, text: str, even: bool) -> object:
    """Add to a type the bounds "≥ 1", "> 0", "in (0, 1)", "in [0, 1)"."""
    bounds: dict[str, Any] = {
        _BOUNDS[sign]: float(value) for sign, value in re.findall(rf"([≥>≤<]) ({_NUMBER})", text)
    }
    for left, lo, hi, right in re.findall(rf"in ([(\[])({_NUMBER}), ({_NUMBER})([)\]])", text):
        bounds |= {
            "gt" if left == "(" else "ge": float(lo),
            "lt" if right == ")" else "le": float(hi),
        }
    if kind is int:
        bounds = {key: int(value) for key, value in bounds.items()} | (
            {"multiple_of": 2} if even else {}
        )
    return Annotated[kind, Field(**bounds)] if bounds else kind


def _find(path: Path, name: str) -> tuple[Path, ast.ClassDef] | None:
    """Find a class in this file, or where this file imports it from; its file, and its source."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return path, node
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _find(_imported(path, node), alias.name)
    return None


def _imported(path: Path, node: ast.ImportFrom) -> Path:
    base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@lru_cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _bases(path: Path, node: ast.ClassDef) -> Iterator[tuple[Path, ast.ClassDef]]:
    """Find the base classes that are ours."""
    for base in node.bases:
        found = _find(path, base.id) if isinstance(base, ast.Name) else None
        if found is not None:
            yield found


def _signature(path: Path, node: ast.ClassDef) -> list[tuple[str, Any]]:
    """Return names and defaults of a constructor's parameters, its own or inherited."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            names = [argument.arg for argument in item.args.args[1:]]
            missing = len(names) - len(item.args.defaults)
            defaults = [REQUIRED] * missing + [_plain(value) for value in item.args.defaults]
            return list(zip(names, defaults, strict=True))
    is_dataclass = any("dataclass" in ast.unparse(one) for one in node.decorator_list)
    own = [
        (item.target.id, _plain(item.value))
        for item in node.body
        if is_dataclass and isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]
    inherited = [pair for found in _bases(path, node) for pair in _signature(*found)]
    return list(dict([*inherited, *own]).items())


def _plain(node: ast.expr | None) -> object:
    try:
        return REQUIRED if node is None else ast.literal_eval(node)
    except ValueError:  # made when the class is used, such as Window()
        return REQUIRED


def _documented(path: Path, node: ast.ClassDef) -> dict[str, tuple[str, str]]:
    """Return type and description of each parameter in a docstring, of a class or its bases."""
    texts = {
        key: value for found in _bases(path, node) for key, value in _documented(*found).items()
    }
    docstring = ast.get_docstring(node) or ""
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", docstring, re.DOTALL)
    entry = r"^(\w[\w, ]*) : ([^\n]*)\n?((?:(?: {4}[^\n]*)?\n?)*)"
    for names, kind, text in re.findall(entry, section[1] if section else "", re.MULTILINE):
        texts |= {name: (kind, text) for name in names.split(", ")}
    return texts


def _text(texts: dict[str, tuple[str, str]], key: str) -> str:
    return " ".join(texts.get(key, ("", ""))[1].split()).split(". ")[0].rstrip(".")
