"""Coordinates and targets: columns of a table, or expressions of DuckDB over its columns.

An expression is read as a tree, checked node by node, and written anew with its columns numbered.
So only operators, functions of one row and constants of its text reach DuckDB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import duckdb

from ...core.errors import DataError, ParameterError, closest
from .reading import ReadOptions

LOCKED: dict[
    str, str | bool | int | float | list[str]
] = {  # nothing is downloaded, and what is installed is left alone
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_NODES = (  # allowed nodes of a tree; others are subqueries, windows, parameters, lambdas, stars
    *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION"),
    *("CONSTANT", "FUNCTION", "OPERATOR", "TYPE"),
)
MEDIAN = "median"  # a value of `TableIngest.missing`
TIMES = ("TIMESTAMP", "DATETIME", "TIMESTAMP_US", "TIMESTAMP WITHOUT TIME ZONE")
CLOCKS = ("current_localtime", "current_localtimestamp")  # DuckDB calls them consistent
MACROS = ("nullif", "if", "fmod", "fdiv", "date_add", "days_in_month", "split_part")
_FUNCTIONS = """
    SELECT function_name FROM duckdb_functions() GROUP BY function_name
    HAVING bool_and(function_type = 'scalar' AND stability = 'CONSISTENT')
"""

Given = str | Sequence[str | Mapping[str, str]] | Mapping[str, str] | None
"""Coordinates or targets in the form that `TableIngest` accepts."""


@dataclass(frozen=True)
class Value:
    """A coordinate or a target.

    ``key`` is the parameter, ``text`` the given text, and ``name`` the name in the store.
    ``inputs`` are the columns that the text reads. ``sql`` is an expression over their `alias`; it
    is empty if the text is the name of a column.
    """

    key: str
    name: str
    text: str
    inputs: tuple[str, ...]
    sql: str = ""

    def of(self, name: str) -> str:
        """Return the alias of a cell's value: typed for expressions, else a number."""
        return alias("v" if self.sql else "n", name)


@dataclass(frozen=True)
class Columns:
    """The columns to read of a table, and how to treat them, as in `TableIngest`.

    Four fields differ. ``dtype`` is float32 or float64, because points are packed later. ``share``
    is the fraction of rows whose coordinates a survey keeps, to measure a box and medians.
    ``types`` are the SQL types of the CSV columns that expressions read. ``medians`` of the
    coordinates replace missing cells, which a flag marks; None if the medians are not known yet.
    """

    ids: tuple[str, ...]
    coordinates: tuple[Value, ...] = ()
    targets: tuple[Value, ...] = ()
    target_types: Mapping[str, str] = field(default_factory=dict)
    target_rules: Mapping[str, str] = field(default_factory=dict)
    missing: str = "refuse"
    min_points: int = 1
    missing_values: tuple[str, ...] = ()
    read: ReadOptions = field(default_factory=ReadOptions)
    types: Mapping[str, str] = field(default_factory=dict)
    dtype: str = "float32"
    share: float = 0.0
    medians: Mapping[str, float] | None = None

    @property
    def expressions(self) -> list[Value]:
        """The coordinates and targets that are expressions."""
        return [value for value in (*self.coordinates, *self.targets) if value.sql]

    @property
    def names(self) -> list[str]:
        """Names of all columns to read, without repeats."""
        return list(dict.fromkeys((*self.ids, *inputs_of((*self.coordinates, *self.targets)))))

    @property
    def fills(self) -> Mapping[str, float]:
        """Values that replace missing cells, by coordinate."""
        return (self.medians or {}) if self.missing == MEDIAN else {}

    @property
    def flagged(self) -> list[int]:
        """Positions of the coordinates that have a flag, in the order of the flags."""
        medians = self.medians or {}
        return [j for j, coordinate in enumerate(self.coordinates) if coordinate.name in medians]

    @property
    def stored_names(self) -> list[str]:
        """Names of the stored coordinates; flags come last."""
        names = [coordinate.name for coordinate in self.coordinates]
        return names + [flag_of(names[j]) for j in self.flagged]


def flag_of(name: str) -> str:
    """Return the name of the flag that is 1 where a coordinate was missing, else 0."""
    return f"{name}_missing"


