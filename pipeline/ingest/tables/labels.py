"""Tables of labels with a row per bag, which fit in memory, read like long tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core import UrlOrPath
from ...core.errors import DataError
from ...execution.progress import silent
from .database import Database
from .engines import SORT_BYTES, LocalEngine, spill_folder
from .files import UNTYPED, TableFile, open_table
from .lines import lines_of
from .reading import ReadOptions
from .scans import scans_of
from .surveys import CheckedTable, check_table, find_labels, sort_labels
from .values import Columns, values_of


class LabelRows(NamedTuple):
    """Rows of a table of labels in their order.

    ``ids`` are the texts as written. ``targets`` maps each name to numbers, or to texts and None.
    ``places`` are the names of the rows in messages.
    """

    ids: list[str]
    targets: dict[str, NDArray[Any]]
    places: list[str]


def read_labels(
    table: UrlOrPath,
    id_column: str,
    targets: Sequence[str] | None,
    target_types: Mapping[str, str],
    read: Mapping[str, Any] | None,
) -> LabelRows:
    """Return the rows of a table of labels.

    Parameters
    ----------
    table : str or path
        File of any kind that `TableIngest` reads. A file with another ending is read as CSV.
    id_column : str
    targets : sequence of str, optional
        Target columns. None: all other columns that have a name.
    target_types : mapping from target to {"number", "class"}
        Known types of targets. The types of other targets follow from the values.
    read : mapping, optional
        As for `TableIngest`.

    Raises
    ------
    DataError
        If the file cannot be read or lacks a column, or if a row has no id or a target that cannot
        be used. The message names the row.
    """
    options = ReadOptions.of(read)
    as_written = replace(options, nullstr=("",))  # a file may be called NA
    with spill_folder() as spill, Database(SORT_BYTES, spill) as database:
        columns = Columns((id_column,), read=as_written)
        columns, files = open_table(table, columns, f"{spill}/labels", is_any=True)
        file = files[0]
        if len(files) > 1:
            raise DataError(f"target_table {table} is {len(files)} files; give one of them")
        with _without_ids():
            ids = _checked(columns, files, database)
            [(scan, starts)] = ids.scans()
            rows = scan.values(starts)
            query = f"SELECT CAST(id AS VARCHAR) AS id FROM ({rows}) ORDER BY row"  # noqa: S608
            names = [row["id"] for row in database.fetch(query)]
            others = [name for name in file.names if name not in ("", id_column)]
            values = values_of("targets", others if targets is None else targets)
            types = {n: kind for n, kind in target_types.items() if n in {v.name for v in values}}
            columns = Columns((), targets=values, target_types=types, read=options)
            columns, files = open_table(table, columns, f"{spill}/labels", is_any=True)
            types |= dict.fromkeys(_zero_padded(columns, files, database) - {*types}, "class")
            columns = replace(columns, target_types=types)
            target_values = _targets(_checked(columns, files, database), database)
        lines = lines_of(file, options)
        numbered = [f"{file.url}, row {i}" for i in range(len(names))]
        places = [f"{p} (line {n})" for p, n in zip(numbered, lines, strict=False)] or numbered
        return LabelRows(names, target_values, places)


def _checked(columns: Columns, files: Sequence[TableFile], database: Database) -> CheckedTable:
    surveys = LocalEngine(database).survey(columns, files, silent)
    return check_table(columns, surveys, database)


def _zero_padded(columns: Columns, files: Sequence[TableFile], database: Database) -> set[str]:
    """Return the CSV targets with whole numbers such as 007, which are names unlike 7."""
    [scan] = scans_of(columns, files)
    of_text = [
        (j, target.name)
        for j, target in enumerate(columns.targets)
        if scan.kind_of(target) == UNTYPED
    ]
    if not of_text:
        return set()
    asked = [f"coalesce(bool_or(regexp_full_match(y{j}, '0[0-9]+')), false)" for j, _ in of_text]
    [row] = database.fetch(f"SELECT {', '.join(asked)} FROM ({scan.values([0])})")  # noqa: S608
    return {name for (_, name), is_padded in zip(of_text, row.values(), strict=True) if is_padded}


def _targets(table: CheckedTable, database: Database) -> dict[str, NDArray[Any]]:
    """Return the values of each target: numbers, or texts and None."""
    [(scan, starts)] = table.scans()
    texts = table.text_targets()
    for name, labels in find_labels(scan, texts, database).items() if texts else ():
        sort_labels(name, [labels], table.columns.target_types)  # refuses what is no class
    targets = [*enumerate(table.columns.targets)]
    if not targets:
        return {}
    asked = [
        f"{f'nullif({scan.label(j)}, {chr(39) * 2})' if target.name in texts else f'z{j}'} AS t{j}"
        for j, target in targets
    ]
    query = f"SELECT {', '.join(asked)} FROM ({scan.values(starts)}) ORDER BY row"  # noqa: S608
    rows = database.fetch(query)
    kinds = {target.name: object if target.name in texts else np.float64 for _, target in targets}
    return {
        target.name: np.array([row[f"t{j}"] for row in rows], dtype=kinds[target.name])
        for j, target in targets
    }


@contextmanager
def _without_ids() -> Iterator[None]:
    """Remove the empty bag ids from messages: the targets are read without ids."""
    try:
        yield
    except DataError as error:
        raise DataError(str(error).replace(": bag '': ", ": ")) from error
