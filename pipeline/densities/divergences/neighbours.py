"""Bags with a search tree each, and k-NN statistics of all pairs of two sets of them.

scipy's trees, not scikit-learn's: the same neighbours, but the search lets other threads run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from ...core.arrays import Floats, Integers
from ...core.errors import BagError
from ...data.bags.bags import Bags
from .nearest import LARGEST, MANY_DIMS, AllDistances
from .resources import PairCount, bag_blocks, for_each

_RADIUS_ROUNDING = 1 + 1e-12  # distances within rounding of a radius are not beyond it


@dataclass(frozen=True)
class Ranks:
    """Ranks of the neighbours that are searched within the bag of a point.

    Attributes
    ----------
    of : callable
        Function of the bag's number of points, and of the sizes of the bags that it is compared
        with. It returns ranks, ascending from 1.
    with_counts : bool
        Whether to count the points up to each distance: more than the rank if distances tie.
    same_size : bool
        Whether ranks depend on the bag's size. Blocks then have bags of one size.
    """

    of: Callable[[int, Integers], list[int]]
    with_counts: bool = False
    same_size: bool = False


@dataclass(frozen=True)
class BagBlock:
    """Consecutive bags; distances and counts have a row per point and a column per rank."""

    start: int
    stop: int
    points: Floats
    sizes: Integers
    ranks: list[int]
    distances: Floats
    log_distances: Floats
    counts: Integers

    def mean(self, values: Floats) -> Floats:
        """Return the mean of one value per point over each bag, shape (stop − start,)."""
        return np.add.reduceat(values, np.cumsum(self.sizes) - self.sizes) / self.sizes


class SearchableBags:
    """Bags with search trees for neighbours.

    A distance of zero (repeated points) has no logarithm. It is replaced by the bag's resolution:
    the smallest positive distance of a point to its neighbours in the bag; if all of these are
    zero, the smallest distance of two different points; if all points are equal, the rounding error
    of the largest coordinate. Bags of repeated points therefore have finite divergences, and two
    bags that repeat the same points are near each other.

    Parameters
    ----------
    bags : Bags
    k : int
        Rank of a neighbour; each bag must have more than k points.
    ranks : Ranks
    met : shape (n,)
        Sizes of the bags with which these bags are compared.
    name : str
        Name of the argument, for messages.

    Raises
    ------
    BagError
        If a bag has k points or fewer.
    """

    def __init__(self, bags: Bags, k: int, ranks: Ranks, met: Integers, name: str) -> None:
        short = np.flatnonzero(bags.sizes <= k)
        if len(short):
            bag = int(short[0])
            raise BagError(
                bag,
                f"of {name} has {bags.sizes[bag]} points; neighbour k = {k} needs {k + 1} or more: "
                "lower k or leave the bag out",
            )
        self.sizes = bags.sizes
        self.n_dims = bags.n_dims
        self._offsets = bags.offsets
        self._points: Floats = bags.points.astype(np.float64, copy=False)
        self.trees = [KDTree(part) for part in Bags.trusted(self._points, bags.offsets)]
        self.log_resolution = np.empty(len(bags))
        met = np.unique(met)
        self.blocks = [
            self._block(start, stop, ranks, met)
            for start, stop in bag_blocks(bags.sizes, same_size=ranks.same_size)
        ]

    def _block(self, start: int, stop: int, ranks: Ranks, met: Integers) -> BagBlock:
        sizes = self.sizes[start:stop]
        wanted = ranks.of(int(sizes[0]), met)
        distances, logs, counts = [], [], []
        for i in range(start, stop):
            part, tree = self._rows(i, i + 1), self.trees[i]
            every = self._every_distance(i)
            if every is None:
                near = tree.query(part, k=[rank + 1 for rank in wanted])[0]  # the first is itself
            else:
                near = np.stack([every.distances(part, rank + 1) for rank in wanted], axis=1)
            positive = near[near > 0]
            self.log_resolution[i] = np.log(positive.min() if len(positive) else least_gap(part))
            distances.append(near)
            logs.append(floored_log(near, self.log_resolution[i]))
            if ranks.with_counts:
                counts.append(np.stack([points_within(tree, part, r) for r in near.T], axis=1) - 1)
        return BagBlock(
            start,
            stop,
            self._rows(start, stop),
            sizes,
            wanted,
            np.concatenate(distances),
            np.concatenate(logs),
            np.concatenate(counts) if counts else np.empty((0, 0), dtype=np.int64),
        )

    @property
    def n_repeated(self) -> int:
        """Number of points with as many equal points in their bag as the least rank."""
        return sum(int((block.distances[:, 0] == 0).sum()) for block in self.blocks)

    def _rows(self, start: int, stop: int) -> Floats:
        """Return the points of the bags start … stop − 1."""
        return self._points[self._offsets[start] : self._offsets[stop]]

    def log_distance_to(self, j: int, points: Floats, k: int) -> Floats:
        """Return log distances to the k-th nearest point of bag j, shape (n_points,)."""
        every = self._every_distance(j)
        if every is not None and np.abs(points).max() < LARGEST:
            return floored_log(every.distances(points, k), self.log_resolution[j])
        distances = self.trees[j].query(points, k=[k])[0][:, 0]
        return floored_log(distances, self.log_resolution[j])

    def _every_distance(self, j: int) -> AllDistances | None:
        """Return the points of bag j for a search without a tree, where that is quicker."""
        if self.n_dims < MANY_DIMS:
            return None
        distances = AllDistances(self._rows(j, j + 1))
        return distances if distances.is_safe else None

    def points_within(self, j: int, points: Floats, radii: Floats) -> Integers:
        """Count the points of bag j within a radius of each point, shape (n_points,)."""
        return points_within(self.trees[j], points, radii)


NeighbourStatistic = Callable[[BagBlock, SearchableBags, int], Floats]
"""Statistic of the bags p of a block against bag j of q: one value for each p."""


def directed_matrix(
    p: SearchableBags, q: SearchableBags, statistic: NeighbourStatistic, pairs: PairCount
) -> Floats:
    """Return ``statistic`` of every bag of p (rows) against every bag of q (columns)."""
    matrix = np.empty((len(p.sizes), len(q.sizes)))

    def column(j: int) -> None:
        with np.errstate(over="ignore"):  # the caller refuses what is not finite
            for block in p.blocks:
                matrix[block.start : block.stop, j] = statistic(block, q, j)

    for_each(column, len(q.sizes), lambda: pairs.add(len(p.sizes)))
    return matrix


def points_within(tree: KDTree, points: Floats, radii: Floats) -> Integers:
    """Count the points of a tree within a radius of each point, ties included."""
    counts: Integers = tree.query_ball_point(points, _RADIUS_ROUNDING * radii, return_length=True)
    return counts


def least_gap(points: Floats) -> float:
    """Return the smallest distance of two different points; if all are equal, a rounding error."""
    rounding = float(np.finfo(np.float64).eps * (np.abs(points).max() or 1.0))
    different = np.unique(points, axis=0)
    if len(different) == 1:
        return rounding
    return float(KDTree(different).query(different, k=[2])[0].min()) or rounding


def floored_log(distances: Floats, log_floor: float) -> Floats:
    """Return the logarithms of distances; the logarithm of zero is ``log_floor``."""
    zero = distances == 0
    if not zero.any():
        return np.log(distances)
    logs = np.log(np.where(zero, 1.0, distances))
    logs[zero] = log_floor
    return logs
