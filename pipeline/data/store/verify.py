"""Checks every invariant of a store's committed data and reports the first violation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ...core.annotations import Progress
from ...core.arrays import Integers
from ...core.errors import StoreError
from ..bags.ids import comparable
from ..bags.packed_points import PACKED, decode
from .checksums import checksum_of_rows
from .chunks import ChunkError, check_objects, shard_rows
from .compaction import Erasure, erasures
from .exchange.convention import contradiction
from .schema import (
    CHANGES,
    IDS,
    TARGETS,
    PointArray,
    StoreArray,
    StoreMeta,
    arrays_of,
    points_of,
    read_attributes,
)
from .snapshot import Snapshot


def verify_store(store: Snapshot, progress: Progress | None = None) -> None:
    """Raise StoreError for the first violated invariant, naming array, chunk and bag.

    ``progress`` is called with (points checked, all points), which include points of responses.
    """
    for array in arrays_of(store.meta):
        _check_shape(store, array)
    for array in arrays_of(store.meta):
        _check_objects(store, array)
    _check_convention(store)
    rows = _Rows(store)
    for points in points_of(store.meta):
        _check_offsets(rows, points)
    if store.meta.n_changes:
        rows.find_erased()
    if store.n_bags:
        _check_ids(rows)
    _check_targets(rows)
    if store.meta.n_changes:
        _check_changes(rows)
    done, total = 0, store.meta.n_points + store.n_response_points
    for points in points_of(store.meta):
        for checked in _check_points(rows, points):
            if progress is not None:
                progress(done + checked, total)
        done += points.rows(store.meta)
    rows.check()


def checksum_of_first(
    store: Snapshot, array: StoreArray, n_rows: int, columns: Integers | None = None
) -> int:
    """Return the checksum of the first rows of an array, which are read object by object.

    ``columns`` are the positions of the columns of the rows; None: all in order.
    """
    checksum, step = 0, shard_rows(store.array(array))
    for start in range(0, n_rows, step):
        rows = store.read_stored(array, start, min(n_rows, start + step))
        checksum = checksum_of_rows(rows if columns is None else rows[:, columns], checksum)
    return checksum


class _Rows:
    """The committed rows of a store, read array by array, and their checksums."""

    def __init__(self, store: Snapshot) -> None:
        self.store = store
        self._checksums: dict[str, int] = {}
        self._erased: dict[str, Erasure] = {}

    def find_erased(self) -> None:
        """Find the rows that are or may be deleted; they count as fill values."""
        erased = erasures(self.store, self.store.meta.n_erased)
        self._erased = {erasure.array.name: erasure for erasure in erased}

    def blocks(self, array: StoreArray) -> Iterator[tuple[int, Any]]:
        """Yield the rows of an array object by object, each with its first row's number."""
        rows, checksum = array.rows(self.store.meta), 0
        step = shard_rows(self.store.array(array))
        for start in range(0, rows, step):
            block = self.store.read_stored(array, start, min(rows, start + step))
            erased = self._erased.get(array.name)
            checked = block if erased is None else erased.erased(block, start)
            checksum = checksum_of_rows(checked, checksum)
            yield start, block
        self._checksums[array.name] = checksum

    def check(self) -> None:
        """Raise StoreError for an array whose rows are not those that were committed."""
        for array in arrays_of(self.store.meta):
            committed = array.checksum(self.store.meta)
            computed = self._checksums.get(array.name)
            if None not in (committed, computed) and committed != computed:
                _fail(
                    self.store,
                    f"array {array.name!r} holds other rows than were committed to this store; "
                    "restore the array from a copy of this store",
                )


def _check_shape(store: Snapshot, array: StoreArray) -> None:
    stored, rows = store.array(array), array.rows(store.meta)
    if stored.shape[0] < rows:
        _fail(store, f"array {array.name!r} has {stored.shape[0]} rows, {rows} are committed")
    store.read_array(array, 0, 0)  # refuses another width


def _check_objects(store: Snapshot, array: StoreArray) -> None:
    try:
        check_objects(store.array(array), 0, array.rows(store.meta))
    except ChunkError as error:
        raise store.damage(array, error) from error


