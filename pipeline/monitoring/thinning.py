"""Bags of one size: random points of each, the same whatever the order of the bags."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, concatenate
from ..bags.bags import offsets_of
from ..errors import ParameterError
from .bag_sets import BagSet, require_two

LEFT_OUT = 0.05  # of a set's bags, at most
MAX_VALUES = 2**24  # coordinates held, of both sets together


@dataclass(frozen=True)
class ThinnedBags:
    """Bags of both sets in an order that does not depend on the set or the order in it.

    Attributes
    ----------
    bags : Bags
    is_reference : bool, shape (n_bags,)
    positions : int64, shape (n_bags,)
        Of each bag in its set's source.
    """

    bags: Bags
    is_reference: NDArray[np.bool_]
    positions: NDArray[np.int64]


def thinning_size(sizes: list[NDArray[np.int64]], n_dims: int) -> int:
    """The number of points that bags of all sets are thinned to.

    The smaller of the sets' 5 % quantiles of sizes: of fewer than 21 bags the smallest, of more
    at most 5 % in each set are smaller, and left out, so that one tiny bag does not cost all the
    others their points. No more than lets the bags of both sets fill 2^24 coordinates.
    """
    low = min(int(np.quantile(of_set, LEFT_OUT, method="lower")) for of_set in sizes)
    n_bags = sum(len(of_set) for of_set in sizes)
    return max(1, min(low, MAX_VALUES // (n_bags * n_dims)))


def thin_sets(
    sets: tuple[BagSet, BagSet],
    size: int | None,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> ThinnedBags:
    """``size`` random points of every bag that has them; None keeps all points of all bags.

    The draw from a bag is seeded by its points and ``seed``, and the bags are ordered by the same
    hash: so that nothing computed from them depends on the order or on the set they came in.

    Raises
    ------
    DataError
        A set with fewer than two bags of that size.
    """
    sizes = [bag_set.sizes for bag_set in sets]
    kept = [of_set >= (size or 1) for of_set in sizes]
    for bag_set, large, of_set in zip(sets, kept, sizes, strict=True):
        require_two(
            int(large.sum()),
            bag_set.name,
            f" of at least thin={size} points among {len(of_set)}, the largest of {of_set.max()}",
        )
    parts, keys = [], []
    done, total = 0, sum(len(of_set) for of_set in sizes)
    for bag_set in sets:
        for block in bag_set.blocks():
            block_keys = [_key(bag, seed) for bag in block if len(bag) >= (size or 1)]
            parts.append(_thinned(block, size, block_keys))
            keys += block_keys
            done += len(block)
            if progress is not None:
                progress(done, total)
    order = np.lexsort(np.array(keys).T)
    is_reference = np.repeat([True, False], [large.sum() for large in kept])
    positions = [bag_set.positions[large] for bag_set, large in zip(sets, kept, strict=True)]
    return ThinnedBags(
        concatenate(parts)[order], is_reference[order], np.concatenate(positions)[order]
    )


def check_thin(thin: Any) -> None:
    """Raise ParameterError unless ``thin`` is True, False or a number of points."""
    if isinstance(thin, (bool, np.bool_)):
        return
    if not isinstance(thin, (int, np.integer)) or thin < 1:
        raise ParameterError(f"thin is {thin!r}; expected True, False or a number of points ≥ 1")


def _key(bag: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    """128 bits of the points and the seed."""
    digest = hashlib.blake2b(
        np.ascontiguousarray(bag).data, digest_size=16, key=seed.to_bytes(8, "little")
    )
    return np.frombuffer(digest.digest(), dtype="<u8")


def _thinned(bags: Bags, size: int | None, keys: list[NDArray[np.uint64]]) -> Bags:
    """The bags of ``size`` points or more, each thinned by its key."""
    if size is None:
        return bags
    large = np.flatnonzero(bags.sizes >= size)
    rows = np.empty((len(large), size), dtype=np.int64)
    for row, bag, key in zip(rows, large, keys, strict=True):
        row[:] = bags.offsets[bag] + _chosen(int(bags.sizes[bag]), size, key)
    return Bags.trusted(bags.points[rows.ravel()], offsets_of(np.full(len(large), size)))


def _chosen(n_points: int, size: int, key: NDArray[np.uint64]) -> NDArray[np.int64]:
    """``size`` different rows of n_points, ascending."""
    if n_points == size:
        return np.arange(size)
    generator = np.random.Generator(np.random.Philox(key=key))
    return np.sort(generator.choice(n_points, size, replace=False, shuffle=False))
