"""Exact Gaussian-kernel maximum mean discrepancies of all pairs of bags, O(n m) per pair."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from ...core.arrays import Floats
from ...core.errors import BagError
from ...data.bags.bags import Bags
from .resources import PairCount, add_own, bag_blocks, for_each

PAIRS_PER_TILE = 1 << 20  # kernel values at a time, in each thread: 8 MiB


def squared_discrepancies(
    X: Bags, Y: Bags | None, bandwidth: float, unbiased: bool, pairs: PairCount
) -> Floats:
    """MMD² of every bag of X (rows) and Y (columns), or of X when Y is None.

    Raises
    ------
    BagError
        If the estimate is unbiased and a bag has one point.
    """
    scaled = _scaled(X, bandwidth)
    own = _own_means(scaled, unbiased, "X")
    if Y is None:
        matrix = _mean_kernels(scaled, None, pairs)
        own_columns = own
    else:
        columns = _scaled(Y, bandwidth)
        own_columns = _own_means(columns, unbiased, "Y")
        matrix = _mean_kernels(scaled, columns, pairs)
    matrix *= -2
    add_own(matrix, own, own_columns)
    return matrix


def _scaled(bags: Bags, bandwidth: float) -> Bags:
    """Points in units in which the kernel is exp(−‖x − y‖²)."""
    points = bags.points.astype(np.float64) / (np.sqrt(2) * bandwidth)
    return Bags.trusted(points, bags.offsets)


def _own_means(bags: Bags, unbiased: bool, name: str) -> Floats:
    """Mean kernel of the pairs of points of each bag; without a point and itself when unbiased."""
    sizes = bags.sizes
    if unbiased and (sizes == 1).any():
        bag = int(np.flatnonzero(sizes == 1)[0])
        raise BagError(
            bag, f"of {name} has one point; the unbiased MMD needs two: use 'mmd' or leave it out"
        )
    means = np.array([_row(bag, bags[i : i + 1])[0] for i, bag in enumerate(bags)])
    return (means * sizes - 1) / (sizes - 1) if unbiased else means


def _mean_kernels(X: Bags, Y: Bags | None, pairs: PairCount) -> Floats:
    """Mean kernel of every bag of X with every one of Y.

    For X with itself it is computed above the diagonal, and mirrored.
    """
    columns = X if Y is None else Y
    matrix = np.empty((len(X), len(columns)))

    def row(i: int) -> None:
        first = i if Y is None else 0
        matrix[i, first:] = _row(X[i], columns[first:])
        if Y is None:
            matrix[first:, i] = matrix[i, first:]

    for_each(row, len(X), lambda: pairs.add(len(columns)))
    return matrix


def _row(bag: Floats, columns: Bags) -> Floats:
    """Mean kernel of one bag with each of the columns, in tiles."""
    sums = np.zeros(len(columns))
    for start, stop in bag_blocks(columns.sizes, max_points=max(1, PAIRS_PER_TILE // len(bag))):
        block = columns[start:stop]
        rows = max(1, PAIRS_PER_TILE // block.n_points)
        for top in range(0, len(bag), rows):
            kernel = cdist(bag[top : top + rows], block.points, "sqeuclidean")
            np.negative(kernel, out=kernel)
            np.exp(kernel, out=kernel)
            sums[start:stop] += np.add.reduceat(kernel.sum(axis=0), block.offsets[:-1])
    return sums / (len(bag) * columns.sizes)
