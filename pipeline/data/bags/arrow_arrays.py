"""Conversion of ragged points and columns to and from Arrow arrays, which share memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Integers
from ...core.errors import DataError, needing_extra, shown
from .coordinates import Names, checked_names

POINTS_COLUMN = "points"  # the column of bags
COORDINATES_KEY = "bagbasis:coordinates"  # in the metadata of that column: names, as JSON
FOREIGN = (TypeError, ValueError, OverflowError, NotImplementedError)  # errors of table libraries


def library() -> ModuleType:
    """Return pyarrow; DataError if it is not installed."""
    with needing_extra("tables", "Arrow"):
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.compute  # noqa: PLC0415
    module: ModuleType = pa
    return module


def arrow_stream(
    columns: Mapping[str, Any], requested: object, coordinates: Names = None
) -> object:
    """Return a table of arrays of shape (n,) or (n, k), or of Arrow arrays, as an Arrow stream."""
    return arrow_table(columns, coordinates).__arrow_c_stream__(requested)


def arrow_table(columns: Mapping[str, Any], coordinates: Names = None) -> Any:  # noqa: ANN401
    """Return a pyarrow.Table of arrays of shape (n,) or (n, k), or of Arrow arrays.

    ``coordinates`` are names, which are stored in the metadata of the column ``points``.
    """
    pa = library()
    table = pa.table({name: _column(pa, values) for name, values in columns.items()})
    if coordinates is None:
        return table
    at = table.schema.get_field_index(POINTS_COLUMN)
    field = table.schema.field(at).with_metadata({COORDINATES_KEY: json.dumps(list(coordinates))})
    return table.set_column(at, field, table.column(at))


def arrow_lists(points: NDArray[Any], offsets: Integers) -> Any:  # noqa: ANN401 - no types
    """Return a list of points per set; each point is a list of fixed size. Nothing is copied."""
    pa = library()
    return pa.LargeListArray.from_arrays(pa.array(offsets), _column(pa, points))


def plain_column(column: Any) -> Any:  # noqa: ANN401 - no types
    """Return an Arrow array with a plain type, which Parquet can store and DuckDB can read.

    List views become lists, tensors nested lists, run-end encoded arrays their values, UUIDs texts,
    and extension types their storage. Dictionaries of string views (categories of polars) become
    texts.
    """
    pa = library()
    kind = column.type
    if isinstance(kind, pa.UuidType):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.array(texts, pa.string())
    if isinstance(kind, pa.FixedShapeTensorType) and len(kind.shape) > 1:
        return _nested_lists(column)
    if isinstance(kind, pa.BaseExtensionType):
        return plain_column(column.storage)
    if pa.types.is_run_end_encoded(kind):
        return plain_column(pa.compute.run_end_decode(column))
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        sizes = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int64))
        return pa.LargeListArray.from_arrays(offsets, column.flatten(), mask=column.is_null())
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        texts = column.dictionary.cast(pa.string())
        return pa.DictionaryArray.from_arrays(column.indices, texts, ordered=kind.ordered)
    return column


def _nested_lists(tensors: Any) -> Any:  # noqa: ANN401 - no types
    """Return tensors of several dimensions, whose storage is flat, as nested lists."""
    pa = library()
    kind, storage = tensors.type, tensors.storage
    if kind.permutation not in (None, list(range(len(kind.shape)))):
        raise DataError(
            f"a column has tensors whose dimensions are in the order {kind.permutation}; give "
            "lists in lists, or leave the column out"
        )
    values = storage.values.slice(storage.offset * kind.storage_type.list_size)
    for size in reversed(kind.shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, size)
    values = values.slice(0, len(storage) * kind.shape[0])
    return pa.FixedSizeListArray.from_arrays(values, kind.shape[0], mask=storage.is_null())


def plain_table(table: Any) -> Any:  # noqa: ANN401 - no types
    """Return a table of Arrow with the types of `plain_column`."""
    pa = library()
    columns = []
    for column in table.columns:
        kind = plain_column(pa.nulls(0, column.type)).type
        columns.append(pa.chunked_array([*map(plain_column, column.chunks)], kind))
    return pa.table(columns, names=table.column_names)


def split_arrow(
    data: object, column: str | None
) -> tuple[NDArray[Any], Integers, list[str] | None]:
    """Return points, shape (n, d), sizes and names of a column of lists of points.

    Names are the fields of records, or the names in the metadata of the column.

    Raises
    ------
    DataError
        If the argument is not a table or lacks the column, a bag or number is missing, or points
        differ in dimension.
    """
    pa = library()
    if not hasattr(data, "__arrow_c_stream__"):
        raise DataError(f"data is {shown(data)}; expected a table with Arrow's __arrow_c_stream__")
    try:
        read = pa.RecordBatchReader.from_stream(data).read_all()
        table = plain_table(read)
    except (pa.ArrowException, *FOREIGN) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"the table cannot be read ({reason})") from error
    name = column
    if name is None:
        lists = [field.name for field in table.schema if _is_list(pa, field.type)]
        if len(lists) != 1:
            raise DataError(f"columns of lists are {shown(lists)}; name one with column=")
        name = lists[0]
    if name not in table.schema.names or not _is_list(pa, table.schema.field(name).type):
        raise DataError(f"no column of lists is called {name!r}: {shown(table.schema.names)}")
    lists = pa.concat_arrays(table[name].chunks) if table[name].num_chunks else table[name]
    if not len(lists):
        raise DataError(f"{name}: there are no bags")
    lists = lists.cast(pa.large_list(lists.type.value_type))
    sizes = lists.value_lengths()
    points = lists.flatten()
    if lists.null_count or points.null_count:
        raise DataError(f"{name}: a bag or a point is missing")
    n_points = sizes.to_numpy(zero_copy_only=False).astype(np.int64)
    kind = points.type
    is_record = pa.types.is_struct(kind)
    fields = [kind.field(j).name for j in range(kind.num_fields)] if is_record else None
    rows = _points(pa, points, name)
    return rows, n_points, fields or _kept_names(read.schema.field(name), rows.shape[1])


def _kept_names(field: Any, n_dims: int) -> list[str] | None:  # noqa: ANN401 - no types
    """Return the names of coordinates in a column's metadata; None without a valid list."""
    try:
        known = json.loads((field.metadata or {}).get(COORDINATES_KEY.encode(), b"null"))
    except ValueError:
        return None
    names = checked_names(known, n_dims) if isinstance(known, list) else None
    return None if names is None else list(names)


