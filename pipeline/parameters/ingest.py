"""What an ingest of tables can be given, by class."""

from __future__ import annotations

from .checks import Table
from .constraints import Boolean, Function, Integer, None_, OneOf, Open, Real, Text, Url
from .containers import ListOf, MappingOf, Pair

MODE = OneOf("create", "append", "overwrite")
_TEXTS = ListOf(Text)
_COLUMNS = ListOf(Text | MappingOf(Text, Text)) | MappingOf(Text, Text)
_FILES = Url | ListOf(Url)
_SHARE_OF_POINTS = MappingOf(OneOf("quantile"), Real(ge=0, lt=0.5))
_BOX = Open(
    'one (lo, hi) per dimension, or {"quantile": share}',
    ListOf(Pair(Real(), Real()), 1) | _SHARE_OF_POINTS | None_,
)

TABLES: dict[str, Table] = {
    "TableIngest": {
        "points": _FILES,
        "url": Url,
        "id_column": Text | _TEXTS,
        "coordinates": _COLUMNS,
        "read": MappingOf(Text, Open()) | None_,
        "dates": _TEXTS | None_,
        "booleans": _TEXTS | None_,
        "cyclic": MappingOf(Text, Real(gt=0)) | None_,
        "categories": MappingOf(Text, ListOf(Text | Integer())) | None_,
        "decimal": OneOf(".", ","),
        "csv": MappingOf(Text, Open()) | None_,
        "targets": _COLUMNS | None_,
        "target_types": MappingOf(Text, OneOf("number", "class")) | None_,
        "target_rules": MappingOf(Text, OneOf("mean", "any", "last", "count")) | None_,
        "target_table": _FILES | None_,
        "target_id_column": Text | _TEXTS | None_,
        "responses": _FILES | None_,
        "response_coordinates": _COLUMNS | None_,
        "response_id_column": Text | _TEXTS | None_,
        "missing": OneOf("refuse", "drop_point", "drop_bag"),
        "min_points": Integer(1),
        "missing_values": ListOf(Text | Integer() | Real()) | None_,
        "box": _BOX,
        "response_box": _BOX,
        "dtype": OneOf("float32", "float64", "uint16", "uint8"),
        "mode": MODE,
        "overwrite": Boolean,
        "known_ids": OneOf("refuse", "skip"),
        "chunk_points": Integer(1) | None_,
        "progress": Function | None_,
    },
}
