"""Choosing an index set by the leave-one-out score, averaged over bags (004, eq. 2.24)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, Box
from ..bases import index_set, norms
from ..bases.leave_one_out import LeaveOneOutSums, leave_one_out_sums
from ..errors import DataError

MAX_FUNCTIONS = 1024
MAX_PER_DIM = 64
BAGS_AT_ONCE = 128


class LeaveOneOutScore:
    """Additive statistics of Ŝ for every index at once; bags of one point say nothing.

    Ŝ_t = Σ_{α ∈ M_t} score_α with score_α = −(n+1)/(n−1) a_α² + 2/(n−1) mean φ_α², n the points
    that were kept.
    """

    def __init__(
        self,
        indices: NDArray[np.int64],
        groups: NDArray[np.int64],
        basis: str,
        box: Box,
        drop: bool,
    ) -> None:
        self.indices = indices
        self.groups = groups
        self._sums_of = partial(leave_one_out_sums, basis=basis, box=box, drop=drop)
        self._sums = [LeaveOneOutSums.empty(len(indices)) for _ in groups]

    def add(self, bags: Bags) -> None:
        for start in range(0, len(bags), BAGS_AT_ONCE):
            block = bags[start : start + BAGS_AT_ONCE]
            for g, group in enumerate(self.groups):
                self._sums[g] += self._sums_of(block, self.indices, group)[0]

    @property
    def n_bags(self) -> NDArray[np.int64]:
        """Bags that were counted, of each group."""
        return np.array([sums.n_bags for sums in self._sums])

    @property
    def mean(self) -> NDArray[np.float64]:
        """The average score of each index, summed over the groups, shape (s,)."""
        scores = [(s.squares - 2 * s.cross) / max(1, s.n_bags) for s in self._sums]
        total: NDArray[np.float64] = np.sum(scores, axis=0)
        return total


def choose_index_set(
    sample: Iterable[Bags],
    shape: str,
    basis: str,
    groups: NDArray[np.int64],
    box: Box,
    drop: bool = False,
) -> tuple[int | None, float | None]:
    """(n_per_dim, None) for shape "tensor", (None, max_norm) for "ball", of the least score.

    ``drop`` leaves points outside the box out of the score, as they are of the embedding.

    Raises
    ------
    DataError
        No bag of the sample has two points (inside the box, with ``drop``).
    """
    n_dims = groups.shape[1]
    indices = _candidates(n_dims, shape, basis)
    score = LeaveOneOutScore(indices, groups, basis, box, drop)
    for bags in sample:
        score.add(bags)
    if not score.n_bags.any():
        raise DataError("the leave-one-out choice needs bags of at least two points")
    # whole numbers, so that equal sizes are one level: the square of the norm for a ball
    size = np.round(norms(indices, basis) ** 2) if shape == "ball" else indices.max(axis=1)
    levels, level = np.unique(size.astype(np.int64), return_inverse=True)
    curve = np.cumsum(np.bincount(level, weights=score.mean))
    best = int(levels[int(curve.argmin())])
    return (None, float(np.sqrt(best))) if shape == "ball" else (best + 1, None)


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
