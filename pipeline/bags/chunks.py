"""Reading rows of one stored array; what can not be read is named by chunk and object."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.sync import sync

ATTEMPTS = 3  # an append replaces the last object once per commit: two readings may meet two


class UnreadableChunk(Exception):
    """The first chunk of the rows asked for that is missing or damaged.

    Attributes
    ----------
    row : int
        The first row asked for that lies in it.
    """

    def __init__(self, array: zarr.Array, row: int, reason: str) -> None:
        chunk = row // array.chunks[0]
        super().__init__(f"chunk {chunk} (object {object_key(array, row)}) {reason}")
        self.row = row


def read_rows(array: zarr.Array, start: int, stop: int) -> NDArray[Any]:
    """Rows ``start:stop`` of an array.

    What fails is tried again chunk by chunk: an append may replace the last object between the
    reading of its index and that of its chunks. What fails again is damaged.

    Raises
    ------
    UnreadableChunk
    """
    try:
        rows = np.asarray(array[start:stop])
    except Exception:
        step = array.chunks[0]
        cuts = [start, *range((start // step + 1) * step, stop, step), stop]
        rows = np.concatenate([_read_chunk(array, a, b) for a, b in pairwise(cuts)])
    if len(rows) < stop - start:
        raise UnreadableChunk(
            array, start + len(rows), f"is beyond the {array.shape[0]} rows there"
        )
    if _holds(rows, array.fill_value):
        check_objects(array, start, stop)
    return rows


def check_objects(array: zarr.Array, start: int, stop: int) -> None:
    """Raise UnreadableChunk for a missing or empty object: its rows would read as fill values."""
    for row in range(start - start % shard_rows(array), stop, shard_rows(array)):
        try:
            size = sync(array.store.getsize(object_key(array, row)))
        except FileNotFoundError:
            raise UnreadableChunk(array, max(row, start), "is missing") from None
        if not size:
            raise UnreadableChunk(array, max(row, start), "is damaged (it is empty)")


def _read_chunk(array: zarr.Array, start: int, stop: int) -> NDArray[Any]:
    for _ in range(ATTEMPTS - 1):
        with suppress(Exception):
            return np.asarray(array[start:stop])
    try:
        return np.asarray(array[start:stop])
    except Exception as error:
        reason = f"is damaged or can not be read ({type(error).__name__}: {error})"
        raise UnreadableChunk(array, start, reason) from error


def _holds(rows: NDArray[Any], fill: Any) -> bool:
    same = np.isnan(rows) if rows.dtype.kind == "f" else rows == fill
    return bool(same.any())


def shard_rows(array: zarr.Array) -> int:
    """Rows in one stored object."""
    return int((array.shards or array.chunks)[0])


def object_key(array: zarr.Array, row: int) -> str:
    """The key, in the array's store, of the object that holds a row."""
    coordinates = (row // shard_rows(array),) + (0,) * (array.ndim - 1)
    key = array.metadata.encode_chunk_key(coordinates)
    return f"{array.path}/{key}" if array.path else key
