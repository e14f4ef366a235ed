"""Ingest without a cluster: a new store from an iterable of arrays, or from an .npz file.

Whatever fails, from a bad value to a full disk, leaves no store behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..bags.box import Box
from ..bags.creation import check_place, is_vacant
from ..bags.store import BagStore
from ..errors import DataError, StoreError, WriterBusyError
from ..storage.files import remove
from ..storage.lock import writer_lock
from ..storage.urls import normalize_url
from .batches import Batch, batches_of, columns_of, is_whole, slices_of
from .npz import read_npz

Progress = Callable[[int, int], None]


@contextmanager
def new_store(url: str | os.PathLike[str], overwrite: bool) -> Iterator[Callable[..., BagStore]]:
    """Yield `BagStore.create` for the URL; if the block fails, remove what it created.

    A URL that is taken or can not be written is refused at once, before any work is done. A
    store that is to be replaced stays until the block creates its own.
    """
    url = normalize_url(url)
    created = False

    def create(n_dims: int, **options: Any) -> BagStore:
        nonlocal created
        created = True
        return BagStore.create(url, n_dims, overwrite=overwrite, **options)

    try:
        check_place(url, overwrite)
        if is_vacant(url):
            create(1)
        yield create
    except BaseException:
        if created:
            _remove_uncommitted(url)
        raise


def ingest_arrays(
    arrays: Iterable[Any],
    url: str | os.PathLike[str],
    *,
    targets: Any = None,
    target_names: Sequence[str] = (),
    class_names: Mapping[str, Sequence[str]] | None = None,
    ids: Iterable[Any] | None = None,
    responses: Iterable[Any] | None = None,
    response_dims: int | None = None,
    box: Box | Sequence[Sequence[float]] | None = None,
    response_box: Box | Sequence[Sequence[float]] | None = None,
    dtype: DTypeLike = np.float32,
    overwrite: bool = False,
    chunk_points: int | None = None,
) -> BagStore:
    """Make a store from an iterable that is consumed once, some tens of MiB at a time.

    Parameters
    ----------
    arrays : iterable
        One item per bag: an array of shape (n_i, n_dims), or a tuple of such an array and the
        bag's target (a number or a label, or a sequence with one per target, empty for none), or of
        an array, the target and the bag's response.
    url : str or path
        Of the new store.
    targets : mapping, array or iterable, optional
        Instead of targets in the items: a mapping from name to (n_bags,), an array (n_bags,) or
        (n_bags, n_targets), or an iterable with the target of one bag after the other. NaN is
        not labelled.
    target_names : sequence of str
        Default: the names of a mapping, else "target", or "target_0", … if there are several.
    class_names : mapping from target name to sequence of str, optional
        The classes of targets that are text. Needed where targets come bag by bag, else the
        sorted labels.
    ids : iterable of int or str, optional
        One per bag, unique; default 0, 1, ….
    responses : iterable, optional
        Instead of responses in the items, one per bag: an array of shape (m_i, response_dims), None
        or an array without rows for a bag that has none.
    response_dims : int, optional
        Default that of the first response; needed where the first bags have none.
    box, response_box : sequence of (lo, hi), optional
        Default: the range of the points, widened by 1 % of it on each side.
    dtype : float32 (default) or float64
        Of the stored points.
    overwrite : bool
        Replace a store that is there.
    chunk_points : int, optional
        See `BagStore.create`.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        No bags, or bags, targets, ids or responses that can not be used; names the bag.
    StoreError
        Something is stored at the URL, or it can not be written.
    """
    classes = {name: list(labels) for name, labels in (class_names or {}).items()}
    names = list(target_names)
    rows = None if targets is None else iter(targets)
    if is_whole(targets):
        classes, columns = columns_of(targets, names, classes)
        names = list(columns)
        rows = iter(zip(*columns.values(), strict=True)) if columns else None
    with new_store(url, overwrite) as create:
        batches = batches_of(
            arrays,
            rows,
            names,
            None if ids is None else iter(ids),
            None if responses is None else iter(responses),
            response_dims,
        )
        source = {"job": "ingest", "from": "arrays"}
        options = {"class_names": classes, "dtype": dtype, "chunk_points": chunk_points}
        return _write(create, batches, Boxes(box, response_box), source, options, response_dims)


def ingest_npz(
    path: str | os.PathLike[str],
    url: str | os.PathLike[str],
    *,
    target_names: Sequence[str] = (),
    box: Box | Sequence[Sequence[float]] | None = None,
    response_box: Box | Sequence[Sequence[float]] | None = None,
    dtype: DTypeLike = np.float32,
    overwrite: bool = False,
    chunk_points: int | None = None,
    progress: Progress | None = None,
) -> BagStore:
    """Make a store from one .npz file, which has to fit in memory.

    The file holds ``points`` (n_points, n_dims); ``offsets`` (n_bags + 1,), from 0 to n_points,
    or ``sizes`` (n_bags,); and if wanted ``ids`` (n_bags,), integers or text, and ``targets``
    (n_bags,) or (n_bags, n_targets), numbers or class labels. The bags have responses if there is
    ``response_points`` (n_response_points, response_dims), with ``response_offsets`` or
    ``response_sizes``; a response of no points is none.

    Parameters
    ----------
    path : str or path
        A local path or any URL fsspec knows.
    url : str or path
        Of the new store.
    target_names : sequence of str
        Default "target", or "target_0", … if there are several.
    box, response_box, dtype, overwrite, chunk_points
        As for `ingest_arrays`.
    progress : callable, optional
        Called with the points written, those of responses among them, and their number.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        The file can not be read, lacks an array, or holds one that can not be used (pickled
        Python objects, which are never loaded, among them); names the file and the array.
    StoreError
        Something is stored at the URL, or it can not be written.
    """
    file = normalize_url(path)
    with _naming(file), new_store(url, overwrite) as create:
        found = read_npz(file)
        classes, columns = columns_of(found.targets, target_names, {}, len(found.bags))
        batches = slices_of(found.bags, columns, found.ids, found.responses, progress)
        source = {"job": "ingest", "from": file}
        options = {"class_names": classes, "dtype": dtype, "chunk_points": chunk_points}
        return _write(create, batches, Boxes(box, response_box), source, options)


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Re-raise every DataError with the name of the file."""
    try:
        yield
    except DataError as error:
        if str(error).startswith(file):
            raise
        raise DataError(f"{file}: {error}") from error


