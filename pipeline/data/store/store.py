"""`BagStore`: labelled bags in Zarr, with atomic appends, read by ranges of bags."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ...core import (
    ListOf,
    MappingOf,
    Open,
    Text,
    TextList,
    TextMapping,
    UrlOrPath,
    checked,
)
from ...core.annotations import Progress
from ...core.arrays import as_array
from ...core.errors import DataError, ParameterError, WriterBusyError
from ..bags.alignment import counts_bags, has_index
from ..bags.bags import Bags, as_bags
from ..bags.box import Box
from ..bags.checks import IdsLike
from ..bags.ids import find_ids
from ..bags.packed_points import FRACTIONS, WHOLE, box_of
from ..bags.responses import Responses
from ..storage.lock import writer_lock
from ..storage.urls import is_transactional, normalize_url
from ..storage.zarr_stores import current_snapshot, delete_history
from .changes import relabellings, removals
from .creation import check_creation, check_place, create_store, measured_arrays
from .exchange.exports import Exported
from .exchange.xarray_datasets import parts_of
from .schema import StoreMeta, read_attributes
from .targets import TargetsLike, check_codes, target_column, targets_in_order
from .verify import verify_store
from .writer import AppendSession

if TYPE_CHECKING:
    from xarray import Dataset


class BagStore(Exported):
    """Bags on disk or in object storage, with ids and targets.

    Use `create` to make an empty store and `open` to open an existing one. A store object sees the
    bags that were committed when it was opened, and the bags that it appended itself. `refresh`
    makes later commits visible. A pickled copy opens the same URL with the same bags.

    See Also
    --------
    Bags : Bags in memory.
    bagbasis.ingest.ingest_tables : Makes a store of tables.
    merge_stores : Writes several stores into one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis import BagStore
    >>> store = BagStore.create('bags.zarr', n_dims=2, target_names=['age'])
    >>> X = [rng.normal(size=(n, 2)) for n in (3, 5)]
    >>> store = store.append(X, [31.0, 47.0], ids=['ann', 'bob'])
    >>> len(store)
    2
    >>> store = BagStore.open('bags.zarr')
    >>> print(store.targets().ravel(), store.read(0, 1).sizes)
    [31. 47.] [3]
    """

    # ------------------------------------------------------------------ creating and opening

    @classmethod
    @checked
    def create(
        cls,
        url: UrlOrPath,
        n_dims: int,
        *,
        target_names: TextList = (),
        box: Box | Sequence[Sequence[float]] | None = None,
        response_dims: int | None = None,
        response_box: Box | Sequence[Sequence[float]] | None = None,
        class_names: Annotated[Mapping[str, Sequence[str]], MappingOf(Text, ListOf(Text))]
        | None = None,
        dtype: DTypeLike | None = None,
        chunk_points: int | None = None,
        overwrite: bool = False,
    ) -> BagStore:
        """Make an empty store.

        Parameters
        ----------
        url : str or path
            A local path, or ``icechunk+s3://BUCKET/PATH``. Plain Zarr at other URLs can only be
            read.
        n_dims : int
            Number of coordinates of a point.
        target_names : sequence of str
            Name of each target column.
        box : sequence of (lo, hi), optional
            Range of each coordinate; this box is scaled to [0, 1]^d before projection. Required
            with dtype uint16. None: the box is measured from the points of all appends, as for bags
            in memory. With dtype uint8, None is the box from 0 to 255.
        response_dims : int, optional
            Number of coordinates of a response point. None: a store without responses.
        response_box : sequence of (lo, hi), optional
            Range of each coordinate of the responses, as ``box``.
        class_names : mapping from target name to sequence of str, optional
            Names of the classes 0, 1, … of a target, which then accepts text labels.
        dtype : float32, float64, uint16 or uint8, optional
            Dtype of the stored points. uint16 stores points as fractions of their box, in half the
            bytes of float32. Coordinates are off by up to 7.6e-6 of a side of the box, and points
            outside the box are refused. uint8 stores whole numbers from 0 to 255 exactly, such as
            pixels or counts, in a quarter of the bytes; other values are refused. Points of both
            types are read as float32. None: float32, or float64 if float32 would merge points of
            the first append, such as the Julian dates of one night. Later appends that float32
            would merge are refused.
        chunk_points : int, optional
            Number of points in a stored chunk, of bags and of responses. Default: as many as fit in
            2 MiB. Sixteen chunks form one object.
        overwrite : bool
            Whether to replace an existing bag store. Nothing else is ever replaced: no other data,
            no folder with files of other programs, no symbolic link. A bag store without committed
            bags, which a killed job leaves behind, is replaced in any case.

        Raises
        ------
        ParameterError
            If a parameter is outside its range.
        StoreError
            If the URL is taken or cannot be written.
        WriterBusyError
            If another writer is appending to the existing store.
        """
        url = normalize_url(url)
        classes = {name: list(values) for name, values in (class_names or {}).items()}
        is_open, dtype = dtype is None, np.float32 if dtype is None else dtype
        check_creation(n_dims, target_names, classes, dtype, chunk_points, response_dims)
        if response_dims is None and response_box is not None:
            raise ParameterError("response_box is given, but not response_dims; pass both")
        meta = StoreMeta(
            n_dims=int(n_dims),  # JSON does not know NumPy's integers
            target_names=tuple(target_names),
            box=box_of(box, n_dims, dtype),
            ranges=measured_arrays(dtype, box, response_dims, response_box),
            class_names=classes,
            fractions=bool(np.dtype(dtype) == FRACTIONS),
            whole_numbers=bool(np.dtype(dtype) == WHOLE),
            is_dtype_open=is_open,
            response_dims=None if response_dims is None else int(response_dims),
            response_box=(
                None
                if response_dims is None
                else box_of(response_box, response_dims, dtype, "response_box")
            ),
        )
        check_place(url, overwrite)
        with writer_lock(url, make=True) as hold:
            snapshot = create_store(hold, meta, dtype, chunk_points, overwrite)
            return cls(url, meta=meta, snapshot=snapshot)

    @classmethod
    def open(cls, url: str | os.PathLike[str]) -> BagStore:
        """Open an existing store with the bags that are committed now.

        Raises
        ------
        StoreError
            If nothing is stored at the URL, or it is not a bag store.
        """
        url = normalize_url(url)
        snapshot = current_snapshot(url)
        meta = StoreMeta.from_attributes(read_attributes(url, snapshot), url)
        return cls(url, meta=meta, snapshot=snapshot)

    @classmethod
    @checked
    def from_xarray(cls, dataset: Dataset, url: UrlOrPath, *, overwrite: bool = False) -> BagStore:
        """Make a store from a data set in CF's contiguous ragged layout.

        Parameters
        ----------
        dataset : xarray.Dataset
            Data set in which a variable with the attribute ``sample_dimension`` counts the points
            of each bag. A data set from `to_xarray` gives the same store again. All numeric and
            time variables along the points are coordinates; the positions and times of CF come
            first. A variable of two dimensions gives several coordinates. Numeric and time
            variables along the bags are targets. The ids are the variable ``id`` or the variable
            with a ``cf_role``. Times are stored as days since 1970-01-01. ``_FillValue``,
            ``scale_factor`` and similar attributes are honoured, see "What is read from each
            format". A warning names the variables that are left out. The data set is read into
            memory.
        url : str or path
            URL of the new store.
        overwrite : bool
            As for `create`.

        Raises
        ------
        DataError
            If no variable counts points, variables do not fit, coordinates are missing, numbers are
            complex, or a calendar has no dates.
        StoreError
            If the URL is taken or cannot be written.
        """
        parts = parts_of(dataset)
        store = cls.create(url, **parts.options, overwrite=overwrite)
        if len(parts.bags):
            with store.appending(parts.source or None) as session:
                session.write(parts.bags, parts.targets, parts.ids, responses=parts.responses)
        return store

    def refresh(self) -> BagStore:
        """Make bags visible that were committed later; return the store itself."""
        snapshot = current_snapshot(self.url)
        self.meta = StoreMeta.from_attributes(read_attributes(self.url, snapshot), self.url)
        self.snapshot = snapshot
        self._close()
        return self

    # ------------------------------------------------------------------ writing

    def append(
        self,
        bags: Bags | Sequence[ArrayLike],
        targets: TargetsLike = None,
        *,
        ids: IdsLike | None = None,
        responses: Responses | Bags | Sequence[ArrayLike | None] | None = None,
    ) -> BagStore:
        """Append bags atomically: if anything fails, no bag is appended.

        In a store kept by Icechunk another writer may commit first. The bags are then written
        again, after the other writer's bags.

        Parameters
        ----------
        bags : Bags or list of array_like (n_i, n_dims)
        targets : mapping from name to (n_bags,), or array (n_bags, n_targets), optional
            Labels of the bags; NaN for a bag without a label. None: no labels. The index of
            values of pandas, Dask or xarray is aligned with the ids.
        ids : sequence of int or str, optional
            Ids of the bags, which are unique in the store. Default: the ids of ``bags``, if they
            have ids, else the next integers.
        responses : sequence with one array_like (m_i, response_dims) or None per bag, optional
            Responses of the bags; `Bags` and `Responses` are accepted too. A bag whose response is
            None or has no points is not labelled. None: no responses.

        Raises
        ------
        DataError
            If bags, targets, ids or responses cannot be used.
        WriterBusyError
            If another writer is appending.
        StoreError
            If writing fails (a full disk, no permission).
        """
        sets = as_bags(bags)
        own = sets.bag_ids
        if ids is None and has_index(bags) and own is not None and counts_bags(own):
            sets, targets = sets.with_ids(None), targets_in_order(targets, own)
        return self._commit(lambda session: session.write(sets, targets, ids, responses=responses))

    def remove(self, ids: IdsLike) -> BagStore:
        """Remove bags, so that later fits, evaluations and predictions leave them out.

        The remaining bags keep their indices, and so their place in every holdout. A removed bag is
        read as an empty bag without labels. Its id stays taken, so that no later table brings it
        back. **Its points stay on the disk until** `compact`. Readers that began earlier still see
        the bags.

        Parameters
        ----------
        ids : sequence of int or str
            Ids of the bags to remove. The removal is atomic. Bags that were removed before stay
            removed.

        Raises
        ------
        DataError
            If the store does not have an id, or an id is given twice.
        WriterBusyError, StoreError
            As `append`.
        """

        def write(session: AppendSession) -> None:
            rows = find_ids(self.ids(), self.meta.id_kind, ids)
            session.change(removals(np.setdiff1d(rows, self.changes.removed)))

        return self._commit(write)

    @checked
    def relabel(
        self, target: str, labels: Annotated[Mapping[Any, Any], MappingOf(Open(), Open())]
    ) -> BagStore:
        """Set or replace labels of bags. Readers that began earlier still see the old labels.

        Parameters
        ----------
        target : str
            Name of a target of the store.
        labels : mapping from id to number, or to the text of a class
            New label of each bag. The change is atomic. To leave a bag out, `remove` it.

        Raises
        ------
        DataError
            If the store does not have the target, an id or a class, a bag was removed, or a value
            is not a finite number. Also if a number is the code of one class and the name of
            another class.
        WriterBusyError, StoreError
            As `append`.
        """
        column = self.target_columns([target])[0]
        ids, classes = list(labels), self.meta.class_names.get(target)
        new = as_array(f"target {target!r}", list(labels.values()))
        values = target_column(new, target, classes, len(ids))
        check_codes(new, target, classes or ())
        for row in np.flatnonzero(np.isnan(values)):
            raise DataError(f"target {target!r}: the bag with id {ids[row]!r} gets no label")

        def write(session: AppendSession) -> None:
            rows = find_ids(self.ids(), self.meta.id_kind, ids)
            for row in np.flatnonzero(~self.present()[rows]):
                raise DataError(f"the bag with id {ids[row]!r} was removed")
            session.change(relabellings(rows, column, values))

        return self._commit(write)

    def compact(self) -> BagStore:
        """Delete points, responses and labels of removed bags from the disk.

        Indices and ids stay. If a call is killed, the next one finishes its work. A reader that
        began before the removal gets an error at a deleted bag. In a store kept by Icechunk all
        earlier snapshots are deleted too: compact while nobody reads them.

        Raises
        ------
        WriterBusyError, StoreError
            As `append`.
        """
        if self.refresh().n_removed:
            begun = datetime.now(UTC)
            self._commit(lambda session: session.erase(self))
            delete_history(self.url, begun)
        return self

    def _commit(self, write: Callable[[AppendSession], None]) -> BagStore:
        """Write in a new session; repeat if another writer of Icechunk committed first."""
        while True:
            try:
                with self.appending() as session:
                    write(session)
                return self
            except WriterBusyError:
                if not is_transactional(self.url):
                    raise

    @checked
    @contextmanager
    def appending(self, source: TextMapping | None = None) -> Iterator[AppendSession]:
        """Open a session of many writes, which are committed together at the end of the block.

        Within the block the store sees only committed bags. After an error nothing is committed,
        and the store sees the same bags as before.
        """
        seen = self.meta, self.snapshot
        with writer_lock(self.url) as hold:
            try:
                session = AppendSession(self.refresh(), hold.check)
                try:
                    yield session
                    seen = session.commit(source)
                finally:
                    session.close()
            finally:
                self.meta, self.snapshot = seen
                self._close()

    @checked
    def verify(self, progress: Progress | None = None) -> None:
        """Check every invariant of the committed data.

        Raises
        ------
        StoreError
            If an invariant is violated. The message names the array, the chunk and the bag of the
            first violation.
        """
        verify_store(self, progress)
