"""Tables of other libraries: pandas, polars, Dask, Arrow, DuckDB, awkward, HuggingFace's.

A table is copied to a Parquet file in the folder of temporary files and ingested from there. So
every check and option of files applies to it too.
"""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.dataset
from typing_extensions import override

from ...core import TextList, UrlOrPath, checked, documented
from ...core.declarations import with_fields_of
from ...core.errors import BagbasisError, DataError, ParameterError, shown
from ...data.bags.format_rules import FormatRules
from ...data.bags.frames import Frame, arrow_reader, is_groups, split_groups
from ...data.store.store import BagStore
from ..registry import FileFormat
from ..tables import (
    SORT_BYTES,
    ColumnNames,
    ColumnsLike,
    Database,
    LocalEngine,
    NamedBatches,
    TableIngest,
    is_list,
    names_of,
    plain_reader,
    spill_folder,
    write_batches,
    write_parquet,
)
from ..tables.values import OF_ALL_FILES, Given, values_of

FRAME_RULES = FormatRules(
    name="Frames (pandas, polars, Dask, Arrow, DuckDB, awkward, xarray, datasets)",
    calls=("ingest_frame",),
    honoured={
        "nullable types": "null is missing: refused, left out, or filled with a flag, by `missing`",
        "categories": "their values",
        "named indices": "columns (pandas, Dask)",
        "groupby": "each group is a bag",
        "times with a zone": "days since 1970-01-01 of the instant, in UTC",
    },
    refused={
        "texts as coordinates": "write an expression that makes numbers of it",
        "groupby with id_column": "group by names of columns, without id_column",
    },
    ignored={"attrs, metadata": "they change no values"},
)

_ROWS_AT_ONCE = 1000  # rows of a data set, as in HuggingFace's own batches
ROW_ID = "row"  # the id of a bag without one
_TABLES = {"points": "points", "target_table": "targets", "responses": "responses"}


@checked
def ingest_frame(
    points: Frame,
    url: UrlOrPath,
    *,
    coordinates: ColumnsLike,
    id_column: ColumnNames | None = None,
    **parameters: Any,
) -> BagStore:
    """Make a store from a table of another library, or append to one.

    Parameters
    ----------
    points : table
        Table with one row per point, or with one row per bag if the coordinates are lists: a
        pandas, polars or Dask data frame (named indices are columns), a polars LazyFrame, an Arrow
        table, batch, reader or data set, a DuckDB relation, an awkward array of records, an xarray
        data set (its dimensions are columns), a HuggingFace data set (one split), or any other
        object with ``__arrow_c_stream__``. In a pandas or polars groupby by column names, each
        group is a bag.
    url : str or path
        The store to write.
    coordinates : str, list of str or mapping from name to str
        Coordinates, as for `TableIngest`: columns of numbers or of lists of numbers, or
        expressions. A column whose lists hold arrays or records stands for all of their entries or
        fields: ``["points"]`` gives ``points[0]``, ``points[1]``.
    id_column : str or list of str, optional
        Column of the bag's id, as for `TableIngest`. None: the groups of a groupby are the bags. If
        each row is a bag, None takes the row numbers as ids.
    **parameters
        Further parameters of `TableIngest`. Its target_table and responses are tables like
        ``points``, and its response_coordinates are given like ``coordinates``.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        If ``points`` is not a table, or if `TableIngest` refuses the data. Messages count rows in
        the table.
    ParameterError, StoreError
        As `TableIngest`.

    See Also
    --------
    ingest_tables : Read Parquet, Arrow and CSV files.
    bagbasis.Bags : Bags in memory.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = {'patient': ['a', 'a', 'b'], 'cd3': [0.1, 0.4, 0.2], 'cd4': [1.0, 2.0, 3.0]}
    >>> points = pd.DataFrame(columns)
    >>> from bagbasis.ingest import ingest_frame
    >>> names = ['cd3', 'cd4']
    >>> store = ingest_frame(points, 'bags.zarr', id_column='patient', coordinates=names)
    >>> len(store), list(store.ids())
    (2, ['a', 'b'])
    """
    options = {"coordinates": coordinates, "id_column": id_column, **parameters}
    return ingest_rows(points, url, SORT_BYTES, **options)


