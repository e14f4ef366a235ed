"""Choosing an index set by the leave-one-out score, averaged over bags (004, eq. 2.24)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, Box
from ..bases import index_set, norms, project
from ..errors import DataError

MAX_FUNCTIONS = 1024
MAX_PER_DIM = 64
SAMPLE_RUNS, SAMPLE_BAGS = 32, 128  # 4,096 bags in runs, so that few chunks are touched


class LeaveOneOutScore:
    """Additive statistics of Ŝ for every index at once; bags of one point say nothing.

    Ŝ_t = Σ_{α ∈ M_t} score_α with score_α = −(n+1)/(n−1) a_α² + 2/(n−1) mean φ_α².
    """

    def __init__(self, indices: NDArray[np.int64], groups: NDArray[np.int64]) -> None:
        self.indices = indices
        self.groups = groups
        self.n_bags = 0
        self.total = np.zeros(len(indices))

    def add(self, bags: Bags, basis: str, box: Box) -> None:
        n = bags.sizes.astype(np.float64)
        bags, n = bags[n > 1], n[n > 1]
        if len(bags) == 0:
            return
        shape = (len(bags), len(self.groups) * len(self.indices))
        first, second = np.empty(shape), np.empty(shape)
        project(bags, self.indices, self.groups, basis, box, first)
        project(bags, self.indices, self.groups, basis, box, second, squared=True)
        weights = 1 / (n - 1)
        score = 2 * weights @ second - ((n + 1) * weights) @ first**2
        self.total += score.reshape(len(self.groups), -1).sum(axis=0)
        self.n_bags += len(bags)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The average score of each index, shape (s,)."""
        return self.total / max(1, self.n_bags)


def choose_index_set(
    sample: Iterable[Bags], shape: str, basis: str, groups: NDArray[np.int64], box: Box
) -> tuple[int | None, float | None]:
    """(n_per_dim, None) for shape "tensor", (None, max_norm) for "ball", of the least score.

    Raises
    ------
    DataError
        No bag of the sample has two points.
    """
    n_dims = groups.shape[1]
    indices = _candidates(n_dims, shape, basis)
    score = LeaveOneOutScore(indices, groups)
    for bags in sample:
        score.add(bags, basis, box)
    if score.n_bags == 0:
        raise DataError("the leave-one-out choice needs bags of at least two points")
    size = norms(indices, basis) if shape == "ball" else indices.max(axis=1).astype(np.float64)
    levels, level = np.unique(np.round(size, 9), return_inverse=True)
    curve = np.cumsum(np.bincount(level, weights=score.mean))
    best = levels[int(curve.argmin())]
    return (None, float(best)) if shape == "ball" else (int(best) + 1, None)


def _candidates(n_dims: int, shape: str, basis: str) -> NDArray[np.int64]:
    """The largest set of the shape within the limits."""
    best = index_set(n_dims, 1, None, basis)
    for size in range(1, MAX_PER_DIM):
        larger = (
            index_set(n_dims, None, float(size), basis)
            if shape == "ball"
            else index_set(n_dims, size + 1, None, basis)
        )
        if len(larger) > MAX_FUNCTIONS:
            break
        best = larger
    return best