def _remove_uncommitted(url: str) -> None:
    """Remove a store of ours, unless by now somebody else writes to it or has committed bags."""
    with ExitStack() as lock, suppress(OSError):
        try:
            lock.enter_context(writer_lock(url))
        except WriterBusyError:
            return
        except StoreError:
            pass  # half a store, without the array the lock lies in: nobody can hold it
        check_place(url, overwrite=False)
        remove(url)


class Boxes(NamedTuple):
    """The boxes of the bags and of the responses; None is to be measured."""

    points: Any
    responses: Any


class Measured:
    """The range of points that come batch by batch."""

    def __init__(self) -> None:
        self._range: tuple[NDArray[Any], NDArray[Any]] | None = None

    def add(self, points: NDArray[Any]) -> None:
        """Widen the range by those of a batch."""
        if len(points):
            lo, hi = points.min(axis=0), points.max(axis=0)
            low, high = self._range or (lo, hi)
            self._range = np.minimum(low, lo), np.maximum(high, hi)

    @property
    def box(self) -> Box | None:
        """With `Box.around`'s margin; None without points."""
        return self._range and Box.around(*self._range)


def _write(
    create: Callable[..., BagStore],
    batches: Iterator[Batch],
    boxes: Boxes,
    source: Mapping[str, Any],
    options: Mapping[str, Any],
    response_dims: int | None = None,
) -> BagStore:
    first = next(batches, None)
    if first is None:
        raise DataError("no bags: the iterable is empty")
    store = create(
        first.bags.n_dims,
        target_names=list(first.targets),
        box=boxes.points,
        response_dims=response_dims if first.responses is None else first.responses.n_dims,
        response_box=boxes.responses,
        **options,
    )
    of_points, of_responses = Measured(), Measured()
    with store.appending(source) as session:
        for batch in chain([first], batches):
            session.write(batch.bags, batch.targets, batch.ids, responses=batch.responses)
            of_points.add(batch.bags.points)
            if batch.responses is not None:
                of_responses.add(batch.responses.points)
        if boxes.points is None and of_points.box is not None:
            session.set_box(of_points.box)
        if boxes.responses is None and of_responses.box is not None:
            session.set_response_box(of_responses.box)
    return store
