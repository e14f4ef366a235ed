"""Copies Arrow's batches and files, and lines of JSON, to Parquet files, which DuckDB reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import IO

import pyarrow as pa
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

from ...errors import DataError

ARROW = (".feather", ".arrow", ".ipc")
JSON = (".jsonl", ".ndjson")  # an object per line
COPIED = ARROW + JSON


def copy_as_parquet(file: IO[bytes], path: str, is_json: bool) -> None:
    """Write the batches of an Arrow file, of a stream in one, or of lines of JSON, as Parquet.

    Raises
    ------
    ArrowException
        It is none of these, or a field of JSON changes its type.
    """
    if is_json:
        write_parquet(pa.json.open_json(file), path)
        return
    try:
        batches = pa.ipc.open_file(file)
    except pa.ArrowInvalid:  # HuggingFace's and those of other streams have no footer
        file.seek(0)
        write_parquet(plain_reader(pa.ipc.open_stream(file)), path)
        return
    numbers = range(batches.num_record_batches)
    read = (batches.get_batch(i) for i in numbers)
    write_parquet(plain_reader(pa.RecordBatchReader.from_batches(batches.schema, read)), path)


def write_parquet(reader: pa.RecordBatchReader, path: str) -> str:
    """Write a Parquet file; return its path."""
    with pa.parquet.ParquetWriter(path, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
    return path


def plain_reader(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the batches with plain types, which Parquet can store.

    Views of texts in dictionaries, which polars' categories have, become texts. HuggingFace's own
    types of arrays become lists.
    """
    schema = pa.schema([field.with_type(_plain_type(field.type)) for field in reader.schema])
    if schema == reader.schema:
        return reader
    plain = (
        pa.RecordBatch.from_arrays([*map(_as_plain, batch.columns)], schema=schema)
        for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, plain)


def reader_of(batches: Iterator[pa.RecordBatch], what: str) -> pa.RecordBatchReader:
    """Return a reader of batches, all with the types of the first; DataError where is none.

    ``what`` there is none of stands in the message.
    """
    first = next(batches, None)
    if first is None:
        raise DataError(f"there are no {what}")
    same = (batch.cast(first.schema) for batch in batches)
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], same))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return pa.dictionary(kind.index_type, pa.string(), kind.ordered)
    return kind


def _as_plain(column: pa.Array) -> pa.Array:
    kind = _plain_type(column.type)
    if kind == column.type:
        return column
    if isinstance(column.type, pa.BaseExtensionType):
        return column.storage
    texts = column.dictionary.cast(pa.string())
    return pa.DictionaryArray.from_arrays(column.indices, texts, ordered=kind.ordered)
