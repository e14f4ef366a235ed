"""Folders in which each file is a bag, and tables of the files' targets."""

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

from ...core import UrlOrPath
from ...core.errors import DataError, ParameterError, closest, refuse_exhaustion, shown
from ...data.bags.frames import arrow_reader
from ...data.storage.hidden import visible_files
from ...data.storage.urls import filesystem, normalize_url
from ..tables import plain_reader, read_labels, spill_folder, write_parquet
from .frames import arrow_errors


def bag_files(sources: UrlOrPath | Sequence[UrlOrPath], endings: Sequence[str]) -> dict[str, str]:
    """Return the URLs of files by bag id, which is the name of the file without the ending.

    Parameters
    ----------
    sources : str, path or list of str
        Folders, globs or files, at any URL that fsspec supports. Folders are searched recursively,
        without hidden files. A file that is named itself is read even if it is hidden.
    endings : sequence of str
        Endings of the files that are read, in lower case.

    Raises
    ------
    DataError
        If no file is found, or two files have the same name.
    """
    patterns = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    urls: dict[str, str] = {}
    for source in map(normalize_url, patterns):
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
            if urls.setdefault(name, url) != url:
                raise DataError(f"{url}: has the same name as {urls[name]}; rename one")
    if not urls:
        raise DataError(f"{shown(sources)}: no files found; expected {', '.join(endings)}")
    return dict(sorted(urls.items()))


@contextmanager
def reading_bag(url: str, what: str) -> Iterator[IO[bytes]]:
    """Yield an open file; re-raise errors of reading as a DataError that names the file."""
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


def check_finite_rows(points: NDArray[Any], url: str, names: Sequence[str]) -> None:
    """Raise DataError for the first row with a number that is not finite.

    ``names`` are the names of the columns.
    """
    if np.isfinite(points.sum(dtype=np.float64)):  # NaN and infinity stay in a sum
        return
    finite = np.isfinite(points)
    if not finite.all():  # and not only their sum
        row, column = map(int, np.unravel_index(np.argmin(finite), finite.shape))
        value = points[row, column]
        raise DataError(f"{url}: row {row}, {names[column]} is {value}, not a finite number")


def targets_of_files(
    ids: Sequence[str],
    table: UrlOrPath | Mapping[str, Any] | pd.DataFrame | None,
    id_column: str,
    targets: Sequence[str] | None,
    stored: Collection[str] = (),
    target_types: Mapping[str, str] | None = None,
    read: Mapping[str, Any] | None = None,
) -> Mapping[str, Any] | None:
    """Return the targets of bags, in their order; a bag without a row is not labelled.

    Rows of bags that are already ``stored`` are ignored. The table is read as by `TableIngest`; ids
    are the texts as written.

    Raises
    ------
    DataError
        If the table cannot be read, lacks a column, or has a row that cannot be used.
    ParameterError
        If a row names a missing file, two rows name one file, or targets are given without a table.
    """
    if table is None:
        for name, value in (("targets", targets), ("read", read)):
            if value:
                raise ParameterError(
                    f"{name} is given, but no target_table; give the table of them"
                )
        return None
    types = target_types or {}
    if isinstance(table, (str, os.PathLike)):
        rows = read_labels(table, id_column, targets, types, read)
    else:
        with spill_folder() as folder, _renamed(folder):
            path = _copy(table, f"{folder}/labels.parquet")
            rows = read_labels(path, id_column, targets, types, None)
        places = [place.replace(path, "target_table") for place in rows.places]
        rows = rows._replace(places=places)
    known, positions = {*ids, *stored}, dict[str, int]()
    for row, key in enumerate(rows.ids):
        name = key if key in known else PurePosixPath(key).stem
        if name not in known or name in positions:
            what = "no file has this name" if name not in known else "it has a row already"
            hint = closest(name, sorted(known)) if name not in known else ""
            raise ParameterError(f"{rows.places[row]}: {id_column} {key!r}: {what}{hint}")
        positions[name] = row
    order = np.array([positions.get(name, -1) for name in ids], dtype=np.int64)
    columns = {}
    for name, values in rows.targets.items():
        none = np.array([None if values.dtype == object else np.nan], dtype=values.dtype)
        columns[name] = np.append(values, none)[order]
    return columns


@contextmanager
def _renamed(folder: str) -> Iterator[None]:
    """Re-raise errors with the name of the table instead of its temporary file."""
    try:
        yield
    except DataError as error:
        raise DataError(str(error).replace(f"{folder}/labels.parquet", "target_table")) from error


def _copy(table: Any, path: str) -> str:
    """Write a table in memory as a Parquet file; return its path."""
    with arrow_errors("target_table"):
        reader = None
        if isinstance(table, Mapping):
            table = pd.DataFrame(table)
        if hasattr(table, "columns"):
            reader = arrow_reader(table)
        if reader is None:
            raise DataError(f"target_table is {shown(table)}; expected a table, or the path of one")
        return write_parquet(plain_reader(reader), path)
