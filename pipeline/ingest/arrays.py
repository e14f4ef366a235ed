"""Ingest without a cluster: a new store from an iterable of arrays, or from an .npz file.

If anything fails, from a bad value to a full disk, no store is left behind.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..bags import FRACTIONS, GIVE_BOX, MOST_DIMS, PACKED, Box, box_or_quantile, range_of
from ..errors import DataError, ParameterError, StoreError, WriterBusyError, shown
from ..execution import computed
from ..parameters import (
    Boolean,
    Function,
    Integer,
    Items,
    ListOf,
    MappingOf,
    None_,
    Text,
    Url,
    checked,
    is_iterable,
)
from ..parameters.ingest import MODE
from ..params import check_dtype
from ..storage import normalize_url, remove, writer_lock
from ..store import BagStore, check_place, is_vacant
from .batches import BagsToWrite, batches_of, columns_of, is_whole, slices_of
from .npz import NpzBags, read_npz

MOST_NAMED = 5  # coordinates in a warning

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]


@contextmanager
def new_store(url: str | os.PathLike[str], overwrite: bool) -> Iterator[Callable[..., BagStore]]:
    """Yield `BagStore.create` for the URL; if the block fails, remove what it created.

    A URL that is taken or cannot be written is refused at once, before any work is done. If a
    store is to be replaced, it stays until the block creates its own.
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


@checked(
    arrays=Items,
    url=Url,
    target_names=ListOf(Text),
    class_names=MappingOf(Text, ListOf(Text)) | None_,
    ids=Items | None_,
    responses=Items | None_,
    response_dims=Integer(1, MOST_DIMS) | None_,
    overwrite=Boolean,
    chunk_points=Integer() | None_,
)
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
        an array, the target and the bag's response. Arrays may be Dask's: ``delayed`` calls that
        return one, or arrays of ``dask.array``.
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
    box, response_box : sequence of (lo, hi) or {"quantile": share}, optional
        Default: the range of the points but for outliers, see `TableIngest`.
    dtype : float32 (default), float64, uint8, or uint16 with a given box
        Of the stored points, see `BagStore.create`.
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
        No bags, or bags, targets, ids or responses that cannot be used; names the bag.
    StoreError
        Something is stored at the URL, or it cannot be written.
    """
    classes = {name: list(labels) for name, labels in (class_names or {}).items()}
    names = list(target_names)
    if targets is not None and not is_iterable(targets):
        raise DataError(f"targets is {shown(targets)}; expected one per bag")
    rows = None if targets is None else iter(targets)
    if is_whole(targets):
        classes, columns = columns_of(targets, names, classes)
        names = list(columns)
        rows = iter(zip(*columns.values(), strict=True)) if columns else None
    with new_store(url, overwrite) as create:
        batches = batches_of(
            computed(arrays),
            rows,
            names,
            None if ids is None else iter(ids),
            None if responses is None else iter(responses),
            response_dims,
        )
        source = {"job": "ingest", "from": "arrays"}
        options = {"class_names": classes, "dtype": dtype, "chunk_points": chunk_points}
        return _write(create, batches, Boxes(box, response_box), source, options, response_dims)


@checked(
    path=Url,
    url=Url,
    target_names=ListOf(Text),
    mode=MODE,
    overwrite=Boolean,
    chunk_points=Integer() | None_,
    progress=Function | None_,
)
def ingest_npz(
    path: str | os.PathLike[str],
    url: str | os.PathLike[str],
    *,
    target_names: Sequence[str] = (),
    box: Box | Sequence[Sequence[float]] | None = None,
    response_box: Box | Sequence[Sequence[float]] | None = None,
    dtype: DTypeLike = np.float32,
    mode: str = "create",
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
    mode : {"create", "append", "overwrite"}
        As for `TableIngest`.
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
        The file cannot be read, lacks an array, or holds one that cannot be used (pickled
        Python objects, which are never loaded, among them); names the file and the array.
    StoreError
        Something is stored at the URL, or it cannot be written.
    """
    file = normalize_url(path)
    if check_mode(mode, overwrite, box=box, response_box=response_box, chunk_points=chunk_points):
        with _naming(file):
            return _append(read_npz(file), BagStore.open(url), target_names, progress)
    with _naming(file), new_store(url, overwrite or mode == "overwrite") as create:
        found = read_npz(file)
        classes, columns = columns_of(found.targets, list(target_names), {}, len(found.bags))
        batches = slices_of(found.bags, columns, found.ids, found.responses, progress)
        source = {"job": "ingest", "from": file}
        options = {"class_names": classes, "dtype": dtype, "chunk_points": chunk_points}
        return _write(create, batches, Boxes(box, response_box), source, options)


def check_mode(mode: str, overwrite: bool, **of_new_stores: object) -> bool:
    """Return whether bags are appended to a store that is there.

    Raises
    ------
    ParameterError
        An unknown mode, or a parameter that only a new store has, with "append".
    """
    if MODE.check("mode", mode) != "append":
        return False
    for name, value in {"overwrite": overwrite or None, **of_new_stores}.items():
        if value is not None:
            raise ParameterError(f"{name} is given with mode='append': the store keeps its own")
    return True


