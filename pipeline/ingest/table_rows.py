"""Rows of a long table as data frames, and the rows of whole bags as bags.

`decode` turns a piece into a frame of columns ``id``, ``order`` (file and row), ``range`` and
the values; after the rows of a range of ids have come together, `group` sorts them into bags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ..bags.bags import Bags, offsets_of
from ..bags.responses import Responses
from ..errors import DataError
from .columns import numbers, plain
from .table_files import Columns, Piece, read_piece

ROW_BITS = 40  # of `order`: the row in its file; above it the number of the file
TEXT = "string[pyarrow]"


@dataclass(frozen=True)
class Decoder:
    """How the pieces of a table become frames.

    Attributes
    ----------
    columns : Columns
    ids : {"number", "text"}
    dtype : str
        Of the coordinates, in NumPy's name.
    classes : dict from target to its labels
        Text targets become the index of their label.
    starts : tuple of int or str
        The first id of ranges 1, 2, …
    places : tuple of int
        The partition each range goes to.
    """

    columns: Columns
    ids: str
    dtype: str
    classes: dict[str, list[str]]
    starts: tuple[Any, ...]
    places: tuple[int, ...]

    def empty(self) -> pd.DataFrame:
        """A frame without rows, with the columns and dtypes of all frames."""
        values = dict.fromkeys(self._coordinates(), self.dtype)
        values |= dict.fromkeys(self._targets(), "float64")
        types = {"id": TEXT if self.ids == "text" else "int64", "order": "int64", "range": "int64"}
        return pd.DataFrame({k: pd.Series(dtype=v) for k, v in (types | values).items()})

    def decode(self, piece: Piece, first_row: int) -> pd.DataFrame:
        """The rows of one piece, which begins at ``first_row`` of its file."""
        table = read_piece(piece, self.columns)
        ids = self._ids(plain(table[self.columns.id]))
        first = (piece.file_index << ROW_BITS) + first_row
        frame = {"id": ids, "order": np.arange(first, first + len(ids)), "range": self._range(ids)}
        for key, name in zip(self._coordinates(), self.columns.coordinates, strict=True):
            frame[key] = numbers(plain(table[name])).astype(self.dtype)
        for key, name in zip(self._targets(), self.columns.targets, strict=True):
            frame[key] = self._target(plain(table[name]), name)
        return pd.DataFrame(frame)

    def points(self, frame: pd.DataFrame) -> NDArray[Any]:
        """The coordinates in a frame, shape (n_rows, n_dims)."""
        return _matrix(frame, self._coordinates(), self.dtype)

    def targets(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The targets in a frame, shape (n_rows, n_targets)."""
        return _matrix(frame, self._targets(), "float64")

    def shown(self, target: int, value: float) -> str:
        """A stored target as the table had it."""
        labels = self.classes.get(self.columns.targets[target])
        return repr(labels[int(value)]) if labels and value == value else str(value)

    def _coordinates(self) -> list[str]:
        return [f"x{j}" for j in range(len(self.columns.coordinates))]

    def _targets(self) -> list[str]:
        return [f"y{j}" for j in range(len(self.columns.targets))]

    def _ids(self, ids: pa.Array) -> Any:
        if self.ids == "text":
            return pd.array(ids.to_pandas(), dtype=TEXT)
        return ids.cast(pa.int64()).to_numpy(zero_copy_only=False)

    def _range(self, ids: Any) -> NDArray[np.int64]:
        codes, distinct = pd.factorize(ids)
        starts = np.array(self.starts, dtype=np.int64 if self.ids == "number" else object)
        ranges = np.searchsorted(starts, np.asarray(distinct), side="right")
        return np.array(self.places, dtype=np.int64)[ranges][codes]

    def _target(self, array: pa.Array, name: str) -> NDArray[np.float64]:
        if name not in self.classes:
            return numbers(array)
        codes = pd.Index(self.classes[name]).get_indexer(pd.Index(array.to_pandas(), dtype=object))
        return np.where(codes < 0, np.nan, codes)


@dataclass(frozen=True)
class Group:
    """The bags of one range of ids, ascending by id.

    ``ids``, shape (n_bags,), are int64 or text, ``targets`` of shape (n_bags, n_targets), NaN
    where unlabelled, None when the points have none. ``n_without_row`` bags are not in the target
    table. ``responses`` is None without a table of them.
    """

    ids: NDArray[Any]
    sizes: NDArray[np.int64]
    points: NDArray[Any]
    targets: NDArray[np.float64] | None
    n_without_row: int = 0
    responses: Responses | None = None

    @property
    def bags(self) -> Bags:
        return Bags.trusted(self.points, offsets_of(self.sizes))