def inputs_of(values: Sequence[Value]) -> list[str]:
    """Return the columns that values are computed from, without repeats."""
    return list(dict.fromkeys(name for value in values for name in value.inputs))


def alias(kind: str, name: str) -> str:
    """Return the alias of a column's cell ("r"), typed value ("v") or number ("n") in queries.

    Names that differ only in case have different aliases, and no alias is a part of another.
    """
    return f"{kind}{name.encode().hex()}_"


def values_of(key: str, written: Given) -> tuple[Value, ...]:
    """Return the given coordinates or targets as values.

    ParameterError for an empty or repeated name.
    """
    pairs: list[tuple[str, str]] = []
    for item in [written] if isinstance(written, (str, Mapping)) else written or ():
        pairs += item.items() if isinstance(item, Mapping) else [(item, item)]
    if any("" in pair for pair in pairs):
        raise ParameterError(f"{key}: '' names nothing; give a column or an expression")
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ParameterError(f"{key} is {names}; expected a list of different names")
    return tuple(Value(key, name, text, (text,)) for name, text in pairs)


def moment_of(text: str, cast: str = "CAST") -> str:
    """Return the SQL of a text as a TIMESTAMP in UTC; a text without an offset is UTC."""
    return f"timezone('UTC', {cast}({text} AS TIMESTAMP WITH TIME ZONE))"


