"""The lines of a CSV file in which its rows begin, as an editor counts them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice

import fsspec

from .files import TableFile
from .reading import ReadOptions


def line_of(file: TableFile, row: int, read: ReadOptions) -> int | None:
    """Return the line, from 1, in which a row of a CSV file begins; None for other files.

    None, too, if the lines cannot be determined: the message then names only the row.
    """
    try:
        return next(islice(lines_of(file, read), row, None), None)
    except (OSError, ValueError, csv.Error):
        return None


def lines_of(file: TableFile, read: ReadOptions) -> Iterator[int]:
    """Yield the line of each row of a CSV file; nothing for files of other kinds."""
    if file.is_parquet:
        return
    encoding = "utf-8-sig" if read.encoding == "utf-8" else read.encoding
    doubled = read.quote == read.escape
    with fsspec.open(file.url, "rb", compression="infer") as handle:
        text = io.TextIOWrapper(handle, encoding, errors="replace", newline="")
        numbers: list[int] = []  # of the lines of the current row

        def lines() -> Iterator[str]:
            for number, line in enumerate(text, 1):
                if number > read.skip and not (read.comment and line.startswith(read.comment)):
                    numbers.append(number)
                    yield line

        rows = csv.reader(
            lines(),
            delimiter=file.delimiter,
            quotechar=read.quote or None,
            quoting=csv.QUOTE_MINIMAL if read.quote else csv.QUOTE_NONE,
            doublequote=doubled,
            escapechar=None if doubled else read.escape,
        )
        is_header = read.names is None
        for row in rows:
            first = numbers[0]
            numbers.clear()
            if row and not is_header:  # DuckDB leaves blank lines out
                yield first
            is_header = is_header and not row
