"""`Snapshot`: the committed state of a store at one moment, for reading."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core import TextList, checked
from ...core.arrays import Floats, Integers
from ...core.errors import DataError, ParameterError, StoreError, closest, refuse_exhaustion, shown
from ...core.units import surely_finite
from ..bags.bags import Bags, Stored, offsets_of
from ..bags.box import Box
from ..bags.coordinates import checked_names
from ..bags.packed_points import PACKED, WHOLE, decode, points_dtype
from ..bags.responses import Responses
from ..storage.files import GROUP_FILE, check_answers
from ..storage.lazy_zarr import AnyArray, zarr, zarr_reading
from ..storage.urls import ICECHUNK, filesystem, is_transactional, local_path
from ..storage.zarr_stores import zarr_store
from .changes import Changes
from .chunks import ChunkError, read_rows, shard_rows
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
    read_attributes,
)

if TYPE_CHECKING:
    from zarr.abc.store import Store

_BAGS_PER_BLOCK = 2**20  # bags whose offsets are read at a time: 8 MiB


class Snapshot(Stored):
    """The bags that a store held when its metadata were read. Later appends are not visible.

    A pickled copy opens the same URL with the same bags.

    Attributes
    ----------
    url : str
    meta : StoreMeta
        Names, boxes and committed counts.
    snapshot : str or None
        Icechunk's id of the snapshot; None for a store without Icechunk.
    """

    def __init__(
        self, url: str, *, meta: StoreMeta | None = None, snapshot: str | None = None
    ) -> None:
        if not isinstance(meta, StoreMeta):
            raise ParameterError(
                f"BagStore({shown(url)}): a store is opened by BagStore.open(url), and made by "
                "BagStore.create(url, n_dims)"
            )
        self.url = url
        self.meta = meta
        self.snapshot = snapshot
        self._store: Store | None = None
        self._removed: tuple[StoreMeta | None, int] = None, 0  # state, and points of removed bags
        self._arrays: dict[str, AnyArray] = {}
        self._changes: Changes | None = None

    # ------------------------------------------------------------------ contents

    @property
    def n_bags(self) -> int:
        """Number of committed bags, including removed bags, so that each bag keeps its index."""
        return self.meta.n_bags

    @property
    def n_removed(self) -> int:
        """Number of removed bags, which are read as empty bags without labels."""
        return len(self.changes.removed)

    @property
    def n_points(self) -> int:
        """Number of points of the bags that were not removed."""
        return self.meta.n_points - self._n_points_removed

    @property
    def n_dims(self) -> int:
        """Number of coordinates of a point."""
        return self.meta.n_dims

    @property
    def coordinate_names(self) -> list[str] | None:
        """Names of the coordinates; None if no appended bags had names."""
        return _names(self.meta.source.get(COORDINATES), self.n_dims)

    @property
    def response_coordinate_names(self) -> list[str] | None:
        """Names of the coordinates of the responses; None without names."""
        return _names(self.meta.source.get(RESPONSE_COORDINATES), self.response_dims or 0)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the target columns."""
        return self.meta.target_names

    @property
    def box(self) -> Box:
        """The box that is scaled to [0, 1]^d, in the units of the data."""
        return self.meta.box

    @property
    def response_dims(self) -> int | None:
        """Number of coordinates of a response point; None in a store without responses."""
        return self.meta.response_dims

    @property
    def response_box(self) -> Box | None:
        """The box of the responses; None in a store without responses."""
        return self.meta.response_box

    @property
    def n_response_points(self) -> int:
        """Number of committed points of responses."""
        return self.meta.n_response_points

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of points as they are read, also of the points of responses."""
        return points_dtype(self.stored_dtype)

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """Dtype of the points on the disk, see `BagStore.create`."""
        return np.dtype(self.array(POINTS).dtype)

    @property
    def chunk_points(self) -> int:
        """Number of points in a stored chunk."""
        return int(self.array(POINTS).chunks[0])

    @property
    def object_points(self) -> int:
        """Number of points in a stored object (a shard)."""
        return shard_rows(self.array(POINTS))

    @property
    def written(self) -> str:
        """A text that changes with every commit, and with another store at the same URL.

        The text is the snapshot's id, or properties of the object that every commit replaces:
        times, inode, ETag.
        """
        if self.snapshot is not None:
            return self.snapshot
        fs, path = filesystem(self.url)
        return str(fs.ukey(f"{path}/{GROUP_FILE}"))

    def __len__(self) -> int:
        """Return the number of committed bags."""
        return self.n_bags

    def __repr__(self) -> str:
        """Describe the URL, the counts and the targets."""
        responses = "" if self.response_dims is None else f", response_dims={self.response_dims}"
        changes = f", n_changes={self.meta.n_changes}" if self.meta.n_changes else ""
        changes += f", n_removed={self.n_removed}" if self.n_removed else ""
        return (
            f"{type(self).__name__}({self.url!r}, n_bags={self.n_bags}, n_points={self.n_points}, "
            f"n_dims={self.n_dims}, target_names={list(self.target_names)}{responses}{changes})"
        )

    # ------------------------------------------------------------------ reading

    @checked
    def read(self, start: int = 0, stop: int | None = None) -> Bags:
        """Read bags ``start:stop`` in the units of the data. A removed bag is empty.

        Raises
        ------
        StoreError
            If a chunk is missing or damaged. The message names the array, the chunk and the bag.
        """
        points = self._points(POINTS, self.offsets(start, stop), start)
        return Bags.trusted(*points, names=self.coordinate_names)

    @checked
    def responses(self, start: int = 0, stop: int | None = None) -> Responses:
        """Read the responses of bags ``start:stop``, in the units of the data.

        Raises
        ------
        DataError
            If the store holds no responses.
        StoreError
            If a chunk is missing or damaged. The message names the array, the chunk and the bag.
        """
        offsets = self.response_offsets(start, stop)
        points = self._points(RESPONSE_POINTS, offsets, start)
        return Responses.trusted(*points, names=self.response_coordinate_names)

    @checked
    def offsets(self, start: int = 0, stop: int | None = None) -> Integers:
        """Read the first row of bags ``start:stop`` and the end of the last one; shape (n + 1,)."""
        return self._offsets(POINTS, start, stop)

    @checked
    def response_offsets(self, start: int = 0, stop: int | None = None) -> Integers:
        """Read the offsets of responses; two neighbours are equal if a bag has no response."""
        if self.response_dims is None:
            raise DataError(
                f"{self.url}: holds no responses; make it with response_dims, or ingest a table of "
                "responses"
            )
        return self._offsets(RESPONSE_POINTS, start, stop)

    @checked
    def targets(
        self, start: int = 0, stop: int | None = None, *, names: TextList | None = None
    ) -> Floats:
        """Read targets of bags ``start:stop``, shape (n, len(names)); NaN if unlabelled."""
        start, stop = self._range(start, stop)
        columns, values = self.target_columns(names), self.read_array(TARGETS, start, stop)
        if self.meta.n_changes:
            values = self.changes.relabel(values, start)
        values = values if names is None else values[:, columns]
        if np.isnan(values).any() and np.isnan(values[self.present(start, stop)]).any():
            self._check_not_deleted(start, stop)
        return values[:, : len(columns)]

    @checked
    def target_columns(self, names: TextList | None = None) -> list[int]:
        """Return the column of each named target; all columns for None.

        Raises
        ------
        DataError
            If the store does not have a target.
        """
        if names is None:
            return list(range(len(self.target_names)))
        columns = {name: column for column, name in enumerate(self.target_names)}
        for name in names:
            if name not in columns:
                raise DataError(
                    f"{self.url}: no target {name!r}{closest(name, self.target_names)}; there are "
                    f"{shown(list(self.target_names))}"
                )
        return [columns[name] for name in names]

    @checked
    def ids(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Read the ids of bags ``start:stop``, shape (n,), int64 or strings."""
        start, stop = self._range(start, stop)
        return self.read_array(IDS, start, stop)

    # ------------------------------------------------------------------ changes

    @property
    def changes(self) -> Changes:
        """Changes of bags after they were appended: removals and new labels. Read once."""
        if self._changes is None:
            n = self.meta.n_changes
            rows = self.read_array(CHANGES, 0, n) if n else np.empty((0, 3))
            self._check_changes(rows)
            self._changes = Changes(rows)
        return self._changes

    def _check_changes(self, rows: Floats) -> None:
        """Raise StoreError for a change of a bag or a target that does not exist."""
        bags, columns, _ = rows.T
        known = (bags >= 0) & (bags < self.n_bags) & (bags == np.floor(bags))
        known &= (columns >= -1) & (columns < len(self.target_names))
        known &= columns == np.floor(columns)
        if not known.all():
            at = int(np.argmin(known))
            chunk = at // int(self.array(CHANGES).chunks[0])
            raise StoreError(
                f"{self.url}: array {CHANGES.name!r}, chunk {chunk}: change {at} is none of a bag "
                "there is"
            )

    @checked
    def present(self, start: int = 0, stop: int | None = None) -> NDArray[np.bool_]:
        """Return which of the bags ``start:stop`` were not removed, shape (n,)."""
        return self.changes.present(*self._range(start, stop))

    # ------------------------------------------------------------------ arrays

    def array(self, array: StoreArray) -> AnyArray:
        """Open the Zarr array of one of `schema.ARRAYS`; trust its committed rows only."""
        if (name := array.name) not in self._arrays:
            try:
                if self._store is None:  # Icechunk asks for the repository whenever it opens it
                    self._store = zarr_store(self.url, read_only=True, snapshot=self.snapshot)
                opened = zarr.open_array(self._store, path=name, mode="r", zarr_format=3)
                self._arrays[name] = zarr_reading.checked_array(opened)
            except StoreError:
                raise
            except Exception as error:  # Zarr raises anything for what it cannot parse
                refuse_exhaustion(f"{self.url}: array {name!r}", error)
                check_answers(self.url.removeprefix(ICECHUNK))
                raise StoreError(
                    f"{self.url}: array {name!r} cannot be opened ({error})"
                ) from error
        return self._arrays[name]

    def read_array(self, array: StoreArray, start: int, stop: int) -> NDArray[Any]:
        """Read rows of one array, points in the units of the data; see `read_stored`."""
        rows = self.read_stored(array, start, stop)
        if isinstance(array, PointArray) and rows.dtype in PACKED:
            return decode(rows, array.box(self.meta))
        return rows

    def read_stored(self, array: StoreArray, start: int, stop: int) -> NDArray[Any]:
        """Read rows of one array as they are stored.

        Raises
        ------
        StoreError
            If the width or dtype of the rows contradicts the attributes, or a chunk is damaged.
        """
        stored = self.array(array)
        if stored.shape[1:] != array.row_shape(self.meta):
            raise StoreError(
                f"{self.url}: array {array.name!r} has rows of shape {stored.shape[1:]}, not "
                f"{array.row_shape(self.meta)} as the attributes say"
            )
        if not array.accepts(self.meta, stored.dtype):
            raise StoreError(
                f"{self.url}: array {array.name!r} has dtype {stored.dtype}, which the attributes "
                "contradict; restore the store from a copy"
            )
        try:
            return read_rows(stored, start, stop)
        except ChunkError as error:
            raise self.damage(array, error) from error

    def damage(self, array: StoreArray, error: ChunkError) -> StoreError:
        """Return the error for an unreadable chunk; it names the first bag of the chunk."""
        bag = self._bag_of(array, error.row)
        return StoreError(f"{self.url}: array {array.name!r}, {error}; its first bag is {bag}")

    def check_ends(self) -> None:
        """Read the last committed row of each array, so that an append never overwrites damage.

        Raises
        ------
        StoreError
            If a row cannot be read.
        """
        for array in arrays_of(self.meta):
            rows = array.rows(self.meta)
            self.read_array(array, max(0, rows - 1), rows)

    # ------------------------------------------------------------------ inside

    @property
    def _n_points_removed(self) -> int:
        """Number of points of removed bags, which are stored until the store is compacted."""
        removed = self.changes.removed
        if not len(removed):
            return 0
        if self._removed[0] != self.meta:
            n, blocks = 0, np.unique(removed // _BAGS_PER_BLOCK) * _BAGS_PER_BLOCK
            for start in blocks.tolist():
                stop = min(self.n_bags, start + _BAGS_PER_BLOCK)
                sizes = np.diff(self._offsets(POINTS, start, stop))
                n += int(sizes[~self.changes.present(start, stop)].sum())
            self._removed = self.meta, n
        return self._removed[1]

    def _points(
        self, array: PointArray, offsets: Integers, first: int
    ) -> tuple[NDArray[Any], Integers]:
        """Read the points between offsets, which begin at bag ``first``.

        Returns the points without the points of removed bags, and the offsets of these points.
        """
        points = self.read_array(array, int(offsets[0]), int(offsets[-1]))
        stop = first + len(offsets) - 1
        if self.stored_dtype == WHOLE:
            self._check_not_deleted(first, stop)
        present, sizes = self.present(first, stop), np.diff(offsets)
        damaged = np.zeros(0, bool)
        if not surely_finite(points):
            damaged = ~np.isfinite(points).all(axis=1) & np.repeat(present, sizes)
        if damaged.any():
            row = int(offsets[0] + np.argmax(damaged))
            bag = first + int(np.searchsorted(offsets, row, side="right")) - 1
            chunk = row // int(self.array(array).chunks[0])
            raise StoreError(
                f"{self.url}: array {array.name!r}, chunk {chunk}, bag {bag}: "
                "a coordinate is not finite; run `bags verify`, or open a store again that was "
                "compacted meanwhile"
            )
        if present.all():
            return points, offsets - offsets[0]
        return points[np.repeat(present, sizes)], offsets_of(np.where(present, sizes, 0))

    def _check_not_deleted(self, start: int, stop: int) -> None:
        """Raise StoreError if bags ``start:stop`` of this snapshot were deleted by `compact`.

        Called after reading rows that may belong to deleted bags: missing labels, and whole
        numbers, which have no code for a missing value.
        """
        if self.snapshot is not None:  # Icechunk: its contents stay, or cannot be read
            return
        attributes = read_attributes(self.url)
        meta = StoreMeta.from_attributes(attributes, self.url)
        if meta.n_erased <= self.meta.n_erased:
            return
        now = Snapshot(self.url, meta=meta)
        erased = Changes(now.changes.rows[: meta.n_erased])
        deleted = ~erased.present(start, stop) & self.present(start, stop)
        if deleted.any():
            raise StoreError(
                f"{self.url}: bag {start + int(np.argmax(deleted))} was removed and the store "
                "was compacted meanwhile; open it again"
            )

    def _offsets(self, points: PointArray, start: int, stop: int | None) -> Integers:
        """Read offsets into an array of points; StoreError if they are not valid."""
        start, stop = self._range(start, stop)
        offsets = self.read_array(points.offsets, start, stop + 1)
        too_few = (np.diff(offsets) < points.fewest).any()
        if offsets[0] < 0 or too_few or offsets[-1] > points.rows(self.meta):
            raise StoreError(
                f"{self.url}: array {points.offsets.name!r} is damaged between bags {start} and "
                f"{stop}; run `bags verify`"
            )
        return offsets

    def _bag_of(self, array: StoreArray, row: int) -> int | str:
        """Find the bag that a row of an array belongs to; unknown if offsets are unreadable."""
        if not isinstance(array, PointArray):
            return max(0, row - array.leading)
        ends = array.offsets
        try:
            offsets = read_rows(self.array(ends), 0, ends.rows(self.meta))
        except (ChunkError, StoreError):
            return "unknown"
        return int(np.searchsorted(offsets, row, side="right")) - 1

    def _range(self, start: int, stop: int | None) -> tuple[int, int]:
        end = self.n_bags if stop is None else stop
        if not 0 <= start <= end <= self.n_bags:
            raise DataError(f"{self.url}: bags {start}:{end} of {self.n_bags} do not exist")
        return start, end

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open arrays: a copy opens its own arrays."""
        return {**self.__dict__, "_store": None, "_arrays": {}, "_changes": None}

    def __dask_tokenize__(self) -> object:
        """Return Dask's token for this state of the store, which no other store at the URL has."""
        state = json.dumps(self.meta.to_attributes(), sort_keys=True, default=str)
        return type(self).__name__, self.url, state, self.snapshot, self._identity()

    def _identity(self) -> object:
        """Return a value that distinguishes the store from earlier and later stores at its URL."""
        path = local_path(self.url)
        if is_transactional(self.url):
            return self.snapshot
        try:
            if path is not None:
                status = path.stat()
                return status.st_dev, status.st_ino, status.st_ctime_ns
            fs, root = filesystem(self.url)
            info = fs.info(f"{root}/{GROUP_FILE}")
        except OSError:  # whoever computes the array is told
            return uuid.uuid4().hex
        named = [
            str(info[key]) for key in ("ETag", "LastModified", "mtime", "created") if key in info
        ]
        return named or uuid.uuid4().hex

    def _close(self) -> None:
        """Forget everything that was read from another state of the store."""
        self._store = None
        self._arrays.clear()
        self._changes = None


def _names(known: object, n_dims: int) -> list[str] | None:
    names = checked_names(known, n_dims) if isinstance(known, (list, tuple)) else None
    return None if names is None else list(names)
