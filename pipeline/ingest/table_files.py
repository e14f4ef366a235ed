"""Long tables in Parquet or CSV files: finding the files, cutting them into pieces, reading one.

A piece is what one task holds in memory: some row groups of a Parquet file, a range of bytes of
a CSV file. Nothing here depends on how the pieces are scheduled.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import has_magic
from typing import Any, BinaryIO

import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from fsspec.utils import read_block

from ..errors import DataError
from ..storage.urls import filesystem, normalize_url

PIECE_BYTES = 2**25  # of Parquet values, decoded
CSV_PIECE_BYTES = 2**25  # of text
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz")
Source = str | os.PathLike[str]

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
FOOTERS_AT_ONCE = 16


@dataclass(frozen=True)
class Columns:
    """The columns that are read: the bag's id, the coordinates, the targets."""

    id: str
    coordinates: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Each column once."""
        return list(dict.fromkeys((self.id, *self.coordinates, *self.targets)))


def is_parquet(file: str) -> bool:
    """Whether a table file is Parquet; the others are CSV."""
    return file.lower().endswith(PARQUET)


@dataclass(frozen=True)
class Piece:
    """A part of one file that is read at once.

    ``start:stop`` are row groups of a Parquet file or bytes of a CSV file; ``stop`` None is the
    whole of a compressed one. ``n_rows`` is exact for Parquet and an estimate for CSV.
    """

    file: str
    file_index: int
    start: int
    stop: int | None
    n_rows: int
    header: bytes = b""


@dataclass(frozen=True)
class Table:
    """One long table: its columns, files, and pieces in the order of the rows."""

    columns: Columns
    files: tuple[str, ...]
    pieces: tuple[Piece, ...]


def open_table(sources: Source | Sequence[Source], columns: Columns) -> Table:
    """Find the files and look at their headers; no rows are read.

    Parameters
    ----------
    sources : path, or sequence of them
        Paths, URLs or globs of ``.parquet``, ``.pq``, ``.csv`` and ``.csv.gz`` files, or
        directories of Parquet files. Globs and directories are taken in the order of the names.
    columns : Columns
        What every file must have.

    Raises
    ------
    DataError
        No file matches, a file is there twice, is of no known kind or can not be read, or lacks
        a column.
    """
    files = find_files(sources)
    with ThreadPoolExecutor(FOOTERS_AT_ONCE, thread_name_prefix="footers") as pool:
        cut = list(pool.map(lambda file: _cut(file, columns), files))
    pieces = [replace(p, file_index=i) for i, parts in enumerate(cut) for p in parts]
    return Table(columns, tuple(files), tuple(pieces))


def find_files(sources: Source | Sequence[Source]) -> list[str]:
    """The files that paths, globs and directories stand for; see `open_table`."""
    given = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    files = [file for source in given for file in _matches(normalize_url(source))]
    if not files:
        raise DataError("no table files given")
    seen: set[str] = set()
    for file in files:
        if not file.lower().endswith(PARQUET + CSV):
            raise DataError(f"{file}: not a table; expected one of {', '.join(PARQUET + CSV)}")
        if file in seen:
            raise DataError(f"{file}: given twice; its points would be doubled")
        seen.add(file)
    return files


def read_piece(piece: Piece, columns: Columns) -> pa.Table:
    """The columns of one piece, as stored.

    In CSV the id and the targets are text, and so are coordinates that do not all parse as
    numbers; empty fields, NA, N/A, NaN, nan, null and NULL are nulls.

    Raises
    ------
    DataError
        The file can not be read; names it.
    """
    with reading(piece.file):
        if is_parquet(piece.file):
            with fsspec.open(piece.file, "rb") as file:
                groups = range(piece.start, piece.stop or 0)
                table = pa.parquet.ParquetFile(file).read_row_groups(groups, columns=columns.names)
        else:
            table = _read_csv(piece, columns)
    return table.combine_chunks()


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Whatever goes wrong reading a file becomes a DataError that names it."""
    try:
        yield
    except DataError:
        raise
    except (OSError, EOFError, ValueError, zlib.error, pa.ArrowException) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{file}: can not be read ({reason})") from error


