"""What an ingest of tables can be given, by class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import (
    Boolean,
    Function,
    Integer,
    ListOf,
    MappingOf,
    None_,
    OneOf,
    Open,
    Pair,
    Real,
    Table,
    Text,
    Url,
)
from ..errors import ParameterError

MODE = OneOf("create", "append", "overwrite")
KNOWN_IDS = OneOf("refuse", "skip")
BOUNDS = ListOf(Pair(Real(), Real()), 1)
_TEXTS = ListOf(Text)
_COLUMNS = ListOf(Text | MappingOf(Text, Text)) | MappingOf(Text, Text)
_FILES = Url | ListOf(Url)
_SHARE_OF_POINTS = MappingOf(OneOf("quantile"), Real(ge=0, lt=0.5))
_BOX = Open(
    'one (lo, hi) per dimension, or {"quantile": share}',
    BOUNDS | _SHARE_OF_POINTS | None_,
)

TABLES: dict[str, Table] = {
    "TableIngest": {
        "points": _FILES,
        "url": Url,
        "id_column": Text | _TEXTS,
        "coordinates": _COLUMNS,
        "read": MappingOf(Text, Open()) | None_,
        "targets": _COLUMNS | None_,
        "target_types": MappingOf(Text, OneOf("number", "class")) | None_,
        "target_rules": MappingOf(Text, OneOf("mean", "any", "last", "count")) | None_,
        "target_table": _FILES | None_,
        "target_id_column": Text | _TEXTS | None_,
        "responses": _FILES | None_,
        "response_coordinates": _COLUMNS | None_,
        "response_id_column": Text | _TEXTS | None_,
        "missing": OneOf("refuse", "drop_point", "drop_bag", "median"),
        "min_points": Integer(1),
        "missing_values": ListOf(Text | Integer() | Real()) | None_,
        "box": _BOX,
        "response_box": _BOX,
        "dtype": OneOf("float32", "float64", "uint16", "uint8") | None_,
        "mode": MODE,
        "overwrite": Boolean,
        "known_ids": KNOWN_IDS,
        "unknown_ids": OneOf("refuse", "skip"),
        "chunk_points": Integer(1) | None_,
        "progress": Function | None_,
    },
}

# files of which each is a bag: those of slides, and of cytometry
FILES: Table = {
    "points": _FILES,
    "url": Url,
    "target_id_column": Text,
    "targets": ListOf(Text) | None_,
    "read": MappingOf(Text, Open()) | None_,
    "mode": MODE,
    "overwrite": Boolean,
    "known_ids": KNOWN_IDS,
    "chunk_points": Integer(1) | None_,
    "progress": Function | None_,
}
PATCHES: Table = {**FILES, "coordinates": ListOf(Text, 1)}
FCS: Table = {
    **FILES,
    "coordinates": ListOf(Text, 1) | None_,
    "cofactor": Real(gt=0) | MappingOf(Text, Real(gt=0)) | None_,
    "compensate": Boolean,
}

_CSV = {"delimiter": "delim", "skip_rows": "skip", "columns": "names"}  # and DuckDB's names


def refuse_gone(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without those of earlier versions that had no effect; refuse the others.

    Raises
    ------
    ParameterError
        Names the key, and what to write instead.
    """
    for name, instead in _GONE.items():
        if given.get(name) and (name, given[name]) != ("decimal", "."):
            raise ParameterError(f"{name} is gone; write {instead(given[name])}")
    return {name: value for name, value in given.items() if name not in _GONE}


def _dates(names: Any) -> str:  # noqa: ANN401 - of any older config
    return _coordinates({name: f"epoch(CAST({_sql(name)} AS TIMESTAMP)) / 86400" for name in names})


def _booleans(names: Any) -> str:  # noqa: ANN401
    return _coordinates({name: f"CAST({_sql(name)} AS BOOLEAN)" for name in names})


def _cyclic(periods: Any) -> str:  # noqa: ANN401
    made = {}
    for name, period in periods.items():
        turn = f"({_sql(name)} % {period!r}) / {period!r}"  # rounded as it was
        for wave in ("cos", "sin"):
            made[f"{wave} {name}/{period:g}"] = f"{wave}(2 * pi() * {turn})"
    return _coordinates(made)


def _categories(labels: Any) -> str:  # noqa: ANN401
    made = {}
    for name, kinds in labels.items():
        listed = ", ".join(map(_text, kinds))
        for kind in kinds:
            case = f"CASE WHEN {_sql(name)} IN ({listed}) THEN {_sql(name)} = {_text(kind)} END"
            made[f"{name} = {kind}"] = case
    return _coordinates(made)


def _csv(options: Any) -> str:  # noqa: ANN401
    made = {_CSV.get(name, name): "" if value is None else value for name, value in options.items()}
    return f"read: {made}"


def _coordinates(made: Mapping[str, str]) -> str:
    return f"in coordinates, in place of the column, {made}"


def _sql(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(label: object) -> str:
    return "'" + str(label).replace("'", "''") + "'"


_GONE: dict[str, Callable[[Any], str]] = {
    "dates": _dates,
    "booleans": _booleans,
    "cyclic": _cyclic,
    "categories": _categories,
    "decimal": lambda sign: f"read: {{'decimal_separator': {sign!r}}}",
    "csv": _csv,
}
