"""Deleting the points, responses and labels of removed bags from the disk.

Nothing moves: offsets, ids and indices stay, and the rows become fill values, which compress to
almost nothing. Each object is replaced in one step. If the process is killed, the store reads as
before, and the next `compact` finishes the work. A reader that still wants the removed bags gets an
error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import zarr

from ..arrays import Integers
from .chunks import is_fill, shard_rows
from .schema import CHANGES, TARGETS, Array, points_of
from .snapshot import Snapshot

Rows = tuple[Integers, Integers]
"""Ranges of rows, ascending: where they start, and where they stop."""


def rows_to_erase(store: Snapshot) -> Iterator[tuple[Array, Rows, int]]:
    """Yield each array that holds data of removed bags, the rows, and the first column to erase."""
    gone = store.changes.removed
    for points in points_of(store.meta):
        offsets = store.read_array(points.offsets, 0, points.offsets.rows(store.meta))
        yield points, (offsets[gone], offsets[gone + 1]), 0
    yield TARGETS, (gone, gone + 1), 0
    bags, columns, _ = store.changes.rows.T
    labels = np.flatnonzero(np.isin(bags, gone) & (columns >= 0))
    yield CHANGES, (labels, labels + 1), 2


def erase(array: zarr.Array, rows: Rows, column: int, n_rows: int) -> None:
    """Put fill values into rows from a column on, object by object; ``n_rows`` are committed."""
    starts, stops = rows
    step = shard_rows(array)
    full = stops > starts
    starts, stops = starts[full], stops[full]
    spans = [np.arange(a, b + 1) for a, b in zip(starts // step, (stops - 1) // step, strict=True)]
    for shard in np.unique(np.concatenate(spans)) if spans else ():
        first, last = int(shard) * step, min(n_rows, (int(shard) + 1) * step)
        block = np.asarray(array[first:last])
        wrong = np.zeros(len(block), dtype=bool)
        a, b = np.searchsorted(stops, first, "right"), np.searchsorted(starts, last)
        for i in range(int(a), int(b)):
            wrong[max(0, starts[i] - first) : stops[i] - first] = True
        if is_fill(block[wrong, column:], array.fill_value).all():
            continue  # by a compaction before
        block[wrong, column:] = array.fill_value
        array[first:last] = block
