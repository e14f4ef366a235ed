"""Values that a pydantic model accepts, and errors of a config, in one readable line.

Both come from the model's JSON schema, so that a key is described only where it is declared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from .constraints import SEEDS
from .credentials import NO_CREDENTIALS, secret_places
from .errors import ConfigError, closest, plural, shown
from .versions import version

Schema = dict[str, Any]

_NAMES = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "object": "'key: value' lines",
    None: "any value",
}
_BOUNDS = {
    "exclusiveMinimum": ">",
    "minimum": ">=",
    "exclusiveMaximum": "<",
    "maximum": "<=",
    "multipleOf": "divisible by",
}
_WORDS = {"label": "target", "labels": "targets"}  # other words for keys
_ORDER = {"extra_forbidden": 0, "missing": 2}  # a misspelt key is missing under its right name


@dataclass(frozen=True)
class WrongValue:
    """The first error of a config.

    Attributes
    ----------
    key : str
        Dotted key; empty if no single key is wrong.
    text : str
        One line that names the key, its value and the accepted values, or all missing keys.
    missing : tuple of str
        All required keys that were not given. The first of them is ``key``.
    """

    key: str
    text: str
    missing: tuple[str, ...] = ()


def first_error(adapter: TypeAdapter[Any], error: ValidationError) -> WrongValue:
    """Return the first error of values that the adapter of a model or union refused."""
    schema = _schema_of(adapter)
    first = min(error.errors(), key=lambda detail: _ORDER.get(detail["type"], 1))
    reason, value = first["msg"].removeprefix("Value error, "), first["input"]
    keys, node, owner = _locate(schema, first["loc"])
    key = ".".join(keys)
    if first["type"] == "extra_forbidden":
        name, names = str(first["loc"][-1]), list(owner["properties"])
        key = ".".join([*keys, name])
        hint = _elsewhere(schema, key) or closest(_WORDS.get(name, name), names)
        own = f" (this is bagbasis {version('bagbasis')}; newer versions may have more)"
        text = f"unknown key {key!r}{hint}; the keys here are {', '.join(names)}"
        return WrongValue(key, text if hint else text + own)
    if first["type"] == "missing":
        missing = _missing_keys(schema, error)
        noun = plural("key", len(missing))
        return WrongValue(key, f"missing {noun} {', '.join(missing.values())}", (*missing,))
    if first["type"].startswith("union_tag"):  # which of several models it is
        name = _tag_name(schema, node)
        node = {"anyOf": [detail["properties"][name] for detail in _models(schema, node)]}
        key = ".".join([*keys, name])
        if first["type"] == "union_tag_not_found":
            return WrongValue(
                key, f"missing key {key!r}; expected {accepted(schema, node)}", (key,)
            )
        value = first["ctx"]["tag"]
    elif not key or first["type"] == "value_error" or len(keys) < _n_keys(first["loc"]):
        return WrongValue(key, f"key {key!r}: {reason}" if key else reason)
    hint = closest(value, _choices(schema, node)) if isinstance(value, str) else ""
    expected = f"expected {accepted(schema, node)}{hint}"
    if isinstance(value, (bool, int, float, date)) and "a string" in expected:
        expected += "; YAML reads no, 1 or 2024-01-01 as text only in quotes, 'no'"
    return WrongValue(key, f"key {key!r} is {shown(value)}; {expected}")


def _elsewhere(schema: Schema, unknown: str) -> str:
    """Return a hint at the shortest dotted key with the last name of another, if there is."""
    if "properties" not in schema:  # one of several models, whose keys are those of no section
        return ""
    name, rows = unknown.split(".")[-1], _rows(schema, schema, "")
    keys = [key for _, key, _ in rows if key.split(".")[-1] == name and key != unknown]
    return closest(min(keys, key=len), keys) if keys else ""


def _missing_keys(schema: Schema, error: ValidationError) -> dict[str, str]:
    """Return every required key that was not given, with its description."""
    missing = {}
    for detail in error.errors():
        if detail["type"] == "missing":
            keys, node, _ = _locate(schema, detail["loc"])
            key = ".".join(keys)
            words = node.get("description", "").replace("``", "")  # marks of code in docstrings
            missing[key] = repr(key) + (f" ({words})" if words else "")
    return missing


@lru_cache(maxsize=32)
def _schema_of(adapter: TypeAdapter[Any]) -> Schema:
    return adapter.json_schema()


def key_sections(kind: type[BaseModel]) -> dict[str, list[tuple[str, str]]]:
    """Return every dotted key of a model and its description, by section, for help texts.

    The title of a section names the alternative: "model.embedding with name: hdd". The title for
    the model itself is empty.
    """
    schema = TypeAdapter(kind).json_schema()
    sections: dict[str, list[tuple[str, str]]] = {"": []}
    for title, key, text in _rows(schema, schema, ""):
        sections.setdefault(title, []).append((key, text))
    return sections


def accepted_by(annotation: object) -> str:
    """Return words for what a type accepts: "an integer > 0", "'gcv', 'validation' or a number"."""
    schema = TypeAdapter(annotation).json_schema()  # type: ignore[arg-type]  # any annotation
    return accepted(schema, schema)


def accepted(schema: Schema, node: Schema) -> str:
    """Return words for the values that a part of a schema accepts."""
    parts = list(dict.fromkeys(_alternatives(schema, node)))
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _locate(schema: Schema, loc: tuple[int | str, ...]) -> tuple[list[str], Schema, Schema]:
    """Return the keys that lead to an error, the schema there, and the enclosing model."""
    keys: list[str] = []
    node = owner = schema
    for part in loc:
        models = _models(schema, node)
        holder = next((model for model in models if part in model["properties"]), None)
        tagged = next(
            (model for model in models if part in (*_tags(model), model.get("title"))), None
        )
        if holder is not None:
            keys.append(str(part))
            owner, node = holder, holder["properties"][part]
        elif tagged is not None:
            owner = node = tagged
        elif isinstance(node.get("additionalProperties"), dict):  # a mapping of any keys
            keys.append(str(part))
            node = node["additionalProperties"]
        else:  # an unknown key, a place in a list, or the type in a union
            return keys, node, models[0] if models else owner
    return keys, node, owner


def _n_keys(loc: tuple[int | str, ...]) -> int:
    """Return the number of keys of a location: one if a part of it is not text."""
    return 0 if all(isinstance(part, str) for part in loc) else 1


def _rows(schema: Schema, model: Schema, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield title of the section, key and text."""
    keys = model["properties"].items()
    fixed = [f"{name}: {field['const']}" for name, field in keys if "const" in field]
    title = " with ".join([prefix.rstrip("."), *fixed])
    for name, node in keys:
        # what an embedding is of has keys that are listed already, those of an embedding
        sections = [] if name in prefix.split(".") else _models(schema, node)
        for section in sections:
            yield from _rows(schema, section, f"{prefix}{name}.")
        if not sections:
            is_required = name in model.get("required", ())
            default = "required" if is_required else f"default {json.dumps(node.get('default'))}"
            text = node.get("description", "")
            yield title, prefix + name, f"{text} ({accepted(schema, node)}; {default})"