def ingest_rows(
    points: Frame,
    url: str | os.PathLike[str],
    memory: int,
    *,
    coordinates: Given,
    id_column: str | Sequence[str] | None,
    **parameters: Any,
) -> BagStore:
    """Run `ingest_frame`; rows that do not fit in ``memory`` bytes are sorted on disk."""
    known = {field.name for field in fields(TableIngest)} - {"_"}
    if unknown := sorted(parameters.keys() - known):
        raise ParameterError(f"no parameter is called {unknown[0]!r}; there are {sorted(known)}")
    if is_groups(points):
        points, keys = split_groups(points)
        if id_column is not None or keys is None:
            raise ParameterError("points are grouped: group by names of columns, without id_column")
        id_column = keys
    frames = {"points": points, **parameters}
    parameters = {"coordinates": coordinates, "id_column": id_column, **parameters}
    with spill_folder() as folder, _renamed(folder):
        for role, file in _TABLES.items():
            if frames.get(role) is None and role != "points":
                continue
            path = f"{folder}/{file}.parquet"
            rows = _reader(frames[role], role, folder)
            if role == "points" and id_column is None:
                rows = _numbered(rows)
                parameters["id_column"] = ROW_ID
            with arrow_errors(role):
                write = write_batches if isinstance(rows, NamedBatches) else write_parquet
                parameters[role] = write(rows, path)
        with Database(memory, folder, len(values_of("coordinates", coordinates))) as database:
            # workers elsewhere do not see the folder
            return TableIngest(url=url, **parameters).run(LocalEngine(database))


@documented
@dataclass(frozen=True)
@with_fields_of(
    TableIngest,
    *("target_types", "target_rules", "missing", "min_points", "missing_values", "box", "dtype"),
    *("mode", "overwrite", "known_ids", "chunk_points", "progress"),
)
class RowsIngest(FileFormat):
    """Make a store from one file with a row per point, or append to one.

    `ingest` calls the function that reads the file. The parameters are those of `TableIngest` that
    concern a single table.

    Parameters
    ----------
    points
        Path of the file.
    url
        URL of the store to write.
    id_column
        Columns of the file that identify the bag.
    coordinates
        Names of the coordinates, in the order in which they are stored.
    targets
        Columns of the targets.
    """

    points: UrlOrPath
    url: UrlOrPath
    _: KW_ONLY
    id_column: ColumnNames
    coordinates: ColumnNames
    targets: TextList | None = None

    @abstractmethod
    def ingest(self, points: UrlOrPath, url: UrlOrPath, **parameters: Any) -> BagStore:
        """Make the store, with further parameters as for `ingest_rows`."""

    @override
    def run(self) -> BagStore:
        return self.ingest(**{item.name: getattr(self, item.name) for item in fields(self)})


def label_settings(
    id_column: str | Sequence[str],
    targets: Sequence[str] | None,
    parameters: Mapping[str, Any],
) -> list[str]:
    """Return the columns of ids and targets that the table of points must have, without repeats."""
    own = None if parameters.get("target_table") is not None else targets
    return list(dict.fromkeys([*names_of(id_column), *names_of(own)]))


FrameBatches: TypeAlias = pa.RecordBatchReader | NamedBatches


@contextmanager
def arrow_errors(place: str) -> Iterator[None]:
    """Re-raise errors of Arrow and pandas about values that they cannot hold as a DataError."""
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{place}: not a table that Arrow can hold ({reason})") from error


@contextmanager
def _computing(what: str) -> Iterator[None]:
    """Re-raise an error of the caller's lazy computation as a DataError that says where."""
    try:
        yield
    except BagbasisError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{what} cannot be computed ({type(error).__name__}: {reason}); compute it before "
            "it is ingested to see more"
        ) from error


