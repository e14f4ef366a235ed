"""`BagStore`: labelled bags in Zarr, appended to atomically, read by ranges of bags."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, ParameterError, StoreError
from .append import AppendSession, write_errors
from .bags import Bags, as_bags
from .box import Box
from .layout import StoreMeta, create_arrays
from .lock import writer_lock
from .urls import exists, filesystem, local_path, normalize_url, zarr_store


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
            Replace a store that is there. A store of ours without committed bags (what a killed
            job leaves) is replaced anyway.

        Raises
        ------
        StoreError
            Something is stored at the URL, or it can not be written.
        """
        url = normalize_url(url)
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ParameterError(f"dtype is {dtype}; points are float32 or float64")
        if n_dims < 1:
            raise ParameterError(f"n_dims is {n_dims}; expected at least 1")
        if len(set(target_names)) != len(target_names):
            raise ParameterError(f"target names are not unique: {list(target_names)}")
        meta = StoreMeta(
            n_dims=n_dims,
            target_names=tuple(target_names),
            box=Box.of(box, n_dims),
            class_names={name: list(values) for name, values in (class_names or {}).items()},
        )
        if exists(url) and not overwrite and not _is_empty(url):
            raise StoreError(f"{url}: exists already; remove it or pass overwrite=True")
        with write_errors(url):
            group = zarr.open_group(zarr_store(url), mode="w", zarr_format=3)
            create_arrays(group, meta, dtype, chunk_points)
            group.update_attributes(meta.to_attributes())
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
        return cls(url, _read_meta(url))

    def refresh(self) -> BagStore:
        """See what was committed since; returns the store itself."""
        self.meta = _read_meta(self.url)
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
        if not np.isfinite(np.add.reduce(points.ravel())) and not np.isfinite(points).all():
            row = int(offsets[0] + np.argwhere(~np.isfinite(points))[0, 0])
            bag = start + int(np.searchsorted(offsets, row, side="right")) - 1
            raise StoreError(
                f"{self.url}: array 'points', chunk {row // self.chunk_points}, bag {bag}: "
                "missing or not finite; run `bags verify`"
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
        """Rows of one array; an unreadable chunk is a StoreError naming it."""
        array = self.array(name)
        try:
            return np.asarray(array[start:stop])
        except Exception as error:
            first, last = start // array.chunks[0], max(start, stop - 1) // array.chunks[0]
            raise StoreError(
                f"{self.url}: array {name!r}, chunks {first} to {last}: can not be read "
                f"({error}); run `bags verify`"
            ) from error

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
        """A session of many writes and one commit, made when the block ends without an error."""
        if local_path(self.url) is not None and not exists(self.url):
            raise StoreError(f"{self.url}: not found")
        with writer_lock(self.url) as still_ours:
            self.refresh()
            session = AppendSession(self)
            yield session
            still_ours()
            self.meta = session.commit(source)
            self._arrays.clear()

    def write_points(self, row: int, points: NDArray[Any]) -> None:
        """Write points into rows that an open session reserved, from any process."""
        array = zarr.open_array(zarr_store(self.url), path="points", mode="r+")
        array = array.with_config({"write_empty_chunks": True})
        with write_errors(self.url):
            array[row : row + len(points)] = points

    def writable_group(self) -> zarr.Group:
        """The root group, open for writing; for `AppendSession`."""
        return zarr.open_group(zarr_store(self.url), mode="r+", zarr_format=3)

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

    def _range(self, start: int, stop: int | None) -> tuple[int, int]:
        end = self.n_bags if stop is None else stop
        if not 0 <= start <= end <= self.n_bags:
            raise DataError(f"{self.url}: bags {start}:{end} of {self.n_bags} do not exist")
        return start, end

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "meta": self.meta, "_arrays": {}}


def _read_meta(url: str) -> StoreMeta:
    fs, _ = filesystem(url)
    fs.invalidate_cache()
    if not exists(url):
        raise StoreError(f"{url}: not found")
    try:
        group = zarr.open_group(zarr_store(url, read_only=True), mode="r", zarr_format=3)
    except Exception as error:
        raise StoreError(f"{url}: not a bag store ({type(error).__name__}: {error})") from error
    return StoreMeta.from_attributes(dict(group.attrs), url)


def _is_empty(url: str) -> bool:
    try:
        return _read_meta(url).n_bags == 0
    except StoreError:
        path = local_path(url)
        return path is not None and path.is_dir() and not any(path.iterdir())