def names_of(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of one column, of several or of none."""
    return (columns,) if isinstance(columns, str) else tuple(map(str, columns or ()))


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


OF_ALL_FILES = " (all files of a table need the same columns)"


def no_column(file: str, name: str, names: Sequence[str], where: str = "") -> DataError:
    """Return the error of a column that a file does not have."""
    if not names:
        return DataError(f"{file}: the file has no columns, not even a header; leave it out")
    hint = closest(name, names)
    others = "" if hint else OF_ALL_FILES
    if names[0].lstrip()[:1] in ("#", "%"):
        others += (
            f"; if its first lines are comments, set read: {{comment: '{names[0].lstrip()[0]}'}}"
        )
    return DataError(f"{file}: no column {name!r}{hint}{where}; there are {list(names)}{others}")


def read_expressions(columns: Columns, names: Sequence[str], file: str) -> Columns:
    """Return the columns with expressions parsed: all texts that are not in ``names``.

    Raises
    ------
    DataError
        If an expression has a column that the file does not have.
    ParameterError
        If a text is not an expression of one row. The message names the parameter and the text.
    """
    of_file = frozenset(names)
    for name in columns.ids:
        if name not in of_file:
            raise no_column(file, name, names)

    def read(value: Value) -> Value:
        if value.text in of_file:
            return value
        tree, inputs = _tree_of(value, names, file), []
        for node in [*_nodes(tree)]:
            if node["class"] == "CAST" and node["type_expr"]["type_name"].upper() in TIMES:
                _honour_offsets(node)
            if node["class"] == "COLUMN_REF":
                inputs.append(_match(node["column_names"][0], names, value, file))
                node["column_names"][0] = alias("v", inputs[-1])
        return replace(value, inputs=tuple(inputs), sql=_written(tree))

    coordinates, targets = (tuple(map(read, of)) for of in (columns.coordinates, columns.targets))
    return replace(columns, coordinates=coordinates, targets=targets)


def spread(columns: Columns, vectors: Mapping[str, Sequence[str]]) -> Columns:
    """Return the columns with a coordinate per entry of each vector or record.

    ``vectors`` has the names of the entries by column. Computing the first entry fails for a vector
    of another length.
    """
    made: list[Value] = []
    for column in columns.coordinates:
        names, vector = vectors.get(column.text, ()), alias("v", column.text)
        sqls = [f"{vector}[{j + 1}]" for j in range(len(names))]
        if names and names[0].startswith(f"{column.text}."):  # of a record
            fields = (quoted(name.removeprefix(f"{column.text}.")) for name in names)
            sqls = [f"struct_extract({vector}, {name})" for name in fields]
        elif names:
            text = f"'a vector of ' || len({vector}) || ' numbers, not {len(names)}'"
            failure = f"CAST({text} AS DOUBLE)"  # error() may not stand in TRY
            is_long = f"{vector} IS NULL OR len({vector}) = {len(names)}"
            sqls[0] = f"CASE WHEN {is_long} THEN {sqls[0]} ELSE {failure} END"
        made += [replace(column, name=n, sql=sql) for n, sql in zip(names, sqls, strict=True)] or [
            column
        ]
    return replace(columns, coordinates=tuple(made))


def _tree_of(value: Value, names: Sequence[str], file: str) -> dict[str, Any]:
    """Return the tree of an expression that reads only columns of a row."""
    parsed, empty = (_parsed(text) for text in (value.text, "0"))
    place = f"{value.key}: {value.text!r}"
    if parsed["error"] and not parsed["error_message"].startswith("Only SELECT"):
        hint = closest(value.text, names)
        what = f"is neither a column of {file}{hint} nor an expression ({parsed['error_message']})"
        raise ParameterError(f"{place} {what}; columns are {list(names)}")
    [expected] = empty["statements"]
    statements = parsed.get("statements", [])
    nodes = [statement["node"].get("select_list", []) for statement in statements]
    plain = [
        {**statement["node"], "select_list": expected["node"]["select_list"]}
        for statement in statements
    ]
    if plain != [expected["node"]] or len(nodes[0]) != 1 or nodes[0][0]["alias"]:
        raise ParameterError(f"{place} is not one expression: write no ';', ',', FROM or WHERE")
    tree: dict[str, Any]
    [[tree]] = nodes
    for part in _nodes(tree):
        kind, function = part["class"], str(part.get("function_name", "")).lower()
        if kind not in _NODES:
            raise ParameterError(
                f"{place} has a {kind.lower().replace('_', ' ')}; expected columns, constants, "
                "operators and functions of one row"
            )
        if kind == "FUNCTION" and (function not in _functions() or part["catalog"]):
            raise ParameterError(
                f"{place} calls {function!r}{closest(function, sorted(_functions()))}, which is "
                "not a deterministic function of one row"
            )
        if function == "age" and len(part["arguments"]) == 1:
            raise ParameterError(f"{place}: age of one time counts to today; give age two times")
    return tree


def _honour_offsets(cast: dict[str, Any]) -> None:
    """Change a cast to TIMESTAMP, in place, so that a text's offset from UTC counts.

    DuckDB's own cast reads 2024-07-01T00:30+02:00 as half past midnight UTC.
    """
    [moment] = _parsed(moment_of("0"))["statements"][0]["node"]["select_list"]
    inner = moment["arguments"][1]["expression"]
    inner |= {"child": cast["child"], "try_cast": cast["try_cast"]}
    cast.clear()
    cast.update(moment)


def _parsed(text: str) -> dict[str, Any]:
    [(answer,)] = _asked("SELECT json_serialize_sql(?)", f"SELECT {text}")
    tree: dict[str, Any] = json.loads(answer)
    return tree


def _written(tree: dict[str, Any]) -> str:
    """Return a tree as SQL."""
    whole = _parsed("0")
    whole["statements"][0]["node"]["select_list"] = [tree]
    [(text,)] = _asked("SELECT json_deserialize_sql(?)", json.dumps(whole))
    return str(text).removeprefix("SELECT ")


def _asked(query: str, *values: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(config=LOCKED) as connection:
        return connection.execute(query, values).fetchall()


@cache
def _functions() -> frozenset[str]:
    """Return the functions of one row that give equal results in each pass and worker."""
    consistent = frozenset(name.lower() for (name,) in _asked(_FUNCTIONS))
    return (consistent | {*MACROS}) - {*CLOCKS}


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a tree."""
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for part in tree.values():
            yield from _nodes(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)


def _match(name: str, names: Sequence[str], value: Value, file: str) -> str:
    """Return the column that an expression means; as in SQL, case does not matter."""
    if name in names:
        return name
    matches = [column for column in names if column.lower() == name.lower()]
    if len(matches) == 1:
        return matches[0]
    raise no_column(
        file, name, names, "" if name == value.text else f" (in {value.key}: {value.text!r})"
    )
