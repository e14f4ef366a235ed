"""The two sets of bags of a comparison: in memory or ranges of stores, read in part when large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, BagStore, as_bags
from ..bags.plan import Range, sample_ranges
from ..bags.reading import partitions, prefetch
from ..errors import DataError

SAMPLE = (32, 128)  # 4,096 bags in 32 runs, so that few chunks are touched


@dataclass(frozen=True)
class BagSet:
    """Bags ``start:stop`` of memory or of a store; of many, 32 evenly spread runs of 128."""

    name: str
    source: Bags | BagStore
    start: int
    stop: int

    @property
    def n_dims(self) -> int:
        return self.source.n_dims

    @property
    def ranges(self) -> list[Range]:
        """The runs that are looked at, as positions in the source."""
        runs = sample_ranges(self.stop - self.start, *SAMPLE)
        return [(self.start + a, self.start + b) for a, b in runs]

    @property
    def positions(self) -> NDArray[np.int64]:
        """Of the bags that are looked at, shape (n,)."""
        return np.concatenate([np.arange(a, b) for a, b in self.ranges])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Points of each bag that is looked at, shape (n,); no points are read."""
        if isinstance(self.source, Bags):
            return self.source.sizes[self.positions]
        return np.concatenate([np.diff(self.source.offsets(a, b)) for a, b in self.ranges])

    def blocks(self) -> Iterator[Bags]:
        """The bags that are looked at, in order, some at a time."""
        source = self.source
        if isinstance(source, Bags):
            for a, b in self.ranges:
                yield source[a:b]
        else:
            blocks = [block for run in self.ranges for block in partitions(source, *run)]
            yield from prefetch(lambda block: source.read(*block), blocks)

    def describe(self, position: int) -> str:
        """What messages call a bag."""
        store = "" if isinstance(self.source, Bags) else f" {self.source.url},"
        return f"{self.name}:{store} bag {position}"


def as_bag_set(data: Any, name: str) -> BagSet:
    """The set of what a caller gave: Bags, a list of arrays, a BagStore or (store, start, stop).

    Raises
    ------
    DataError
        Bags that can not be used, a range the store does not have, or fewer than two bags.
    """
    if isinstance(data, BagStore):
        data = (data, 0, data.n_bags)
    if isinstance(data, tuple) and data and isinstance(data[0], BagStore):
        bags = _of_store(data, name)
    else:
        try:
            source = as_bags(data)
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
        bags = BagSet(name, source, 0, len(source))
    require_two(bags.stop - bags.start, name, "")
    return bags


def require_two(n_bags: int, name: str, detail: str) -> None:
    """Raise DataError for a set too small to be compared."""
    if n_bags < 2:
        raise DataError(
            f"{name}: {n_bags} bag{'s' if n_bags != 1 else ''}{detail}; the test compares sets of "
            "at least two"
        )


def _of_store(data: tuple[Any, ...], name: str) -> BagSet:
    store = data[0]
    if len(data) != 3:
        raise DataError(f"{name}: expected (store, start, stop), got {len(data)} values")
    start, stop = data[1:]
    if not (isinstance(start, Integral) and isinstance(stop, Integral)):
        raise DataError(f"{name}: start and stop are {start!r} and {stop!r}; expected integers")
    start, stop = int(start), int(stop)
    if not 0 <= start <= stop <= store.n_bags:
        raise DataError(f"{name}: {store.url}: bags {start}:{stop} of {store.n_bags} do not exist")
    return BagSet(name, store, start, stop)
