"""How CSV files are read: options of DuckDB's reader, and the names in a file's header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Annotated, Any

from ...core import Integer, MappingOf, OneOf, Text, TextList, keep_checked
from ...core.errors import ParameterError, closest

DELIMITERS = (",", ";", "\t", "|")  # the first by which the header has most of the columns
BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
OTHER_ENCODING = "; give its encoding: read: {encoding: latin-1}, or utf-16"
MIXED_LINE_ENDS = (
    "; if lines end in two ways, as \\n and \\r\\n, end all alike, as dos2unix and unix2dos do"
)
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\x28\xb5\x2f\xfd")  # gzip, zip, bzip2, zstd
UNPACK = "; it is compressed: unpack it, or give a file of gzip the ending .csv.gz"
# Unquoted cells of CSV that have no value.
MISSING_CELLS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
NUMBER_TYPES = ("DOUBLE", "FLOAT", "BIGINT", "INTEGER")
TYPES = (*NUMBER_TYPES, "BOOLEAN", "DATE", "TIMESTAMP", "TIME", "VARCHAR")
_SIGNS = ("delim", "quote", "escape", "comment", "thousands")


@dataclass(frozen=True)
class ReadOptions:
    """Options of `TableIngest`'s parameter ``read``, named as in DuckDB's ``read_csv``.

    If ``delim`` is None, the delimiter is found from the header. ``names`` are the column names of
    files without a header.
    """

    delim: str | None = None
    quote: str = '"'
    escape: str = '"'
    comment: str = ""
    skip: Annotated[int, Integer(0)] = 0
    names: TextList | None = None
    # DuckDB reads these encodings without an extension
    encoding: Annotated[str, OneOf("utf-8", "latin-1", "utf-16")] = "utf-8"
    decimal_separator: Annotated[str, OneOf(".", ",")] = "."
    thousands: str = ""
    nullstr: TextList = MISSING_CELLS
    types: Annotated[Mapping[str, str], MappingOf(Text, Text)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse options that are not one character, and a character with two roles."""
        keep_checked(self, "of read")
        if not self.quote:
            object.__setattr__(self, "escape", "")
        for name in _SIGNS:
            sign = getattr(self, name)
            if sign and not re.fullmatch(r"(?![\w\n\r+-])[\x00-\x7f]", sign, re.ASCII):
                raise ParameterError(f"{name} of read is {sign!r}; expected one sign of ASCII")
        signs = [sign for sign in (self.delim, self.quote, self.comment) if sign]
        if len(set(signs)) < len(signs):
            raise ParameterError(f"delim, quote and comment of read are {signs}: two are the same")
        if self.comment and self.skip:  # which of them DuckDB skips first varies
            raise ParameterError("read has comment and skip; remove one of them")
        if self.names is not None and not self.names:
            raise ParameterError("names of read are empty; name all of the files' columns")
        if self.thousands == self.decimal_separator:
            raise ParameterError(
                f"thousands and decimal_separator of read: both {self.thousands!r}"
            )
        for name, kind in self.types.items():
            OneOf(*TYPES).check(f"types of read, of {name!r}", kind)

    @classmethod
    def of(cls, options: Mapping[str, Any] | None) -> ReadOptions:
        """Return the options of a mapping."""
        known = [option.name for option in fields(cls)]
        for name in options or {}:
            if name not in known:
                raise ParameterError(f"read has {name!r}{closest(name, known)}; there are {known}")
        return cls(**(options or {}))

    @property
    def can_be_cut(self) -> bool:
        """Whether a file can be cut into pieces at line breaks, by counting quotes."""
        plain = self.quote == self.escape and not self.comment and not self.skip
        return plain and self.encoding != "utf-16"

    def sql(self) -> dict[str, str | int]:
        """Return the options for DuckDB except delimiter, names and header."""
        signs = {"quote": self.quote, "escape": self.escape, "comment": self.comment}
        return {"encoding": self.encoding, "skip": self.skip, **signs}

    def refuse_separator_line(self, sample: bytes) -> None:
        """Raise ValueError where the header is Excel's line of the separator, such as sep=;."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        lines = sample.decode(encoding, "ignore").splitlines()[self.skip : self.skip + 1]
        line = re.fullmatch(r"\s*\"?sep=(.?)\"?\s*", lines[0], re.IGNORECASE) if lines else None
        if line is None:
            return
        delim = line[1] or "\t"
        is_tried = delim in DELIMITERS if self.delim is None else delim == self.delim
        hint = f"skip: {self.skip + 1}" + ("" if is_tried else f", delim: {delim!r}")
        raise ValueError(
            f"line {self.skip + 1} is {lines[0].strip()!r}, which Excel writes before the names "
            f"of the columns; set read: {{{hint}}}"
        )

    def read_header(self, sample: bytes, wanted: Sequence[str]) -> tuple[str, list[str]]:
        """Return the delimiter that finds most required names in the header, and all names there.

        ValueError if the number of columns differs, or for text that DuckDB would read differently.
        The caller adds the name of the file.
        """
        delimiters = DELIMITERS if self.delim is None else (self.delim,)
        rows = {delimiter: self._first_row(sample, delimiter) for delimiter in delimiters}
        if self.names is None:
            most = max(rows, key=lambda d: (len({*wanted} & {*rows[d]}), len(rows[d])))
            return most, rows[most]
        for delimiter, row in rows.items():
            if len(row) == len(self.names):
                return delimiter, list(self.names)
        row = max(rows.values(), key=len)
        what = f"{len(self.names)} columns are named, its first row has {len(row)}"
        raise ValueError(f"{what}: {row[:10]}")

    def _first_row(self, sample: bytes, delimiter: str) -> list[str]:
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        text = io.TextIOWrapper(io.BytesIO(sample), encoding, newline="")
        for line in islice(text, self.skip):
            if self.quote and line.count(self.quote) % 2:  # DuckDB would go on to the next quote
                raise ValueError(f"skip: {line[:80]!r} has a quote without an end; remove it")
        lines = (line for line in text if not (self.comment and line.startswith(self.comment)))
        begins = self.comment and sample.decode(encoding, "ignore").startswith(self.comment)
        if begins and sample.startswith(BYTE_ORDER_MARKS):
            what = "begins with a byte-order mark and a comment, which DuckDB takes for a row"
            raise ValueError(f"{what}: give skip instead of comment")
        doubled = self.quote == self.escape
        reader = csv.reader(
            lines,
            delimiter=delimiter,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            doublequote=doubled,
            escapechar=None if doubled else self.escape,
        )
        try:
            return next(reader, [])
        except csv.Error:  # a name of more than 128 KiB: this is not the delimiter
            return []
