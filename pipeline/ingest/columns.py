"""Columns of long tables as Arrow gives them: what they hold, and which values can not be used.

A column holds numbers or text. CSV does not say which: there a column of numerals is "either",
and what the other files hold decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import DataError
from .table_files import is_parquet

MAX_CLASSES = 2**14

Problem = tuple[int, str]  # the row, what is wrong with it


@dataclass(frozen=True)
class Kind:
    """What a column holds in one file: "number", "text" or "either", with a text found in it."""

    kind: str
    file: str
    example: str | None = None


def resolve(what: str, kinds: Iterable[Kind]) -> str:
    """ "number" or "text" for a column of several files; numerals in CSV follow the others.

    Raises
    ------
    DataError
        Numbers in one file and text in another; ``what`` names the column.
    """
    first: dict[str, Kind] = {}
    for kind in kinds:
        first.setdefault(kind.kind, kind)
    if "number" in first and "text" in first:
        raise DataError(
            f"{what} holds numbers in {first['number'].file} and text in {first['text'].file} "
            f"(such as {first['text'].example!r}); write them alike"
        )
    return "text" if "text" in first else "number"


def plain(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array, dictionary decoded, any type of text as one type."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        column = column.cast(pa.large_string())
    chunks = column.chunks
    return (
        chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], column.type)])
    )


def numbers(array: pa.Array) -> NDArray[np.float64]:
    """Numbers or numerals as float64, NaN where null.

    Raises
    ------
    pyarrow.ArrowInvalid
        Text that is no numeral.
    """
    values = pc.cast(array, pa.float64(), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of those of text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of those of real numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def id_kind(ids: pa.Array, name: str, file: str) -> Kind:
    """The kind of an id column; numerals in CSV count only as Python would write the integer.

    So that 007 and 7 stay two bags.

    Raises
    ------
    DataError
        Neither integers nor text, or integers beyond int64.
    """
    if pa.types.is_integer(ids.type):
        if pa.types.is_uint64(ids.type) and (pc.max(ids).as_py() or 0) >= 2**63:
            raise DataError(f"{file}: ids in column {name!r} exceed int64; store them as text")
        return Kind("number", file)
    if not is_text(ids.type):
        raise DataError(
            f"{file}: id column {name!r} is {ids.type}; ids are integers or text (in pandas, "
            "missing values turn integers into floats)"
        )
    if is_parquet(file):
        return Kind("text", file, next(iter(ids.slice(0, 1).to_pylist()), None))
    try:
        rewritten = pc.cast(pc.cast(ids, pa.int64()), ids.type)
    except pa.ArrowInvalid:
        return Kind("text", file, _no_numeral(ids))
    row = first_row(pc.fill_null(pc.not_equal(rewritten, ids), False))
    return Kind("either", file) if row is None else Kind("text", file, ids[row].as_py())


def id_problem(ids: pa.Array) -> Problem | None:
    """The first row whose id is null or an empty text."""
    missing = ids.is_null()
    if is_text(ids.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(ids, ""), True))
    row = first_row(missing)
    what = "the bag id is missing; give every row its bag's id or remove it"
    return None if row is None else (row, what)


def coordinate_values(
    array: pa.Array, name: str, file: str, dtype: Any
) -> tuple[NDArray[np.float64], Problem | None]:
    """The values, and the first row that is not a finite number of the given dtype.

    Raises
    ------
    DataError
        The column is not one of numbers.
    """
    if not is_number(array.type) and (is_parquet(file) or not is_text(array.type)):
        raise DataError(f"{file}: coordinate column {name!r} is {array.type}, not numbers")
    try:
        values = numbers(array)
    except pa.ArrowInvalid:
        row = array.to_pylist().index(_no_numeral(array))
        return np.empty(0), (row, f"coordinate {name!r} is {array[row].as_py()!r}, not a number")
    with np.errstate(over="ignore"):
        bad = first_row(~np.isfinite(values.astype(dtype)))
    if bad is None:
        return values, None
    shown = "missing" if array[bad].as_py() is None else array[bad].as_py()
    what = f"coordinate {name!r} is {shown}, not a finite {np.dtype(dtype).name}"
    return values, (bad, f"{what}; remove the point or the bag")


def target_kind(
    array: pa.Array, name: str, file: str
) -> tuple[Kind, set[str] | None, Problem | None]:
    """The kind of a target column, its labels if they are text, the first row that is infinite.

    The labels are None when there are more than `MAX_CLASSES`.

    Raises
    ------
    DataError
        Neither numbers nor text.
    """
    if pa.types.is_null(array.type):
        return Kind("either", file), set(), None
    if is_text(array.type):
        distinct = pc.unique(array).drop_null()
        labels = set(distinct.to_pylist()) - {""} if len(distinct) <= MAX_CLASSES else None
        example = _no_numeral(distinct)
        if is_parquet(file) or example is not None:
            return Kind("text", file, example), labels, None
        return Kind("either", file), labels, _infinite(array, name)
    if is_number(array.type) or pa.types.is_boolean(array.type):
        return Kind("number", file), set(), _infinite(array, name)
    raise DataError(f"{file}: target column {name!r} is {array.type}, neither numbers nor text")


def first_row(mask: Any) -> int | None:
    """The first row where the mask holds."""
    rows = np.flatnonzero(np.asarray(mask))
    return int(rows[0]) if len(rows) else None


def _infinite(array: pa.Array, name: str) -> Problem | None:
    row = first_row(np.isinf(numbers(array)))
    return None if row is None else (row, f"target {name!r} is infinite")


def _no_numeral(array: pa.Array) -> str | None:
    """The first text that is not a number."""
    try:
        numbers(array)
    except pa.ArrowInvalid:
        if len(array) == 1:
            return str(array[0].as_py())
        half = len(array) // 2
        return _no_numeral(array[:half]) or _no_numeral(array[half:])
    return None
