"""Ingest without a cluster, from an iterable of arrays or from an .npz file.

An ingest is atomic. If anything fails, from a bad value to a full disk, no new store is left
behind, and an existing store keeps its bags.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from itertools import chain, islice
from typing import Annotated, Any, ClassVar

from numpy.typing import DTypeLike
from typing_extensions import override

from ..core import (
    Integer,
    Items,
    ListOf,
    MappingOf,
    Text,
    TextList,
    UrlOrPath,
    checked,
    is_iterable,
)
from ..core.arrays import check_dtype
from ..core.errors import DataError, ParameterError, StoreError, WriterBusyError, shown
from ..data.bags.box import MAX_DIMS, Box
from ..data.bags.format_rules import FormatRules
from ..data.bags.packed_points import FRACTIONS, GIVE_BOX, PACKED
from ..data.storage.files import remove
from ..data.storage.lock import writer_lock
from ..data.storage.urls import normalize_url
from ..data.store.creation import check_place, is_vacant
from ..data.store.store import BagStore
from ..execution.dask_data.delayed import computed
from ..execution.progress import Progress
from .batches import BagsToWrite, batches_of, columns_of, is_whole, slices_of
from .boxes import Boxes, MeasuredBox
from .declared import MODE, BoxOrQuantile, Mode, StoreSettings
from .npz import NPZ_RULES, read_npz
from .registry import FORMATS

ARRAY_RULES = FormatRules(
    name="Arrays",
    calls=("ingest_arrays",),
    honoured={
        "dtype": "booleans, integers and floats are numbers",
        "byte order and strides": "any",
        "read-only arrays": "they are copied",
    },
    refused={
        "complex numbers": "expected real numbers",
        "NaN and infinity": "is nan",
        "texts": "expected real numbers",
    },
)

_NO_BAGS = "no bags: the iterable is empty"

logger = logging.getLogger(__name__)


@contextmanager
def new_store(url: str | os.PathLike[str], overwrite: bool) -> Iterator[Callable[..., BagStore]]:
    """Yield `BagStore.create` for the URL; if the block fails, remove what it created.

    A URL that is taken or cannot be written is refused before any work is done. A store that is to
    be replaced stays until the block creates the new store.
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


@checked
def ingest_arrays(
    arrays: Annotated[Iterable[Any], Items],
    url: UrlOrPath,
    *,
    targets: Any = None,
    target_names: TextList = (),
    class_names: Annotated[Mapping[str, Sequence[str]], MappingOf(Text, ListOf(Text))]
    | None = None,
    ids: Annotated[Iterable[Any], Items] | None = None,
    responses: Annotated[Iterable[Any], Items] | None = None,
    response_dims: Annotated[int, Integer(1, MAX_DIMS)] | None = None,
    box: BoxOrQuantile = None,
    response_box: BoxOrQuantile = None,
    dtype: DTypeLike | None = None,
    mode: Mode = "create",
    overwrite: bool = False,
    chunk_points: int | None = None,
) -> BagStore:
    """Make a store from an iterable of arrays, or append to one.

    The iterable is read once, in small batches, so the data need not fit in memory. With
    mode="append" the bags are added atomically. The store then keeps its box, its dtype and its
    classes.

    Parameters
    ----------
    arrays : iterable
        One item per bag: an array of shape (n_i, n_dims), a tuple (array, target), or a tuple
        (array, target, response). A target is a number or a label. With several targets it is a
        sequence of them, which is empty for a bag without targets. Dask arrays and ``delayed``
        calls that return arrays are computed. The columns of data frames name the coordinates; all
        frames are put in the column order of the first frame.
    url : str or path
        URL of the store.
    targets : mapping, array or iterable, optional
        Targets of all bags, instead of targets in the items. A mapping from each name to an array
        of shape (n_bags,), an array of shape (n_bags,) or (n_bags, n_targets), or an iterable with
        one item per bag. NaN marks a bag without a label.
    target_names : sequence of str
        Names of the targets. Default: the keys of a mapping. Otherwise the target names of the
        store that is appended to, or "target", or "target_0", … for several targets.
    class_names : mapping from target name to sequence of str, optional
        Class names of the targets that are text. Required if targets come bag by bag, and for
        labels that are texts of numbers, such as "1" or "007". Default: the sorted labels.
    ids : iterable of int or str, optional
        Unique id of each bag. Default: 0, 1, ….
    responses : iterable, optional
        Response of each bag, instead of responses in the items: an array of shape (m_i,
        response_dims). None or an array without rows marks a bag without a response.
    response_dims : int, optional
        Number of coordinates of a response. Default: the number of coordinates of the first
        response. Required if the first bags have no response.
    box, response_box : sequence of (lo, hi) or {"quantile": share}, optional
        Range of each coordinate, in the points and in the responses. Default: the range of the
        points without outliers, see `TableIngest`.
    dtype : float32, float64, uint8, or uint16 with a given box, optional
        Dtype of the stored points, see `BagStore.create`. None: float32, or float64 where float32
        would merge points.
    mode : {"create", "append", "overwrite"}
        As for `TableIngest`.
    overwrite : bool
        Whether to replace an existing store, like mode="overwrite".
    chunk_points : int, optional
        See `BagStore.create`.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        If there are no bags, or if a bag, target, id or response cannot be used. The message names
        the bag.
    StoreError
        If the URL is taken or cannot be written.

    See Also
    --------
    ingest_npz : Read an NPZ file.
    ingest_frame : Read a data frame.
    bagbasis.Bags : Bags in memory.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.ingest import ingest_arrays
    >>> arrays = (rng.normal(size=(n, 2)) for n in (3, 5))
    >>> store = ingest_arrays(arrays, 'bags.zarr', targets=[31.0, 47.0], target_names=['age'])
    >>> len(store)
    2
    """
    new = {
        "class_names": class_names,
        "response_dims": response_dims,
        "box": box,
        "response_box": response_box,
        "chunk_points": chunk_points,
    }
    store = BagStore.open(url) if check_mode(mode, overwrite, **new) else None
    known = (class_names or {}) if store is None else store.meta.class_names
    classes = {name: list(labels) for name, labels in known.items()}
    names = list(target_names)
    if targets is not None and not is_iterable(targets):
        raise DataError(f"targets is {shown(targets)}; expected one per bag")
    if store is not None:
        response_dims = store.response_dims
        names, arrays = _names_of_kept(store, names, targets, arrays)
    rows = None if targets is None else iter(targets)
    if is_whole(targets):
        classes, columns = columns_of(targets, names, classes)
        names = list(columns)
        rows = iter(zip(*columns.values(), strict=True)) if columns else None
    batches = batches_of(
        computed(arrays),
        rows,
        names,
        None if ids is None else iter(ids),
        None if responses is None else iter(responses),
        response_dims,
    )
    if store is not None:
        return _append(store, batches, ids is not None)
    with new_store(url, overwrite or mode == "overwrite") as create:
        source = {"job": "ingest", "from": "arrays"}
        options = {"class_names": classes, "dtype": dtype, "chunk_points": chunk_points}
        return _write(create, batches, Boxes(box, response_box), source, options, response_dims)


