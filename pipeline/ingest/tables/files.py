"""The files of tables: how they are found, and what their columns hold.

No rows are read here, only the header of a CSV file and the footer of a Parquet file.
"""

from __future__ import annotations

import csv
import errno
import filecmp
import logging
import os
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from glob import has_magic
from itertools import accumulate, pairwise, takewhile
from typing import IO
from urllib.parse import quote, unquote

import fsspec
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
from fsspec import AbstractFileSystem

from ...core import UrlOrPath
from ...core.errors import DataError
from ...data.storage.files import check_local
from ...data.storage.hidden import visible_files
from ...data.storage.urls import filesystem, local_path, normalize_url, place_of
from .arrow_files import COPIED, JSON, copy_as_parquet
from .bytes import DuckFiles
from .reading import COMPRESSED, OTHER_ENCODING, UNPACK
from .values import Columns, inputs_of, no_column, read_expressions, spread

logger = logging.getLogger(__name__)

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_KINDS = PARQUET + COPIED + CSV
HEADERS_AT_ONCE = 16  # files: object stores take some 100 ms to answer
ROWS_TO_MEASURE = 16  # read at a time until one has a vector: a row may be a slide of 100,000
SAMPLE_BYTES = 2**16  # part of a CSV file from which the length of its rows is estimated
# DuckDB plans each column of text: 3,000 took 29 s and 1.1 GiB, 9,000 more than 190 s
MAX_TEXT_COORDINATES = 4_000
MAX_HEADER_BYTES = 2**26  # names, in a file with very many columns

# In Thrift's compact form a header begins with kind, size and size compressed, each 0x15 ("the
# next field, an integer") and a variable length of bytes; the checksum is a field of its own.
PAGE_CHECKSUM = re.compile(rb"(?:\x15[\x80-\xff]*[\x00-\x7f]){3}\x15")

UNTYPED = "csv"
_LOGS = {"Delta Lake": "_delta_log", "Hudi": ".hoodie"}  # folders with the versions of a table
_BEGINNING = 4096  # bytes of a file that are compared with those of others of its size
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what Hive calls the folder of rows without one
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("halffloat", "float", "double")
_NUMBERS = (*INTEGERS, *FLOATS)  # and decimals, which have digits in brackets
UUID = "extension<arrow.uuid>"
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # of durations
_MOMENTS = ("date", "time", "duration")  # beginnings of Arrow's names of times and durations
TEXTS = ("string", "large_string", "string_view")


