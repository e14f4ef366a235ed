"""Copies Arrow's batches and files, and lines of JSON, to Parquet files, which DuckDB reads."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO

import pyarrow as pa
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

from ...core.errors import DataError
from ...data.bags.arrow_arrays import plain_column

ARROW = (".feather", ".arrow", ".ipc")
JSON = (".jsonl", ".ndjson")  # an object per line
COPIED = ARROW + JSON
JSON_BYTES = 2**24  # lines read at a time


def copy_as_parquet(
    file: IO[bytes], path: str, url: str, is_json: bool, texts: Collection[str] = ()
) -> None:
    """Write the batches of an Arrow file, of a stream in one, or of lines of JSON, as Parquet.

    Texts of JSON that are times become times, except in the columns ``texts``, where "2020-01-01"
    and "2020-01-01T00:00:00" stay two texts.

    Raises
    ------
    ArrowException
        If the file is of none of these kinds, or a field of JSON changes its type within a block.
    DataError
        If a field of JSON has types in two blocks that no common type holds. The message names the
        field and the lines.
    """
    if is_json:
        write_batches(NamedBatches(_json_blocks(file, url, texts), "lines", may_lack=True), path)
        return
    try:
        record_file = pa.ipc.open_file(file)
        batches = map(record_file.get_batch, range(record_file.num_record_batches))
        reader = pa.RecordBatchReader.from_batches(record_file.schema, batches)
    except pa.ArrowInvalid:  # streams, such as HuggingFace's files, have no footer
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

    Dictionaries of string views (categories of polars) become texts. HuggingFace's own array types
    become lists.
    """
    types = (plain_column(pa.nulls(0, field.type)).type for field in reader.schema)
    schema = pa.schema([*map(pa.Field.with_type, reader.schema, types)])
    if schema == reader.schema:
        return reader
    plain = (
        pa.RecordBatch.from_arrays([*map(plain_column, batch.columns)], schema=schema)
        for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, plain)


@dataclass(frozen=True)
class NamedBatches:
    """Batches of a table whose types may differ, as in the partitions of a Dask frame.

    Attributes
    ----------
    batches : iterator of (str, RecordBatch)
        Each batch with its place in the table, for messages.
    what : str
        Noun for the contents of the table, such as "rows", for messages.
    may_lack : bool
        Whether a column that a batch lacks counts as missing in its rows, instead of an error.
    """

    batches: Iterator[tuple[str, pa.RecordBatch]]
    what: str
    may_lack: bool = False


def write_batches(named: NamedBatches, path: str) -> str:
    """Write batches as a Parquet file, with a common type for each column; return its path.

    Batches that were written before a type changed are rewritten at the end.

    Raises
    ------
    DataError
        If there are no batches, a batch lacks a column, or no common type holds all values. The
        message names the column and the batch.
    """
    schema: pa.Schema | None = None
    parts: list[tuple[str, str]] = []  # files, and the place of the first batch in each
    writer: pa.parquet.ParquetWriter | None = None
    try:
        for place, raw in named.batches:
            batch = pa.RecordBatch.from_arrays([*map(plain_column, raw.columns)], raw.schema.names)
            common = _common(schema or batch.schema, batch.schema, place, named)
            if writer is None or common != schema:
                if writer is not None:
                    writer.close()
                schema = common
                parts.append((f"{path}.{len(parts)}" if parts else path, place))
                writer = pa.parquet.ParquetWriter(parts[-1][0], schema)
            writer.write_batch(_with_types(batch, schema, place))
    finally:
        if writer is not None:
            writer.close()
    if schema is None:
        raise DataError(f"there are no {named.what}")
    if len(parts) == 1:
        return path
    whole = f"{path}.whole"
    with pa.parquet.ParquetWriter(whole, schema) as all_rows:
        for part, place in parts:
            for batch in pa.parquet.ParquetFile(part).iter_batches():
                all_rows.write_batch(_with_types(batch, schema, f"{place} and those after"))
            os.remove(part)
    os.replace(whole, path)
    return path


def reader_of(batches: Iterator[pa.RecordBatch], what: str) -> pa.RecordBatchReader:
    """Return a reader of batches, all with the types of the first batch.

    DataError if there is no batch; ``what`` names the contents in the message.
    """
    first = next(batches, None)
    if first is None:
        raise DataError(f"there are no {what}")
    same = (
        _with_types(batch, first.schema, f"batch {i} of {what}")
        for i, batch in enumerate(batches, 1)
    )
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], same))


def _json_blocks(
    file: IO[bytes], url: str, texts: Collection[str]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield blocks of JSON lines, each with the types of its own lines."""
    start = 0
    while lines := file.readlines(JSON_BYTES):
        n_lines = len(lines)
        place = f"{url}: lines {start} to {start + n_lines - 1}"
        text = b"".join(lines)
        start += n_lines
        if not text.strip():
            continue
        try:  # a block of its own may be as large as an int32 says
            options = pa.json.ReadOptions(block_size=max(2**20, len(text) + 1))
            table = pa.json.read_json(io.BytesIO(text), options)
            times = [item.name for item in table.schema if pa.types.is_timestamp(item.type)]
            if written := [(name, pa.string()) for name in times if name in texts]:
                as_texts = pa.json.ParseOptions(explicit_schema=pa.schema(written))
                table = pa.json.read_json(io.BytesIO(text), options, as_texts)
        except pa.ArrowException as error:
            raise DataError(f"{place}: cannot be read ({error})") from error
        for batch in table.combine_chunks().to_batches():
            yield place, batch


def _common(schema: pa.Schema, other: pa.Schema, place: str, named: NamedBatches) -> pa.Schema:
    """Return the columns with types that hold the values of two batches."""
    types_before, types_here = ({field.name: field.type for field in of} for of in (schema, other))
    for of, types in ((schema, types_before), (other, types_here)):
        if len(types) < len(of):
            name = next(name for name, n in Counter(of.names).items() if n > 1)
            raise DataError(f"{place}: two columns are called {name!r}; rename one")
    types = types_before | types_here | types_before  # in the order in which they came
    for name in types:
        if name not in types_here or name not in types_before:
            if named.may_lack:
                continue
            where = "here" if name not in types_here else "before"
            raise DataError(
                f"{place}: column {name!r} is missing {where}; all parts of a table need the same "
                "columns"
            )
        if types_before[name] == types_here[name]:
            continue
        before, here = _decoded(types_before[name]), _decoded(types_here[name])
        fields = [pa.schema([(name, kind)]) for kind in (before, here)]
        try:
            types[name] = pa.unify_schemas(fields, promote_options="permissive").field(0).type
        except pa.ArrowException as error:
            raise DataError(
                f"{place}: column {name!r} is {here} and was {before} before; make it one type"
            ) from error
    return pa.schema(types)


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _with_types(batch: pa.RecordBatch, schema: pa.Schema, place: str) -> pa.RecordBatch:
    """Return a batch with the columns of a schema; DataError for a value that its type lacks."""
    columns = []
    present = dict(zip(batch.schema.names, batch.columns, strict=True))
    for field in schema:
        column = present.get(field.name)
        if column is None:
            columns.append(pa.nulls(len(batch), field.type))
            continue
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException as error:
            raise DataError(
                f"{place}: column {field.name!r} is {column.type}, elsewhere {field.type}, which "
                f"does not hold its values ({error}); make it one type"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
