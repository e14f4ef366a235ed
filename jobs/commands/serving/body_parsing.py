"""Large bodies as bags: parsed piece by piece into one array, without Python's numbers.

Arrow's reader takes up to seven times the bytes of what it reads. So a body is cut at commas
between values into pieces, each of which is made a JSON object again: what Arrow takes besides is
bounded by the piece, and what stays is eight bytes a number.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, as_bags

from .requests import EXPECTED, MAX_REQUEST_BAGS, check_n_bags

if TYPE_CHECKING:
    import pyarrow

PARSED_BYTES = 2**20  # bytes parsed at once
MAX_VALUE_BYTES = 2**22  # one value and the blanks around it, which are parsed at once
MAX_NUMBERS = 2**24  # per body: 128 MiB
MAX_QUOTES = 2**18  # the names of as many coordinates as a store may have
_MAX_NAME_BYTES = 2**22  # the names, and everything else that is not the bags
_NUMBERS = "expected numbers"
NOT_BAGS = f"the body is not one object with a bag or bags; expected {EXPECTED}"

# A comma between two values. Others are not JSON: within a piece, Arrow refuses them.
_BETWEEN = re.compile(rb"[^\[{:, \t\r\n][ \t\r\n]*,(?=[ \t\r\n]*[^\]}:, \t\r\n])")


def parsed(body: bytes | bytearray) -> tuple[Bags, bool, list[str] | None]:
    """Return the bags of a body, whether it is one bag, and its columns, without Python's numbers.

    Raises
    ------
    ValueError
        The body is not JSON, or holds something else than bags of numbers; `BagbasisError` for
        bags that cannot be used.
    """
    encoding = json.detect_encoding(bytes(body[:4]))
    if encoding != "utf-8":
        body = bytes(body).decode(encoding).encode()
    _check(body)
    start, stop = _without_quotes(body)
    if start + len(body) - stop > _MAX_NAME_BYTES:
        raise ValueError(NOT_BAGS)
    lists = Lists(max_numbers=body.count(b",") + 1)
    begin, opening, depth = 0, b"", 0
    while True:
        cut = _BETWEEN.search(body, max(start, begin + PARSED_BYTES), stop)
        end = len(body) if cut is None else cut.end() - 1
        if end - max(start, begin) > PARSED_BYTES + MAX_VALUE_BYTES:
            raise ValueError(
                f"the body holds a value of more than {MAX_VALUE_BYTES:,} bytes; expected numbers"
            )
        closing, depth_before = b"", depth
        if cut is not None:
            since = max(start, begin)
            depth += body.count(b"[", since, end) - body.count(b"]", since, end)
            if depth not in (1, 2, 3):
                raise ValueError(f"the body is not bags of numbers; expected {EXPECTED}")
            closing = b"]" * depth + b"}"
        text = opening + bytes(body[begin:end]) + closing
        lists.add(text, depth_before, 0 if cut is None else depth)
        if cut is None:
            return lists.bags(), lists.key == "bag", lists.names
        begin, opening = end + 1, f'{{"{lists.key}": '.encode() + b"[" * depth


def _check(body: bytes | bytearray) -> None:
    """Raise ValueError for bodies that are refused before they are parsed."""
    if not re.match(rb"\s*\{", body):  # Arrow's reader dies of a null
        raise ValueError(f"the body is not an object; expected {EXPECTED}")
    if body.count(b"[[") > MAX_REQUEST_BAGS + 1:  # many bags are not parsed to be refused
        raise ValueError(
            f"the body holds more than {MAX_REQUEST_BAGS:,} lists of lists; send at most "
            f"{MAX_REQUEST_BAGS:,} bags at a time"
        )
    if body.count(b",") >= MAX_NUMBERS:
        raise ValueError(
            f"the body holds more than {MAX_NUMBERS:,} numbers; send fewer bags or points at a time"
        )
    if body.count(b'"') > MAX_QUOTES:
        raise ValueError(NOT_BAGS)


def _without_quotes(body: bytes | bytearray) -> tuple[int, int]:
    """Return start and stop of the longest part of a body without a quote: that of the bags."""
    start = stop = before = 0
    while before < len(body):
        quote = body.find(b'"', before)
        end = len(body) if quote < 0 else quote
        if end - before > stop - start:
            start, stop = before, end
        before = end + 1
    return start, stop


class Lists:
    """The bags of a body, put together from its pieces.

    Parameters
    ----------
    max_numbers : int
        An upper bound of how many numbers there are; memory is taken by those that are there.

    Attributes
    ----------
    key : str
        "bag" or "bags": what the body holds.
    names : list of str or None
        Its columns.
    """

    def __init__(self, max_numbers: int) -> None:
        self.key = ""
        self.names: list[str] | None = None
        self._values = np.empty(max_numbers)
        self._n_values = self._n_bags = 0
        self._has_points = True  # and not numbers in their place
        # of each bag: how many points, and how many coordinates they have at least and at most
        self._sizes: list[NDArray[np.int64]] = []
        self._least: list[NDArray[np.int64]] = []
        self._most: list[NDArray[np.int64]] = []
        self._of_last = 0  # coordinates so far of a point that goes on in the next piece

    def add(self, text: bytes, depth: int, depth_after: int) -> None:
        """Add a piece that goes on with so many open lists, and leaves so many open.

        Raises
        ------
        ValueError
            What `parsed` raises of a piece.
        """
        lists = self._read(text)
        depth_of_points = 1 if self.key == "bag" else 2
        goes_on = self._n_bags > 0 and depth >= depth_of_points  # with the last bag
        first = self._n_bags - goes_on
        if self.key == "bag":
            points, offsets = lists, np.array([0, len(lists)])
        else:
            if depth_after and first + len(lists) > MAX_REQUEST_BAGS:
                raise ValueError(
                    f"the body holds more than {MAX_REQUEST_BAGS:,} bags; send fewer bags at a time"
                )
            check_n_bags(first + len(lists))
            if lists.null_count:
                raise ValueError(f"bag {first + _first_null(lists)} holds null; {_NUMBERS}")
            points, offsets = lists.flatten(), lists.offsets.to_numpy()
        sizes = np.diff(offsets).astype(np.int64)

        def bag_of(point: int) -> int:
            return first + int(np.searchsorted(offsets, point, side="right")) - 1

        if not sizes.all():  # refused as such a list is everywhere
            before = np.ones(self._n_bags, dtype=np.int64)
            as_bags([np.zeros((min(1, n), 1)) for n in np.concatenate([before[goes_on:], sizes])])
        if points.null_count:
            raise ValueError(f"bag {bag_of(_first_null(points))} holds null; {_NUMBERS}")
        values, lengths = points, np.ones(len(points), dtype=np.int64)
        if self._has_points:
            values, ends = points.flatten(), points.offsets.to_numpy()
            if values.null_count:
                point = int(np.searchsorted(ends, _first_null(values), side="right")) - 1
                raise ValueError(f"bag {bag_of(point)} holds null; {_NUMBERS}")
            lengths = np.diff(ends).astype(np.int64)
        self._values[self._n_values : self._n_values + len(values)] = values.to_numpy()
        self._n_values += len(values)
        if len(lengths) == 0:
            return
        if self._of_last:
            lengths[0] += self._of_last
            sizes[0] -= 1  # it was counted
        least, most, self._of_last = lengths, lengths, 0
        if self._has_points and depth_after > depth_of_points:
            self._of_last = int(lengths[-1])
            least, most = lengths.copy(), lengths.copy()
            least[-1], most[-1] = np.iinfo(np.int64).max, 0  # not known yet
        self._count(
            goes_on,
            sizes,
            np.minimum.reduceat(least, offsets[:-1]),
            np.maximum.reduceat(most, offsets[:-1]),
        )

    def _count(
        self,
        goes_on: bool,
        sizes: NDArray[np.int64],
        least: NDArray[np.int64],
        most: NDArray[np.int64],
    ) -> None:
        """Add bags, the first of which may be the last of those before."""
        if goes_on:
            self._sizes[-1][-1] += sizes[0]
            self._least[-1][-1] = min(self._least[-1][-1], least[0])
            self._most[-1][-1] = max(self._most[-1][-1], most[0])
            sizes, least, most = sizes[1:], least[1:], most[1:]
        if len(sizes):
            self._sizes.append(sizes)
            self._least.append(least)
            self._most.append(most)
            self._n_bags += len(sizes)

    def bags(self) -> Bags:
        """Return the bags.

        Raises
        ------
        ValueError
            Points have different lengths; `DataError` if there are no bags.
        """
        if self._n_bags == 0:
            return as_bags([])
        least, most = np.concatenate(self._least), np.concatenate(self._most)
        n_dims = least[0]
        differs = (least != n_dims) | (most != n_dims)
        if differs.any():
            bag = int(np.argmax(differs))
            if least[bag] < most[bag]:
                raise ValueError(
                    f"bag {bag} is not an array: its points have {least[bag]} to {most[bag]} "
                    "coordinates"
                )
            raise ValueError(f"bag {bag} has dimension {least[bag]}, bag 0 has {n_dims}")
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(self._sizes))])
        return Bags(self._values[: self._n_values].reshape(offsets[-1], n_dims), offsets)

    def _read(self, text: bytes) -> pyarrow.Array:
        """Return the list of bags, or of points, of a piece."""
        import pyarrow

        try:
            try:
                table = _table(text, self._has_points)
            except pyarrow.ArrowInvalid as error:
                if "from array to number" not in str(error) or self._n_values:
                    raise
                self._has_points = False  # bags in one dimension may be lists of numbers
                table = _table(text, self._has_points)
        except pyarrow.ArrowException as error:
            raise ValueError(
                f"the body is not bags of numbers ({error}); expected {EXPECTED}"
            ) from error
        rows = {key: table[key].combine_chunks() for key in table.column_names}
        keys = [key for key in ("bag", "bags") if rows[key].null_count == 0]
        if table.num_rows != 1 or len(keys) != 1 or (self.key and keys != [self.key]):
            raise ValueError(NOT_BAGS)
        self.key = keys[0]
        names = rows["columns"][0].as_py()
        if names is not None and self.names is not None:
            raise ValueError('the key "columns" comes twice; give it once')
        self.names = names if self.names is None else self.names
        return rows[self.key].values


def _first_null(values: pyarrow.Array) -> int:
    return int(np.argmin(values.is_valid().to_numpy(zero_copy_only=False)))


def _table(text: bytes, has_points: bool) -> pyarrow.Table:
    """Return the text of an object as a table of one row."""
    import pyarrow.json

    number = pyarrow.float64()
    bag = pyarrow.list_(pyarrow.list_(number) if has_points else number)
    names = pyarrow.list_(pyarrow.string())
    fields = [("bag", bag), ("bags", pyarrow.list_(bag)), ("columns", names)]
    return pyarrow.json.read_json(
        pyarrow.py_buffer(text),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        pyarrow.json.ParseOptions(
            explicit_schema=pyarrow.schema(fields),
            newlines_in_values=True,
            unexpected_field_behavior="error",
        ),
    )
