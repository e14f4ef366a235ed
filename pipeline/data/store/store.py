"""`BagStore`: labelled bags in Zarr, appended to atomically, read by ranges of bags."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ...core import (
    Boolean,
    Function,
    Integer,
    ListOf,
    MappingOf,
    None_,
    Open,
    Text,
    Url,
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
from .targets import TargetsLike, target_column, targets_in_order
from .verify import verify_store
from .writer import AppendSession

if TYPE_CHECKING:
    from xarray import Dataset


class BagStore(Exported):
    """Bags on disk or in object storage, with ids and targets; made by `create` or `open`.

    A store object sees the bags that were committed when it was opened, and those it appended
    itself; `refresh` looks again. It can be pickled: a copy opens the same URL at the same counts.

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
    @checked(
        url=Url,
        n_dims=Integer(),
        target_names=ListOf(Text),
        response_dims=Integer() | None_,
        class_names=MappingOf(Text, ListOf(Text)) | None_,
        chunk_points=Integer() | None_,
        overwrite=Boolean,
    )
    def create(
        cls,
        url: str | os.PathLike[str],
        n_dims: int,
        target_names: Sequence[str] = (),
        box: Box | Sequence[Sequence[float]] | None = None,
        *,
        response_dims: int | None = None,
        response_box: Box | Sequence[Sequence[float]] | None = None,
        class_names: Mapping[str, Sequence[str]] | None = None,
        dtype: DTypeLike | None = None,
        chunk_points: int | None = None,
        overwrite: bool = False,
    ) -> BagStore:
        """Make an empty store.

        Parameters
        ----------
        url : str or path
            A local path, or ``icechunk+s3://BUCKET/PATH``. Plain Zarr elsewhere can only be read.
        n_dims : int
            Coordinates of a point.
        target_names : sequence of str
            One name per target column.
        box : sequence of (lo, hi), optional
            The box that is scaled to [0, 1]^d before projection. None: measured from the points
            of all appends, as for bags in memory; of uint8 from 0 to 255. dtype uint16 needs one.
        response_dims : int, optional
            Coordinates of a response point; None for a store without responses.
        response_box : sequence of (lo, hi), optional
            As ``box``, of the responses.
        class_names : mapping from target name to sequence of str, optional
            Names of the classes 0, 1, …; text labels are then accepted for that target.
        dtype : float32, float64, uint16 or uint8, optional
            Dtype of the stored points. None: float32, or float64 where float32 would merge points
            of the first append, as Julian dates of a night. Later appends that float32 would merge
            are refused. uint16 holds them as fractions of their box, in half the
            bytes of float32: off by up to 7.6e-6 of a side, and read as float32. Points outside
            the box are refused. uint8 holds whole numbers from 0 to 255 as they are, in a quarter
            of the bytes, as pixels or counts; they are read as float32, others are refused.
        chunk_points : int, optional
            Points in a stored chunk, of bags and of responses; default two MiB of them.
            Sixteen chunks are one object.
        overwrite : bool
            Replace a bag store that is there; nothing else is ever replaced, nor a folder that
            also holds files of others, nor a symbolic link. A bag store without committed bags
            (what a killed job leaves) is replaced anyway.

        Raises
        ------
        ParameterError
            A parameter outside its range.
        StoreError
            Something is stored at the URL, or it cannot be written.
        WriterBusyError
            Somebody is appending to the store that is there.
        """
        url = normalize_url(url)
        classes = {name: list(values) for name, values in (class_names or {}).items()}
        is_open, dtype = dtype is None, np.float32 if dtype is None else dtype
        check_creation(n_dims, target_names, classes, dtype, chunk_points, response_dims)
        if response_dims is None and response_box is not None:
            raise ParameterError("response_box is given, but not response_dims; pass both")
        meta = StoreMeta(
            n_dims=int(n_dims),  # numpy's integers are none that JSON knows
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
            return cls(url, meta, create_store(hold, meta, dtype, chunk_points, overwrite))

    @classmethod
    def open(cls, url: str | os.PathLike[str]) -> BagStore:
        """Open a store at its committed length.

        Raises
        ------
        StoreError
            Nothing there, or not a bag store.
        """
        url = normalize_url(url)
        snapshot = current_snapshot(url)
        return cls(url, StoreMeta.from_attributes(read_attributes(url, snapshot), url), snapshot)

    @classmethod
    @checked(url=Url, overwrite=Boolean)
    def from_xarray(
        cls, dataset: Dataset, url: str | os.PathLike[str], *, overwrite: bool = False
    ) -> BagStore:
        """Make a store from a data set in CF's contiguous ragged layout.

        Parameters
        ----------
        dataset : xarray.Dataset
            A data set from `to_xarray`, which gives the same store again, or another one: a
            variable with the attribute ``sample_dimension`` counts the points of each bag. All
            variables of numbers or times along the points are coordinates, positions and times of
            CF first; one of two dimensions has several columns. Numbers and times per bag are
            targets. The ids are ``id``, or the variable with a ``cf_role``. Times are days since
            1970-01-01.
            ``_FillValue``, ``scale_factor`` and their like are honoured, see "What is read from
            each format". A warning names the variables that are left out. It is read into memory.
        url : str or path
            URL of the new store.
        overwrite : bool
            As for `create`.

        Raises
        ------
        DataError
            No such variable, variables that do not fit, missing coordinates, or complex numbers
            and calendars without dates.
        StoreError
            Something is stored at the URL, or it cannot be written.
        """
        parts = parts_of(dataset)
        store = cls.create(url, **parts.options, overwrite=overwrite)
        if len(parts.bags):
            with store.appending(parts.source or None) as session:
                session.write(parts.bags, parts.targets, parts.ids, responses=parts.responses)
        return store

    def refresh(self) -> BagStore:
        """See what was committed since; returns the store itself."""
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
        ids: IdsLike | None = None,
        *,
        responses: Responses | Bags | Sequence[ArrayLike | None] | None = None,
    ) -> BagStore:
        """Append bags: all of them or, if anything goes wrong, none.

        In a store kept by Icechunk another writer may commit first. The bags are then written
        again, after that writer's bags.

        Parameters
        ----------
        bags : Bags or list of array_like (n_i, n_dims)
        targets : mapping from name to (n_bags,), or array (n_bags, n_targets), optional
            NaN where a bag has no label; None for no labels at all. Values of pandas are put in
            the order of the ids by their index.
        ids : sequence of int or str, optional
            Unique in the store; default those of the bags, as of a groupby, else the next integers.
        responses : sequence with one array_like (m_i, response_dims) or None per bag, optional
            Or Bags, or `Responses`. A bag whose response is None or has no points is not
            labelled; None for no responses at all.

        Raises
        ------
        DataError
            Bags, targets, ids or responses that cannot be used.
        WriterBusyError
            Another writer is appending.
        StoreError
            Writing failed (a full disk, no permission).
        """
        sets = as_bags(bags)
        own = sets.bag_ids
        if ids is None and has_index(bags) and own is not None and counts_bags(own):
            sets, targets = sets.with_ids(None), targets_in_order(targets, own)
        return self._commit(lambda session: session.write(sets, targets, ids, responses=responses))

    def remove(self, ids: IdsLike) -> BagStore:
        """Remove bags: later fits, evaluations and predictions leave them out.

        The other bags keep their indices, and so their place in every holdout. A removed bag reads
        as empty and without labels. Its id stays taken, so that no later table brings it back.
        **Its points stay on the disk until** `compact`. Readers that began earlier still see the
        bags.

        Parameters
        ----------
        ids : sequence of int or str
            All of them or none are removed; those removed before stay so.

        Raises
        ------
        DataError
            An id that the store does not have, or one given twice.
        WriterBusyError, StoreError
            As `append`.
        """

        def write(session: AppendSession) -> None:
            rows = find_ids(self.ids(), self.meta.id_kind, ids)
            session.change(removals(np.setdiff1d(rows, self.changes.removed)))

        return self._commit(write)

    @checked(target=Text, labels=MappingOf(Open(), Open()))
    def relabel(self, target: str, labels: Mapping[Any, Any]) -> BagStore:
        """Give bags other labels, or their first ones; readers that began earlier see the old ones.

        Parameters
        ----------
        target : str
            One of the store's.
        labels : mapping from id to number, or to the text of a class
            All of them or none are taken. To leave a bag out, `remove` it.

        Raises
        ------
        DataError
            A target, an id or a class that the store does not have, a bag that was removed, or a
            value that is not a finite number.
        WriterBusyError, StoreError
            As `append`.
        """
        column = self.target_columns([target])[0]
        ids, classes = list(labels), self.meta.class_names.get(target)
        new = as_array(f"target {target!r}", list(labels.values()))
        values = target_column(new, target, classes, len(ids))
        for row in np.flatnonzero(np.isnan(values))[:1]:
            raise DataError(f"target {target!r}: the bag with id {ids[row]!r} gets no label")

        def write(session: AppendSession) -> None:
            rows = find_ids(self.ids(), self.meta.id_kind, ids)
            for row in np.flatnonzero(~self.present()[rows])[:1]:
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
        """Write in a new session; start again if another writer of Icechunk committed first."""
        while True:
            try:
                with self.appending() as session:
                    write(session)
                return self
            except WriterBusyError:
                if not is_transactional(self.url):
                    raise

    @checked(source=MappingOf(Text, Open()) | None_)
    @contextmanager
    def appending(self, source: Mapping[str, Any] | None = None) -> Iterator[AppendSession]:
        """Open a session of many writes, with one commit when the block ends without an error.

        Within the block the store is at its committed length. After an error it sees what it saw
        before.
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

    @checked(progress=Function | None_)
    def verify(self, progress: Progress | None = None) -> None:
        """Check every invariant of the committed data.

        Raises
        ------
        StoreError
            The first violation, naming the array, the chunk and the bag.
        """
        verify_store(self, progress)
