"""Writing rows behind the committed end of one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray


class TailWriter:
    """Buffers rows that follow the end of one array; writes whole shards, the rest on flush."""

    def __init__(self, array: zarr.Array, end: int) -> None:
        self.array = array
        self.end = end
        self._shard = (array.shards or array.chunks)[0]
        self._pending: list[NDArray[Any]] = []
        self._n_pending = 0

    @property
    def length(self) -> int:
        """Rows written or pending."""
        return self.end + self._n_pending

    def push(self, rows: NDArray[Any]) -> None:
        full = (self.length + len(rows)) // self._shard * self._shard - self.end
        # What stays pending is a copy: the caller may use the array again.
        self._pending.append(rows if full > 0 else rows.copy())
        self._n_pending += len(rows)
        if full > 0:
            self._write(full)

    def flush(self) -> None:
        if self._n_pending:
            self._write(self._n_pending)

    def skip(self, n_rows: int) -> None:
        """Leave room for rows that somebody else writes."""
        self.flush()
        self.end += n_rows
        grow(self.array, self.end)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows up to the end, written or pending."""
        for start in range(0, self.end, self._shard):
            yield np.asarray(self.array[start : min(self.end, start + self._shard)])
        yield from self._pending

    def _write(self, n_rows: int) -> None:
        rows = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
        grow(self.array, self.end + n_rows)
        self.array[self.end : self.end + n_rows] = rows[:n_rows]
        self.end += n_rows
        self._n_pending -= n_rows
        self._pending = [rows[n_rows:].copy()] if self._n_pending else []


def grow(array: zarr.Array, n_rows: int) -> None:
    """Make room for ``n_rows`` rows; an array that is long enough stays as it is."""
    if array.shape[0] < n_rows:
        array.resize((n_rows, *array.shape[1:]))
