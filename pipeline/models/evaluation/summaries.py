"""Summaries of bags in a few numbers, which baselines are fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from ...core.arrays import Floats
from ...data.bags.bags import Bags
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.weights import Weights
from ...data.store.sampling import RunSample
from ...execution.costs import Cost
from ..bag_summaries import Summaries
from ..outcomes.base import Outcome

# A summary has few coordinates: more bags than these 20,480 hardly change what is fitted to them.
FITTED_SAMPLE = RunSample(64, 320)
SECONDS_PER_MEAN = 2e-9  # of a coordinate of a point


@dataclass(frozen=True)
class MeanFeatures(Summaries):
    """The means of bags."""

    @property
    def n_features(self) -> int:
        """A mean has as many coordinates as a point."""
        return self.n_dims

    @property
    def cost(self) -> Cost:
        """Cost of computing the means of bags."""
        return Cost(SECONDS_PER_MEAN * self.n_features, 1e-7, 8 * self.n_features)

    @override
    def of(self, bags: Bags) -> Floats:
        return bags.means


class SampledRows(NamedTuple):
    """Summaries (n, m) of each kind, encoded labels (n, k) and weights (n,) of a sample of bags."""

    summaries: dict[str, Floats]
    labels: Floats
    weights: Floats

    def mean_and_variance(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the labels, each of shape (k,)."""
        mean = np.average(self.labels, axis=0, weights=self.weights)
        return mean, np.average((self.labels - mean) ** 2, axis=0, weights=self.weights)


def sample_rows(
    bags: LabelledBags, outcome: Outcome, kinds: Mapping[str, Summaries], weights: Weights | None
) -> SampledRows | None:
    """Summarise a sample of labelled bags; None if fewer than two bags have a positive weight."""
    blocks: dict[str, list[Floats]] = {name: [] for name in kinds}
    rows, each = [], []
    for batch in bags.batches_of(FITTED_SAMPLE.ranges(bags.start, bags.end)):
        if len(batch):
            for name, summaries in kinds.items():
                blocks[name].append(summaries.of(batch.bags))
            rows.append(outcome.encode(batch.labels)[0])
            ones = np.ones(len(batch))
            each.append(ones if weights is None else weights.of(batch.index, rows[-1]))
    w = np.concatenate([np.empty(0), *each])
    if np.count_nonzero(w) < 2:
        return None
    summarised = {name: np.concatenate(parts) for name, parts in blocks.items()}
    return SampledRows(summarised, np.concatenate(rows).astype(np.float64), w)
