"""The parameters of a class of the library: their types, defaults and first sentences.

What a parameter may be stands in the class's table (`bagbasis.parameters`), its default in the
constructor (or a dataclass), its meaning in the docstring. Configs are made from these. Defaults
and docstrings are read from the source, and the class is not imported, for two reasons: the library
takes seconds to import, and a wrong config should be refused before; and ``python -OO`` drops
docstrings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import bagbasis
from bagbasis.parameters.tables import TABLES

from .types import type_of

LIBRARY = Path(bagbasis.__file__).parent
REQUIRED = ...  # the default of a parameter that has none, or none that is a plain value


@dataclass(frozen=True)
class Parameter:
    """One parameter of a constructor.

    Attributes
    ----------
    type : type
        As pydantic takes it; see `type_of`.
    default : object
        `REQUIRED` without one.
    text : str
        First sentence of its description.
    """

    type: Any
    default: Any
    text: str


@lru_cache
def parameters_of(name: str, module: str = "") -> dict[str, Parameter]:
    """Return the parameters of a class, by name.

    Parameters
    ----------
    name : str
        The class.
    module : str
        Where it can be imported from, below `bagbasis`: "retraining".
    """
    path = _door(LIBRARY / module)
    found = _find(path, name)
    if found is None:
        raise LookupError(f"no class {name!r} in {path}")
    texts, table = _documented(*found), TABLES[name]
    return {
        key: Parameter(type_of(table[key]), default, _first_sentence(texts.get(key, "")))
        for key, default in _signature(*found)
    }


def registered(table: str, module: str) -> dict[str, str]:
    """Return the classes of a registry: a dictionary of tuples that begin with one.

    What it takes over from another dictionary, as ``**PARTS``, is followed.
    """
    return _registered(table, _door(LIBRARY / module))


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
    return _door(base) if base.is_dir() else base.with_suffix(".py")


def _door(folder: Path) -> Path:
    """Return the file that says where a room's names come from: its stub, if it has one."""
    stub = folder / "__init__.pyi"
    return stub if stub.exists() else stub.with_suffix(".py")


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
        if is_dataclass
        and isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and not re.search("ClassVar|KW_ONLY", ast.unparse(item.annotation))
    ]
    inherited = [pair for found in _bases(path, node) for pair in _signature(*found)]
    return list(dict([*inherited, *own]).items())


def _plain(node: ast.expr | None) -> object:
    try:
        return REQUIRED if node is None else ast.literal_eval(node)
    except ValueError:  # made when the class is used, such as Window()
        return REQUIRED


def _documented(path: Path, node: ast.ClassDef) -> dict[str, str]:
    """Return the description of each parameter in a docstring, of a class or its bases."""
    texts = {
        key: value for found in _bases(path, node) for key, value in _documented(*found).items()
    }
    docstring = ast.get_docstring(node) or ""
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", docstring, re.DOTALL)
    entry = r"^(\w[\w, ]*) : [^\n]*\n?((?:(?: {4}[^\n]*)?\n?)*)"
    for names, text in re.findall(entry, section[1] if section else "", re.MULTILINE):
        texts |= dict.fromkeys(names.split(", "), text)
    return texts


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0].rstrip(".")