def _reader(frame: Frame, role: str, folder: str) -> FrameBatches:
    """Return a table as Arrow batches; a lazy table is computed into the folder, in parts."""
    awkward = sys.modules.get("awkward")  # there, if the array is one of it
    datasets = sys.modules.get("datasets")
    dask, polars = sys.modules.get("dask.dataframe"), sys.modules.get("polars")
    if isinstance(frame, NamedBatches):
        return frame
    with arrow_errors(role):
        if datasets and isinstance(frame, (datasets.Dataset, datasets.IterableDataset)):
            return NamedBatches(_blocks(frame), "rows")
        if dask and isinstance(frame, dask.DataFrame):
            return NamedBatches(_partitions(frame), "rows")
        if awkward is not None and isinstance(frame, awkward.Array):
            frame = awkward.to_arrow_table(frame, extensionarray=False)
        if polars and isinstance(frame, polars.LazyFrame):
            with _computing(f"{role} (a LazyFrame)"):
                frame.sink_parquet(f"{folder}/lazy-{role}.parquet")
            frame = pa.dataset.dataset(f"{folder}/lazy-{role}.parquet")
        reader = arrow_reader(frame)
        if reader is not None:
            return plain_reader(reader)
    raise DataError(
        f"{role} is {shown(frame)}; expected a table, such as a data frame of pandas or polars, or "
        "of Arrow"
    )


def _blocks(frame: Frame) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield a HuggingFace data set, some rows in memory at a time."""
    start = 0
    for table in frame.with_format("arrow").iter(batch_size=_ROWS_AT_ONCE):
        place = f"rows {start} to {start + len(table) - 1}"
        start += len(table)
        for batch in table.to_batches():
            yield place, batch


def _partitions(frame: Frame) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield a Dask data frame, one partition in memory at a time."""
    for i, partition in enumerate(frame.partitions):
        with _computing(f"partition {i}"):
            rows = partition.compute()
        with arrow_errors(f"partition {i}"):
            batches = arrow_reader(rows).read_all().combine_chunks().to_batches()
        for batch in batches:
            yield f"partition {i}", batch


def _numbered(rows: FrameBatches) -> FrameBatches:
    """Return the batches with an added column of row numbers, for tables whose rows are bags."""
    named: Iterator[tuple[str, pa.RecordBatch]]
    if isinstance(rows, NamedBatches):
        named = iter(rows.batches)
        first = next(named, None)
        if first is None:
            raise DataError(f"there are no {rows.what}")
        schema, named = first[1].schema, chain([first], named)
    else:
        schema, named = rows.schema, (("", batch) for batch in rows)
    if ROW_ID in schema.names or not any(is_list(field.type) for field in schema):
        raise ParameterError("id_column is missing: rows are points; name the column of their bags")

    def batches() -> Iterator[tuple[str, pa.RecordBatch]]:
        start = 0
        for place, batch in named:
            numbers = pa.array(range(start, start + len(batch)), pa.int64())
            start += len(batch)
            yield place, batch.append_column(ROW_ID, numbers)

    if isinstance(rows, NamedBatches):
        return NamedBatches(batches(), rows.what)
    schema = schema.append(pa.field(ROW_ID, pa.int64()))
    return pa.RecordBatchReader.from_batches(schema, (batch for _, batch in batches()))


@contextmanager
def _renamed(folder: str) -> Iterator[None]:
    """Re-raise errors with the names of the tables instead of their temporary files."""
    try:
        yield
    except BagbasisError as error:
        text = str(error)
        if folder not in text:
            raise
        for file in _TABLES.values():
            text = text.replace(f"{folder}/{file}.parquet", f"table of {file}")
        text = text.replace(OF_ALL_FILES, "")  # a frame has no files
        raise type(error)(text) from None  # the cause names files that nobody else sees
