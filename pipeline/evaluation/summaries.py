"""Summaries of bags in a few numbers, which baselines are fitted to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import Floats
from ..bags import Bags
from ..execution import Cost
from ..labelled import LabelledBags, Weights
from ..outcomes import Outcome
from ..store import RunSample

# A summary has few coordinates: more bags than these 20,480 hardly change what is fitted to them.
FITTED_SAMPLE = RunSample(64, 320)
SECONDS_PER_MEAN = 2e-9  # of a coordinate of a point
SECONDS_PER_EXTREME = 5e-9
GAPS_BYTES = 2**27  # of the points of a block, in double
MOST_COVARIANCES = 300  # columns; beyond, 25 coordinates and more have variances alone


@dataclass(frozen=True)
class Summaries(ABC):
    """Numbers that are taken of bags in R^d; `Features` of a model."""

    n_dims: int

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many numbers a bag becomes."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What they take."""

    @abstractmethod
    def of(self, bags: Bags) -> Floats:
        """Return the numbers of at least one bag, shape (n_bags, n_features)."""


@dataclass(frozen=True)
class MeanFeatures(Summaries):
    """The means of bags."""

    @property
    def n_features(self) -> int:
        """A mean has as many coordinates as a point."""
        return self.n_dims

    @property
    def cost(self) -> Cost:
        """What the means of bags take."""
        return Cost(SECONDS_PER_MEAN * self.n_features, 1e-7, 8 * self.n_features)

    def of(self, bags: Bags) -> Floats:
        """See `Summaries.of`."""
        return bags.means


@dataclass(frozen=True)
class MomentsAndExtremes(Summaries):
    """Means, covariances (of many coordinates variances), minima and maxima of bags, and log n."""

    @property
    def n_second(self) -> int:
        """How many covariances or variances there are."""
        n_pairs = self.n_dims * (self.n_dims + 1) // 2
        return n_pairs if n_pairs <= MOST_COVARIANCES else self.n_dims

    @property
    def n_features(self) -> int:
        """See `Summaries.n_features`."""
        return 3 * self.n_dims + self.n_second + 1

    @property
    def cost(self) -> Cost:
        """See `Summaries.cost`."""
        width = 2 * self.n_dims + self.n_second
        return Cost(SECONDS_PER_EXTREME * width, 1e-6, 16 * self.n_features, GAPS_BYTES)

    def of(self, bags: Bags) -> Floats:
        """See `Summaries.of`."""
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


class SampledRows(NamedTuple):
    """Summaries (n, m) of each kind, encoded labels (n, k) and weights (n,) of a sample of bags."""

    summaries: dict[str, Floats]
    labels: Floats
    weights: Floats

    def mean_and_variance(self) -> tuple[Floats, Floats]:
        """Return those of the labels, shape (k,) each."""
        mean = np.average(self.labels, axis=0, weights=self.weights)
        return mean, np.average((self.labels - mean) ** 2, axis=0, weights=self.weights)


def sample_rows(
    bags: LabelledBags, outcome: Outcome, kinds: Mapping[str, Summaries], weights: Weights | None
) -> SampledRows | None:
    """Summarise a sample of labelled bags; None without two of them that weigh anything."""
    found: dict[str, list[Floats]] = {name: [] for name in kinds}
    rows, each = [], []
    for batch in bags.batches_of(FITTED_SAMPLE.ranges(bags.start, bags.end)):
        if len(batch):
            for name, summaries in kinds.items():
                found[name].append(summaries.of(batch.bags))
            rows.append(outcome.encode(batch.labels)[0])
            ones = np.ones(len(batch))
            each.append(ones if weights is None else weights.of(batch.index, rows[-1]))
    w = np.concatenate([np.empty(0), *each])
    if np.count_nonzero(w) < 2:
        return None
    summarised = {name: np.concatenate(parts) for name, parts in found.items()}
    return SampledRows(summarised, np.concatenate(rows).astype(np.float64), w)
