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
        found = pa.ipc.open_file(file)
        batches = map(found.get_batch, range(found.num_record_batches))
        reader = pa.RecordBatchReader.from_batches(found.schema, batches)
    except pa.ArrowInvalid:  # HuggingFace's and those of other streams have no footer
        file.seek(0)
        reader = pa.ipc.open_stream(file)
    write_parquet(plain_reader(reader), path)


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
    types = (_plain(pa.nulls(0, field.type)).type for field in reader.schema)
    schema = pa.schema([*map(pa.Field.with_type, reader.schema, types)])
    if schema == reader.schema:
        return reader
    plain = (
        pa.RecordBatch.from_arrays([*map(_plain, batch.columns)], schema=schema) for batch in reader
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


def _plain(column: pa.Array) -> pa.Array:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return column.storage
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        texts = column.dictionary.cast(pa.string())
        return pa.DictionaryArray.from_arrays(column.indices, texts, ordered=kind.ordered)
    return column