@checked
def ingest_npz(
    path: UrlOrPath,
    url: UrlOrPath,
    *,
    target_names: TextList = (),
    box: BoxOrQuantile = None,
    response_box: BoxOrQuantile = None,
    dtype: DTypeLike | None = None,
    mode: Mode = "create",
    overwrite: bool = False,
    chunk_points: int | None = None,
    progress: Progress | None = None,
) -> BagStore:
    """Make a store from one .npz file, which must fit in memory.

    The file holds ``points``, shape (n_points, n_dims), and either ``offsets``, shape (n_bags +
    1,), from 0 to n_points, or ``sizes``, shape (n_bags,). It may also hold ``ids``, shape
    (n_bags,), integers or text, and ``targets``, shape (n_bags,) or (n_bags, n_targets), numbers or
    class labels that are not texts of numbers.

    Responses are read from ``response_points``, shape (n_response_points, response_dims), with
    ``response_offsets`` or ``response_sizes``. A bag whose response has no points has no response.

    Parameters
    ----------
    path : str or path
        Local path of the file, or any URL that fsspec supports.
    url : str or path
        URL of the new store.
    target_names : sequence of str
        Names of the targets. Default: "target", or "target_0", … for several targets.
    mode : {"create", "append", "overwrite"}
        As for `TableIngest`.
    box, response_box, dtype, overwrite, chunk_points
        As for `ingest_arrays`.
    progress : callable, optional
        Function that is called with the number of points written and the number of all points. Both
        numbers include the points of the responses.

    Returns
    -------
    BagStore

    Raises
    ------
    DataError
        If the file cannot be read, lacks an array, or holds an array that cannot be used. Pickled
        Python objects are never loaded. The message names the file and the array.
    StoreError
        If the URL is taken or cannot be written.

    See Also
    --------
    ingest_arrays : Read an iterable of arrays.
    bagbasis.BagStore : Bags on disk or in object storage.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.ingest import ingest_npz
    >>> np.savez('bags.npz', points=rng.normal(size=(5, 2)), offsets=[0, 2, 5])
    >>> len(ingest_npz('bags.npz', 'bags.zarr'))
    2
    """
    return NpzIngest(
        path,
        url,
        targets=target_names,
        box=box,
        response_box=response_box,
        dtype=dtype,
        mode=mode,
        overwrite=overwrite,
        chunk_points=chunk_points,
        progress=progress,
    ).run()


