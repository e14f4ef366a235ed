"""A random forest on moments and extremes of bags, a baseline that needs no embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from typing_extensions import override

from ...data.store.sampling import spread_rows
from ...execution.costs import Cost
from ...execution.worker_threads import kernel_threads
from ..bag_summaries import MomentsAndExtremes
from ..outcomes.base import Outcome
from .summaries import Rival, SampledRows

_N_TREES = 100
# size of all trees, which travel to the workers: leaves grow until they fit
MAX_FOREST_BYTES = 2**27
_NODE_BYTES = 64  # in addition to the labels of a node
FEATURE_FRACTION = 1 / 3  # tried at a split, as Breiman advises for regression
MAX_WORK = 10**7  # bags · numbers per bag · log2(bags): half a minute on one core
MAX_LABEL_COLUMNS = 200  # columns of labels: with more, as for densities, trees take minutes
SECONDS_PER_BAG = 5e-5
_SEED = 0


@dataclass(frozen=True)
class ForestFeatures(MomentsAndExtremes):
    """The features of a bag for a forest, and the cost of its trees."""

    @property
    @override
    def cost(self) -> Cost:
        # a task holds the trees
        return super().cost + Cost(
            seconds_per_bag=SECONDS_PER_BAG, bytes_per_task=2 * MAX_FOREST_BYTES
        )


@dataclass(frozen=True)
class MomentsForest(Rival):
    """A random forest on means, covariances, minima, maxima and sizes of bags.

    ``model`` has learnt from `ForestFeatures` of ``n_bags`` bags. Because labels are in ``units``,
    no target alone decides the splits of the trees.
    """

    n_bags: int

    @classmethod
    def fit(cls, sample: SampledRows, outcome: Outcome, n_dims: int, is_weighed: bool) -> Self:
        """Return a forest fitted to the summaries "moments" of a sample.

        If the sample is large, evenly spread bags are used, so that every report can have a forest.
        """
        sample = _thinned(sample)
        rows, labels = sample.summaries["moments"], sample.labels
        mean, _, units = sample.moments_and_units(outcome)
        node = _NODE_BYTES + 8 * labels.shape[1]
        y = labels / np.sqrt(units)
        with kernel_threads() as n_cores:
            forest = RandomForestRegressor(
                _N_TREES,
                min_samples_leaf=-(-2 * len(rows) * _N_TREES * node // MAX_FOREST_BYTES),
                max_features=FEATURE_FRACTION,
                random_state=_SEED,
                n_jobs=n_cores,
            )
            weights = sample.weights if is_weighed else None
            forest.fit(rows, y[:, 0] if y.shape[1] == 1 else y, weights)
        forest.set_params(n_jobs=1)  # several threads would add the trees in any order
        return cls(outcome, ForestFeatures(n_dims), forest, mean, units, len(rows))


def _thinned(sample: SampledRows) -> SampledRows:
    """Return the sample, or some of its bags, so that a forest takes at most `MAX_WORK`.

    If all remaining bags would have weight 0, the whole sample is returned.
    """
    rows = sample.summaries["moments"]
    n = most = len(rows)
    while most > 1 and most * rows.shape[1] * np.log2(most) > MAX_WORK:
        most = int(0.9 * most)
    places = spread_rows(np.arange(n), most)
    if most == n or np.count_nonzero(sample.weights[places]) < 2:
        return sample
    summaries = {name: values[places] for name, values in sample.summaries.items()}
    return SampledRows(summaries, sample.labels[places], sample.weights[places])
