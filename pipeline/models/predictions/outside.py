"""Bags of which many points lie outside the box of an embedding: counted, and warned of once.

Embeddings count such points anyway. `tell_outside` passes the counts on to the call of a user that
listens with `counting_outside`; elsewhere, as inside of fits, nobody listens and nothing is said.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Integers
from ...core.errors import warn
from ...data.bags.bags import Bags
from ...data.store.store import BagStore
from ...execution.computations import at_end_of_computation

MANY = 0.05  # share of a bag's points: boxes that are measured leave out single points
USUAL = 5.0  # times the share that lay outside at the fit, where that is more
MOST = 0.5  # a bag with more than half of its points outside is always told of
SHOWN = 3  # bags in a message
EFFECTS = {
    "clip": "such points count as if they lay on its walls",
    "drop": "such points are left out",
}


class FarBag(NamedTuple):
    """A bag with many points outside: its position in the data, these points, and all."""

    row: int
    n_outside: int
    n_points: int

    @property
    def rank(self) -> tuple[float, int, int]:
        """The worst bag has the greatest: by share, by number, and the first of equal ones."""
        return self.n_outside / self.n_points, self.n_outside, -self.row


@dataclass(frozen=True)
class Outside:
    """How many bags have many points outside the box, and the worst of them.

    Attributes
    ----------
    n_bags : int
        Bags that were looked at.
    n_far : int
        Bags with many points outside.
    n_outside, n_points : int
        Points of these bags outside the box, and all of their points.
    worst : tuple of FarBag
    effect : str
        What happens to points outside.
    """

    n_bags: int = 0
    n_far: int = 0
    n_outside: int = 0
    n_points: int = 0
    worst: tuple[FarBag, ...] = ()
    effect: str = ""

    @classmethod
    def of(
        cls, counts: Integers, sizes: Integers, rows: Integers, usual: float, out_of_box: str
    ) -> Outside:
        """Return what ``counts`` (n_bags,) of points outside say of bags of these sizes.

        A single point of a bag of several is not told of.
        """
        share = max(MANY, min(MOST, USUAL * usual))
        far = np.flatnonzero((counts > 0) & ((counts == sizes) | (counts > 1 + share * sizes)))
        if not len(far):
            return cls(len(counts))
        bags = [FarBag(int(rows[i]), int(counts[i]), int(sizes[i])) for i in far]
        return cls(
            len(counts),
            len(far),
            int(counts[far].sum()),
            int(sizes[far].sum()),
            _worst(bags),
            EFFECTS.get(out_of_box, ""),
        )

    def __add__(self, other: Outside) -> Outside:
        """Return the counts of both sets of bags."""
        return Outside(
            self.n_bags + other.n_bags,
            self.n_far + other.n_far,
            self.n_outside + other.n_outside,
            self.n_points + other.n_points,
            _worst([*self.worst, *other.worst]),
            self.effect or other.effect,
        )

    def warn(self, data: Bags | BagStore) -> None:
        """Warn of the bags with many points outside, by their ids, if there are any."""
        if not self.n_far:
            return
        shown = ", ".join(
            f"bag {_id_of(data, bag.row)!r}: {bag.n_outside} of {bag.n_points}"
            for bag in self.worst
        )
        rest = f", and {self.n_far - SHOWN} more" if self.n_far > SHOWN else ""
        have = "has" if self.n_far == 1 else "have"
        warn(
            f"{'bags in memory' if isinstance(data, Bags) else data.url}: {self.n_far} of "
            f"{self.n_bags} bags {have} {self.n_outside} of {self.n_points} points outside the box "
            f"that the model was fitted in ({shown}{rest}); {self.effect}, and predictions for "
            "these bags may be wrong however plausible they look: check units and coordinates, or "
            "fit to bags like these"
        )


def _worst(bags: list[FarBag]) -> tuple[FarBag, ...]:
    return tuple(heapq.nlargest(SHOWN, bags, key=lambda bag: bag.rank))


def _id_of(data: Bags | BagStore, row: int) -> object:
    ids = data.ids[row : row + 1] if isinstance(data, Bags) and data.ids is not None else None
    if isinstance(data, BagStore):
        ids = data.ids(row, row + 1)
    return row if ids is None else np.asarray(ids).tolist()[0]


class Counted:
    """What `counting_outside` hears of the bags at ``rows`` of the data."""

    def __init__(self, rows: Integers) -> None:
        self.rows = rows
        self.outside = Outside()


_listener: ContextVar[Counted | None] = ContextVar("bagbasis_outside", default=None)


@contextmanager
def counting_outside(rows: Integers) -> Iterator[Counted]:
    """Hear what `tell_outside` says inside of this block of the bags at ``rows`` of the data."""
    counted = Counted(rows)
    token = _listener.set(counted)
    try:
        yield counted
    finally:
        _listener.reset(token)


@contextmanager
def warning_of_outside(bags: Bags) -> Iterator[None]:
    """Warn after this block of those of the bags of which many points lie outside the box."""
    with counting_outside(np.arange(len(bags))) as counted:
        yield
    counted.outside.warn(bags)


_of_stores: dict[str, dict[tuple[int, int], Outside]] = {}
_lock = Lock()


def warn_at_end(counted: Counted, store: BagStore) -> None:
    """Warn once, when Dask's computation ends, of the bags of all blocks that were computed."""
    if not counted.outside.n_bags:
        return
    block = int(counted.rows[0]), int(counted.rows[-1])
    with _lock:  # a block that several arrays share counts once
        _of_stores.setdefault(store.url, {})[block] = counted.outside

    def tell() -> None:
        with _lock:
            blocks = _of_stores.pop(store.url, {})
        sum(blocks.values(), Outside()).warn(store)

    at_end_of_computation(store.url, tell)


def tell_outside(counts: Integers, bags: Bags, report: Mapping[str, Any], out_of_box: str) -> None:
    """Tell a listening call how many points of each of its bags lie outside the box.

    Parameters
    ----------
    counts : int64, shape (n_bags,)
    bags : Bags
    report : mapping
        What the fit has counted: how many points usually lie outside.
    out_of_box : str
    """
    counted = _listener.get()
    if counted is None or len(counted.rows) != len(bags):
        return
    usual = report.get("n_points_outside_box", 0) / max(1, report.get("n_points_seen", 0))
    counted.outside = Outside.of(counts, bags.sizes, counted.rows, usual, out_of_box)
