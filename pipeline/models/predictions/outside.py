"""Warnings about bags with many points outside the box of an embedding, one warning per call.

Embeddings count such points anyway. `tell_outside` passes the counts to a public call that listens
with `counting_outside`. Other calls, such as fits, do not listen and do not warn.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from typing_extensions import override

from ...core.arrays import Bools, Integers
from ...core.errors import warn
from ...core.sums import Sums
from ...data.bags.bags import Bags
from ...data.bags.box import TIMES_OTHER_UNIT, Box, range_of
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.leaks import STORE_SAMPLE
from ...data.store.store import BagStore
from ...embeddings.base import EmbeddingSpec
from ...execution.computations import (
    Message,
    at_end_of_computation,
    hear_workers,
    sent_to_client,
)

_MANY_OUTSIDE = 0.05  # fraction of a bag's points: measured boxes leave out single points
MAX_TIMES_USUAL = 5.0  # times the fraction that lay outside during the fit, where that is more
MAX_FRACTION = 0.5  # a bag with more than half of its points outside is always named
_N_SHOWN = 3  # bags in a message
EFFECTS = {"drop": "these points are left out, and "}
_MARGIN = 0.25  # fraction of a side: how far beyond the box the extremes of similar bags may lie
_FIRST_POINTS = 1024  # a coordinate that differs among them is not constant: others are not read
_FLOAT32_ROUNDING = 1e-6  # relative to a value: float32 rounds it
_MIN_BAGS = 10  # fewer bags may be alike
_MAX_DIMS = 64  # of points whose coordinates are enlarged one by one
# Fraction of the bags: with more of them outside, the data differ from those of the fit.
_FEW_BAGS = 0.25


class FarBag(NamedTuple):
    """A bag with many points outside: its position, its points outside, and all its points."""

    row: int
    n_outside: int
    n_points: int

    @property
    def rank(self) -> tuple[float, int, int]:
        """Sort key, largest for the worst bag: by fraction, by number, then by position."""
        return self.n_outside / self.n_points, self.n_outside, -self.row


@dataclass(frozen=True)
class Outside(Sums):
    """Counts of bags with many points outside the box, and the worst of these bags.

    Attributes
    ----------
    n_bags : int
        Number of bags that were checked.
    n_far : int
        Number of bags with many points outside the box.
    n_beyond : int
        Number of bags with many points outside the box enlarged by `_MARGIN`.
    n_outside, n_points : int
        Number of points outside the box, and of all points, of the bags with many points outside.
    worst : tuple of FarBag
        Bags that the warning names.
    effect : str
        Treatment of points outside the box.
    changed : tuple of str
        Message about coordinates that were constant in the training points, and are not now.
    small : tuple of str, optional
        Coordinates with much smaller values than in the training points; None with few bags.
    """

    KEPT: ClassVar[tuple[str, ...]] = ("worst", "effect", "changed", "small")
    n_bags: int = 0
    n_far: int = 0
    n_beyond: int = 0
    n_outside: int = 0
    n_points: int = 0
    worst: tuple[FarBag, ...] = ()
    effect: str = ""
    changed: tuple[str, ...] = ()
    small: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        counts: Integers,
        bags: Bags,
        rows: Integers,
        usual: float,
        embedding: EmbeddingSpec,
        changed: tuple[str, ...] = (),
    ) -> Outside:
        """Return the summary of ``counts``, the numbers of points outside for each bag (n_bags,).

        A bag of several points with a single point outside is not reported.
        """
        sizes = bags.sizes
        share = max(_MANY_OUTSIDE, min(MAX_FRACTION, MAX_TIMES_USUAL * usual))

        def are_many(n_outside: Integers, n_points: Integers) -> Bools:
            is_whole = n_outside == n_points
            many: Bools = (n_outside > 0) & (is_whole | (n_outside > 1 + share * n_points))
            return many

        far = np.flatnonzero(are_many(counts, sizes))
        small = _small(bags, embedding)
        if not len(far):
            return cls(len(counts), changed=changed, small=small)
        beyond = embedding.count_outside(bags[far], _MARGIN)
        far_bags = [FarBag(int(rows[i]), int(counts[i]), int(sizes[i])) for i in far]
        return cls(
            len(counts),
            len(far),
            int(are_many(beyond, sizes[far]).sum()),
            int(counts[far].sum()),
            int(sizes[far].sum()),
            _worst(far_bags),
            EFFECTS.get(embedding.out_of_box, ""),
            changed,
            small,
        )

    @override
    def combined(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        counts = super().combined(other, combine)
        worst = _worst([*self.worst, *other.worst])
        effect, changed = self.effect or other.effect, tuple(self.changed or other.changed)
        small = self.small if other.small is None else other.small
        if self.small is not None and other.small is not None:
            small = tuple(name for name in self.small if name in other.small)
        return replace(counts, worst=worst, effect=effect, changed=changed, small=small)

    def warn(self, data: Bags | BagStore) -> None:
        """Warn of the bags with many points outside, by their ids.

        A few bags with points just outside the box are usual in new data and in folds. They are
        not reported.
        """
        where = "bags in memory" if isinstance(data, Bags) else data.url
        if self.changed:
            warn(
                f"{where}: {', '.join(self.changed)}: nothing is known of other values, and "
                "predictions may be wrong: check the columns, or fit to bags in which they differ"
            )
        if self.small:
            warn(
                f"{where}: values of {', '.join(self.small)} are over {TIMES_OTHER_UNIT:.0f} times "
                "smaller than those of the training points, and predictions may be wrong: check "
                "units and columns, unless these bags are alike"
            )
        if not self.n_beyond and self.n_far <= _FEW_BAGS * self.n_bags:
            return
        shown = ", ".join(
            f"bag {_id_of(data, bag.row)!r}: {bag.n_outside} of {bag.n_points}"
            for bag in self.worst
        )
        rest = f", and {self.n_far - _N_SHOWN} more" if self.n_far > _N_SHOWN else ""
        have = "has" if self.n_far == 1 else "have"
        warn(
            f"{where}: {self.n_far} of {self.n_bags} bags {have} {self.n_outside} of "
            f"{self.n_points} points outside the box of the training points ({shown}{rest}); "
            f"{self.effect}their predictions may be wrong: check units and columns, or fit to such "
            "bags"
        )


def _worst(bags: list[FarBag]) -> tuple[FarBag, ...]:
    return tuple(heapq.nlargest(_N_SHOWN, bags, key=lambda bag: bag.rank))


def _id_of(data: Bags | BagStore, row: int) -> object:
    ids = data.ids[row : row + 1] if isinstance(data, Bags) and data.ids is not None else None
    if isinstance(data, BagStore):
        ids = data.ids(row, row + 1)
    return row if ids is None else np.asarray(ids).tolist()[0]


class Counted:
    """Counts that `counting_outside` has collected for the bags at ``rows`` of the data."""

    def __init__(self, rows: Integers) -> None:
        self.rows = rows
        self.outside = Outside()


_listener: ContextVar[Counted | None] = ContextVar("bagbasis_outside", default=None)


@contextmanager
def counting_outside(rows: Integers) -> Iterator[Counted]:
    """Collect the reports of `tell_outside` in this block, for the bags at ``rows`` of the data."""
    counted = Counted(rows)
    token = _listener.set(counted)
    try:
        yield counted
    finally:
        _listener.reset(token)


@contextmanager
def warning_of_outside(bags: Bags) -> Iterator[None]:
    """Warn after this block of the bags with many points outside the box.

    Within `counting_outside` for as many bags, the outer block collects them instead.
    """
    outer = _listener.get()
    if outer is not None and len(outer.rows) == len(bags):
        yield
        return
    with counting_outside(np.arange(len(bags))) as counted:
        yield
    counted.outside.warn(bags)


BlockBounds = tuple[int, int]
"""The first and the last of the bags that are computed at a time."""

_of_stores: dict[str, dict[BlockBounds, tuple[Outside, str]]] = {}
_warned: set[int] = set()  # hashes of the calls whose arrays are computed apart, and their blocks
_lock = Lock()


_PROCESS = uuid.uuid4().hex


def topic_of(store: BagStore) -> str:
    """Return the topic under which workers tell this process of bags of a store."""
    return f"bagbasis-outside-{_PROCESS}-{store.url}"


def warn_at_end(counted: Counted, store: BagStore, topic: str, call: str = "") -> None:
    """Warn once, when Dask's computation ends, of the bags of all blocks that were computed.

    On a worker of a cluster, the counts go to the process that listens to the topic.

    Parameters
    ----------
    counted : Counted
    store : BagStore
    topic : str
    call : str
        Name of a call that returned several arrays, whose computations warn once together. Empty:
        each computation warns.
    """
    outside = counted.outside
    if not outside.n_bags:
        return
    block = int(counted.rows[0]), int(counted.rows[-1])
    worst = [list(bag) for bag in outside.worst]
    if sent_to_client(topic, {**vars(outside), "worst": worst, "block": block, "call": call}):
        return
    _remember(store, block, outside, call)
    at_end_of_computation(store.url, partial(_tell, store))


def hear_of_outside(store: BagStore) -> None:
    """Warn in this process of the bags that workers of an open cluster report."""
    hear_workers(topic_of(store), partial(_take, store), partial(_tell, store))


def _take(store: BagStore, message: Message) -> None:
    start, stop = message.pop("block")
    call = message.pop("call")
    worst = tuple(FarBag(*bag) for bag in message.pop("worst"))
    changed, small = tuple(message.pop("changed")), message.pop("small")
    small = None if small is None else tuple(small)
    outside = Outside(**message, worst=worst, changed=changed, small=small)
    _remember(store, (start, stop), outside, call)


def _remember(store: BagStore, block: BlockBounds, outside: Outside, call: str) -> None:
    with _lock:  # a block that several arrays share counts once
        _of_stores.setdefault(store.url, {})[block] = outside, call


def _tell(store: BagStore) -> None:
    with _lock:
        blocks = _of_stores.pop(store.url, {})
        calls = {call for _, call in blocks.values()}
        computed = hash((*sorted(calls), *sorted(blocks)))
        if computed in _warned:
            return
        if all(calls):
            _warned.add(computed)
    sum((outside for outside, _ in blocks.values()), Outside()).warn(store)


def tell_outside(
    counts: Integers, bags: Bags, report: Mapping[str, Any], embedding: EmbeddingSpec
) -> None:
    """Report the numbers of points outside the box to the call that listens.

    Parameters
    ----------
    counts : int64, shape (n_bags,)
    bags : Bags
    report : mapping
        Counts of the fit, from which the usual number of points outside follows.
    embedding : EmbeddingSpec
        Embedding with the box.
    """
    counted = _listener.get()
    if counted is None or len(counted.rows) != len(bags):
        return
    usual = report.get("n_points_outside_box", 0) / max(1, report.get("n_points_seen", 0))
    changed = _changed(bags, report.get("constant_coordinates", ()))
    counted.outside = Outside.of(counts, bags, counted.rows, usual, embedding, changed)


def constants_of(source: LabelledBags) -> list[tuple[int, float]]:
    """Return the coordinates that are constant in all points, each with its value.

    They are found from the measured box of a store and a few of its bags. Without a measured box,
    the result is empty.
    """
    if isinstance(source.data, Bags):
        points = source.ordered(source.data).points
        low, high = range_of(points[:_FIRST_POINTS])
        places = np.flatnonzero(low == high)
        if len(places) and len(points) > _FIRST_POINTS:  # seldom: the first points differ
            low, high = range_of(points)
            places = np.flatnonzero(low == high)
        return [(int(j), float(low[j])) for j in places]
    if not source.data.meta.is_measured:
        return []
    lo, hi = np.array(source.box.bounds).T
    values = (lo + hi) / 2
    flat = np.array([Box.around([value], [value]).bounds[0] for value in values])
    is_flat = np.isclose(hi - lo, flat[:, 1] - flat[:, 0], rtol=_FLOAT32_ROUNDING, atol=0)
    if is_flat.any():  # points that differ may have a box of this width, too
        for bags in source.sample(STORE_SAMPLE):
            is_flat &= np.isclose(
                bags.points, values, rtol=_FLOAT32_ROUNDING, atol=_FLOAT32_ROUNDING
            ).all(axis=0)
    return [(int(j), float(values[j])) for j in np.flatnonzero(is_flat)]


def _changed(bags: Bags, constants: Sequence[Sequence[float]]) -> tuple[str, ...]:
    """Return a phrase for each constant coordinate that has another value in some bag."""
    changed = []
    for place, value in constants:
        j = int(place)
        column = bags.points[:, j]
        others = np.flatnonzero(
            ~np.isclose(column, value, rtol=_FLOAT32_ROUNDING, atol=_FLOAT32_ROUNDING)
        )
        if len(others):
            names = bags.coordinate_names
            called = repr(names[j]) if names else str(j)
            changed.append(
                f"coordinate {called} was {value:g} in all training points, and is "
                f"{column[others[0]]:g} in new ones"
            )
    return tuple(changed)


def _small(bags: Bags, embedding: EmbeddingSpec) -> tuple[str, ...] | None:
    """Return the coordinates that are inside the box even `TIMES_OTHER_UNIT` times as large."""
    d = bags.n_dims
    if len(bags) < _MIN_BAGS or d > _MAX_DIMS:
        return None
    ends = range_of(bags.points)
    inside = bags.points[int(np.argmin(embedding.are_outside(bags.points[:_FIRST_POINTS])))]
    enlarged = np.tile(inside.astype(np.float64), (2, d, 1))
    for side, end in zip(enlarged, ends, strict=True):
        np.fill_diagonal(side, TIMES_OTHER_UNIT * end.astype(np.float64))
    is_outside = embedding.are_outside(enlarged.reshape(-1, d)).reshape(2, d).any(axis=0)
    names = bags.coordinate_names
    places = np.flatnonzero(~is_outside & (ends[0] < ends[1])).tolist()
    return tuple(f"coordinate {repr(names[j]) if names else j}" for j in places)
