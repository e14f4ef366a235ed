"""Checking a store: every invariant of its committed data, first violation first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import StoreError
from .rows import UnreadableChunk, check_objects, shard_rows

if TYPE_CHECKING:
    from .store import BagStore

Progress = Callable[[int, int], None]


def verify_store(store: BagStore, progress: Progress | None = None) -> None:
    """Raise StoreError for the first violated invariant; ``progress(points_done, n_points)``.

    The points of responses count as points.
    """
    _check_shapes(store)
    _check_objects(store)
    _check_offsets(store, "offsets", store.n_points, 1)
    if store.response_dims is not None:
        _check_offsets(store, "responses/offsets", store.n_response_points, 0)
    if store.n_bags:
        _check_ids(store)
    _check_targets(store)
    report = progress or (lambda done, total: None)
    _check_points(store, "points", store.offsets, 0, report)
    if store.response_dims is not None:
        _check_points(store, "responses/points", store.response_offsets, store.n_points, report)


def _check_shapes(store: BagStore) -> None:
    for name, rows in store.rows().items():
        array = store.array(name)
        if array.shape[0] < rows:
            _fail(store, f"array {name!r} has {array.shape[0]} rows, {rows} are committed")
    columns = {"points": store.n_dims, "targets": max(1, len(store.target_names))}
    if store.response_dims is not None:
        columns["responses/points"] = store.response_dims
    for name, expected in columns.items():
        if store.array(name).shape[1:] != (expected,):
            _fail(
                store, f"array {name!r} has {store.array(name).shape[1:]} columns, not {expected}"
            )


def _check_objects(store: BagStore) -> None:
    for name, rows in store.rows().items():
        try:
            check_objects(store.array(name), 0, rows)
        except UnreadableChunk as error:
            raise store.damage(name, error) from error


def _check_offsets(store: BagStore, name: str, n_points: int, least: int) -> None:
    """From 0 to ``n_points``, with ``least`` points a bag or more."""
    previous = -least
    for start, block in _blocks(store, name):
        steps = np.diff(block, prepend=previous)
        if start == 0 and block[0] != 0:
            steps[0] = -1
        if (steps < least).any():
            at = start + int(np.flatnonzero(steps < least)[0])
            what = "is empty or out of order" if least else "has a response that is out of order"
            _fail(
                store,
                f"array {name!r}, chunk {_chunk(store, name, at)}: bag {max(0, at - 1)} {what}",
            )
        previous = int(block[-1])
    if previous != n_points:
        _fail(store, f"array {name!r} ends at {previous}, {n_points} points are committed")


def _check_ids(store: BagStore) -> None:
    ids = np.concatenate([block for _, block in _blocks(store, "ids")])
    values, first, counts = np.unique(ids, return_index=True, return_counts=True)
    if (counts > 1).any():
        value = values[counts > 1][0]
        again = int(np.flatnonzero(ids == value)[1])
        _fail(
            store,
            f"array 'ids', chunk {_chunk(store, 'ids', again)}, bag {again}: id "
            f"{ids[again : again + 1].tolist()[0]!r} "
            f"is that of bag {first[counts > 1][0]} too",
        )
    largest = int(values[-1]) if store.meta.id_kind == "int64" else None
    if largest != store.meta.max_id:
        _fail(store, f"array 'ids': the largest id is {largest}, {store.meta.max_id} is committed")


def _check_targets(store: BagStore) -> None:
    for start, block in _blocks(store, "targets"):
        if np.isinf(block).any():
            at = start + int(np.argwhere(np.isinf(block))[0, 0])
            _fail(
                store,
                f"array 'targets', chunk {_chunk(store, 'targets', at)}, bag {at}: "
                "a target is infinite",
            )


def _check_points(
    store: BagStore,
    name: str,
    offsets: Callable[[], NDArray[np.int64]],
    done: int,
    progress: Progress,
) -> None:
    """All coordinates are finite; ``done`` points of other arrays are checked already."""
    for start, block in _blocks(store, name):
        if not np.isfinite(block).all():
            row = start + int(np.argwhere(~np.isfinite(block))[0, 0])
            ends = offsets()
            bag = int(np.searchsorted(ends, row, side="right")) - 1
            _fail(
                store,
                f"array {name!r}, chunk {_chunk(store, name, row)}, bag {bag}, row "
                f"{row - ends[bag]}: a coordinate is not finite",
            )
        progress(done + start + len(block), store.n_points + store.n_response_points)


def _blocks(store: BagStore, name: str) -> Iterator[tuple[int, Any]]:
    rows = store.rows()[name]
    step = shard_rows(store.array(name))
    for start in range(0, rows, step):
        yield start, store.read_array(name, start, min(rows, start + step))


def _chunk(store: BagStore, name: str, row: int) -> int:
    return row // int(store.array(name).chunks[0])


def _fail(store: BagStore, what: str) -> None:
    raise StoreError(f"{store.url}: {what}")
