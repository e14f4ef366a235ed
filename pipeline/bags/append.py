"""Appending to a store: everything is written past the committed end, then committed at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from numpy.typing import NDArray

from ..errors import DataError, StoreError
from .bags import Bags, check_finite
from .identity import IdRegistry, as_ids
from .layout import StoreMeta, create_ids
from .targets import targets_matrix

if TYPE_CHECKING:
    from .store import BagStore


class TailWriter:
    """Buffers rows that follow the end of one array; writes whole shards, the rest on flush."""

    def __init__(self, array: zarr.Array, end: int) -> None:
        self.array = array
        self.end = end
        self._shard = (array.shards or array.chunks)[0]
        self._pending: list[NDArray[Any]] = []
        self._n_pending = 0

    def push(self, rows: NDArray[Any]) -> None:
        self._pending.append(rows)
        self._n_pending += len(rows)
        full = (self.end + self._n_pending) // self._shard * self._shard - self.end
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


class AppendSession:
    """Bags on their way into a store; made by `BagStore.appending`, committed on clean exit."""

    def __init__(self, store: BagStore) -> None:
        self._store = store
        self._meta = store.meta
        group = store.writable_group()
        self._group = group
        self._points = TailWriter(_array(group, "points"), self._meta.n_points)
        self._offsets = TailWriter(_array(group, "offsets"), self._meta.n_bags + 1)
        self._targets = TailWriter(_array(group, "targets"), self._meta.n_bags)
        self._open_ids()
        self._n_points = self._meta.n_points
        self._n_bags = self._meta.n_bags

    def write(
        self, bags: Bags, targets: Any = None, ids: Sequence[Any] | NDArray[Any] | None = None
    ) -> None:
        """Append bags; see `BagStore.append` for the arguments."""
        points = self._checked_points(bags, ids)
        with write_errors(self._store.url):
            self._register(bags.sizes, targets, ids)
            self._points.push(points)

    def reserve(
        self, sizes: NDArray[np.int64], targets: Any = None, ids: NDArray[Any] | None = None
    ) -> int:
        """Append bags whose points are written by `BagStore.write_points`; the first row's index.

        The caller sees to it that all points are there before the session ends.
        """
        row = self._n_points
        with write_errors(self._store.url):
            self._register(sizes, targets, ids)
            self._points.skip(int(sizes.sum()))
        return row

    def commit(self, source: Mapping[str, Any] | None = None) -> StoreMeta:
        """Flush and put the new counts in one metadata write."""
        with write_errors(self._store.url):
            for tail in (self._points, self._offsets, self._ids, self._targets):
                tail.flush()
            meta = self._grown(source)
            self._group.update_attributes(meta.to_attributes())
        return meta

    def _grown(self, source: Mapping[str, Any] | None) -> StoreMeta:
        return self._meta.grown(
            n_bags=self._n_bags,
            n_points=self._n_points,
            max_id=self._registry.max_id,
            source=dict(source) if source is not None else self._meta.source,
        )

    def _checked_points(self, bags: Bags, ids: Any) -> NDArray[Any]:
        if bags.n_dims != self._meta.n_dims:
            raise DataError(
                f"bags have dimension {bags.n_dims}, {self._store.url} holds dimension "
                f"{self._meta.n_dims}"
            )
        with np.errstate(over="ignore"):
            points = bags.points.astype(self._points.array.dtype, copy=False)
        check_finite(points, bags.offsets, ids)
        return points

    def _register(self, sizes: NDArray[np.int64], targets: Any, ids: Any) -> None:
        n_new = len(sizes)
        matrix = targets_matrix(targets, self._meta.target_names, self._meta.class_names, n_new)
        new_ids = self._new_ids(ids, n_new)
        self._registry.add(new_ids)
        self._ids.push(new_ids)
        self._targets.push(matrix)
        self._offsets.push(self._n_points + np.cumsum(sizes, dtype=np.int64))
        self._n_points += int(sizes.sum())
        self._n_bags += n_new

    def _new_ids(self, ids: Any, n_new: int) -> NDArray[Any]:
        if ids is None:
            if self._meta.id_kind == "str":
                raise DataError(f"{self._store.url} has string ids; pass ids, one a bag")
            first = self._n_bags if self._registry.max_id is None else self._registry.max_id + 1
            return np.arange(first, first + n_new, dtype=np.int64)
        array, kind = as_ids(ids, n_new)
        if kind != self._meta.id_kind:
            if self._n_bags:
                raise DataError(f"{self._store.url} has {self._meta.id_kind} ids, got {kind}")
            self._meta = self._meta.grown(id_kind=kind)
            create_ids(self._group, kind)
            self._open_ids()
        return array

    def _open_ids(self) -> None:
        self._ids = TailWriter(_array(self._group, "ids"), self._meta.n_bags)
        self._registry = IdRegistry(self._meta.id_kind, self._meta.max_id, self._ids.blocks)


def grow(array: zarr.Array, n_rows: int) -> None:
    """Make room for ``n_rows`` rows; an array that is long enough stays as it is."""
    if array.shape[0] < n_rows:
        array.resize((n_rows, *array.shape[1:]))


@contextmanager
def write_errors(url: str) -> Iterator[None]:
    """An OSError while writing becomes a StoreError that says nothing was committed."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{url}: writing failed ({reason}); nothing was committed") from error


def _array(group: zarr.Group, name: str) -> zarr.Array:
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise StoreError(f"{group.store}: {name!r} is not an array")
    return array.with_config({"write_empty_chunks": True})