@dataclass(frozen=True)
class TableFile:
    """One file of a table, or a piece of one that a worker reads at once.

    Attributes
    ----------
    index : int
        Position of the file in its table.
    names, types : tuple of str
        Names of all columns in order, and Arrow's names of their types. For lists, the types of the
        items; for CSV, `UNTYPED`.
    n_rows : int
        Number of rows: exact for Parquet, an estimate for CSV. For columns of lists, the number of
        items of all rows.
    groups : tuple of int
        Number of rows in each row group of a Parquet file.
    has_checksums : bool
        Whether the pages of a Parquet file have checksums; Spark and parquet-java write them.
    lists : mapping from str to int
        Columns that are lists, and their numbers of items. After `_fit` only coordinates; each row
        is then a bag.
    vectors : mapping from str to tuple of str
        Columns whose lists hold vectors or records, and the names of the entries.
    parts : tuple of (str, str or None)
        Columns made from the names of folders, such as st=JFK, and their value, which holds for all
        rows; None if the value is missing.
    claims : tuple of (str, str or None)
        As ``parts``, for columns that the file has, too: every row must have the folder's value.
    copy : str
        Parquet file with the rows of an Arrow file; empty for other files.
    start, stop : int
        Range of the piece: rows of a Parquet file, bytes of a CSV file. ``stop`` None is the end of
        the file.
    """

    url: str
    index: int
    names: tuple[str, ...]
    types: tuple[str, ...]
    n_rows: int
    n_bytes: int
    groups: tuple[int, ...] = ()
    has_checksums: bool = False
    lists: Mapping[str, int] = field(default_factory=dict)
    delimiter: str = ","
    can_be_cut: bool = True
    vectors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parts: tuple[tuple[str, str | None], ...] = ()
    claims: tuple[tuple[str, str | None], ...] = ()
    copy: str = ""
    start: int = 0
    stop: int | None = None

    def type_of(self, name: str) -> str:
        """Return Arrow's name of a column's type; `UNTYPED` for a column made from folder names."""
        return self.types[self.positions[name]] if name in self.positions else UNTYPED

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of the first column of each name: files may have thousands of columns."""
        return {name: j for j, name in reversed([*enumerate(self.names)])}

    @property
    def is_parquet(self) -> bool:
        """Whether this is a Parquet file, or has a Parquet copy; all other files are CSV."""
        return bool(self.copy) or self.url.lower().endswith(PARQUET)

    @property
    def is_gzip(self) -> bool:
        """Whether this is a compressed CSV file, which cannot be cut."""
        return self.url.lower().endswith(".gz")

    @property
    def path(self) -> str:
        """Path under which DuckDB reads the file, without characters of globs or protocols."""
        piece = "" if self.stop is None or self.is_parquet else f"{self.start}-{self.stop}"
        return f"{DuckFiles.protocol}://{piece}/{quote(self.copy or self.url, safe='')}"

    def cut(self, piece_bytes: int, n_columns: int) -> list[TableFile]:
        """Return the pieces of the file: whole row groups, or about equal numbers of bytes of CSV.

        ``n_columns`` is the number of columns to read.

        A row of CSV belongs to the piece in which the line break before it lies.
        """
        if self.is_parquet:
            points_per_row = max(1, self.n_rows // max(1, sum(self.groups)))  # of lists
            max_rows = max(1, piece_bytes // (8 * n_columns * points_per_row))
            return self._cut_groups(max_rows) if self.groups else [self]
        if self.is_gzip or not self.can_be_cut:
            return [self]
        n_pieces = max(1, -(-self.n_bytes // piece_bytes))
        bounds = [self.n_bytes * i // n_pieces for i in range(n_pieces + 1)]
        return [
            replace(self, start=start, stop=stop, n_rows=self.n_rows // n_pieces)
            for start, stop in pairwise(bounds)
        ]

    def _cut_groups(self, max_rows: int) -> list[TableFile]:
        ends = list(accumulate(self.groups))
        pieces: list[TableFile] = []
        start = 0
        for end, following in zip(ends, [*ends[1:], None], strict=True):
            if following is None or following - start > max_rows:
                pieces.append(replace(self, start=start, stop=end, n_rows=end - start))
                start = end
        return pieces


def open_table(
    sources: UrlOrPath | Sequence[UrlOrPath],
    columns: Columns,
    copies: str = "",
    is_any: bool = False,
) -> tuple[Columns, tuple[TableFile, ...]]:
    """Find the files of a table; return the columns with their expressions, and the files.

    No rows are read, except those of Arrow files, which are copied to paths that begin with
    ``copies``. With ``is_any`` a file with an unknown ending is read as CSV.

    Raises
    ------
    DataError
        If no file matches, or if a file occurs twice, is of no known kind, cannot be read, lacks a
        column, or has a column of a type that cannot be used.
    ParameterError
        If a text is not an expression.
    """
    patterns = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    urls = [url for source in patterns for url in _find_files(normalize_url(source))]
    if not urls:
        raise DataError("no table files given")
    places: dict[str, str] = {}
    for url in urls:
        if not url.lower().endswith(_KINDS) and not is_any:
            raise DataError(
                f"{url}: not a table; expected one of {', '.join(_KINDS)}; read other formats into "
                "a data frame, as by pandas.read_excel, and give it to bagbasis.ingest.ingest_frame"
            )
        place = place_of(url)
        if place in places:
            name = "" if places[place] == url else f", by a link too: {places[place]}"
            raise DataError(f"{url}: given twice{name}; its points would be doubled")
        places[place] = url
    with ThreadPoolExecutor(HEADERS_AT_ONCE, thread_name_prefix="headers") as pool:
        looked = [*pool.map(lambda i: _look_into(urls[i], i, columns, copies), range(len(urls)))]
    names = [*looked[0].names, *dict(looked[0].parts)]
    columns = spread(read_expressions(columns, names, urls[0]), looked[0].vectors)
    _warn_of_copies(looked)
    return columns, tuple(_fit(file, columns) for file in looked)


def _warn_of_copies(files: Sequence[TableFile]) -> None:
    """Warn about the first local file with rows that has the bytes of another.

    Bytes are compared only where sizes, columns of the folders and beginnings agree.
    """
    alike: dict[tuple[object, ...], dict[bytes, str]] = {}
    sizes = Counter((file.n_bytes, file.n_rows, file.parts) for file in files)
    for file in files:
        key = file.n_bytes, file.n_rows, file.parts
        if sizes[key] < 2 or not file.n_rows or local_path(file.url) is None:
            continue
        with _reading(file.url), open(file.url, "rb") as handle:
            beginning = handle.read(_BEGINNING)
        if not file.is_parquet and b"\n" not in beginning.strip():  # a header alone
            continue
        first = alike.setdefault(key, {}).setdefault(beginning, file.url)
        if first != file.url and filecmp.cmp(first, file.url, shallow=False):
            logger.warning(
                "%s has the bytes of %s: its rows count twice; leave one of them out if it is a "
                "copy",
                *(file.url, first),
            )
            return


def check_pages(file: TableFile, columns: Columns) -> None:
    """Compare the pages of a Parquet file, or of a piece of one, with their checksums.

    DuckDB does not check them, and would read a flipped bit as a number.

    Raises
    ------
    DataError
        If a page does not match its checksum. The message names the file.
    """
    if file.has_checksums:
        stop = sum(file.groups) if file.stop is None else file.stop
        starts = accumulate(file.groups[:-1], initial=0)
        groups = [i for i, start in enumerate(starts) if file.start <= start < stop]
        with _reading(file.url), fsspec.open(file.url, "rb") as handle:
            parquet = pa.parquet.ParquetFile(handle, page_checksum_verification=True)
            of_file = [name for name in columns.names if name in file.positions]
            for _ in parquet.iter_batches(row_groups=groups, columns=of_file):
                pass


@contextmanager
def _reading(file: str) -> Iterator[None]:
    """Raise any error while a file is read as a DataError that names the file."""
    try:
        yield
    except DataError:
        raise
    except (OSError, EOFError, ValueError, csv.Error, zlib.error, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise DataError(
                f"{file}: its copy does not fit into the folder of temporary files, "
                f"{tempfile.gettempdir()}; free space there, or set TMPDIR to another folder"
            ) from error
        reason = " ".join(str(error).split()) or type(error).__name__
        hint = ""
        if isinstance(error, UnicodeDecodeError):
            is_packed = error.object.startswith(COMPRESSED)
            hint = UNPACK if is_packed else OTHER_ENCODING
        raise DataError(f"{file}: cannot be read ({reason}){hint}") from error


def _find_files(source: str) -> list[str]:
    fs, path = filesystem(source)
    with _reading(source):
        if fs.isdir(path):
            matches = visible_files(map(str, fs.find(path)), path)
            paths = [match for match in matches if _is_part(match, path)]
            others = [match for match in matches if match.lower().endswith(CSV)]
            if others:
                what = f"{source}: {len(others)} CSV files of the folder"
                endings = [file[-len(_ending(file, CSV)) :] for file in others]
                glob = f"{source}/*{max(endings, key=endings.count)}"
                if not paths:
                    raise DataError(f"{what} are not read; name them, as by the glob {glob}")
                logger.warning("%s are not read, such as %s; name them, too", what, others[0])
            _refuse_versions(fs, source, path, paths)
        elif fs.exists(path):
            paths = [path]
        else:
            matches = fs.glob(path) if has_magic(path) else []
            files = [str(match) for match in matches if not fs.isdir(match)]
            paths = visible_files(files, path)
            _refuse_versions(fs, source, _without_wildcards(path), paths)
    if not paths:
        raise DataError(f"{source}: no files found")
    return [normalize_url(fs.unstrip_protocol(match)) for match in paths]


def _without_wildcards(path: str) -> str:
    """Return the folder of a glob above its first wildcard."""
    return "/".join(takewhile(lambda part: not has_magic(part), path.split("/")))


def _refuse_versions(fs: AbstractFileSystem, source: str, root: str, paths: Sequence[str]) -> None:
    """Refuse a folder that also has files of earlier versions of a table: rows would be doubled."""
    folder = paths[0].rpartition("/")[0] if paths else ""
    while len(folder) >= len(root.rpartition("/")[0]) and folder:  # Iceberg: one above
        if kind := _kind_with_versions(fs, folder):
            raise DataError(
                f"{source}: the folder of a table of {kind}, which also keeps files of earlier "
                "versions; read the current rows into a data frame, as by polars.read_delta, and "
                "give it to bagbasis.ingest.ingest_frame, or name the files of the current version"
            )
        folder = folder.rpartition("/")[0]


def _kind_with_versions(fs: AbstractFileSystem, folder: str) -> str | None:
    """Return the kind of table, of those that keep earlier versions, whose folder this is."""
    for kind, log in _LOGS.items():
        if fs.isdir(f"{folder}/{log}"):
            return kind
    metadata = f"{folder}/metadata"
    names = fs.ls(metadata, detail=False) if fs.isdir(metadata) else ()
    return "Iceberg" if any(str(name).endswith(".metadata.json") for name in names) else None


def _ending(file: str, known: Sequence[str]) -> str:
    """Return which of the known endings a file has, in lower case."""
    return next(end for end in known if file.lower().endswith(end))


def _is_part(file: str, directory: str) -> bool:
    """Return whether a file in a folder is part of its table, unlike Spark's _SUCCESS."""
    inside = file.removeprefix(directory).split("/")
    is_table = file.lower().endswith(PARQUET + COPIED)
    return is_table and not any(name.startswith("_") for name in inside)