def _matches(source: str) -> list[str]:
    fs, path = filesystem(source)
    with reading(source):
        if fs.isdir(path):
            found = sorted(str(match) for match in fs.find(path) if _is_part(str(match), path))
        elif fs.exists(path):
            found = [path]
        else:
            matches = fs.glob(path) if has_magic(path) else []
            found = sorted(str(match) for match in matches if not fs.isdir(match))
    if not found:
        raise DataError(f"{source}: no files found")
    return [normalize_url(fs.unstrip_protocol(match)) for match in found]


def _is_part(file: str, directory: str) -> bool:
    inside = file.removeprefix(directory).split("/")
    return is_parquet(file) and not any(name[:1] in ("_", ".") for name in inside)


def _cut(file: str, columns: Columns) -> list[Piece]:
    with reading(file):
        if is_parquet(file):
            return _cut_parquet(file, columns)
        return _cut_csv(file, columns)


def _cut_parquet(file: str, columns: Columns) -> list[Piece]:
    with fsspec.open(file, "rb") as handle:
        parquet = pa.parquet.ParquetFile(handle)
        _check_columns(file, parquet.schema_arrow.names, columns)
        rows = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
    limit = max(1, PIECE_BYTES // (8 * len(columns.names)))
    pieces: list[Piece] = []
    start = 0
    for stop in range(1, len(rows) + 1):
        if stop == len(rows) or sum(rows[start : stop + 1]) > limit:
            pieces.append(Piece(file, 0, start, stop, sum(rows[start:stop])))
            start = stop
    return pieces


def _cut_csv(file: str, columns: Columns) -> list[Piece]:
    with _open_csv(file) as handle:
        header = handle.readline()
        sample = handle.read(2**16)
    if not header.endswith(b"\n"):
        header += b"\n"
    names = pa.csv.read_csv(pa.BufferReader(header)).column_names
    _check_columns(file, names, columns)
    fs, path = filesystem(file)
    size = int(fs.size(path))
    a_row = max(1, len(sample) // max(1, sample.count(b"\n")))
    if file.lower().endswith(".gz"):
        return [Piece(file, 0, 0, None, size // a_row, header)]
    return [
        Piece(file, 0, start, stop, max(1, (stop - start) // a_row), header)
        for start in range(0, size, CSV_PIECE_BYTES)
        for stop in [min(size, start + CSV_PIECE_BYTES)]
    ]


def _check_columns(file: str, names: Sequence[str], columns: Columns) -> None:
    for name in columns.names:
        if name not in names:
            raise DataError(
                f"{file}: no column {name!r}; there are {list(names)} (all files of a table need "
                "the same columns)"
            )
        if list(names).count(name) > 1:
            raise DataError(f"{file}: two columns are called {name!r}; rename one")


def _open_csv(file: str) -> Any:
    return fsspec.open(file, "rb", compression="infer")


def _read_csv(piece: Piece, columns: Columns) -> pa.Table:
    with _open_csv(piece.file) as handle:
        text = _block(piece, handle)
    quoted = text.count(b'"')
    if quoted % 2:
        raise DataError(
            f"{piece.file}: a quote is not closed, or a quoted field holds a line break where the "
            "file is cut into pieces; save the table as Parquet"
        )
    try:
        return _parse_csv(text, columns, pa.float64(), quoted > 0)
    except pa.ArrowInvalid as error:
        if "conversion error" not in str(error):
            raise
        return _parse_csv(text, columns, pa.string(), quoted > 0)


def _block(piece: Piece, handle: BinaryIO) -> bytes:
    if piece.stop is None:
        return handle.read()
    text: bytes = read_block(handle, piece.start, piece.stop - piece.start, delimiter=b"\n")
    return text if piece.start == 0 else piece.header + text


def _parse_csv(text: bytes, columns: Columns, coordinate: pa.DataType, quoted: bool) -> pa.Table:
    types = dict.fromkeys(columns.coordinates, coordinate)
    types |= dict.fromkeys((columns.id, *columns.targets), pa.string())
    return pa.csv.read_csv(
        pa.BufferReader(text),
        parse_options=pa.csv.ParseOptions(newlines_in_values=quoted),
        convert_options=pa.csv.ConvertOptions(
            include_columns=columns.names,
            column_types=types,
            null_values=list(MISSING),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
