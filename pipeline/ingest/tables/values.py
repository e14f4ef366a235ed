"""Coordinates and targets: columns of a table, or expressions of DuckDB over its columns.

An expression is read as a tree, checked node by node, and written anew with its columns numbered.
So nothing of its text reaches DuckDB but operators, functions of a row, and constants.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import duckdb

from ...errors import DataError, ParameterError, closest
from .reading import ReadOptions

LOCKED: dict[
    str, str | bool | int | float | list[str]
] = {  # nothing is downloaded, and what is installed is left alone
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
NODES = (  # of a tree; others are subqueries, windows, parameters, lambdas, stars
    *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION"),
    *("CONSTANT", "FUNCTION", "OPERATOR", "TYPE"),
)
MACROS = ("nullif", "if", "fmod", "fdiv", "date_add", "days_in_month", "split_part")
FUNCTIONS = """
    SELECT function_name FROM duckdb_functions() GROUP BY function_name
    HAVING bool_and(function_type = 'scalar' AND stability = 'CONSISTENT')
"""

Given = Sequence[str | Mapping[str, str]] | Mapping[str, str] | None
"""Coordinates or targets as `TableIngest` takes them."""

Input = tuple[str, bool]
"""A column, and whether an expression reads it: then it has the type it has in the file."""


@dataclass(frozen=True)
class Value:
    """A coordinate or a target.

    ``key`` and ``text`` are the parameter and what was written there, ``name`` is what it is called
    in the store. ``sql`` is an expression over inputs ``v0``, ``v1``, … of `Columns`; empty for a
    column. ``inputs`` are those that it reads.
    """

    key: str
    name: str
    text: str
    inputs: tuple[Input, ...] = ()
    sql: str = ""


@dataclass(frozen=True)
class Columns:
    """What is read of a table; all but ``types`` as in `TableIngest`.

    ``types`` are SQL's of the columns of CSV that expressions read.
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

    @property
    def inputs(self) -> list[Input]:
        """All inputs, once each; targets that are columns are none."""
        expressions = [one for one in self.targets if one.sql]
        return list(dict.fromkeys(i for v in (*self.coordinates, *expressions) for i in v.inputs))

    @property
    def names(self) -> list[str]:
        """All columns that are read, once each."""
        values = (*self.coordinates, *self.targets)
        return list(dict.fromkeys((*self.ids, *(name for v in values for name, _ in v.inputs))))

    @property
    def of_coordinates(self) -> list[str]:
        """The columns that the coordinates are made of, once each."""
        return list(dict.fromkeys(name for one in self.coordinates for name, _ in one.inputs))


def values_of(key: str, given: Given) -> tuple[Value, ...]:
    """Return coordinates or targets as they were written.

    ParameterError for a name that is empty or given twice.
    """
    pairs: list[tuple[str, str]] = []
    for one in [given] if isinstance(given, Mapping) else given or ():
        pairs += one.items() if isinstance(one, Mapping) else [(one, one)]
    if any("" in pair for pair in pairs):
        raise ParameterError(f"{key}: '' names nothing; give a column or an expression")
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ParameterError(f"{key} is {names}; expected a list of different names")
    return tuple(Value(key, name, text, ((text, False),)) for name, text in pairs)