@FORMATS.register
@dataclass(frozen=True)
class NpzIngest(StoreSettings):
    """Make a store from one ``.npz`` file; see `ingest_npz`, whose ``path`` is ``points`` here.

    Parameters
    ----------
    points
        Path of the file, or any URL that fsspec supports.
    url
        URL of the store.
    targets
        Names of the targets.
    response_box
        Range of each coordinate of the responses, given like ``box``.
    """

    name: ClassVar[str] = "npz"
    endings: ClassVar[tuple[str, ...]] = (".npz",)
    rules: ClassVar[FormatRules] = NPZ_RULES

    points: UrlOrPath
    url: UrlOrPath
    _: KW_ONLY
    targets: TextList = ()
    response_box: BoxOrQuantile = None

    @override
    def run(self) -> BagStore:
        file, url, names = normalize_url(self.points), self.url, list(self.targets)
        mode, box, response_box = self.mode, self.box, self.response_box
        chunk_points, progress = self.chunk_points, self.progress
        if check_mode(
            mode, self.overwrite, box=box, response_box=response_box, chunk_points=chunk_points
        ):
            with _naming(file):
                store, data = BagStore.open(url), read_npz(file)
                names, classes = names or list(store.target_names), store.meta.class_names
                _, columns = columns_of(data.targets, names, classes, len(data.bags))
                batches = slices_of(data.bags, columns, data.ids, data.responses, progress)
                return _append(store, batches, data.ids is not None)
        with _naming(file), new_store(url, self.overwrite or mode == "overwrite") as create:
            data = read_npz(file)
            classes, columns = columns_of(data.targets, names, {}, len(data.bags))
            batches = slices_of(data.bags, columns, data.ids, data.responses, progress)
            source = {"job": "ingest", "from": file}
            options = {"class_names": classes, "dtype": self.dtype, "chunk_points": chunk_points}
            return _write(create, batches, Boxes(box, response_box), source, options)


def check_mode(mode: str, overwrite: bool, **of_new_stores: object) -> bool:
    """Return whether bags are appended to an existing store.

    Raises
    ------
    ParameterError
        If the mode is unknown, or if a parameter of new stores is given with mode="append".
    """
    if MODE.check("mode", mode) != "append":
        return False
    for name, value in {"overwrite": overwrite or None, **of_new_stores}.items():
        if value is not None:
            raise ParameterError(f"{name} is given with mode='append': the store keeps its own")
    return True


def _names_of_kept(
    store: BagStore, names: Sequence[str], targets: Any, arrays: Iterable[Any]
) -> tuple[list[str], Iterable[Any]]:
    """Return the stored names of targets that are given without names, and the arrays."""
    remaining = iter(arrays)
    head = list(islice(remaining, 1))
    has_targets = targets is not None or any(isinstance(item, tuple) for item in head)
    return list(names or store.target_names) if has_targets else [], chain(head, remaining)


def _append(store: BagStore, batches: Iterable[BagsToWrite], has_ids: bool) -> BagStore:
    n_batches = 0
    with store.appending() as session:
        for batch in batches:
            ids = batch.ids if has_ids else None  # the store counts on
            session.write(batch.bags, batch.targets or None, ids, responses=batch.responses)
            n_batches += 1
        if not n_batches:
            raise DataError(_NO_BAGS)
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
    """Remove the new store, unless another process writes to it or has committed bags."""
    with ExitStack() as lock, suppress(OSError):
        try:
            lock.enter_context(writer_lock(url))
        except WriterBusyError:
            return
        except StoreError:
            pass  # half a store, without the array of the lock: nobody can hold the lock
        check_place(url, overwrite=False)
        remove(url)


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
        raise DataError(_NO_BAGS)
    dims = response_dims if first.responses is None else first.responses.n_dims
    of_points = MeasuredBox(boxes.points, first.bags.n_dims)
    of_responses = None if dims is None else MeasuredBox(boxes.responses, dims, "response_box")
    boxes_given = [
        m.box_or_quantile if m and isinstance(m.box_or_quantile, Box) else None
        for m in (of_points, of_responses)
    ]
    asked = options["dtype"]
    dtype = None if asked is None else check_dtype("dtype", asked, *PACKED)
    if dtype == FRACTIONS and None in boxes_given[: 1 if dims is None else 2]:
        raise ParameterError(f"dtype uint16 holds fractions of a box: {GIVE_BOX}")
    store = create(
        first.bags.n_dims,
        target_names=list(first.targets),
        box=boxes_given[0],
        response_dims=dims,
        response_box=boxes_given[1] if dims else boxes.responses,
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