def _check_convention(store: Snapshot) -> None:
    """Check the attributes for other readers of Zarr."""
    attributes = read_attributes(store.url, store.snapshot)
    meta = StoreMeta.from_attributes(attributes, store.url)
    if (what := contradiction(meta, attributes)) is not None:
        _fail(store, what)


def _check_offsets(rows: _Rows, points: PointArray) -> None:
    """Offsets run from 0 to the committed points, with as many per bag as there must be."""
    store = rows.store
    array, least, n_points = points.offsets, points.fewest, points.rows(store.meta)
    previous = -least
    for start, block in rows.blocks(array):
        steps = np.diff(block, prepend=previous)
        if start == 0 and block[0] != 0:
            steps[0] = -1
        if (steps < least).any():
            at = start + int(np.flatnonzero(steps < least)[0])
            what = "is empty or out of order" if least else "has a response that is out of order"
            _fail(store, f"{_chunk(store, array, at)}: bag {max(0, at - 1)} {what}")
        previous = int(block[-1])
    if previous != n_points:
        _fail(store, f"array {array.name!r} ends at {previous}, {n_points} points are committed")


def _check_ids(rows: _Rows) -> None:
    store = rows.store
    ids = comparable(np.concatenate([block for _, block in rows.blocks(IDS)]))
    values, first, counts = np.unique(ids, return_index=True, return_counts=True)
    if (counts > 1).any():
        value = values[counts > 1][0]
        again = int(np.flatnonzero(ids == value)[1])
        name = ids[again : again + 1].tolist()[0]
        _fail(
            store,
            f"{_chunk(store, IDS, again)}, bag {again}: id {name!r} is that of bag "
            f"{first[counts > 1][0]} too",
        )
    largest = int(values[-1]) if store.meta.id_kind == "int64" else None
    if largest != store.meta.max_id:
        _fail(
            store,
            f"array {IDS.name!r}: the largest id is {largest}, {store.meta.max_id} is committed",
        )


def _check_targets(rows: _Rows) -> None:
    store = rows.store
    for start, block in rows.blocks(TARGETS):
        if np.isinf(block).any():
            at = start + int(np.argwhere(np.isinf(block))[0, 0])
            _fail(store, f"{_chunk(store, TARGETS, at)}, bag {at}: a target is infinite")


def _check_changes(rows: _Rows) -> None:
    """Check that changes are of bags and targets that there are, with finite values."""
    store = rows.store
    for start, block in rows.blocks(CHANGES):
        bags, columns, values = block.T
        erased = np.isin(bags, store.changes.removed)
        known = np.isin(bags, np.arange(store.n_bags)) & (np.isfinite(values) | erased)
        known &= np.isin(columns, np.arange(-1, len(store.target_names)))
        if not known.all():
            at = start + int(np.argmin(known))
            _fail(store, f"{_chunk(store, CHANGES, at)}: change {at} is none of a bag there is")


def _check_points(rows: _Rows, points: PointArray) -> Iterator[int]:
    """Yield the points checked so far; all coordinates of present bags must be finite."""
    store = rows.store
    for start, stored in rows.blocks(points):
        block = decode(stored, points.box(store.meta)) if stored.dtype in PACKED else stored
        if not np.isfinite(block).all():
            offsets = store.read_array(points.offsets, 0, points.offsets.rows(store.meta))
            wrong = start + np.flatnonzero(~np.isfinite(block).all(axis=1))
            bags = np.searchsorted(offsets, wrong, side="right") - 1
            damaged = store.present()[bags]
            if not damaged.any():
                yield start + len(block)
                continue
            row, bag = int(wrong[damaged][0]), int(bags[damaged][0])
            _fail(
                store,
                f"{_chunk(store, points, row)}, bag {bag}, row {row - offsets[bag]}: "
                "a coordinate is not finite",
            )
        yield start + len(block)


def _chunk(store: Snapshot, array: StoreArray, row: int) -> str:
    """Return the name, in messages, of the chunk that holds a row."""
    return f"array {array.name!r}, chunk {row // int(store.array(array).chunks[0])}"


def _fail(store: Snapshot, what: str) -> NoReturn:
    raise StoreError(f"{store.url}: {what}")
