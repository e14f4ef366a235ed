"""Reading rows of a stored array; errors name the unreadable chunk and its object."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import StoreError, refuse_exhaustion
from ...core.units import surely_finite
from ..storage.lazy_zarr import AnyArray, zarr_sync

MAX_UNSEEN = 8  # objects that a read may touch before their presence is checked
SIZES_AT_ONCE = 64
ATTEMPTS = 3  # an append replaces the last object once per commit: two readings may meet two


class ChunkError(Exception):
    """Error that names the first missing or damaged chunk of the rows.

    Attributes
    ----------
    row : int
        First of the requested rows that lies in the chunk.
    name : str
        Name of the array.
    """

    def __init__(self, array: AnyArray, row: int, reason: str) -> None:
        chunk = row // array.chunks[0]
        super().__init__(f"chunk {chunk} (object {object_key(array, row)}) {reason}")
        self.row, self.name = row, array.path


def read_rows(array: AnyArray, start: int, stop: int) -> NDArray[Any]:
    """Read rows ``start:stop`` of an array.

    If a read fails, it is repeated chunk by chunk, because an append may have replaced the last
    object between the reads of its index and its chunks. A chunk that fails again is damaged.

    Raises
    ------
    ChunkError
        If a chunk is missing or damaged.
    """
    if (stop - 1) // shard_rows(array) - start // shard_rows(array) >= MAX_UNSEEN:
        check_objects(array, start, stop)  # before memory is filled for objects that are missing
    try:
        rows = np.asarray(array[start:stop])
    except Exception as error:  # Zarr, codecs and fsspec raise anything; `_read_chunk` names it
        refuse_exhaustion(f"array {array.path!r}, rows {start} to {stop}", error)
        step = array.chunks[0]
        cuts = [start, *range((start // step + 1) * step, stop, step), stop]
        rows = np.concatenate([_read_chunk(array, a, b) for a, b in pairwise(cuts)])
    if len(rows) < stop - start:
        raise ChunkError(array, start + len(rows), f"is beyond the {array.shape[0]} rows there")
    # Zarr reads a missing object as fill values: of floats, NaN
    is_whole = rows.dtype.kind == "f" and surely_finite(rows)
    if not is_whole and is_fill(rows, array.fill_value).any():
        check_objects(array, start, stop)
    return rows


def write_rows(array: AnyArray, start: int, rows: NDArray[Any]) -> None:
    """Write rows from ``start`` on; earlier rows in the same object are read and rewritten.

    Raises
    ------
    ChunkError
        If a chunk before the rows is damaged.
    """
    stop = start + len(rows)
    try:
        array[start:stop] = rows
    except (ValueError, RuntimeError):  # codecs raise these for damaged bytes
        first = start - start % shard_rows(array)
        if first == start:
            raise
        read_rows(array, first, start)
        array[start:stop] = rows  # a network had damaged what was read first


def check_objects(array: AnyArray, start: int, stop: int) -> None:
    """Raise ChunkError for a missing or empty object: its rows would read as fill values."""
    step = shard_rows(array)
    rows = range(start - start % step, stop, step)
    for first in range(0, len(rows), SIZES_AT_ONCE):
        asked = rows[first : first + SIZES_AT_ONCE]
        # Zarr has no public synchronous call for the size of an object
        for row, size in zip(asked, zarr_sync.sync(_sizes(array, asked)), strict=True):
            if isinstance(size, FileNotFoundError):
                raise ChunkError(array, max(row, start), "is missing") from None
            if isinstance(size, StoreError):
                raise size
            if isinstance(size, BaseException):
                reason = f"cannot be read ({type(size).__name__}: {size})"
                raise ChunkError(array, max(row, start), reason) from size
            if not size:
                raise ChunkError(array, max(row, start), "is damaged (it is empty)")


async def _sizes(array: AnyArray, rows: Iterable[int]) -> list[int | BaseException]:
    """Return the size of the object of each row, or the error of the attempt."""
    asked = [array.store.getsize(object_key(array, row)) for row in rows]
    return await asyncio.gather(*asked, return_exceptions=True)


def _read_chunk(array: AnyArray, start: int, stop: int) -> NDArray[Any]:
    for _ in range(ATTEMPTS - 1):
        with suppress(Exception):  # the last attempt below tells the error
            return np.asarray(array[start:stop])
    try:
        return np.asarray(array[start:stop])
    except Exception as error:  # damaged bytes make codecs raise anything
        refuse_exhaustion(f"array {array.path!r}, rows {start} to {stop}", error)
        reason = f"is damaged or cannot be read ({type(error).__name__}: {error})"
        raise ChunkError(array, start, reason) from error


def is_fill(rows: NDArray[Any], fill: object) -> NDArray[np.bool_]:
    """Return which values belong to rows that were never written."""
    same: NDArray[np.bool_] = np.isnan(rows) if rows.dtype.kind == "f" else rows == fill
    return same


def shard_rows(array: AnyArray) -> int:
    """Return the number of rows in one stored object."""
    return int((array.shards or array.chunks)[0])


def object_key(array: AnyArray, row: int) -> str:
    """Return the key, in the array's store, of the object that holds a row."""
    coordinates = (row // shard_rows(array),) + (0,) * (array.ndim - 1)
    key = array.metadata.encode_chunk_key(coordinates)
    return f"{array.path}/{key}" if array.path else key
