"""`LabelledBags`: a range of bags with labels, for fitting or evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Integers
from ...core.errors import BagbasisError, BagError, DataError
from ..bags.bags import Bags, take_rows
from ..bags.box import Box, measured_box, range_of
from ..bags.coordinates import Names, order_of
from ..bags.responses import Responses
from ..store.plan import Range, ranges_of
from ..store.reading import PARTITION_BYTES, partitions, prefetch, read_runs
from ..store.sampling import RunSample
from ..store.schema import FILLS
from ..store.store import BagStore
from .labels import Labels, ResponseBags, Targets
from .splits import Membership

ROWS_PER_BLOCK = 4096  # bags worked on at a time: their coefficients take some tens of MiB
LABELS_PER_READ = 2**20  # rows of targets read at a time where no points are


@dataclass(frozen=True, eq=False)
class Batch:
    """Some bags of a pass, and the number of bags left out between them.

    Attributes
    ----------
    index : int64, shape (n,)
        Positions of the bags in the data, ascending. It may be empty, to report skipped bags.
    bags : Bags
    labels : array (n, k), Responses or None
    stop : int
        Position after the last bag that is done with this batch.
    n_unlabelled, n_left_out : int
        Numbers of bags skipped before ``stop`` and not counted by an earlier batch. Removed bags
        count as unlabelled.
    """

    index: NDArray[np.int64]
    bags: Bags
    labels: Any
    stop: int
    n_unlabelled: int = 0
    n_left_out: int = 0

    def __len__(self) -> int:
        """Count the bags of the batch."""
        return len(self.index)


@dataclass(frozen=True, eq=False)
class LabelledBags:
    """Bags ``start:stop`` in memory or in a store at its committed length, with labels.

    Ranges and indices of bags are positions in the data.

    Parameters
    ----------
    data : Bags or BagStore
    labels : Targets, ResponseBags or None
        Labels of the bags. None: bags without labels, none of which is skipped as unlabelled.
    start, stop : int
        Range of positions. Default: all bags.
    left_out : Membership, optional
        Bags that are left out of all batches.
    weightless : Membership, optional
        Bags of weight 0, which are left out of batches, samples and the measured box, as if they
        were removed.
    only : Membership, optional
        Bags to which all batches are restricted. Points of ranges without such bags are not read.
    coordinates : sequence of str, optional
        Names of the coordinates in the order of batches, samples and the box, see `in_order_of`.
        None: the order of the data.
    """

    data: Bags | BagStore
    labels: Labels[Any] | None = None
    start: int = 0
    stop: int | None = None
    left_out: Membership | None = None
    only: Membership | None = None
    weightless: Membership | None = None
    coordinates: tuple[str, ...] | None = None

    # ------------------------------------------------------------------ contents

    @property
    def end(self) -> int:
        """The position after the last bag."""
        if self.stop is not None:
            return self.stop
        return len(self.data)

    @property
    def n_bags(self) -> int:
        """Number of bags of the range, including unlabelled and left-out bags."""
        return self.end - self.start

    @property
    def n_points(self) -> int:
        """Number of points of the range, including removed bags; no points are read."""
        if self.n_bags == len(self.data):
            return self.data.n_points if isinstance(self.data, Bags) else self.data.meta.n_points
        if isinstance(self.data, Bags):
            return self.data[self.start : self.end].n_points
        first, last = (self.data.offsets(at, at)[0] for at in (self.start, self.end))
        return int(last - first)

    @property
    def n_dims(self) -> int:
        """Coordinates of a point."""
        return self.data.n_dims

    @property
    def in_memory(self) -> bool:
        """Whether the data are bags, not a store."""
        return isinstance(self.data, Bags)

    @property
    def url(self) -> str | None:
        """URL of the store; None for bags in memory."""
        return None if isinstance(self.data, Bags) else self.data.url

    @property
    def snapshot(self) -> str | None:
        """Id of the snapshot that is read; None for a store without snapshots."""
        return None if isinstance(self.data, Bags) else self.data.snapshot

    @property
    def coordinate_names(self) -> list[str] | None:
        """Names of the coordinates; None for bags without names."""
        return self.data.coordinate_names if self.coordinates is None else list(self.coordinates)

    def in_order_of(
        self,
        names: Names,
        reference: str,
        what: str | None = None,
        error: type[BagbasisError] = DataError,
    ) -> LabelledBags:
        """Return the bags with their coordinates in the order of ``names``, where both have names.

        Nothing is read or copied: each batch is put into this order.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the coordinates of the reference.
        reference : str
            Words about these bags in messages, such as "the model was fitted on".
        what : str, optional
            Name of the bags in messages; default the store's URL, or "these bags".

        Raises
        ------
        BagbasisError
            If the coordinates have other names.
        """
        what = what or self.url or "these bags"
        order = order_of(self.coordinate_names, names, what, reference, error)
        if order is None or names is None:
            return self
        return replace(self, coordinates=tuple(names))

    def ordered(self, bags: Bags) -> Bags:
        """Return bags that were read from the data in the order of ``coordinates``."""
        return bags.in_order_of(
            self.coordinates, what=self.url or "these bags", reference="expected are"
        )

    @property
    def response_names(self) -> list[str] | None:
        """Names of the coordinates of the responses; None without names."""
        if not isinstance(self.data, Bags):
            return self.data.response_coordinate_names
        names: list[str] | None = self._labels.in_memory().coordinate_names
        return names

    @property
    def box(self) -> Box:
        """The box of the store; for bags in memory, the box that `box_of_bags` measures."""
        if isinstance(self.data, Bags):
            weighed = self.data if self.weightless is None else self.data[self._weighed()]
            box = box_of_bags(weighed)
        elif self.weightless is not None and self.data.meta.is_measured:
            box = self._box_of_weighed(self.data)
        else:
            box = self.data.box
        return box.in_order(order_of(self.data.coordinate_names, self.coordinates, "", ""))

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets; empty for labels without names."""
        return self.labels.names if isinstance(self.labels, Targets) else ()

    @property
    def class_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the classes 0, 1, … of each target of the store that has classes."""
        names = {} if isinstance(self.data, Bags) else self.data.meta.class_names
        if isinstance(self.labels, Targets) and self.labels.class_names:
            return {**names, self.labels.names[0]: self.labels.class_names}
        return names

    @property
    def response_dims(self) -> int:
        """Coordinates of a point of a response."""
        if isinstance(self.data, Bags):
            return int(self._labels.in_memory().n_dims)
        assert self.data.response_dims is not None
        return self.data.response_dims

    @property
    def response_box(self) -> Box:
        """The box of the store; for bags in memory, the box that `box_of_bags` measures."""
        if isinstance(self.data, Bags):
            return box_of_bags(self._labels.in_memory().present)
        assert self.data.response_box is not None
        return self.data.response_box

    def sizes(self, ranges: Sequence[Range]) -> NDArray[np.int64]:
        """Return the points of each bag of some ranges, 0 if removed; no points are read."""
        if isinstance(self.data, Bags):
            return np.concatenate([self.data.sizes[a:b] for a, b in ranges])
        sizes = np.concatenate([np.diff(self.data.offsets(a, b)) for a, b in ranges])
        return np.where(self.present(ranges), sizes, 0)

    def present(self, ranges: Sequence[Range] | None = None) -> NDArray[np.bool_]:
        """Return which bags of some ranges, or of all, were not removed from the store."""
        parts = [(self.start, self.end)] if ranges is None else ranges
        if isinstance(self.data, Bags):
            return np.ones(sum(b - a for a, b in parts), dtype=bool)
        return np.concatenate([self.data.present(a, b) for a, b in parts])

    # ------------------------------------------------------------------ batches

    def batches(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        rows_per_block: int = ROWS_PER_BLOCK,
        max_bytes: int = PARTITION_BYTES,
    ) -> Iterator[Batch]:
        """Yield batches of the labelled bags ``start:stop`` that are not left out, in order.

        Parameters
        ----------
        rows_per_block : int
            Largest number of bags in a batch.
        max_bytes : int
            Largest number of bytes of points and responses that are read at a time, unless one bag
            has more. The next points are read while the caller works on a batch.
        """
        first = self.start if start is None else start
        last = self.end if stop is None else stop
        return self.batches_of([(first, last)], rows_per_block, max_bytes)

    def batches_of(
        self,
        ranges: Sequence[Range],
        rows_per_block: int = ROWS_PER_BLOCK,
        max_bytes: int = PARTITION_BYTES,
    ) -> Iterator[Batch]:
        """Yield batches of several ranges, one after the other; see `batches`."""
        for (a, b), bags, block in self._partitions(ranges, max_bytes):
            out = self._skipped(a, b)
            held = out & ~self._weightless(a, b)
            known = out if out.all() else self._known(a, b, block)
            rows = np.flatnonzero(known & ~out)
            n_unlabelled, n_left_out = int((~known & ~out).sum()), int(held.sum())
            for first in range(0, max(1, len(rows)), rows_per_block):
                chosen = rows[first : first + rows_per_block]
                done = first + rows_per_block >= len(rows)
                yield Batch(
                    a + chosen,
                    take_rows(bags, chosen),
                    None if block is None else self._labels.take(block, chosen),
                    b if done else a + int(chosen[-1]) + 1,
                    n_unlabelled,
                    n_left_out,
                )
                n_unlabelled = n_left_out = 0

    def label_blocks(
        self, ranges: Sequence[Range] | None = None
    ) -> Iterator[tuple[Range, NDArray[np.int64], Any]]:
        """Read the labels of some ranges of bags, or of all, without reading the bags.

        Yields a range, the rows in it of the bags that `batches` would give, and their labels.
        """
        for start, stop in [(self.start, self.end)] if ranges is None else ranges:
            for first in range(start, stop, LABELS_PER_READ):
                for (a, b), block in self._labels_of(first, min(stop, first + LABELS_PER_READ)):
                    rows = np.flatnonzero(self._known(a, b, block) & ~self._skipped(a, b))
                    yield (a, b), rows, self._labels.take(block, rows)

    def labelled_positions(self) -> Integers:
        """Return the positions of the bags that `batches` would give; no points are read."""
        positions = [start + rows for (start, _), rows, _ in self.label_blocks()]
        return np.concatenate([np.empty(0, np.int64), *positions])

    @contextmanager
    def naming(self, index: Sequence[int] | NDArray[np.int64]) -> Iterator[None]:
        """Re-raise a `BagError` with the bag's position in the data and the store's URL.

        ``index`` are the positions of the bags that the block works on.
        """
        with naming(self.url, index):
            yield

    def known(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return which bags ``start:stop`` have a label; no points are read."""
        data, labels = self.data, self.labels
        if labels is None:
            return self.present([(start, stop)])
        if isinstance(data, Bags):
            return np.array(labels.known(labels.in_memory()[start:stop]))
        return np.array(labels.known_in(data, start, stop))

    # ------------------------------------------------------------------ samples

    def sample(self, runs: RunSample) -> Iterator[Bags]:
        """Read the bags of evenly spread runs, including unlabelled and left-out bags."""
        if self.weightless is not None:
            return self._sample_of_weighed(runs)
        data, ranges = self.data, runs.ranges(self.start, self.end)
        if isinstance(data, Bags):
            return (self.ordered(data[a:b]) for a, b in ranges)
        read = map(self.ordered, read_runs(data, ranges))
        if not data.meta.n_changes:
            return read
        return (bags[bags.sizes > 0] for bags in read if bags.n_points)

    def response_sample(self, runs: RunSample) -> Iterator[Bags]:
        """Read the responses of the bags of `sample`; runs without any are left out."""
        data, ranges = self.data, runs.ranges(self.start, self.end)
        if isinstance(data, Bags):
            blocks = iter([self._labels.in_memory()[a:b] for a, b in ranges])
        else:
            blocks = prefetch(lambda r: data.responses(*r), ranges)
        return (block.present for block in blocks if block.n_points)

    # ------------------------------------------------------------------ inside

    @property
    def _labels(self) -> Labels[Any]:
        assert self.labels is not None
        return self.labels

    def _partitions(
        self, ranges: Sequence[Range], max_bytes: int
    ) -> Iterator[tuple[Range, Bags, Any]]:
        """Yield parts that are read at a time: a range, its bags, and its labels, if any."""
        data, labels = self.data, self.labels
        if isinstance(data, Bags):
            for a, b in ranges:
                yield (
                    (a, b),
                    self.ordered(data[a:b]),
                    None if labels is None else labels.in_memory()[a:b],
                )
            return

        def load(r: Range) -> tuple[Bags, Any]:
            if self._skipped(*r).all():
                r = r[0], r[0]
            return self.ordered(data.read(*r)), None if labels is None else labels.read(data, *r)

        cut = partitions if labels is None else labels.partitions
        parts = [part for run in ranges for part in cut(data, *run, max_bytes)]
        with closing(prefetch(load, parts)) as loaded:
            for part, (bags, block) in zip(parts, loaded, strict=True):
                yield part, bags, block

    def _labels_of(self, start: int, stop: int) -> Iterator[tuple[Range, Any]]:
        data, labels = self.data, self._labels
        if isinstance(data, Bags):
            yield (start, stop), labels.in_memory()[start:stop]
            return
        parts = [(start, stop)]
        if isinstance(labels, ResponseBags):  # their points may take more than memory
            parts = labels.partitions(data, start, stop, PARTITION_BYTES)
        with closing(prefetch(lambda r: labels.read(data, *r), parts)) as loaded:
            yield from zip(parts, loaded, strict=True)

    def _known(
        self, start: int, stop: int, block: NDArray[Any] | Responses | None
    ) -> NDArray[np.bool_]:
        if self.labels is None:
            return self.present([(start, stop)])
        return self.labels.known(block)

    def _skipped(self, start: int, stop: int) -> NDArray[np.bool_]:
        out = np.zeros(stop - start, dtype=bool)
        if self.left_out is not None:
            out |= self.left_out.members(start, stop)
        if self.only is not None:
            out |= ~self.only.members(start, stop)
        return out | self._weightless(start, stop)

    def _weighed(self) -> Integers:
        """Return the positions of the bags that are not of weight 0."""
        return self.start + np.flatnonzero(~self._weightless(self.start, self.end))

    def _sample_of_weighed(self, runs: RunSample) -> Iterator[Bags]:
        """Read a `sample` of the bags whose weight is not 0."""
        data, places = self.data, self._weighed()
        chosen = [places[a:b] for a, b in runs.ranges(0, len(places))]
        if isinstance(data, Bags):
            return (self.ordered(data[some]) for some in chosen)
        read = read_runs(data, [part for some in chosen for part in ranges_of(some)])
        return (self.ordered(bags[bags.sizes > 0]) for bags in read if bags.n_points)

    def _box_of_weighed(self, store: BagStore) -> Box:
        """Measure the box without bags of weight 0; reads all bags if these touch its boundary."""
        lo, hi = (np.array(end) for end in store.meta.ranges["points"])
        out = np.flatnonzero(self._weightless(0, store.n_bags))
        ends = [range_of(bags.points) for bags in read_runs(store, ranges_of(out)) if bags.n_points]
        if not any((low <= lo).any() or (high >= hi).any() for low, high in ends):
            return store.box
        every = replace(self, labels=None, left_out=None, only=None, start=0, stop=None)
        every = replace(every, coordinates=None)
        ranges = [range_of(batch.bags.points) for batch in every.batches() if len(batch)]
        lows, highs = zip(*ranges, strict=True)
        return measured_box(np.min(lows, axis=0), np.max(highs, axis=0))

    def _weightless(self, start: int, stop: int) -> NDArray[np.bool_]:
        if self.weightless is None:
            return np.zeros(stop - start, dtype=bool)
        return self.weightless.members(start, stop)


