"""Deleting the points, responses and labels of removed bags from the disk.

Offsets, ids and indices do not change. The rows become fill values, which compress to almost
nothing. Each object is replaced in one step. If the process is killed, the store reads as before,
and the next `compact` finishes the work. A reader that still requests the removed bags gets an
error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Integers
from ..storage.lazy_zarr import AnyArray
from .changes import Changes
from .checksums import replaced
from .chunks import read_rows, shard_rows
from .schema import CHANGES, TARGETS, StoreArray, fill_of, points_of
from .snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class Erasure:
    """Rows of one array that hold data of removed bags.

    Attributes
    ----------
    array : StoreArray
    starts, stops : int64, shape (n,)
        Ranges of these rows, ascending, none of them empty.
    column : int
        The first column to erase.
    """

    array: StoreArray
    starts: Integers
    stops: Integers
    column: int = 0

    def blocks(self, n_rows: int, step: int) -> Iterator[tuple[int, int]]:
        """Yield the objects of ``step`` rows that hold such rows; ``n_rows`` are committed."""
        pairs = zip(self.starts // step, (self.stops - 1) // step, strict=True)
        spans = [np.arange(a, b + 1) for a, b in pairs]
        for shard in np.unique(np.concatenate(spans)) if spans else ():
            yield int(shard) * step, min(n_rows, (int(shard) + 1) * step)

    def erased(self, block: NDArray[Any], first: int) -> NDArray[Any]:
        """Return rows from ``first`` on with fill values instead of what is erased."""
        out = block.copy()
        a = int(np.searchsorted(self.stops, first, "right"))
        b = int(np.searchsorted(self.starts, first + len(block)))
        for start, stop in zip(self.starts[a:b], self.stops[a:b], strict=True):
            out[max(0, start - first) : stop - first, self.column :] = fill_of(block.dtype)
        return out


def erasures(store: Snapshot, n_changes: int) -> Iterator[Erasure]:
    """Yield the erasures for the bags that the first ``n_changes`` changes removed."""
    gone = Changes(store.changes.rows[:n_changes]).removed
    for points in points_of(store.meta):
        offsets = store.read_array(points.offsets, 0, points.offsets.rows(store.meta))
        full = offsets[gone + 1] > offsets[gone]
        yield Erasure(points, offsets[gone][full], offsets[gone + 1][full])
    yield Erasure(TARGETS, gone, gone + 1)
    bags, columns, _ = store.changes.rows.T
    labels = np.flatnonzero(np.isin(bags, gone) & (columns >= 0))
    yield Erasure(CHANGES, labels, labels + 1, 2)


def checksum_after(store: Snapshot, before: Erasure, after: Erasure) -> int | None:
    """Return the checksum of an array after its erasure is replaced by a larger erasure.

    None in a store without checksums.
    """
    array = after.array
    checksum, n_rows = array.checksum(store.meta), array.rows(store.meta)
    if checksum is None:
        return None
    for first, last in after.blocks(n_rows, shard_rows(store.array(array))):
        block = store.read_stored(array, first, last)
        old, new = before.erased(block, first), after.erased(block, first)
        checksum = replaced(checksum, old, new, (n_rows - last) * block[0].nbytes)
    return checksum


def erase(erasure: Erasure, array: AnyArray, n_rows: int) -> None:
    """Put fill values into the rows, object by object; ``n_rows`` are committed."""
    for first, last in erasure.blocks(n_rows, shard_rows(array)):
        block = read_rows(array, first, last)
        erased = erasure.erased(block, first)
        # otherwise an earlier compaction did it
        if not np.array_equal(erased, block, equal_nan=block.dtype.kind == "f"):
            array[first:last] = erased