def _look_into(url: str, index: int, columns: Columns, copies: str) -> TableFile:
    fs, path = filesystem(url)
    check_local(url, DataError)
    with _reading(url), fsspec.open(url, "rb", compression="infer") as file:
        n_bytes = int(fs.size(path))
        if url.lower().endswith(COPIED):
            copy = f"{copies}{index}.parquet"
            copy_as_parquet(file, copy, url, url.lower().endswith(JSON), _kept_as_texts(columns))
            with open(copy, "rb") as copied:
                table_file = replace(_look_into_parquet(copied, url, columns), copy=copy)
        elif url.lower().endswith(PARQUET):
            table_file = _look_into_parquet(file, url, columns)
        else:
            sample = _sample_of(file, columns.read.skip or 0)
            columns.read.refuse_separator_line(sample)
            delimiter, names = columns.read.read_header(sample, columns.names)
            row_bytes = max(1, len(sample) // max(1, sample.count(b"\n")))
            table_file = TableFile(
                url, 0, (*names,), (UNTYPED,) * len(names), n_bytes // row_bytes, 0
            )
            cut = columns.read.can_be_cut
            table_file = replace(
                table_file, n_rows=max(1, table_file.n_rows), delimiter=delimiter, can_be_cut=cut
            )
    return replace(table_file, index=index, n_bytes=n_bytes, parts=_parts_of(path))


def _kept_as_texts(columns: Columns) -> list[str]:
    """Return the columns of ids and targets that no coordinate or expression reads."""
    targets = [target.text for target in columns.targets]
    others = [coordinate.text for coordinate in columns.coordinates]
    texts = [name for name in (*columns.ids, *targets) if not any(name in text for text in others)]
    return [name for name in texts if not any(name in text != name for text in targets)]


def _sample_of(file: IO[bytes], n_skipped: int) -> bytes:
    """Return the beginning of a CSV file, which includes the whole header."""
    sample = file.read(SAMPLE_BYTES)
    while sample.count(b"\n") <= n_skipped and len(sample) < MAX_HEADER_BYTES:
        more = file.read(len(sample))
        if not more:
            break
        sample += more
    return sample


def _look_into_parquet(file: IO[bytes], url: str, columns: Columns) -> TableFile:
    parquet = pa.parquet.ParquetFile(file)
    schema, metadata = parquet.schema_arrow, parquet.metadata
    lists = [field.name for field in schema if is_list(field.type)]
    items = [field.type.value_type if is_list(field.type) else field.type for field in schema]
    groups = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    asked = [coordinate.text for coordinate in columns.coordinates if coordinate.text in lists]
    vectors = {n: entries for n in asked if (entries := _entries_of(parquet, n, url))}
    return TableFile(
        *(url, 0, (*schema.names,), tuple(map(_value_type, items)), metadata.num_rows, 0, groups),
        has_checksums=_has_checksums(file, metadata),
        lists={n: _count_items(metadata, n) // max(1, len(vectors.get(n, ()))) for n in lists},
        vectors=vectors,
    )


def _entries_of(parquet: pa.parquet.ParquetFile, name: str, url: str) -> tuple[str, ...]:
    """Return the names of the entries of a column's vectors or records; () for numbers.

    The length is that of the first vector of the file. The other vectors are compared with it when
    all rows are checked.
    """
    item = parquet.schema_arrow.field(name).type.value_type
    if pa.types.is_struct(item):
        return tuple(f"{name}.{entry.name}" for entry in item)
    if not is_list(item):
        return ()
    if not is_number(str(item.value_type)):
        what = f"coordinate column {name!r} holds vectors of {item.value_type}, not of numbers"
        raise DataError(f"{url}: {what}")
    for batch in parquet.iter_batches(ROWS_TO_MEASURE, columns=[name]):
        lengths = pa.compute.list_value_length(batch.column(0).flatten()).drop_null()
        if len(lengths):
            return tuple(f"{name}[{j}]" for j in range(lengths[0].as_py()))
    raise DataError(f"{url}: coordinate column {name!r} has no vector in any row")


def _fit(file: TableFile, columns: Columns) -> TableFile:
    """Return a file with the folder columns and lists that are needed; refuse unfit columns."""
    parts, used = dict(file.parts), columns.names
    if not file.is_parquet and len(columns.coordinates) > MAX_TEXT_COORDINATES:
        raise DataError(
            f"{file.url}: {len(columns.coordinates):,} coordinates of a CSV file; at most "
            f"{MAX_TEXT_COORDINATES:,} can be read: save the table as Parquet, or give "
            "ingest_arrays its arrays"
        )
    n_columns = Counter(file.names)
    for name in used:
        if name not in n_columns and name not in parts:
            raise no_column(file.url, name, file.names)
        if n_columns[name] > 1:
            raise DataError(f"{file.url}: two columns are called {name!r}; rename one")
        if len({value for folder, value in file.parts if folder == name}) > 1:
            raise DataError(f"{file.url}: two folders give {name!r} a value; rename one")
    of_folders = [(name, value) for name, value in parts.items() if name in used]
    folder_values = tuple((n, v) for n, v in of_folders if n not in n_columns)
    claims = tuple((n, v) for n, v in of_folders if n in n_columns)
    of_coordinates = inputs_of(columns.coordinates)
    lists = {name: file.lists[name] for name in of_coordinates if name in file.lists}
    plain = [coordinate.text for coordinate in columns.coordinates if not coordinate.sql]
    other = next((name for name in plain if name in n_columns and name not in lists), None)
    if lists and other is not None:
        raise DataError(
            f"{file.url}: coordinate column {next(iter(lists))!r} has lists, {other!r} has none; "
            "give all coordinates as lists, a row per bag, or as numbers, a row per point"
        )
    _check_types(file, columns)
    n_rows = next(iter(lists.values()), file.n_rows)
    return replace(file, parts=folder_values, claims=claims, lists=lists, n_rows=n_rows)


def _parts_of(path: str) -> tuple[tuple[str, str | None], ...]:
    """Return the columns that the folders of a path name (Hive's way), and their values."""
    pairs = (folder.partition("=") for folder in path.split("/")[:-1])
    return tuple(
        (unquote(name), None if value == NO_VALUE else unquote(value))
        for name, is_pair, value in pairs
        if is_pair
    )


def _has_checksums(file: IO[bytes], metadata: pa.parquet.FileMetaData) -> bool:
    """Whether the first page has a checksum: the fourth number of its header, `PAGE_CHECKSUM`."""
    if not metadata.num_rows:
        return False
    column = metadata.row_group(0).column(0)
    file.seek(column.dictionary_page_offset or column.data_page_offset)
    return PAGE_CHECKSUM.match(file.read(32)) is not None


def _count_items(metadata: pa.parquet.FileMetaData, name: str) -> int:
    """Return the approximate number of items of a column's lists; an empty list counts as one."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(j) for group in groups for j in range(group.num_columns)]
    return sum(c.num_values for c in chunks if c.path_in_schema.startswith(f"{name}."))


def is_list(column: pa.DataType) -> bool:
    """Return whether the values of a column are lists, of whatever kind."""
    return isinstance(column, (pa.ListType, pa.LargeListType, pa.FixedSizeListType))


def _value_type(column: pa.DataType) -> str:
    """Return the type of a column's values, also of a dictionary's (pandas' categories)."""
    return str(column.value_type if pa.types.is_dictionary(column) else column)


def _check_types(file: TableFile, columns: Columns) -> None:
    types = {name: file.type_of(name) for name in columns.names}
    for name in columns.ids:
        if name in file.lists:
            what = f"id column {name!r} has lists; ids are whole numbers, text or dates"
            raise DataError(f"{file.url}: {what}")
        if not (types[name] in (*_NUMBERS, *TEXTS, UNTYPED, UUID) or _is_key(types[name])):
            what = f"id column {name!r} is {types[name]}; ids are whole numbers, text or dates"
            raise DataError(f"{file.url}: {what}; write it as int64 or text")
    for column in columns.coordinates:
        kind = "" if column.sql else types[column.text]
        if kind and not (is_number(kind) or is_time(kind) or kind in ("bool", UNTYPED)):
            what = f"coordinate column {column.text!r} is {kind}, not numbers"
            raise DataError(f"{file.url}: {what}; {_as_number('coordinates', column.text, kind)}")
    for column in columns.targets:
        listed = [name for name in column.inputs if name in file.lists]
        kind = "list" if listed else "" if column.sql else types[column.text]
        if kind and not (is_number(kind) or kind in (*TEXTS, UNTYPED, "bool", "null")):
            name = listed[0] if listed else column.text
            what = f"target column {name!r} is {kind}, neither numbers nor text"
            how = (
                "" if listed or not kind.startswith(_MOMENTS) else _as_number("targets", name, kind)
            )
            raise DataError(f"{file.url}: {what}{how and '; '}{how}")


def _as_number(parameter: str, name: str, kind: str) -> str:
    """Return the advice on how to make numbers of a column that has none."""
    if kind.startswith("struct"):
        return f"name one of its fields, such as {name}.{kind[7:].partition(':')[0]}"
    number = f"CAST({name} AS DOUBLE)"
    if kind.startswith("duration"):  # DuckDB reads whole units
        number += f" / {_PER_SECOND[kind[9:-1]]}"  # seconds
    elif kind.startswith(("time32", "time64")):
        number = f"epoch({name})"
    elif is_time(kind):
        number = f"epoch({name}) / 86400"  # days since 1970-01-01
    return (
        "write an expression that makes numbers of it, such as "
        f"{parameter}={{{name!r}: '{number}'}}"
    )


def is_binary(type_name: str) -> bool:
    """Return whether a type, given by its Arrow name, is binary or a UUID."""
    return type_name == UUID or "binary" in type_name.partition("[")[0]


def _is_key(type_name: str) -> bool:
    return is_time(type_name) or is_binary(type_name) or is_decimal(type_name)


def is_time(type_name: str) -> bool:
    """Return whether a type, given by its Arrow name, is a date or time."""
    return type_name.startswith(("date", "timestamp"))


def is_number(type_name: str) -> bool:
    """Return whether a type, given by its Arrow name, is numeric."""
    return type_name in _NUMBERS or is_decimal(type_name)


def is_decimal(type_name: str) -> bool:
    """Return whether a type, given by its Arrow name, is a decimal."""
    return type_name.startswith("decimal")
