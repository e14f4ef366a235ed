"""The columns of a table that are read, and the coordinates that are made of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..bags import BagStore
from ..errors import ParameterError
from ..params import check_number
from .csv_dialects import CsvDialect

WAVES = ("cos", "sin")  # as DuckDB calls them


@dataclass(frozen=True)
class Coordinate:
    """A coordinate of the points, made of a column: its numbers as they are."""

    column: str

    @property
    def name(self) -> str:
        """What it is called in the store."""
        return self.column

    def sql(self, value: str, number: str) -> str:
        """Return the coordinate in SQL; ``value`` is the cell, and ``number`` what it holds."""
        return number


@dataclass(frozen=True)
class Wave(Coordinate):
    """One of the two coordinates of a number that repeats after a period, as hours after 24."""

    function: str
    period: float

    @property
    def name(self) -> str:
        """See `Coordinate`."""
        return f"{self.function} {self.column}/{self.period:g}"

    def sql(self, value: str, number: str) -> str:
        """See `Coordinate`."""
        turns = f"(({number}) % {self.period!r}) / {self.period!r}"  # the remainder is exact
        wave = f"{self.function}({2 * math.pi!r} * {turns})"
        # of an infinite number DuckDB would refuse it in words that name no row
        return f"CASE WHEN isfinite({number}) THEN {wave} ELSE {number} END"


@dataclass(frozen=True)
class Indicator(Coordinate):
    """The coordinate of one label of a category: 1 where a cell has it, else 0."""

    label: str
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """See `Coordinate`."""
        return f"{self.column} = {self.label}"

    def sql(self, value: str, number: str) -> str:
        """See `Coordinate`; no number for a label that is none of ``labels``."""
        text, label = f"CAST({value} AS VARCHAR)", quoted(self.label)
        known = ", ".join(map(quoted, self.labels))
        return f"CASE WHEN {text} IN ({known}) THEN CAST({text} = {label} AS DOUBLE) END"


@dataclass(frozen=True)
class Columns:
    """The columns that are read: those of the bag's id, the coordinates, the targets.

    ``dates``, ``booleans``, ``decimal``, ``missing``, ``missing_values``, ``csv``, ``min_points``,
    ``target_types`` and ``target_rules`` are those of `TableIngest`.
    """

    ids: tuple[str, ...]
    coordinates: tuple[Coordinate, ...] = ()
    targets: tuple[str, ...] = ()
    target_types: Mapping[str, str] = field(default_factory=dict)
    target_rules: Mapping[str, str] = field(default_factory=dict)
    dates: tuple[str, ...] = ()
    booleans: tuple[str, ...] = ()
    decimal: str = "."
    missing: str = "refuse"
    min_points: int = 1
    missing_values: tuple[str, ...] = ()
    csv: CsvDialect = field(default_factory=CsvDialect)

    @property
    def of_coordinates(self) -> list[str]:
        """The columns that the coordinates are made of, each once."""
        return list(dict.fromkeys(one.column for one in self.coordinates))

    @property
    def names(self) -> list[str]:
        """Each column once."""
        return list(dict.fromkeys((*self.ids, *self.of_coordinates, *self.targets)))

    @property
    def texts(self) -> set[str]:
        """The columns of coordinates that may be text."""
        categories = (one.column for one in self.coordinates if isinstance(one, Indicator))
        return {*self.dates, *self.booleans, *categories}


def coordinates_of(
    columns: Sequence[str],
    cyclic: Mapping[str, float] | None,
    categories: Mapping[str, Sequence[str | int]] | None,
) -> tuple[Coordinate, ...]:
    """Return the coordinates that columns become, as `TableIngest` says."""
    made: list[Coordinate] = []
    for column in columns:
        if column in (periods := cyclic or {}):
            made += [Wave(column, function, float(periods[column])) for function in WAVES]
        elif column in (kinds := categories or {}):
            labels = tuple(map(str, kinds[column]))
            made += [Indicator(column, label, labels) for label in labels]
        else:
            made.append(Coordinate(column))
    return tuple(made)


def names_of(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of one column, of several or of none."""
    if columns is None:
        return ()
    return (columns,) if isinstance(columns, str) else tuple(map(str, columns))


def check_made(
    columns: Sequence[str],
    cyclic: Mapping[str, float] | None,
    categories: Mapping[str, Sequence[str | int]] | None,
    texts: Mapping[str, Sequence[str] | None],
) -> None:
    """Raise ParameterError for what is no column, period or list of labels."""
    for parameter, names in texts.items():
        for name in names_of(names):
            if name not in columns:
                raise ParameterError(f"{parameter} has {name!r}, which is no coordinate")
    for parameter, given in (("cyclic", cyclic or {}), ("categories", categories or {})):
        for column in given:
            if column not in columns:
                raise ParameterError(f"{parameter} has {column!r}, which is no coordinate")
            if parameter == "cyclic" and column in (categories or {}):
                raise ParameterError(f"{column!r} is in cyclic and in categories: choose one")
    for column, period in (cyclic or {}).items():
        check_number(f"cyclic of {column!r}", period, above=0)
    for column, kinds in (categories or {}).items():
        labels = list(map(str, kinds))
        if isinstance(kinds, str) or len(labels) < 2 or len(set(labels)) < len(labels):
            what = "a list of two different labels or more"
            raise ParameterError(f"categories of {column!r} are {kinds!r}; expected {what}")


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def check_fits(
    store: BagStore,
    coordinates: Sequence[Coordinate],
    responses: Sequence[Coordinate] | None,
    targets: Sequence[str],
    target_types: Mapping[str, str],
) -> None:
    """Raise ParameterError for tables that are unlike the store that they are appended to."""
    given: dict[str, tuple[object, object]] = {
        "coordinates": (len(coordinates), store.n_dims),
        "response_coordinates": (len(responses or ()), store.response_dims or 0),
        "targets": (list(targets), list(store.target_names)),
    }
    for name, made in (("coordinates", coordinates), ("response_coordinates", responses)):
        if store.meta.source.get(name):
            given[name] = [one.name for one in made or ()], store.meta.source[name]
    optional = {"targets": not targets, "response_coordinates": responses is None}
    for name, (found, expected) in given.items():
        if found != expected and not optional.get(name):
            raise ParameterError(f"{name} are {found}; {store.url} has {expected}")
    for name, kind in target_types.items():
        if (kind == "class") != (name in store.meta.class_names):
            raise ParameterError(f"target_types of {name!r}: {store.url} has it otherwise")


Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
"""The files of a table as they are given."""


def provenance(
    sources: tuple[Sources, Sources, Sources],
    coordinates: Sequence[Coordinate],
    of_responses: Sequence[Coordinate],
) -> dict[str, Any]:
    """Return where bags come from, for the store; of points, targets and responses the files."""
    points, targets, responses = map(_as_given, sources)
    names = [one.name for one in coordinates]
    found = {"job": "ingest", "from": [points, targets], "coordinates": names}
    if responses is None:
        return found
    names = [one.name for one in of_responses]
    return {**found, "responses": responses, "response_coordinates": names}


def _as_given(source: Sources) -> str | list[str] | None:
    """Return paths as they were given, for JSON."""
    if source is None:
        return None
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return [os.fspath(part) for part in source]