def group(frame: pd.DataFrame, decoder: Decoder) -> Group:
    """Sort the rows of whole bags by id, and within a bag in the order of the files.

    Raises
    ------
    DataError
        A target that is not the same in all rows of a bag.
    """
    codes, ids = pd.Index(frame["id"]).factorize(sort=True)
    order = np.lexsort((frame["order"].to_numpy(), codes))
    sizes = np.bincount(codes, minlength=len(ids)).astype(np.int64)
    targets = None
    if decoder.columns.targets:
        rows = decoder.targets(frame)[order]
        targets = rows[offsets_of(sizes)[:-1]]
        _check_constant(rows, targets, sizes, ids, decoder)
    return Group(np.asarray(ids), sizes, decoder.points(frame)[order], targets)


def label(bags: Group, frame: pd.DataFrame, decoder: Decoder, files: Sequence[str]) -> Group:
    """The same bags with the targets of the rows of a target table in the same range of ids.

    Raises
    ------
    DataError
        An id that is there twice, or that no point has; names the file and the row.
    """
    frame = frame.sort_values("order", ignore_index=True)
    again = np.flatnonzero(frame["id"].duplicated())
    if len(again):
        at = int(again[0])
        first = int(np.flatnonzero(frame["id"] == frame["id"][at])[0])
        raise DataError(
            f"{_where(frame, at, files)}: id {_plain(frame['id'][at])!r} is repeated in the target "
            f"table (first in {_where(frame, first, files)}); keep one row a bag"
        )
    position = _positions(frame, bags, files, "target")
    targets = np.full((len(bags.ids), len(decoder.columns.targets)), np.nan)
    targets[position] = decoder.targets(frame)
    return replace(bags, targets=targets, n_without_row=len(bags.ids) - len(frame))


def respond(bags: Group, frame: pd.DataFrame, decoder: Decoder, files: Sequence[str]) -> Group:
    """The same bags with the rows of a response table in the same range of ids, in file order.

    Raises
    ------
    DataError
        An id that no point has; names the file and the row.
    """
    frame = frame.sort_values("order", ignore_index=True)
    position = _positions(frame, bags, files, "response")
    points = decoder.points(frame)[np.argsort(position, kind="stable")]
    sizes = np.bincount(position, minlength=len(bags.ids)).astype(np.int64)
    return replace(bags, responses=Responses.trusted(points, offsets_of(sizes)))


def _positions(
    frame: pd.DataFrame, bags: Group, files: Sequence[str], table: str
) -> NDArray[np.int64]:
    """The bag of each row of another table."""
    position = pd.Index(bags.ids).get_indexer(pd.Index(frame["id"], dtype=bags.ids.dtype))
    unknown = np.flatnonzero(position < 0)
    if len(unknown):
        at = int(unknown[0])
        raise DataError(
            f"{_where(frame, at, files)}: id {_plain(frame['id'][at])!r} of the {table} table is "
            "unknown: no point has it; remove the row or add the bag's points"
        )
    return np.asarray(position, dtype=np.int64)


def _check_constant(
    rows: NDArray[np.float64],
    targets: NDArray[np.float64],
    sizes: NDArray[np.int64],
    ids: Any,
    decoder: Decoder,
) -> None:
    expected = np.repeat(targets, sizes, axis=0)
    differs = (rows != expected) & ~(np.isnan(rows) & np.isnan(expected))
    if not differs.any():
        return
    row, j = (int(at) for at in np.argwhere(differs)[0])
    bag = int(np.searchsorted(np.cumsum(sizes), row, side="right"))
    raise DataError(
        f"bag {_plain(ids[bag])!r}: target {decoder.columns.targets[j]!r} is "
        f"{decoder.shown(j, targets[bag, j])} in one row and {decoder.shown(j, rows[row, j])} in "
        "another; it must be the same in all rows of a bag"
    )


def _matrix(frame: pd.DataFrame, keys: Sequence[str], dtype: str) -> NDArray[Any]:
    out = np.empty((len(frame), len(keys)), dtype=dtype)
    for j, key in enumerate(keys):
        out[:, j] = frame[key].to_numpy()
    return out


def _where(frame: pd.DataFrame, row: int, files: Sequence[str]) -> str:
    order = int(frame["order"][row])
    return f"{files[order >> ROW_BITS]}, row {order & ((1 << ROW_BITS) - 1)}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
