"""Folders of files of which each is a bag, and the table of their targets."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import has_magic
from pathlib import PurePosixPath
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...errors import DataError, ParameterError, closest, refuse_exhaustion, shown
from ...storage import filesystem, normalize_url, visible_files

Source = str | os.PathLike[str]


def bag_files(sources: Source | Sequence[Source], endings: Sequence[str]) -> dict[str, str]:
    """Return the URLs of files by their bags' ids, which are their names without the ending.

    Parameters
    ----------
    sources : str, path or list of str
        Folders, which are searched with all that is in them but hidden files; globs or files; at
        any URL of fsspec. A file that is named is taken, hidden or not.
    endings : sequence of str
        Of the files that are taken, in small letters.

    Raises
    ------
    DataError
        No file is found, or two have the same name.
    """
    given = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    found: dict[str, str] = {}
    for source in map(normalize_url, given):
        fs, path = filesystem(source)
        matches = [path]
        if fs.isdir(path):
            matches = visible_files(map(str, fs.find(path)), path)
        elif has_magic(path) and not fs.exists(path):
            matches = visible_files(map(str, fs.glob(path)), path)
        for match in matches:
            if not match.lower().endswith(tuple(endings)) or not fs.isfile(match):
                continue
            name, url = PurePosixPath(match).stem, normalize_url(fs.unstrip_protocol(match))
            if found.setdefault(name, url) != url:
                raise DataError(f"{url}: has the same name as {found[name]}; rename one")
    if not found:
        raise DataError(f"{shown(sources)}: no files found; expected {', '.join(endings)}")
    return dict(sorted(found.items()))


@contextmanager
def reading_bag(url: str, what: str) -> Iterator[IO[bytes]]:
    """Yield a file that is open; re-raise what reading it raises as a DataError that names it."""
    try:
        fs, path = filesystem(url)
        with fs.open(path, "rb") as file:
            yield file
    except DataError:
        raise
    except Exception as error:  # of HDF5, FlowIO, a network: these have no common base
        refuse_exhaustion(url, error)
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{url}: cannot be read as {what} ({reason})") from error


def check_finite(points: NDArray[Any], url: str, names: Sequence[str]) -> None:
    """Raise DataError for the first row with a number that is not finite.

    ``names`` are those of the columns.
    """
    if np.isfinite(points.sum(dtype=np.float64)):  # NaN and infinity stay in a sum
        return
    for row, column in np.argwhere(~np.isfinite(points))[:1].tolist():
        value = points[row, column]
        raise DataError(f"{url}: row {row}, {names[column]} is {value}, not a finite number")


def targets_of_files(
    ids: Sequence[str],
    table: Source | Mapping[str, Any] | pd.DataFrame | None,
    id_column: str,
    targets: Sequence[str] | None,
    stored: Collection[str] = (),
) -> Mapping[str, Any] | None:
    """Return the targets of bags, in their order; a bag that the table lacks is not labelled.

    Rows of bags that are ``stored`` already have no use.

    Raises
    ------
    DataError
        The table cannot be read, or lacks a column.
    ParameterError
        A row of a file that is not there, or two rows of one; targets without a table.
    """
    if table is None:
        if targets:
            raise ParameterError("targets are given, but no target_table; give the table of them")
        return None
    frame, place = _table(table)
    for name in [id_column, *(targets or ())]:
        if name not in frame:
            names = [str(one) for one in frame.columns]
            hint, there = closest(name, names), shown(names)
            raise DataError(f"{place}: no column {name!r}{hint}; there are {there}")
    keys = frame[id_column].astype(str)
    known, found = {*ids, *stored}, set[str]()
    stems = [name if name in known else PurePosixPath(name).stem for name in keys]
    for row, name in enumerate(stems):
        if name not in known or name in found:
            what = "no file has this name" if name not in known else "it has a row already"
            raise ParameterError(f"{place}, row {row}: {id_column} {keys.iloc[row]!r}: {what}")
        found.add(name)
    frame = frame.drop(columns=id_column).set_axis(stems).reindex(list(ids))
    kept = frame.columns if targets is None else targets
    return {str(name): frame[name].to_numpy() for name in kept}


def _table(table: Source | Mapping[str, Any] | pd.DataFrame) -> tuple[pd.DataFrame, str]:
    if isinstance(table, pd.DataFrame):
        return table, "target_table"
    try:
        if isinstance(table, Mapping):
            return pd.DataFrame(table), "target_table"
        url = normalize_url(table)
        with filesystem(url)[0].open(filesystem(url)[1], "rb") as file:
            is_parquet = url.lower().endswith((".parquet", ".pq"))
            return (pd.read_parquet if is_parquet else pd.read_csv)(file), url
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"target_table {shown(table)} cannot be read ({error})") from error