def _append(
    found: NpzBags, store: BagStore, target_names: Sequence[str], progress: Progress | None
) -> BagStore:
    names, classes = list(target_names or store.target_names), store.meta.class_names
    _, columns = columns_of(found.targets, names, classes, len(found.bags))
    with store.appending() as session:
        for batch in slices_of(found.bags, columns, found.ids, found.responses, progress):
            ids = None if found.ids is None else batch.ids
            session.write(batch.bags, batch.targets or None, ids, responses=batch.responses)
    return store


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
    """Remove our store, unless another process writes to it or has committed bags."""
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
    """The boxes of the bags and of the responses as they are given; see `box_or_quantile`."""

    points: Any
    responses: Any


class MeasuredBox:
    """A box that is given, or that is measured from the range and a sample of points.

    The points come batch by batch. Every point gets a random number; the sample is the points with
    the smallest numbers.
    """

    def __init__(self, box: object, n_dims: int, name: str = "box") -> None:
        self.given = box_or_quantile(box, n_dims, name)
        self._size = Box.sample_size(n_dims)
        self._lo, self._hi = np.full(n_dims, np.inf), np.full(n_dims, -np.inf)
        self._rng = np.random.default_rng(0)
        self._numbers, self._sample = np.empty(0), np.empty((0, n_dims))
        self._most = np.inf  # number of those sampled, when they are enough

    def add(self, points: NDArray[Any]) -> None:
        """Take note of a batch."""
        if isinstance(self.given, Box) or not len(points):
            return
        lo, hi = range_of(points)
        self._lo, self._hi = np.minimum(self._lo, lo), np.maximum(self._hi, hi)
        drawn = self._rng.random(len(points))
        fewer = np.flatnonzero(drawn < self._most)  # a sort of millions takes long
        numbers = np.append(self._numbers, drawn[fewer])
        sample = np.concatenate([self._sample, points[fewer]])
        if len(numbers) > self._size:
            kept = np.argpartition(numbers, self._size)[: self._size]
            numbers, sample = numbers[kept], sample[kept]
            self._most = numbers.max()
        self._numbers, self._sample = numbers, sample

    @property
    def warnings(self) -> list[str]:
        """Return warnings about the points; none if the box was given."""
        return warnings_of_range(self._lo, self._hi) if len(self._numbers) else []

    @property
    def box(self) -> Box | None:
        """The box; None if there are no points."""
        if isinstance(self.given, Box) or not len(self._numbers):
            return None
        return Box.around(self._lo, self._hi, self._sample, self.given)


def warnings_of_range(
    lo: NDArray[Any], hi: NDArray[Any], names: Sequence[str] | None = None
) -> list[str]:
    """Return warnings about coordinates that range from ``lo`` to ``hi``, shape (d,)."""
    constant = np.flatnonzero(np.equal(lo, hi)).tolist()
    if not constant:
        return []
    shown = [names[j] if names else j for j in constant[:MOST_NAMED]]
    more = ", …" if len(constant) > MOST_NAMED else ""
    return [
        f"{len(constant)} of {len(lo)} coordinates are constant: {str(shown)[1:-1]}{more}; leave "
        "them out, as they tell nothing and have functions of their own"
    ]


def _write(
    create: Callable[..., BagStore],
    batches: Iterator[BagsToWrite],
    boxes: Boxes,
    source: Mapping[str, Any],
    options: Mapping[str, Any],
    response_dims: int | None = None,
) -> BagStore:
    first = next(batches, None)
    if first is None:
        raise DataError("no bags: the iterable is empty")
    dims = response_dims if first.responses is None else first.responses.n_dims
    of_points = MeasuredBox(boxes.points, first.bags.n_dims)
    of_responses = None if dims is None else MeasuredBox(boxes.responses, dims, "response_box")
    given = [m.given if m and isinstance(m.given, Box) else None for m in (of_points, of_responses)]
    dtype = check_dtype("dtype", options["dtype"], *PACKED)
    if dtype == FRACTIONS and None in given[: 1 if dims is None else 2]:
        raise ParameterError(f"dtype uint16 holds fractions of a box: {GIVE_BOX}")
    store = create(
        first.bags.n_dims,
        target_names=list(first.targets),
        box=given[0],
        response_dims=dims,
        response_box=given[1] if dims else boxes.responses,
        **options,
    )
    with store.appending(source) as session:
        for batch in chain([first], batches):
            session.write(batch.bags, batch.targets, batch.ids, responses=batch.responses)
            of_points.add(batch.bags.points)
            if of_responses is not None and batch.responses is not None:
                of_responses.add(batch.responses.points)
        if of_points.box is not None:
            session.set_box(of_points.box)
        if of_responses is not None and of_responses.box is not None:
            session.set_response_box(of_responses.box)
    for text in of_points.warnings:
        logger.warning("%s: %s", store.url, text)
    return store
