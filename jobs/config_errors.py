"""The first error of a config as one line: the key, what it is, and what it may be."""

from __future__ import annotations

import difflib
import json
import os
import types
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

_NAMES = {
    int: "an integer",
    float: "a number",
    str: "a text",
    bool: "true or false",
    type(None): "null",
    dict: "'key: value' lines",
    Any: "any value",
}
_BOUNDS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "multiple_of": "divisible by"}

_FIRST = {"extra_forbidden": 0, "missing": 2}  # a misspelt key is missing under its right name


def describe_error(
    config_type: type[BaseModel],
    values: Mapping[str, Any],
    error: ValidationError,
    path: str | os.PathLike[str] | None,
    overridden: Collection[str],
) -> str:
    """One line for the first error of a config.

    Parameters
    ----------
    config_type : type
    values : mapping
        What was validated.
    error : ValidationError
    path : str or path or None
        The YAML file the values came from.
    overridden : collection of str
        Dotted keys that came from ``--set``.
    """
    first = min(error.errors(), key=lambda e: _FIRST.get(e["type"], 1))
    model, keys, field = _locate(config_type, first["loc"])
    if first["type"] == "extra_forbidden":
        keys = [*keys, str(first["loc"][-1])]
    key = ".".join(keys)
    source = _source(key, path, overridden)
    if first["type"] == "extra_forbidden":
        return f"{source}unknown key {key!r}{_suggest(keys[-1], list(model.model_fields))}"
    if first["type"] == "missing":
        return (
            f"{source}missing key {key!r} ({field.description if field else first['msg']}); "
            f"give it in the config file or with --set {key}=..."
        )
    if first["type"] == "union_tag_invalid":
        names = [repr(_tag(section)) for section in _siblings(config_type, keys)]
        return f"{source}key '{key}.name' is {first['ctx']['tag']!r}; expected {_join(names)}"
    if field is None:
        where = f"key {key!r}: " if key else ""
        return f"{source}{where}{first['msg'].removeprefix('Value error, ')}"
    value = _value_at(values, keys)
    expected = allowed(field.annotation, tuple(field.metadata))
    hint = closest(str(value), list(_choices(field.annotation)))
    if isinstance(value, BaseModel) or first["type"] == "value_error":
        return f"{source}key {key!r}: {first['msg'].removeprefix('Value error, ')}"
    return f"{source}key {key!r} is {value!r}; expected {expected}{hint}"


def allowed(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    """What a field may be, in words: "an integer > 0", "'gcv', 'validation' or a number"."""
    return _join(list(dict.fromkeys(_alternatives(annotation, metadata))))


def key_rows(model: type[BaseModel], prefix: str = "") -> list[tuple[str, str]]:
    """Every key of a config, dotted, and what it is; for help texts."""
    rows = []
    for name, field in model.model_fields.items():
        nested = sections(field.annotation)
        for section in nested:
            rows += key_rows(section, f"{prefix}{name}.")
        if not nested:
            text = field.description or ""
            default = "required" if field.is_required() else f"default {json.dumps(field.default)}"
            expected = allowed(field.annotation, tuple(field.metadata))
            rows.append((prefix + name, f"{text} ({expected}; {default})"))
    return rows


def sections(annotation: Any) -> list[type[BaseModel]]:
    """The nested configs a field may hold."""
    annotation, _ = _unwrap(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in _members(annotation) for model in sections(part)]


def _locate(
    model: type[BaseModel], loc: tuple[int | str, ...]
) -> tuple[type[BaseModel], list[str], FieldInfo | None]:
    """The innermost model of an error's location, the keys to the field, and the field."""
    keys: list[str] = []
    field: FieldInfo | None = None
    options = [model]
    for part in loc:
        tagged = [option for option in options if option.__name__ == part or _tag(option) == part]
        if tagged:
            model, options = tagged[0], tagged
            continue
        holder = next((option for option in options if part in option.model_fields), None)
        if holder is None:
            break
        model, field = holder, holder.model_fields[str(part)]
        keys.append(str(part))
        options = sections(field.annotation)
        if options:
            model, field = options[0], None if len(loc) > len(keys) else field
    return model, keys, field


def _siblings(model: type[BaseModel], keys: list[str]) -> list[type[BaseModel]]:
    """The sections that the field at ``keys`` may hold."""
    *outer, last = keys
    for key in outer:
        model = sections(model.model_fields[key].annotation)[0]
    return sections(model.model_fields[last].annotation)


def _tag(model: type[BaseModel]) -> Any:
    name = model.model_fields.get("name")
    choices = list(_choices(name.annotation)) if name else []
    return choices[0] if choices else None


def _source(key: str, path: str | os.PathLike[str] | None, overridden: Collection[str]) -> str:
    if any(f"{key}.".startswith(f"{one}.") or one.startswith(f"{key}.") for one in overridden):
        return "--set: "
    return f"{path}: " if path is not None else ""


def _suggest(name: str, names: list[str]) -> str:
    return f"{closest(name, names)}; the keys here are {', '.join(names)}"


def closest(name: str, names: Collection[str]) -> str:
    """ " (did you mean 'x'?)", or nothing when no name is close."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _value_at(values: Any, keys: list[str]) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    inner, *metadata = get_args(annotation)
    fields = [item.metadata if isinstance(item, FieldInfo) else [item] for item in metadata]
    return inner, tuple(item for items in fields for item in items)


def _members(annotation: Any) -> tuple[Any, ...]:
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if is_union else ()


def _choices(annotation: Any) -> Iterator[str]:
    annotation, _ = _unwrap(annotation)
    if get_origin(annotation) is Literal:
        yield from (str(value) for value in get_args(annotation))
    for part in _members(annotation):
        yield from _choices(part)


def _alternatives(annotation: Any, metadata: tuple[Any, ...] = ()) -> Iterator[str]:
    annotation, more = _unwrap(annotation)
    metadata += more
    members = _members(annotation)
    if members:
        for part in members:
            yield from _alternatives(part, metadata)
    elif get_origin(annotation) is Literal:
        yield from (repr(value) for value in get_args(annotation))
    elif get_origin(annotation) is list:
        inner = allowed(get_args(annotation)[0])
        exact = max((getattr(item, "max_length", None) or 0 for item in metadata), default=0)
        yield f"[{', '.join([inner] * exact)}]" if exact else f"[{inner}, ...]"
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield _NAMES[dict]
    else:
        origin = get_origin(annotation) or annotation
        yield _NAMES.get(origin, str(annotation)) + _bounds(origin, metadata)


def _bounds(origin: Any, metadata: tuple[Any, ...]) -> str:
    if origin not in (int, float):
        return ""
    parts = [
        f"{sign} {getattr(item, name):g}"
        for item in metadata
        for name, sign in _BOUNDS.items()
        if getattr(item, name, None) is not None
    ]
    return f" {' and '.join(parts)}" if parts else ""


def _join(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
