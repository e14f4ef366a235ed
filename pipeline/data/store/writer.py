"""Appending to a store: all rows are written after the committed end, then committed at once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays import Floats, Integers
from ...core.errors import DataError, StoreError, warn
from ..bags.alignment import has_index, in_order_of, responses_in_order
from ..bags.bags import AnyRagged, Bags
from ..bags.box import SHOWN_DIMS, Box, measured_box, range_of
from ..bags.checks import IdsLike, check_finite
from ..bags.ids import LARGEST_ID, BagIds, TakenIds, as_ids, check_not_blank
from ..bags.packed_points import GIVE_BOX, PACKED, encode, points_dtype
from ..bags.precision import merged_by_float32, too_coarse
from ..bags.responses import Responses, as_responses
from ..storage.files import storage_errors
from ..storage.lazy_zarr import AnyArray, zarr, zarr_reading, zarr_writer
from ..storage.zarr_stores import writer_store
from .checksums import as_text, checksum_of_rows
from .chunks import ChunkError, read_rows, write_rows
from .compaction import checksum_after, erase, erasures
from .exchange.convention import next_attributes
from .schema import (
    CHANGES,
    COORDINATES,
    IDS,
    POINTS,
    RESPONSE_COORDINATES,
    RESPONSE_POINTS,
    TARGETS,
    PointArray,
    StoreArray,
    StoreMeta,
    arrays_of,
    points_of,
    replace_array,
    replace_points,
)
from .snapshot import Snapshot
from .targets import TargetsLike, targets_in_order, targets_matrix

# Fraction of an append's points outside the box, above which the box belongs to other data.
FOREIGN_FRACTION = 0.5
FIRST_POINTS = 4096  # points of a store that are read before an append: they show its range
WRITING = ("writing failed", "nothing was committed")  # what failed, and what is so now

ResponsesLike = Responses | Bags | Sequence[ArrayLike | None] | None


class CheckedLabels(NamedTuple):
    """The labels and ids of the bags of one write, checked.

    ``responses`` is None in a store without responses.
    """

    targets: Floats
    ids: NDArray[Any]
    id_kind: str
    responses: Responses | None


class TailWriter:
    """Buffers rows after the end of one array; writes whole shards, and the rest on flush."""

    def __init__(self, array: AnyArray, end: int, checksum: int | None) -> None:
        self.array = array
        self.checksum = checksum  # of all rows up to the end, written or pending
        self._end = end
        self._shard = (array.shards or array.chunks)[0]
        self._pending: list[NDArray[Any]] = []
        self._n_pending = 0

    @property
    def length(self) -> int:
        """Rows written or pending."""
        return self._end + self._n_pending

    def push(self, rows: NDArray[Any]) -> None:
        """Add rows; full shards are written at once."""
        full = (self.length + len(rows)) // self._shard * self._shard - self._end
        if self.checksum is not None:
            self.checksum = checksum_of_rows(rows, self.checksum)
        # what stays pending is a copy: the caller may use the array again
        self._pending.append(rows if full > 0 else rows.copy())
        self._n_pending += len(rows)
        if full > 0:
            self._write(full)

    def flush(self) -> None:
        """Write all pending rows."""
        if self._n_pending:
            self._write(self._n_pending)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield all rows up to the end, written or pending."""
        for start in range(0, self._end, self._shard):
            yield read_rows(self.array, start, min(self._end, start + self._shard))
        yield from self._pending

    def _write(self, n_rows: int) -> None:
        rows = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
        end = self._end + n_rows
        if self.array.shape[0] < end:  # a killed append may have left the array longer
            self.array.resize((end, *self.array.shape[1:]))
        write_rows(self.array, self._end, rows[:n_rows])
        self._end = end
        self._n_pending -= n_rows
        self._pending = [rows[n_rows:].copy()] if self._n_pending else []


