"""Appending to a store: everything is written past the committed end, then committed at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError, StoreError, WriterBusyError
from ..storage.files import storage_errors
from ..storage.urls import is_transactional, local_path
from ..storage.zarr_stores import writer_store
from ..storage.zarr_writer import remove_partials
from .bags import Bags, check_finite
from .box import Box
from .identity import IdRegistry, as_ids
from .layout import StoreMeta, read_attributes, replace_ids
from .responses import Responses, as_responses
from .tail import TailWriter
from .targets import targets_matrix

if TYPE_CHECKING:
    from .store import BagStore

ResponsesLike = Responses | Bags | Sequence[ArrayLike | None] | None


class Labels(NamedTuple):
    """What belongs to the bags of one write, checked; ``responses`` None where there are none."""

    targets: NDArray[np.float64]
    ids: NDArray[Any]
    id_kind: str
    responses: Responses | None


class AppendSession:
    """Bags on their way into a store; made by `BagStore.appending`, committed on clean exit."""

    def __init__(self, store: BagStore, still_ours: Callable[[], None]) -> None:
        self._store = store
        self._meta = store.meta
        path = local_path(store.url)
        if path is not None:
            remove_partials(path)
        store.check_ends()
        self._out = writer_store(store.url, still_ours, store.snapshot)
        group = zarr.open_group(self._out, mode="r+", zarr_format=3)
        self._group = group
        self._points = TailWriter(_array(group, "points"), self._meta.n_points)
        self._offsets = TailWriter(_array(group, "offsets"), self._meta.n_bags + 1)
        self._targets = TailWriter(_array(group, "targets"), self._meta.n_bags)
        self._responses = self._open_responses()
        self._open_ids()
        self._n_points = self._meta.n_points
        self._n_bags = self._meta.n_bags
        self._torn = False

    def write(
        self,
        bags: Bags,
        targets: Any = None,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        *,
        responses: ResponsesLike = None,
    ) -> None:
        """Append bags; see `BagStore.append` for the arguments.

        Refused input (DataError) changes nothing; after any other error the session can only end.
        """
        self._check_whole()
        labels = self._labels(len(bags), targets, ids, responses)
        points = self._checked_points(bags, None if ids is None else labels.ids)
        self._claim(labels)
        with self._changing():
            self._push_labels(bags.sizes, labels)
            self._points.push(points)

    def reserve_points(self, n_points: int) -> int:
        """Make room for points whose bags `register` names next; the first row's index.

        Raises
        ------
        StoreError
            A store kept by Icechunk: its transactions are of one process.
        """
        if is_transactional(self._store.url):
            raise StoreError(
                f"{self._store.url}: points can not be written by many processes into a store kept "
                "by Icechunk; make another store, and append its bags"
            )
        self._check_whole()
        with self._changing():
            self._points.skip(n_points)
        return self._n_points

    def register(
        self,
        sizes: NDArray[np.int64],
        targets: Any = None,
        ids: NDArray[Any] | None = None,
        *,
        responses: ResponsesLike = None,
    ) -> None:
        """Name the bags of all the points reserved last.

        Raises
        ------
        DataError
            Sizes that do not add up to the reserved points, or targets, ids or responses that
            can not be used.
        """
        reserved = self._points.length - self._n_points
        if sizes.sum() != reserved:
            raise DataError(f"bags of {sizes.sum()} points for {reserved} reserved ones")
        labels = self._labels(len(sizes), targets, ids, responses)
        self._claim(labels)
        with self._changing():
            self._push_labels(sizes, labels)

    def commit(self, source: Mapping[str, Any] | None = None) -> tuple[StoreMeta, str | None]:
        """Flush, and when all is on the disk put the new counts in one metadata write.

        Returns the new counts, and the snapshot's id where the store has snapshots.
        """
        self._check_whole()
        with write_errors(self._store.url):
            for tail in (self._points, self._offsets, self._ids, self._targets, *self._responses):
                tail.flush()
            self._out.sync()
            meta = self._grown(source)
            self._publish(meta)
            return meta, self._out.commit()

    def set_box(self, box: Box) -> None:
        """The box that the commit gives the store: for points measured while they are written."""
        self._meta = self._meta.grown(box=Box.of(box, self._meta.n_dims))

    def set_response_box(self, box: Box) -> None:
        """As `set_box`, of the responses.

        Raises
        ------
        DataError
            The store holds no responses, or has another number of dimensions.
        """
        dims = self._response_dims()
        self._meta = self._meta.grown(response_box=Box.of(box, dims, "response_box"))

    def close(self) -> None:
        """Nothing is written any more once this returns; for `BagStore.appending`."""
        self._out.close()

    def _publish(self, meta: StoreMeta) -> None:
        """Write the new counts; an object store may have done so though its answer was lost."""
        url = self._store.url
        try:
            self._group.update_attributes(meta.to_attributes())
        except WriterBusyError:
            raise
        except StoreError as error:
            if local_path(url) is not None or is_transactional(url):
                raise
            try:
                found = StoreMeta.from_attributes(read_attributes(url), url)
            except StoreError:
                raise StoreError(
                    f"{url}: nobody can tell whether the new bags were committed ({error.__cause__}"
                    "); compare their number, `bags info`, before appending them again"
                ) from error.__cause__
            if found != meta:
                raise

    def _grown(self, source: Mapping[str, Any] | None) -> StoreMeta:
        return self._meta.grown(
            n_bags=self._n_bags,
            n_points=self._n_points,
            n_response_points=self._responses[0].end if self._responses else 0,
            max_id=self._registry.max_id,
            source=dict(source) if source is not None else self._meta.source,
        )

    def _checked_points(self, bags: Bags, ids: Any) -> NDArray[Any]:
        if bags.n_dims != self._meta.n_dims:
            raise DataError(
                f"bags have dimension {bags.n_dims}, {self._store.url} holds dimension "
                f"{self._meta.n_dims}"
            )
        with np.errstate(over="ignore"):
            points = bags.points.astype(self._points.array.dtype, copy=False)
        check_finite(points, bags.offsets, ids)
        return points

    def _labels(self, n_new: int, targets: Any, ids: Any, responses: ResponsesLike) -> Labels:
        matrix = targets_matrix(targets, self._meta.target_names, self._meta.class_names, n_new)
        numbers, kind = self._new_ids(n_new, ids)
        found = self._checked_responses(n_new, responses, None if ids is None else numbers)
        return Labels(matrix, numbers, kind, found)

    def _new_ids(self, n_new: int, ids: Any) -> tuple[NDArray[Any], str]:
        if ids is not None:
            array, kind = as_ids(ids, n_new)
            if kind != self._meta.id_kind and self._n_bags and n_new:
                raise DataError(f"{self._store.url} has {self._meta.id_kind} ids, got {kind}")
            return array, kind
        if self._meta.id_kind == "str" and self._n_bags:
            raise DataError(f"{self._store.url} has string ids; pass ids, one a bag")
        first = self._n_bags if self._registry.max_id is None else self._registry.max_id + 1
        return np.arange(first, first + n_new, dtype=np.int64), "int64"

    def _checked_responses(
        self, n_new: int, responses: ResponsesLike, ids: Any
    ) -> Responses | None:
        """In the dtype of the store; those of bags without any where None is given."""
        if responses is None and self._meta.response_dims is None:
            return None
        dims, dtype = self._response_dims(), self._points.array.dtype
        if responses is None:
            return Responses.none(n_new, dims, dtype)
        return as_responses(responses, n_new, dims, ids, dtype)

    def _response_dims(self) -> int:
        if self._meta.response_dims is None:
            raise DataError(f"{self._store.url} holds no responses; make it with response_dims")
        return self._meta.response_dims

    def _claim(self, labels: Labels) -> None:
        """Make the ids taken; a duplicate changes nothing."""
        if not len(labels.ids):
            return
        with write_errors(self._store.url):
            if labels.id_kind != self._meta.id_kind:
                self._meta = self._meta.grown(id_kind=labels.id_kind)
                self._open_ids()
            self._registry.add(labels.ids)

    def _push_labels(self, sizes: NDArray[np.int64], labels: Labels) -> None:
        self._ids.push(labels.ids)
        self._targets.push(labels.targets)
        self._offsets.push(self._n_points + np.cumsum(sizes, dtype=np.int64))
        if labels.responses is not None:
            points, offsets = self._responses
            offsets.push(points.length + labels.responses.offsets[1:])
            points.push(labels.responses.points)
        self._n_points += int(sizes.sum())
        self._n_bags += len(sizes)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._torn = True
        with write_errors(self._store.url):
            yield
        self._torn = False

    def _check_whole(self) -> None:
        if self._torn or self._points.length != self._n_points:
            raise StoreError(
                f"{self._store.url}: a write of this session failed, or its reserved points have "
                "no bags; nothing was committed"
            )

    def _open_responses(self) -> tuple[TailWriter, ...]:
        """Of the response points and their offsets; nothing in a store without responses."""
        if self._meta.response_dims is None:
            return ()
        return (
            TailWriter(_array(self._group, "responses/points"), self._meta.n_response_points),
            TailWriter(_array(self._group, "responses/offsets"), self._meta.n_bags + 1),
        )

    def _open_ids(self) -> None:
        array = _array(self._group, "ids")
        kind = "int64" if array.dtype == np.int64 else "str"
        if kind != self._meta.id_kind and not self._meta.n_bags:  # an append that was not committed
            replace_ids(self._group, self._meta.id_kind)
            array = _array(self._group, "ids")
        self._ids = TailWriter(array, self._meta.n_bags)
        self._registry = IdRegistry(self._meta.id_kind, self._meta.max_id, self._ids.blocks)


@contextmanager
def write_errors(url: str) -> Iterator[None]:
    """An OSError while writing becomes a StoreError that says nothing was committed."""
    with storage_errors(url, "writing failed", "nothing was committed"):
        yield


def _array(group: zarr.Group, name: str) -> zarr.Array:
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise StoreError(f"{group.store}: {name!r} is not an array")
    return array.with_config({"write_empty_chunks": True})
