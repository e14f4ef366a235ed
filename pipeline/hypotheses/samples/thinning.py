"""The sets of a comparison, thinned to bags of one size independently of the order of the bags."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import DataError, plural
from ...data.bags.bags import Bags, as_bags, concatenate, offsets_of
from ...data.bags.coordinates import Names
from ...data.labelled.labelled import LabelledBags
from ...data.store.plan import Range
from ...data.store.sampling import CHOICE_SAMPLE
from ...data.store.store import BagStore

LEFT_OUT = 0.05  # largest fraction of a set's bags that are left out
MAX_HELD_VALUES = 2**24  # coordinates in memory, of both sets together

ComparedBags = BagStore | Bags | Sequence[ArrayLike] | tuple[BagStore, int, int]


@dataclass(frozen=True)
class BagSet:
    """One of the compared sets; for a large set, 32 evenly spread runs of 128 bags."""

    name: str
    bags: LabelledBags

    @property
    def ranges(self) -> list[Range]:
        """The runs that are looked at, as positions in the data."""
        return CHOICE_SAMPLE.ranges(self.bags.start, self.bags.end)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Positions of the bags that are looked at, shape (n,)."""
        return np.concatenate([np.arange(a, b) for a, b in self.ranges])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of points of each bag that is looked at, shape (n,); no points are read."""
        return self.bags.sizes(self.ranges)

    def describe(self, position: int) -> str:
        """Return the name of a bag in messages."""
        store = "" if self.bags.url is None else f" {self.bags.url},"
        return f"{self.name}:{store} bag {position}"


@dataclass(frozen=True)
class ThinnedBags:
    """Bags of both sets in an order that does not depend on the set or the order in it.

    Attributes
    ----------
    bags : Bags
    is_reference : bool, shape (n_bags,)
    positions : int64, shape (n_bags,)
        Position of each bag in its set's source.
    """

    bags: Bags
    is_reference: NDArray[np.bool_]
    positions: NDArray[np.int64]


def as_bag_set(data: ComparedBags, name: str) -> BagSet:
    """Return the set of Bags, a list of arrays, a BagStore or (store, start, stop).

    Raises
    ------
    DataError
        If a bag cannot be used, the store does not have the range, or there are fewer than two
        bags.
    """
    if isinstance(data, BagStore):
        bags = LabelledBags(data)
    elif isinstance(data, tuple) and data and isinstance(data[0], BagStore):
        bags = _range_of_store(data, name)
    else:
        try:
            bags = LabelledBags(as_bags(data))  # type: ignore[arg-type]  # refuses other tuples
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
    require_two(int(bags.present().sum()), name, "")
    return BagSet(name, bags)


def in_same_order(sets: Mapping[str, BagSet], embedding: object = None) -> dict[str, BagSet]:
    """Return sets with the coordinates in the order of the embedding, or of the first set.

    Raises
    ------
    DataError
        If the coordinates have other names.
    """
    expected: Names = getattr(embedding, "coordinate_names", None)
    reference = "the embedding was fitted on"
    ordered = {}
    for name, bag_set in sets.items():
        bags = bag_set.bags.in_order_of(expected, reference, what=name)
        ordered[name] = replace(bag_set, bags=bags)
        if expected is None and bags.coordinate_names is not None:
            expected, reference = bags.coordinate_names, f"{name} has"
    return ordered


def require_two(n_bags: int, name: str, detail: str) -> None:
    """Raise DataError for a set too small to be compared."""
    if n_bags < 2:
        raise DataError(
            f"{name}: {n_bags} {plural('bag', n_bags)}{detail}; the test compares sets of at "
            "least two"
        )


def thinning_size(sizes: Sequence[NDArray[np.int64]]) -> int:
    """Return the number of points that bags of all sets are thinned to.

    This is the smallest of the sets' 5 % quantiles of sizes; with fewer than 21 bags, the size of
    the smallest bag. In larger sets, at most 5 % of the bags are smaller and left out. A single
    tiny bag therefore does not reduce the size of all bags.
    """
    present = (of_set[of_set > 0] for of_set in sizes)
    return min(int(np.quantile(of_set, LEFT_OUT, method="lower")) for of_set in present)


def held_size(sizes: Sequence[NDArray[np.int64]], n_dims: int) -> int:
    """Return `thinning_size`, or less: the bags of all sets fill at most 2^24 coordinates."""
    n_bags = sum(len(of_set) for of_set in sizes)
    return max(1, min(thinning_size(sizes), MAX_HELD_VALUES // (n_bags * n_dims)))


def thin_bags(bags: Bags, size: int | None, seed: int) -> Bags:
    """Draw ``size`` points of every bag with at least so many; None keeps all points of all bags.

    The draw from a bag is seeded by its points and ``seed``, so that it depends neither on the
    bag's position nor on the bags around it.
    """
    return _thinned(bags, size, _keys(bags, size, seed))


def thin_sets(
    sets: tuple[BagSet, BagSet],
    size: int | None,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> ThinnedBags:
    """Draw ``size`` points of every bag with at least so many; None keeps all points of all bags.

    The draw from a bag is seeded by a hash of its points and ``seed``, and the bags are sorted by
    this hash. Results therefore do not depend on the order of the bags, or on the sets that they
    come from.

    Raises
    ------
    DataError
        If a set has fewer than two bags with ``size`` points or more.
    """
    sizes = [bag_set.sizes for bag_set in sets]
    large_by_set = [of_set >= (size or 1) for of_set in sizes]
    for bag_set, large, of_set in zip(sets, large_by_set, sizes, strict=True):
        require_two(
            int(large.sum()),
            bag_set.name,
            f" of at least thin={size} points among {len(of_set)}, the largest of {of_set.max()}",
        )
    parts, keys = [], []
    done, total = 0, sum(len(of_set) for of_set in sizes)
    for bag_set in sets:
        for batch in bag_set.bags.batches_of(bag_set.ranges):
            block = batch.bags
            block_keys = _keys(block, size, seed)
            parts.append(_thinned(block, size, block_keys))
            keys += block_keys
            done += len(block)
            if progress is not None:
                progress(done, total)
    order = np.lexsort(np.array(keys).T)
    is_reference = np.repeat([True, False], [large.sum() for large in large_by_set])
    positions = [
        bag_set.positions[large] for bag_set, large in zip(sets, large_by_set, strict=True)
    ]
    return ThinnedBags(
        concatenate(parts)[order], is_reference[order], np.concatenate(positions)[order]
    )


def _range_of_store(data: tuple[Any, ...], name: str) -> LabelledBags:
    store = data[0]
    if len(data) != 3:
        raise DataError(f"{name}: expected (store, start, stop), got {len(data)} values")
    start, stop = data[1:]
    if not (isinstance(start, Integral) and isinstance(stop, Integral)):
        raise DataError(f"{name}: start and stop are {start!r} and {stop!r}; expected integers")
    start, stop = int(start), int(stop)
    if not 0 <= start <= stop <= store.n_bags:
        raise DataError(f"{name}: {store.url}: bags {start}:{stop} of {store.n_bags} do not exist")
    return LabelledBags(store, None, start, stop)


def _keys(bags: Bags, size: int | None, seed: int) -> list[NDArray[np.uint64]]:
    """Return a hash of 128 bits of each bag with ``size`` points or more, and of the seed."""
    key = seed.to_bytes(8, "little")
    digests = (
        hashlib.blake2b(np.ascontiguousarray(bag).data, digest_size=16, key=key).digest()
        for bag in bags
        if len(bag) >= (size or 1)
    )
    return [np.frombuffer(digest, dtype="<u8") for digest in digests]


def _thinned(bags: Bags, size: int | None, keys: list[NDArray[np.uint64]]) -> Bags:
    """Return the bags of ``size`` points or more, each thinned by its key."""
    if size is None:
        return bags
    large = np.flatnonzero(bags.sizes >= size)
    rows = np.empty((len(large), size), dtype=np.int64)
    for row, bag, key in zip(rows, large, keys, strict=True):
        row[:] = bags.offsets[bag] + _chosen(int(bags.sizes[bag]), size, key)
    offsets = offsets_of(np.full(len(large), size))
    return Bags.trusted(bags.points[rows.ravel()], offsets, names=bags.coordinate_names)


def _chosen(n_points: int, size: int, key: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Draw ``size`` different rows out of ``n_points``, in ascending order."""
    if n_points == size:
        return np.arange(size)
    generator = np.random.Generator(np.random.Philox(key=key))
    return np.sort(generator.choice(n_points, size, replace=False, shuffle=False))
