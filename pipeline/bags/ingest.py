"""Ingest without a cluster: a new store from an iterable of arrays, or from an .npz file.

Whatever fails, from a bad value to a full disk, leaves no store behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import Any

import numpy as np

from ..errors import DataError, StoreError, WriterBusyError
from .box import Box
from .creation import check_replaceable, is_vacant
from .ingest_batches import Batch, batches_of, columns_of, is_whole, read_npz, slices_of
from .lock import writer_lock
from .store import BagStore
from .urls import normalize_url, remove

Progress = Callable[[int, int], None]


@contextmanager
def new_store(url: str | os.PathLike[str], overwrite: bool) -> Iterator[Callable[..., BagStore]]:
    """Yields `BagStore.create` for the URL; if the block fails, what it created is removed.

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
        if is_vacant(url):
            create(1)
        else:
            check_replaceable(url, overwrite)
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
    box: Box | Sequence[Sequence[float]] | None = None,
    dtype: Any = np.float32,
    overwrite: bool = False,
    chunk_points: int | None = None,
) -> BagStore:
    """Make a store from an iterable that is consumed once, some tens of MiB at a time.

    Parameters
    ----------
    arrays : iterable
        One item a bag: an array of shape (n_i, n_dims), or a tuple of such an array and the
        bag's target (a number or a label, or a sequence of one a target).
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
        One a bag, unique; default 0, 1, ….
    box : sequence of (lo, hi), optional
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
        No bags, or bags, targets or ids that can not be used; names the bag.
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
        batches = batches_of(arrays, rows, names, None if ids is None else iter(ids))
        options = {"class_names": classes, "dtype": dtype, "chunk_points": chunk_points}
        return _write(create, batches, box, {"job": "ingest", "from": "arrays"}, options)


def ingest_npz(
    path: str | os.PathLike[str],
    url: str | os.PathLike[str],
    *,
    target_names: Sequence[str] = (),
    box: Box | Sequence[Sequence[float]] | None = None,
    dtype: Any = np.float32,
    overwrite: bool = False,
    chunk_points: int | None = None,
    progress: Progress | None = None,
) -> BagStore:
    """Make a store from one .npz file, which has to fit in memory.

    The file holds ``points`` (n_points, n_dims); ``offsets`` (n_bags + 1,), from 0 to n_points,
    or ``sizes`` (n_bags,); and if wanted ``ids`` (n_bags,), integers or text, and ``targets``
    (n_bags,) or (n_bags, n_targets), numbers or class labels.

    Parameters
    ----------
    path : str or path
        A local path or any URL fsspec knows.
    url : str or path
        Of the new store.
    target_names : sequence of str
        Default "target", or "target_0", … if there are several.
    box, dtype, overwrite, chunk_points
        As for `ingest_arrays`.
    progress : callable, optional
        Called with the points written and their number.

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
        bags, ids, targets = read_npz(file)
        classes, columns = columns_of(targets, target_names, {}, len(bags))
        batches = slices_of(bags, columns, ids, progress)
        options = {"class_names": classes, "dtype": dtype, "chunk_points": chunk_points}
        return _write(create, batches, box, {"job": "ingest", "from": file}, options)


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Every DataError names the file."""
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
        check_replaceable(url, overwrite=False)
        remove(url)


def _write(
    create: Callable[..., BagStore],
    batches: Iterator[Batch],
    box: Any,
    source: Mapping[str, Any],
    options: Mapping[str, Any],
) -> BagStore:
    first = next(batches, None)
    if first is None:
        raise DataError("no bags: the iterable is empty")
    store = create(first.bags.n_dims, target_names=list(first.targets), box=box, **options)
    lo, hi = np.full(store.n_dims, np.inf), np.full(store.n_dims, -np.inf)
    with store.appending(source) as session:
        for batch in chain([first], batches):
            session.write(batch.bags, batch.targets, batch.ids)
            lo = np.minimum(lo, batch.bags.points.min(axis=0))
            hi = np.maximum(hi, batch.bags.points.max(axis=0))
        if box is None:
            session.set_box(Box.around(lo, hi))
    return store