class AppendSession:
    """Bags being written to a store; made by `BagStore.appending`, committed on clean exit.

    Parameters
    ----------
    snapshot : Snapshot
        The store at its committed length.
    still_ours : callable
        Raises WriterBusyError when the writer has lost the store.
    """

    def __init__(self, snapshot: Snapshot, still_ours: Callable[[], None]) -> None:
        self._outside: dict[str, tuple[int, int]] = {}  # points written, and those outside the box
        self._url = snapshot.url
        self._meta = snapshot.meta
        zarr_writer.remove_partials(self._url)
        snapshot.check_ends()
        with self._errors(*WRITING):
            self._out = writer_store(self._url, still_ours, snapshot.snapshot)
            self._group = zarr_reading.open_group(self._out, "r+")
            self._tails = {array.name: self._open_tail(array) for array in arrays_of(self._meta)}
            self._open_ids()
        self._torn = False
        self._spans: dict[str, Floats] = {}  # of each array, what was written
        named = {
            COORDINATES: snapshot.coordinate_names,
            RESPONSE_COORDINATES: snapshot.response_coordinate_names,
        }
        self._names = {key: names for key, names in named.items() if names is not None}

    def write(
        self,
        bags: Bags,
        targets: TargetsLike = None,
        ids: IdsLike | None = None,
        *,
        responses: ResponsesLike = None,
    ) -> None:
        """Append bags; see `BagStore.append` for the arguments.

        Refused input (DataError) changes nothing. After any other error the session must end.
        """
        self._check_whole()
        of_bags = bags.bag_ids if ids is None else BagIds(as_ids(ids, len(bags))[0].astype(object))
        if of_bags is not None:
            ids = of_bags.storable if ids is None else ids
            targets = targets_in_order(targets, of_bags)
            if has_index(responses):
                responses = in_order_of(responses, of_bags, "responses").tolist()
            elif isinstance(responses, Bags):
                responses = responses_in_order(responses, of_bags)
        bags = self._in_our_order(bags, COORDINATES, "bags")
        dtype = self._dtype_for(bags, responses)
        labels = self._check_labels(len(bags), targets, ids, responses, dtype)
        points = self._check_points(bags, None if ids is None else labels.ids, dtype)
        self._claim(labels)
        if dtype != self._tail(POINTS).array.dtype:
            self._replace_points(dtype)
        self._names |= self._new_names(bags, labels.responses)
        self._torn = True
        with self._errors(*WRITING):
            self._tail(IDS).push(labels.ids)
            self._tail(TARGETS).push(labels.targets)
            if labels.responses is not None:
                self._push_points(RESPONSE_POINTS, labels.responses.points, labels.responses.sizes)
            self._push_points(POINTS, points, bags.sizes)
        self._torn = False

    def change(self, rows: Floats) -> None:
        """Add rows to the log of changes, see `Changes`."""
        if not len(rows):
            return
        self._torn = True
        with self._errors(*WRITING):
            if CHANGES.name not in self._tails:
                if CHANGES.name not in self._group:  # else a killed writer left it
                    CHANGES.create(self._group, self._meta, None)
                self._tails[CHANGES.name] = self._open_tail(CHANGES)
            self._tail(CHANGES).push(rows)
        self._torn = False

    def erase(self, store: Snapshot) -> None:
        """Delete points and labels of the store's removed bags, see `compaction`."""
        before = erasures(store, self._meta.n_erased)
        after = list(erasures(store, self._meta.n_changes))
        for old, new in zip(before, after, strict=True):
            self._tail(new.array).checksum = checksum_after(store, old, new)
        self._meta = replace(self._meta, n_erased=self._meta.n_changes, checksums=self._checksums())
        self._torn = True
        with self._errors("writing failed", "compact again"):
            # before anything is deleted: readers learn that it may be
            self._group.update_attributes(next_attributes(self._meta, self._group.attrs))
            self._out.sync()
            for erasure in after:
                array = erasure.array
                erase(erasure, self._tail(array).array, array.rows(self._meta))
        self._torn = False

    def mark_merged(self) -> None:
        """Mark the store, with the commit, as one merged from others."""
        self._meta = replace(self._meta, merged=uuid.uuid4().hex)

    def known(self, ids: IdsLike) -> NDArray[np.bool_]:
        """Return which ids exist already, in the store or in this session.

        Raises
        ------
        DataError
            If the ids are of another kind than the store's ids.
        """
        array, kind = self._given_ids(ids, len(ids))
        if kind != self._meta.id_kind:
            return np.zeros(len(array), dtype=bool)
        with self._errors(*WRITING):
            return self._taken.known(array)

    def commit(self, source: Mapping[str, Any] | None = None) -> tuple[StoreMeta, str | None]:
        """Flush all rows to the disk, then commit the new counts in one metadata write.

        Returns the new counts, and the snapshot's id where the store has snapshots.
        """
        self._check_whole()
        with self._errors(*WRITING):
            for tail in self._tails.values():
                tail.flush()
            self._out.sync()
            meta = self._meta_after(source)
            self._warn_of_outside()
            self._group.update_attributes(next_attributes(meta, self._group.attrs))
            return meta, self._out.commit()

    def set_box(self, box: Box) -> None:
        """Set the store's box at the commit, measured from the points while they are written.

        Raises
        ------
        DataError
            If points are stored as fractions of the existing box.
        """
        self._check_movable()
        checked = Box.of(box, self._meta.n_dims)
        self._meta = replace(self._meta, box=checked, ranges=self._given(POINTS.name))

    def set_response_box(self, box: Box) -> None:
        """Set the box of the store's responses at the commit.

        Raises
        ------
        DataError
            If the store holds no responses, the number of dimensions is wrong, or points are stored
            as fractions of the existing box.
        """
        self._check_movable()
        dims = self._response_dims()
        response_box = Box.of(box, dims, name="response_box")
        ranges = self._given(RESPONSE_POINTS.name)
        self._meta = replace(self._meta, response_box=response_box, ranges=ranges)

    def _check_movable(self) -> None:
        if self._meta.fractions:
            raise DataError(f"{self._url}: dtype uint16 holds fractions of a box: {GIVE_BOX}")

    def close(self) -> None:
        """Return when no write is running any more; called by `BagStore.appending`."""
        self._out.close()

    def _meta_after(self, source: Mapping[str, Any] | None) -> StoreMeta:
        responses, changes = map(self._tails.get, (RESPONSE_POINTS.name, CHANGES.name))
        return replace(
            self._meta,
            n_bags=self._tail(IDS).length,
            n_points=self._tail(POINTS).length,
            n_response_points=0 if responses is None else responses.length,
            n_changes=0 if changes is None else changes.length,
            max_id=self._taken.max_id,
            is_dtype_open=self._meta.is_dtype_open and not self._tail(POINTS).length,
            source={**self._names, **(self._meta.source if source is None else source)},
            checksums=self._checksums(),
        )

    def _in_our_order(self, sets: AnyRagged, key: str, what: str) -> AnyRagged:
        """Return sets with their coordinates in the store's order; DataError for other names."""
        return sets.in_order_of(
            self._names.get(key), what=what, reference=f"those of {self._url} are"
        )

    def _new_names(self, bags: Bags, responses: Responses | None) -> dict[str, list[str]]:
        """Return the names of the first bags' coordinates, if the store has no names yet."""
        sets = {COORDINATES: (bags, POINTS), RESPONSE_COORDINATES: (responses, RESPONSE_POINTS)}
        return {
            key: ragged.coordinate_names
            for key, (ragged, array) in sets.items()
            if ragged is not None
            and ragged.coordinate_names is not None
            and key not in self._names
            and not self._tail(array).length
        }

    def _checksums(self) -> dict[str, str]:
        """Return the checksum of each array that has one, as the attributes hold it."""
        tails = self._tails.items()
        return {name: as_text(t.checksum) for name, t in tails if t.checksum is not None}

    def _dtype_for(self, bags: Bags, responses: ResponsesLike) -> np.dtype[Any]:
        """Return the dtype of the stored points: an open one is float64 where the points need it.

        DataError for points that float32 merges in a store that keeps it.
        """
        dtype = self._tail(POINTS).array.dtype
        if dtype != np.float32:
            return dtype
        sets = {POINTS: bags.points}
        if isinstance(responses, (Responses, Bags)):
            sets[RESPONSE_POINTS] = responses.points
        else:
            rows = _rows_of(responses)
            if len({row.shape[1:] for row in rows}) == 1 and rows[0].ndim == len(POINTS.dimensions):
                sets[RESPONSE_POINTS] = np.concatenate(rows)
        for array, points in sets.items():
            dims = array.columns(self._meta)
            if points.dtype != np.float64 or not points.size or points.shape[1:] != (dims,):
                continue
            lo, hi = points.min(axis=0), points.max(axis=0)
            if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
                continue  # refused when the points are checked
            merged = merged_by_float32(points, lo, hi)
            if len(merged) and self._meta.is_dtype_open and not self._tail(POINTS).length:
                return np.dtype(np.float64)
            span = self._widest_span(array, hi - lo)
            merged = merged_by_float32(points, lo, hi, span) if len(merged) else merged
            for column in merged.tolist():
                names = bags.coordinate_names if array is POINTS else None
                raise DataError(too_coarse(self._url, column, lo, hi, names))
        return dtype

    def _widest_span(self, array: PointArray, span: Floats) -> Floats:
        """Return the largest of ``span``, of what was written and of the first stored points."""
        if array.name not in self._spans:
            n_stored = min(array.rows(self._meta), FIRST_POINTS)
            with self._errors(*WRITING):
                stored = read_rows(self._tail(array).array, 0, n_stored).astype(np.float64)
            stored = stored[np.isfinite(stored).all(axis=1)]  # erased ones are not
            self._spans[array.name] = np.ptp(stored, axis=0) if len(stored) else np.zeros(1)
        self._spans[array.name] = np.fmax(self._spans[array.name], span)
        return self._spans[array.name]

    @contextmanager
    def _errors(self, action: str, consequence: str) -> Iterator[None]:
        """Turn errors of the storage, and damage of what is read there, into a StoreError."""
        with storage_errors(self._url, action, consequence):
            try:
                yield
            except ChunkError as error:
                raise StoreError(
                    f"{self._url}: array {error.name!r}, {error}; {consequence}; verify the store, "
                    "and restore it from a copy"
                ) from error

    def _replace_points(self, dtype: np.dtype[Any]) -> None:
        """Give the store, which has no points, arrays of another dtype."""
        with self._errors(*WRITING):
            replace_points(self._group, self._meta, dtype)
            for array in points_of(self._meta):
                self._tails[array.name] = self._open_tail(array)

    def _check_points(self, bags: Bags, ids: IdsLike | None, dtype: np.dtype[Any]) -> NDArray[Any]:
        if bags.n_dims != self._meta.n_dims:
            raise DataError(
                f"bags have dimension {bags.n_dims}, {self._url} holds dimension "
                f"{self._meta.n_dims}"
            )
        if dtype in PACKED:
            check_finite(bags.points, bags.offsets, ids, names=bags.coordinate_names)
            return encode(bags.points, dtype, self._meta.box, bags.offsets, ids)
        with np.errstate(over="ignore"):  # an overflow is infinite, and refused below
            points = bags.points.astype(dtype, copy=False)
        check_finite(points, bags.offsets, ids, names=bags.coordinate_names)
        return points

    def _check_labels(
        self,
        n_new: int,
        targets: TargetsLike,
        ids: IdsLike | None,
        responses: ResponsesLike,
        dtype: np.dtype[Any],
    ) -> CheckedLabels:
        matrix = targets_matrix(targets, self._meta.target_names, self._meta.class_names, n_new)
        numbers, kind = self._new_ids(n_new, ids)
        checked_responses = self._check_responses(
            n_new, responses, None if ids is None else numbers, dtype
        )
        return CheckedLabels(matrix, numbers, kind, checked_responses)

    def _new_ids(self, n_new: int, ids: IdsLike | None) -> tuple[NDArray[Any], str]:
        n_bags = self._tail(IDS).length
        if ids is not None:
            return self._given_ids(ids, n_new)
        if self._meta.id_kind == "str" and n_bags:
            raise DataError(f"{self._url} has string ids; pass ids, one per bag")
        first = n_bags if self._taken.max_id is None else self._taken.max_id + 1
        if first + n_new - 1 > LARGEST_ID:
            raise DataError(f"{self._url}: no integer follows the largest id {first - 1}; pass ids")
        return first + np.arange(n_new, dtype=np.int64), "int64"

    def _given_ids(self, ids: IdsLike, n_new: int) -> tuple[NDArray[Any], str]:
        array, kind = as_ids(ids, n_new)
        check_not_blank(array)
        if kind != self._meta.id_kind and n_new and self._tail(IDS).length:
            raise DataError(f"{self._url} has {self._meta.id_kind} ids, got {kind}")
        return array, kind

    def _check_responses(
        self, n_new: int, responses: ResponsesLike, ids: IdsLike | None, dtype: np.dtype[Any]
    ) -> Responses | None:
        """Return responses as the store keeps them; None where it holds none."""
        if responses is None and self._meta.response_dims is None:
            return None
        dims = self._response_dims()
        if responses is None:
            return Responses.none(n_new, dims, dtype=points_dtype(dtype))
        checked = as_responses(
            responses, n_new, n_dims=dims, ids=ids, dtype=None if dtype in PACKED else dtype
        )
        checked = self._in_our_order(checked, RESPONSE_COORDINATES, "responses")
        if dtype not in PACKED:
            return checked
        box = RESPONSE_POINTS.box(self._meta)
        codes = encode(checked.points, dtype, box, checked.offsets, ids, "response of ")
        return Responses.trusted(codes, checked.offsets, names=checked.coordinate_names)

    def _response_dims(self) -> int:
        if self._meta.response_dims is None:
            raise DataError(f"{self._url} holds no responses; make it with response_dims")
        return self._meta.response_dims

    def _claim(self, labels: CheckedLabels) -> None:
        """Add the ids to those that are taken; a duplicate changes nothing."""
        if not len(labels.ids):
            return
        with self._errors(*WRITING):
            if labels.id_kind != self._meta.id_kind:
                self._meta = replace(self._meta, id_kind=labels.id_kind)
                self._open_ids()
            self._taken.add(labels.ids)

    def _push_points(self, array: PointArray, points: NDArray[Any], sizes: Integers) -> None:
        """Push the points of further bags, and the rows at which they end."""
        if array.name in self._meta.ranges and len(points):
            self._widen(array.name, *range_of(points))
        elif points.dtype not in PACKED:
            seen, outside = self._outside.get(array.name, (0, 0))
            n = array.box(self._meta).count_outside(points)
            self._outside[array.name] = seen + len(points), outside + n
        ends = self._tail(array).length + np.cumsum(sizes, dtype=np.int64)
        self._tail(array.offsets).push(ends)
        self._tail(array).push(points)

    def _warn_of_outside(self) -> None:
        """Warn about an append whose points mostly lie outside the given box."""
        for array in points_of(self._meta):
            seen, outside = self._outside.get(array.name, (0, 0))
            if array.name not in self._meta.ranges and outside > FOREIGN_FRACTION * seen:
                box = array.box(self._meta).bounds[:SHOWN_DIMS]
                warn(
                    f"{self._url}: {outside:,} of {seen:,} appended {array.name} lie outside the "
                    f"store's box {box}: check their units, or make the store with a larger box=, "
                    "or without one, which measures it"
                )

    def _widen(self, name: str, lo: NDArray[Any], hi: NDArray[Any]) -> None:
        """Measure the box of an array without a given one, with further points of a range."""
        before = self._meta.ranges[name]
        if before:
            lo, hi = np.minimum(before[0], lo), np.maximum(before[1], hi)
        ends = [lo.astype(np.float64).tolist(), hi.astype(np.float64).tolist()]
        self._meta = replace(self._meta, ranges={**self._meta.ranges, name: ends})
        if name == POINTS.name:
            self._meta = replace(self._meta, box=measured_box(lo, hi))
        else:
            self._meta = replace(self._meta, response_box=measured_box(lo, hi))

    def _given(self, name: str) -> dict[str, list[list[float]]]:
        """Return the ranges without that of an array whose box is given now."""
        return {key: ends for key, ends in self._meta.ranges.items() if key != name}

    def _check_whole(self) -> None:
        if self._torn:
            raise StoreError(f"{self._url}: a write of this session failed; nothing was committed")

    def _tail(self, array: StoreArray) -> TailWriter:
        return self._tails[array.name]

    def _open_tail(self, array: StoreArray) -> TailWriter:
        stored = self._group[array.name]
        if not isinstance(stored, zarr.Array):
            raise StoreError(f"{self._group.store}: {array.name!r} is not an array")
        # a chunk that holds fill values alone is written, too: a missing object is damage
        out = zarr_reading.checked_array(stored).with_config({"write_empty_chunks": True})
        return TailWriter(out, array.rows(self._meta), array.checksum(self._meta))

    def _open_ids(self) -> None:
        """Read which ids are taken; ids of the other kind are replaced if none was committed."""
        kind = "int64" if self._tail(IDS).array.dtype == np.int64 else "str"
        if kind != self._meta.id_kind and not self._meta.n_bags:
            replace_array(self._group, IDS, self._meta)
            self._tails[IDS.name] = self._open_tail(IDS)
        tail = self._tail(IDS)
        self._taken = TakenIds(self._meta.id_kind, self._meta.max_id, tail.blocks)


def _rows_of(responses: object) -> list[NDArray[Any]]:
    """Return the responses that are arrays; none of what is refused when responses are checked."""
    if not isinstance(responses, Sequence | np.ndarray) or isinstance(responses, str | bytes):
        return []
    try:
        rows = [np.asarray(response) for response in responses if response is not None]
    except (TypeError, ValueError):
        return []
    return [response for response in rows if response.size]