def _members(schema: Schema, node: Schema) -> list[Schema]:
    """Return the alternatives of a union, with references followed."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    union = node.get("anyOf", node.get("oneOf"))
    return [node] if union is None else [member for m in union for member in _members(schema, m)]


def _models(schema: Schema, node: Schema) -> list[Schema]:
    """Return the alternatives of a union that have keys."""
    return [member for member in _members(schema, node) if "properties" in member]


def _tags(model: Schema) -> set[Any]:
    """Return the values by which a union recognizes this model."""
    values = [field.get("enum", [field.get("const")]) for field in model["properties"].values()]
    return {value for some in values for value in some} - {None}


def _tag_name(schema: Schema, node: Schema) -> str:
    """Return the key that distinguishes the models of a union: its value is fixed in all."""
    first, *others = _models(schema, node)
    fixed = [name for name, field in first["properties"].items() if "const" in field]
    return str(next(name for name in fixed if all(name in field["properties"] for field in others)))


def _choices(schema: Schema, node: Schema) -> list[str]:
    return [
        str(v) for member in _members(schema, node) for v in _values(member) if isinstance(v, str)
    ]


def _values(node: Schema) -> list[Any]:
    return list(node.get("enum", [node["const"]] if "const" in node else []))


def _alternatives(schema: Schema, node: Schema) -> Iterator[str]:
    for member in _members(schema, node):
        kind = member.get("type")
        if _values(member):
            yield from (repr(value) for value in _values(member))
        elif kind == "array":
            inner = accepted(schema, member.get("items", {}))
            exact = member.get("maxItems", 0)
            yield f"[{', '.join([inner] * exact)}]" if exact else f"[{inner}, ...]"
        else:
            bounds = [
                f"{sign} {_bound(member[key])}" for key, sign in _BOUNDS.items() if key in member
            ]
            bounds += ["that is not empty"] if "minLength" in member else []
            yield f"{_NAMES[kind]} {' and '.join(bounds)}".rstrip()


def _bound(number: float) -> str:
    """Return 1,000,000 and 2^64 - 1 for integers, which 1e+06 and 1.84e+19 are to nobody."""
    if number == SEEDS - 1:
        return "2^64 - 1"
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def refuse_credentials(config: Mapping[str, Any], source: str = "") -> None:
    """Raise ConfigError for the first key that holds a credential or is named like one.

    Values in lists and mappings are checked too, and so are the names of keys.
    """
    for key in secret_places(config):
        raise ConfigError(f"{source}key {key!r} {NO_CREDENTIALS}")


def differences(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield dotted keys in which two configs differ, with the old and new value, or None."""
    old, new = dict(items_of(before)), dict(items_of(now))
    for key in [*new, *old]:
        if old.get(key) != new.get(key):
            yield key, old.get(key), new.get(key)


def items_of(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted keys and values of a mapping of mappings."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from items_of(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