def _is_list(pa: ModuleType, kind: object) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _column(pa: ModuleType, values: Any) -> Any:  # noqa: ANN401 - arrays of either library
    """Return an Arrow column; a matrix becomes lists of fixed size."""
    if not isinstance(values, np.ndarray):
        return values
    if values.ndim == 1:
        return pa.array(values.astype(object) if values.dtype.kind == "T" else values)
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _points(pa: ModuleType, items: Any, name: str) -> NDArray[Any]:  # noqa: ANN401 - no types
    """Return the rows of points given as lists, records, or numbers (one dimension)."""
    if pa.types.is_struct(items.type):
        return np.column_stack([_numbers(pa, items.field(j), name) for j in range(len(items.type))])
    if not _is_list(pa, items.type):
        return _numbers(pa, items, name)[:, None]
    widths = pa.compute.unique(pa.compute.list_value_length(items)).to_pylist()
    if len(widths) > 1:
        raise DataError(f"{name}: points have {sorted(widths)} coordinates; expected one number")
    return _numbers(pa, items.flatten(), name).reshape(len(items), -1)


def _numbers(pa: ModuleType, values: Any, name: str) -> NDArray[Any]:  # noqa: ANN401 - no types
    kind = values.type
    if values.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        what = "a coordinate is missing" if values.null_count else f"coordinates are {kind}"
        raise DataError(f"{name}: {what}; expected numbers")
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers
