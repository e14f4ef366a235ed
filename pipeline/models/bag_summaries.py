"""Summaries of bags in a few numbers, the inputs of trees and of baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from ..core.arrays import Floats
from ..data.bags.bags import Bags
from ..embeddings.ranked import MAX_COVARIANCES
from ..execution.costs import Cost

SECONDS_PER_EXTREME = 5e-9  # of a coordinate of a point
GAPS_BYTES = 2**27  # points of a block, in double


@dataclass(frozen=True)
class Summaries(ABC):
    """Summary statistics of bags in R^d; `Features` of a model."""

    n_dims: int

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features of a bag."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Cost of computing the summaries."""

    @abstractmethod
    def of(self, bags: Bags) -> Floats:
        """Return the summaries of one bag or more, shape (n_bags, n_features)."""


@dataclass(frozen=True)
class MomentsAndExtremes(Summaries):
    """Means, covariances (of many coordinates variances), minima and maxima of bags, and log n."""

    @property
    def n_second(self) -> int:
        """Number of covariances or variances."""
        n_pairs = self.n_dims * (self.n_dims + 1) // 2
        return n_pairs if n_pairs <= MAX_COVARIANCES else self.n_dims

    @property
    @override
    def n_features(self) -> int:
        return 3 * self.n_dims + self.n_second + 1

    @property
    @override
    def cost(self) -> Cost:
        width = 2 * self.n_dims + self.n_second
        return Cost(SECONDS_PER_EXTREME * width, 1e-6, 16 * self.n_features, GAPS_BYTES)

    @override
    def of(self, bags: Bags) -> Floats:
        starts, sizes, means = bags.offsets[:-1], bags.sizes[:, None], bags.means
        gaps = bags.points - np.repeat(means, bags.sizes, axis=0)
        second = np.empty((len(bags), self.n_second))
        for column, (i, j) in enumerate(self._pairs):
            second[:, column] = np.add.reduceat(gaps[:, i] * gaps[:, j], starts)
        least, most = (kind.reduceat(bags.points, starts) for kind in (np.minimum, np.maximum))
        return np.concatenate([means, second / sizes, least, most, np.log(sizes)], axis=1)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        if self.n_second == self.n_dims:
            return [(j, j) for j in range(self.n_dims)]
        return [(i, j) for i in range(self.n_dims) for j in range(i, self.n_dims)]