def with_missing(rows: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[Any]:
    """Return a row per bag, given the rows of the bags that are present.

    The other bags get a row for a missing value: NaN, -1 for integers, an empty text, false for
    booleans, as in a set without members.
    """
    if present.all():
        return rows
    fill = {**FILLS, "U": "", "b": False}[rows.dtype.kind]
    out = np.full((len(present), *rows.shape[1:]), fill, dtype=rows.dtype)
    out[present] = rows
    return out


def take_range(bags: LabelledBags, part: Range | None) -> LabelledBags:
    """Return the bags of a range, as positions in the data; None: all of them."""
    return bags if part is None else replace(bags, start=part[0], stop=part[1])


@contextmanager
def naming(url: str | None, index: Sequence[int] | NDArray[np.int64]) -> Iterator[None]:
    """Re-raise a `BagError` with the bag's index among ``index`` and the store's URL, if any."""
    try:
        yield
    except BagError as error:
        bag = int(index[error.bag])
        if url is None:
            raise BagError(bag, error.reason) from error
        raise DataError(f"{url}, bag {bag}: {error.reason}") from error


def box_of_bags(bags: Bags) -> Box:
    """Return the unit cube if it holds all points, else their range with a margin of 1 %."""
    if len(bags) == 0:
        return Box.unit(bags.n_dims)
    return measured_box(*range_of(bags.points))
