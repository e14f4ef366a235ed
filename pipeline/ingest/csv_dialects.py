"""CSV files that are written in an unusual way: what to tell DuckDB, and how to read headers."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from ..errors import ParameterError, closest
from ..params import check_choice, check_fields, check_integer

DELIMITERS = (",", ";", "\t", "|")  # the first by which the header has all columns
MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # of the order of bytes
ENCODINGS = ("utf-8", "latin-1", "utf-16")  # that DuckDB reads without an extension
OTHER_ENCODING = "; give its encoding: csv: {encoding: latin-1}, or utf-16"


@dataclass(frozen=True)
class CsvDialect:
    """What `TableIngest` takes as ``csv``.

    Parameters
    ----------
    encoding : {"utf-8", "latin-1", "utf-16"}
    delimiter : str, optional
        None: the first of commas, semicolons, tabs and bars by which the header has all columns.
    quote, escape : str
        What stands around a text, and before a quote in it; None: nothing does.
    comment : str, optional
        What begins a comment, which ends with its line.
    skip_rows : int ≥ 0
        Lines before the header.
    columns : list of str, optional
        The names of all columns, where the files have no header.
    thousands : str, optional
        What stands between thousands, as in 1,234.5. It stands between all of a number or none.
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    quote: str | None = '"'
    escape: str | None = '"'
    comment: str | None = None
    skip_rows: int = 0
    columns: Sequence[str] | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no character, or stands for two things."""
        check_fields(self)
        check_choice("csv's encoding", self.encoding, ENCODINGS)
        check_integer("csv's skip_rows", self.skip_rows, 0)
        if self.quote is None:
            object.__setattr__(self, "escape", None)
        for name in ("delimiter", "quote", "escape", "comment", "thousands"):
            sign = getattr(self, name)
            latin = sign is None or (len(sign) == 1 and sign.isascii() and not sign.isalnum())
            if not latin or sign in ("\n", "\r", "+", "-"):
                raise ParameterError(f"csv's {name} is {sign!r}; expected one sign of ASCII")
        signs = [one for one in (self.delimiter, self.quote, self.comment) if one is not None]
        if len(set(signs)) < len(signs):
            raise ParameterError(
                f"csv's delimiter, quote and comment are {signs}: two are the same"
            )
        if self.comment is not None and self.skip_rows:  # which of them DuckDB skips first varies
            raise ParameterError("csv has comment and skip_rows; remove one of them")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(map(str, self.columns)))
            if not self.columns:
                raise ParameterError("csv's columns are empty; name all of the files' columns")

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, decimal: str) -> CsvDialect:
        """Return the dialect of a mapping from names of parameters to values."""
        known = [field.name for field in fields(cls)]
        for name in given or {}:
            if name not in known:
                raise ParameterError(f"csv has {name!r}{closest(name, known)}; there are {known}")
        dialect = cls(**(given or {}))
        if dialect.thousands == decimal:
            raise ParameterError(f"csv's thousands and decimal are both {decimal!r}")
        return dialect

    @property
    def can_be_cut(self) -> bool:
        """Whether a file can be cut into pieces at line breaks, by counting quotes."""
        plain = self.quote == self.escape and self.comment is None and not self.skip_rows
        return plain and self.encoding != "utf-16"

    def read_header(self, sample: bytes, wanted: set[str]) -> tuple[str, list[str]]:
        """Return the delimiter that gives the first row all wanted names, and the names.

        ValueError for another number of columns, or for text that DuckDB would read differently;
        the caller adds the name of the file.
        """
        rows = {}
        for delimiter in DELIMITERS if self.delimiter is None else (self.delimiter,):
            rows[delimiter] = row = self._first_row(sample, delimiter)
            if self.columns is None and wanted <= set(row):
                return delimiter, row
            if self.columns is not None and len(row) == len(self.columns):
                return delimiter, list(self.columns)
        delimiter, row = max(rows.items(), key=lambda header: len(header[1]))
        if self.columns is not None:
            what = f"{len(self.columns)} columns are named, its first row has {len(row)}"
            raise ValueError(f"{what}: {row[:10]}")
        return delimiter, row

    def options(self) -> dict[str, str | int]:
        """Return the options of DuckDB's reader but for delimiter and header."""
        signs = {"quote": self.quote, "escape": self.escape, "comment": self.comment}
        texts = {name: sign or "" for name, sign in signs.items()}
        return {"encoding": self.encoding, "skip": self.skip_rows, **texts}

    def _first_row(self, sample: bytes, delimiter: str) -> list[str]:
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        text = io.TextIOWrapper(io.BytesIO(sample), encoding, newline="")
        for line in islice(text, self.skip_rows):
            if self.quote and line.count(self.quote) % 2:  # DuckDB would go on to the next quote
                raise ValueError(f"skip_rows: {line[:80]!r} has a quote without an end; remove it")
        lines = (line for line in text if not (self.comment and line.startswith(self.comment)))
        if (
            self.comment
            and sample.decode(encoding, "ignore").startswith(self.comment)
            and (sample.startswith(MARKS))
        ):
            raise ValueError(
                "begins with a byte-order mark and a comment, which DuckDB takes for a row: "
                "give skip_rows in place of comment"
            )
        doubled = self.quote == self.escape
        reader = csv.reader(
            lines,
            delimiter=delimiter,
            quotechar=self.quote,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            doublequote=doubled,
            escapechar=None if doubled else self.escape,
        )
        return next(reader, [])
