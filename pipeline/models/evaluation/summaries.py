"""Summaries of bags in a few numbers, which baselines are fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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

    def moments_and_units(self, outcome: Outcome) -> tuple[Floats, Floats, Floats]:
        """Return mean, variance and units of the labels, each of shape (k,).

        Without units of the outcome, these are the variances.
        """
        mean = np.average(self.labels, axis=0, weights=self.weights)
        variances = np.average((self.labels - mean) ** 2, axis=0, weights=self.weights)
        units = outcome.units()
        if units is None:
            units = np.where(variances > 0, variances, 1.0)
        return mean, variances, units


@dataclass(frozen=True)
class Rival:
    """A model of scikit-learn on summaries of bags; a `ScoringModel`.

    Parameters
    ----------
    outcome : Outcome
        Outcome of the model that is compared with this baseline.
    features : Summaries
        The inputs of ``model``.
    model : regressor of scikit-learn
        Model that was fitted to encoded labels, shape (n_bags, k), in ``units``.
    mean_targets : float64, shape (k,)
        Means of these labels.
    units : float64, shape (k,)
        Divisors of the squared errors of these labels.
    """

    outcome: Outcome
    features: Summaries
    model: Any
    mean_targets: Floats
    units: Floats

    @property
    def prediction_cost(self) -> Cost:
        """What predictions take: `features`, and what else a model sees of a bag."""
        return self.features.cost

    def decision_rows(self, bags: Bags) -> Floats:
        """Return the raw rows that the outcome reads, shape (n_bags, k)."""
        if not len(bags):  # of a task that holds nothing out; scikit-learn takes no empty array
            return np.empty((0, len(self.units)))
        rows: Floats = self.model.predict(self.features.of(bags))
        return rows.reshape(len(bags), -1) * np.sqrt(self.units)


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