def names_of(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of one column, of several or of none."""
    return (columns,) if isinstance(columns, str) else tuple(map(str, columns or ()))


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def no_column(file: str, name: str, names: Sequence[str], where: str = "") -> DataError:
    """Return the error of a column that a file does not have."""
    return DataError(
        f"{file}: no column {name!r}{closest(name, names)}{where}; there are {list(names)} (all "
        "files of a table need the same columns)"
    )


def read_expressions(columns: Columns, names: Sequence[str], file: str) -> Columns:
    """Return the columns with all texts read that are not the ``names`` of a file's columns.

    Raises
    ------
    DataError
        An expression has a column that the file does not have.
    ParameterError
        What is no expression of one row: names the key and the text.
    """
    for name in columns.ids:
        if name not in names:
            raise no_column(file, name, names)
    values = (*columns.coordinates, *columns.targets)
    trees = {v: _tree_of(v, names, file) for v in values if v.text not in names}
    if not trees:
        return columns
    known: dict[Value, list[dict[str, Any]]] = {}
    for value, tree in trees.items():
        known[value] = [node for node in _nodes(tree) if node["class"] == "COLUMN_REF"]
        for node in known[value]:
            node["column_names"][0] = _match(node["column_names"][0], names, value, file)
    read = {
        v: replace(v, sql="?", inputs=tuple((node["column_names"][0], True) for node in found))
        for v, found in known.items()
    }
    groups = [tuple(read.get(v, v) for v in of) for of in (columns.coordinates, columns.targets)]
    columns = replace(columns, coordinates=groups[0], targets=groups[1])
    for found in known.values():
        for node in found:
            node["column_names"][0] = f"v{columns.inputs.index((node['column_names'][0], True))}"
    sqls = {read[v]: replace(read[v], sql=_written(tree)) for v, tree in trees.items()}
    groups = [tuple(sqls.get(v, v) for v in of) for of in groups]
    return replace(columns, coordinates=groups[0], targets=groups[1])


def typed_vectors(columns: Columns, vectors: Mapping[str, Sequence[str]]) -> Columns:
    """Return the columns; those of coordinates that hold vectors are read with their type."""
    read = [
        replace(one, inputs=((one.text, True),)) if one.text in vectors else one
        for one in columns.coordinates
    ]
    return replace(columns, coordinates=tuple(read))


def with_vectors(columns: Columns, vectors: Mapping[str, Sequence[str]]) -> Columns:
    """Return the columns with a coordinate per entry of each vector.

    ``vectors`` has the names of the entries by column; they are `typed_vectors` already. The first
    entry cannot be computed of a vector of another length.
    """
    made: list[Value] = []
    for one in columns.coordinates:
        if one.text not in vectors:
            made.append(one)
            continue
        vector, names = f"v{columns.inputs.index((one.text, True))}", vectors[one.text]
        for j, name in enumerate(names):
            field_name = name.removeprefix(f"{one.text}.")
            is_record = field_name != name
            entry = f"struct_extract({vector}, {quoted(field_name)})"
            entry = entry if is_record else f"{vector}[{j + 1}]"
            if not (j or is_record):
                text = f"'a vector of ' || len({vector}) || ' numbers, not {len(names)}'"
                told = f"CAST({text} AS DOUBLE)"  # error() may not stand in TRY
                is_long = f"{vector} IS NULL OR len({vector}) = {len(names)}"
                entry = f"CASE WHEN {is_long} THEN {entry} ELSE {told} END"
            made.append(replace(one, name=name, sql=entry))
    return replace(columns, coordinates=tuple(made))


def _tree_of(value: Value, names: Sequence[str], file: str) -> dict[str, Any]:
    """Return the tree of an expression that reads nothing but columns of a row."""
    found, empty = (_parsed(text) for text in (value.text, "0"))
    told = f"{value.key}: {value.text!r}"
    if found["error"] and not found["error_message"].startswith("Only SELECT"):
        hint = closest(value.text, names)
        what = f"is neither a column of {file}{hint} nor an expression ({found['error_message']})"
        raise ParameterError(f"{told} {what}; columns are {list(names)}")
    [expected] = empty["statements"]
    statements = found.get("statements", [])
    nodes = [one["node"].get("select_list", []) for one in statements]
    plain = [{**one["node"], "select_list": expected["node"]["select_list"]} for one in statements]
    if plain != [expected["node"]] or len(nodes[0]) != 1 or nodes[0][0]["alias"]:
        raise ParameterError(f"{told} is not one expression: write no ';', ',', FROM or WHERE")
    [[tree]] = nodes
    for part in _nodes(tree):
        kind, function = part["class"], str(part.get("function_name", "")).lower()
        if kind not in NODES:
            raise ParameterError(
                f"{told} has a {kind.lower().replace('_', ' ')}; expected columns, constants, "
                "operators and functions of one row"
            )
        if kind == "FUNCTION" and (function not in _functions() or part["catalog"]):
            raise ParameterError(
                f"{told} calls {function!r}{closest(function, sorted(_functions()))}, which is no "
                "function of one row that always gives the same"
            )
    return tree


def _parsed(text: str) -> dict[str, Any]:
    with duckdb.connect(config=LOCKED) as connection:
        connection.execute("SELECT json_serialize_sql(?)", [f"SELECT {text}"])
        [answer] = connection.fetchone() or ("",)
    found: dict[str, Any] = json.loads(answer)
    return found


def _written(tree: dict[str, Any]) -> str:
    """Return a tree as SQL."""
    whole = _parsed("0")
    whole["statements"][0]["node"]["select_list"] = [tree]
    with duckdb.connect(config=LOCKED) as connection:
        connection.execute("SELECT json_deserialize_sql(?)", [json.dumps(whole)])
        [text] = connection.fetchone() or ("",)
    return str(text).removeprefix("SELECT ")


@cache
def _functions() -> frozenset[str]:
    """Return the functions of one row that give the same in each pass and on each worker."""
    with duckdb.connect(config=LOCKED) as connection:
        found = connection.execute(FUNCTIONS).fetchall()
    return frozenset(name.lower() for (name,) in found) | {*MACROS}


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
    found = [one for one in names if one.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    raise no_column(
        file, name, names, "" if name == value.text else f" (in {value.key}: {value.text!r})"
    )
