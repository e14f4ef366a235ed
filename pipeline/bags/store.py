"""`BagStore`: labelled bags in Zarr, appended to atomically, read by ranges of bags."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, StoreError, WriterBusyError
from .append import AppendSession, write_errors
from .bags import Bags, as_bags, check_finite
from .box import Box
from .creation import check_parameters, check_replaceable, create_store, is_vacant
from .durable import WriterStore
from .layout import StoreMeta, read_attributes
from .lock import holder, writer_lock
from .rows import UnreadableChunk, read_rows
from .urls import normalize_url, zarr_store


class BagStore:
    """Bags, ids and targets in a Zarr v3 group; made by `create` or `open`.

    A store object sees the bags committed when it was opened, or that it appended itself;
    `refresh` looks again. It can be pickled: a copy opens the same URL at the same counts.

    Attributes
    ----------
    url : str
    meta : StoreMeta
        Names, box and committed counts.
    """

    def __init__(self, url: str, meta: StoreMeta) -> None:
        self.url = url
        self.meta = meta
        self._arrays: dict[str, zarr.Array] = {}
        self._writer: str | None = None  # the token of our open session

    # ------------------------------------------------------------------ creating and opening

    @classmethod
    def create(
        cls,
        url: str | os.PathLike[str],
        n_dims: int,
        target_names: Sequence[str] = (),
        box: Box | Sequence[Sequence[float]] | None = None,
        *,
        class_names: Mapping[str, Sequence[str]] | None = None,
        dtype: Any = np.float32,
        chunk_points: int | None = None,
        overwrite: bool = False,
    ) -> BagStore:
        """Make an empty store.

        Parameters
        ----------
        url : str or path
            A local path or any URL fsspec knows.
        n_dims : int
            Coordinates of a point.
        target_names : sequence of str
            One name a target column.
        box : sequence of (lo, hi), optional
            What is scaled to [0, 1]^d before projection; None is the unit cube.
        class_names : mapping from target name to sequence of str, optional
            Names of the classes 0, 1, …; text labels are then accepted for that target.
        dtype : float32 (default) or float64
            Of the stored points.
        chunk_points : int, optional
            Points a stored chunk holds; default two MiB of them. Sixteen chunks are one object.
        overwrite : bool
            Replace a bag store that is there; nothing else is ever replaced. A bag store without
            committed bags (what a killed job leaves) is replaced anyway.

        Raises
        ------
        ParameterError
            A parameter outside its range.
        StoreError
            Something is stored at the URL, or it can not be written.
        WriterBusyError
            Somebody is appending to the store that is there.
        """
        url = normalize_url(url)
        classes = {name: list(values) for name, values in (class_names or {}).items()}
        check_parameters(n_dims, target_names, classes, dtype, chunk_points)
        meta = StoreMeta(
            n_dims=n_dims,
            target_names=tuple(target_names),
            box=Box.of(box, n_dims),
            class_names=classes,
        )
        if is_vacant(url):
            create_store(url, meta, dtype, chunk_points)
        else:
            check_replaceable(url, overwrite)
            with writer_lock(url):
                check_replaceable(url, overwrite)
                create_store(url, meta, dtype, chunk_points)
        return cls(url, meta)

    @classmethod
    def open(cls, url: str | os.PathLike[str]) -> BagStore:
        """Open a store at its committed length.

        Raises
        ------
        StoreError
            Nothing there, or not a bag store.
        """
        url = normalize_url(url)
        return cls(url, StoreMeta.from_attributes(read_attributes(url), url))

    def refresh(self) -> BagStore:
        """See what was committed since; returns the store itself."""
        self.meta = StoreMeta.from_attributes(read_attributes(self.url), self.url)
        self._arrays.clear()
        return self

    # ------------------------------------------------------------------ what it holds

    @property
    def n_bags(self) -> int:
        return self.meta.n_bags

    @property
    def n_points(self) -> int:
        return self.meta.n_points

    @property
    def n_dims(self) -> int:
        return self.meta.n_dims

    @property
    def target_names(self) -> tuple[str, ...]:
        return self.meta.target_names

    @property
    def box(self) -> Box:
        return self.meta.box

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.array("points").dtype)

    @property
    def chunk_points(self) -> int:
        """Points in a stored chunk."""
        return int(self.array("points").chunks[0])

    def __len__(self) -> int:
        return self.n_bags

    def __repr__(self) -> str:
        return (
            f"BagStore({self.url!r}, n_bags={self.n_bags}, n_points={self.n_points}, "
            f"n_dims={self.n_dims}, target_names={list(self.target_names)})"
        )

    # ------------------------------------------------------------------ reading

    def read(self, start: int = 0, stop: int | None = None) -> Bags:
        """Bags ``start:stop``, in the units of the data.

        Raises
        ------
        StoreError
            A chunk that is missing or damaged; names the array, the chunk and the bag.
        """
        start, stop = self._range(start, stop)
        offsets = self.offsets(start, stop)
        points = self.read_array("points", int(offsets[0]), int(offsets[-1]))
        if not np.isfinite(points).all():
            row = int(offsets[0] + np.argwhere(~np.isfinite(points))[0, 0])
            bag = start + int(np.searchsorted(offsets, row, side="right")) - 1
            raise StoreError(
                f"{self.url}: array 'points', chunk {row // self.chunk_points}, bag {bag}: "
                "a coordinate is not finite; run `bags verify`"
            )
        return Bags.trusted(points, offsets - offsets[0])

    def offsets(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Rows at which bags ``start:stop`` begin, and where the last ends; shape (n + 1,)."""
        start, stop = self._range(start, stop)
        offsets = self.read_array("offsets", start, stop + 1)
        if offsets[0] < 0 or (np.diff(offsets) <= 0).any() or offsets[-1] > self.n_points:
            raise StoreError(
                f"{self.url}: array 'offsets' is damaged between bags {start} and {stop}; "
                "run `bags verify`"
            )
        return offsets

    def targets(
        self, start: int = 0, stop: int | None = None, names: Sequence[str] | None = None
    ) -> NDArray[np.float64]:
        """Targets of bags ``start:stop``, shape (n, len(names)); NaN where unlabelled."""
        start, stop = self._range(start, stop)
        columns = self.target_columns(names)
        return self.read_array("targets", start, stop)[:, columns]

    def target_columns(self, names: Sequence[str] | None = None) -> list[int]:
        """Column of each named target; all of them for None.

        Raises
        ------
        DataError
            A target the store does not have.
        """
        if names is None:
            return list(range(len(self.target_names)))
        for name in names:
            if name not in self.target_names:
                raise DataError(
                    f"{self.url}: no target {name!r}; there are {list(self.target_names)}"
                )
        return [self.target_names.index(name) for name in names]

    def ids(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Ids of bags ``start:stop``, shape (n,), int64 or strings."""
        start, stop = self._range(start, stop)
        return self.read_array("ids", start, stop)

    def array(self, name: str) -> zarr.Array:
        """The Zarr array itself; trust its first `n_bags` or `n_points` rows only."""
        if name not in self._arrays:
            try:
                array = zarr.open_array(zarr_store(self.url, read_only=True), path=name, mode="r")
            except Exception as error:
                raise StoreError(
                    f"{self.url}: array {name!r} can not be opened ({error})"
                ) from error
            self._arrays[name] = array
        return self._arrays[name]

    def read_array(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Rows of one array; an unreadable chunk is a StoreError naming it and its first bag."""
        try:
            return read_rows(self.array(name), start, stop)
        except UnreadableChunk as error:
            raise self.damage(name, error) from error

    def damage(self, name: str, error: UnreadableChunk) -> StoreError:
        """The error for a chunk of an array that can not be read, with its first bag."""
        return StoreError(
            f"{self.url}: array {name!r}, {error}; its first bag is {self._bag_of(name, error.row)}"
        )

    def rows(self) -> dict[str, int]:
        """Committed rows of each array."""
        return {
            "offsets": self.n_bags + 1,
            "ids": self.n_bags,
            "targets": self.n_bags,
            "points": self.n_points,
        }

    def check_ends(self) -> None:
        """Read the last committed row of each array: an append must not write over damage.

        Raises
        ------
        StoreError
            A row that can not be read.
        """
        for name, rows in self.rows().items():
            self.read_array(name, max(0, rows - 1), rows)

    # ------------------------------------------------------------------ writing

    def append(
        self,
        bags: Bags | Sequence[ArrayLike],
        targets: Any = None,
        ids: Sequence[Any] | NDArray[Any] | None = None,
    ) -> BagStore:
        """Append bags; all of them or, if anything goes wrong, none.

        Parameters
        ----------
        bags : Bags or list of array_like (n_i, n_dims)
        targets : mapping from name to (n_bags,), or array (n_bags, n_targets), optional
            NaN where a bag has no label; None for no labels at all.
        ids : sequence of int or str, optional
            Unique in the store; default the next integers.

        Raises
        ------
        DataError
            Bags, targets or ids that can not be used.
        WriterBusyError
            Another writer is appending.
        StoreError
            Writing failed (a full disk, no permission).
        """
        with self.appending() as session:
            session.write(as_bags(bags), targets, ids)
        return self

    @contextmanager
    def appending(self, source: Mapping[str, Any] | None = None) -> Iterator[AppendSession]:
        """A session of many writes and one commit, made when the block ends without an error.

        Within the block the store is at its committed length; after an error it sees what it saw
        before.
        """
        seen = self.meta
        with writer_lock(self.url) as hold:
            try:
                self.refresh()
                session = AppendSession(self, hold.check)
                self._writer = hold.token
                try:
                    yield session
                    seen = session.commit(source)
                finally:
                    session.close()
            finally:
                self._writer = None
                self.meta = seen
                self._arrays.clear()

    def write_points(self, row: int, points: NDArray[Any]) -> None:
        """Write points into rows that an open session reserved, from any process.

        To be called on the store that holds the session or on a pickled copy of it, made while
        the session was open. Two calls at a time must not write into the same stored object.

        Raises
        ------
        WriterBusyError
            The session is over.
        DataError
            A coordinate that is NaN or infinite, or rows that are not reserved.
        StoreError
            Writing failed.
        """
        self._check_session()
        check_finite(points, np.array([0, len(points)]))
        out = WriterStore(zarr_store(self.url), self._check_session)
        with write_errors(self.url):
            array = zarr.open_array(out, path="points", mode="r+")
            array = array.with_config({"write_empty_chunks": True})
            if row < self.n_points or row + len(points) > array.shape[0]:
                raise DataError(
                    f"{self.url}: rows {row}:{row + len(points)} are not reserved; reserved are "
                    f"{self.n_points}:{array.shape[0]}"
                )
            try:
                array[row : row + len(points)] = points
                out.sync()
            finally:
                out.close()

    def verify(self, progress: Any = None) -> None:
        """Check every invariant of the committed data.

        Raises
        ------
        StoreError
            The first violation, naming the array, the chunk and the bag.
        """
        from .verify import verify_store

        verify_store(self, progress)

    # ------------------------------------------------------------------ inside

    def _check_session(self) -> None:
        if self._writer is None or holder(self.url) != self._writer:
            raise WriterBusyError(f"{self.url}: the session that reserved these rows is over")

    def _bag_of(self, name: str, row: int) -> int | str:
        """The bag a row of an array belongs to; unknown where the offsets are unreadable."""
        if name != "points":
            return max(0, row - 1) if name == "offsets" else row
        try:
            offsets = read_rows(self.array("offsets"), 0, self.n_bags + 1)
        except (UnreadableChunk, StoreError):
            return "unknown"
        return int(np.searchsorted(offsets, row, side="right")) - 1

    def _range(self, start: int, stop: int | None) -> tuple[int, int]:
        end = self.n_bags if stop is None else stop
        if not 0 <= start <= end <= self.n_bags:
            raise DataError(f"{self.url}: bags {start}:{end} of {self.n_bags} do not exist")
        return start, end

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "meta": self.meta, "_arrays": {}, "_writer": self._writer}
