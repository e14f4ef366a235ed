"""A line of models: the same features and labels, each model solved from its own bags' sums.

Statistics of the same features add up and subtract, so the model of more bags, or of a window that
moved, costs a pass over those that came and those that left, not over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from ..bags import BagStore
from ..bags.labelled import LabelledBags, ResponseBags, Targets
from ..bags.plan import Range
from ..execution import Progress
from .accumulate import FitStatistics
from .checkpoints import Checkpoints
from .double_basis import DoubleBasis, Problem
from .feature_map import FeatureMap
from .outcomes import Densities, Outcome


@dataclass(frozen=True)
class ModelLine:
    """What the models of a line share.

    Attributes
    ----------
    estimator : estimator
        Its parameters; never fitted itself.
    features : FeatureMap
        Both bases with everything decided.
    outcome : Outcome
    holdout : float
        Share of the bags that enter no model.
    """

    estimator: Any
    features: FeatureMap
    outcome: Outcome
    holdout: float

    @classmethod
    def begin(
        cls,
        estimator: DoubleBasis,
        store: BagStore,
        bags: Range,
        target: str | Sequence[str] | None,
        holdout: float,
    ) -> ModelLine:
        """Decide features and classes as a fit to these bags of the store does.

        Raises
        ------
        DataError, ParameterError, StoreError
            As `DoubleBasisRegressor.fit`.
        """
        estimator.check_parameters(holdout)
        problem = estimator.problem(store, None, target, bags)
        features = estimator.resolve(problem.source)
        return cls(estimator, features, problem.outcome, float(holdout))

    @classmethod
    def of(cls, model: DoubleBasis) -> ModelLine:
        """The line of a model that was fitted to a store."""
        return cls(clone(model), model.features_, model.outcome_, model.holdout_)

    def statistics(
        self,
        store: BagStore,
        bags: Range,
        progress: Progress | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> FitStatistics:
        """One pass over these bags of the store, on the open cluster or in this process."""
        task = self.estimator.task(self._problem(store, bags), self.features, self.holdout)
        return task.run(progress, checkpoints.keeper(task) if checkpoints else None)

    def model(self, statistics: FitStatistics, store: BagStore, bags: Range) -> Any:
        """The fitted estimator of these bags, from their statistics.

        Raises
        ------
        DataError
            None of the bags has a label.
        """
        model = clone(self.estimator)
        model.learn(self._problem(store, bags), self.features, self.holdout, statistics)
        return model

    def _problem(self, store: BagStore, bags: Range) -> Problem:
        densities = self.outcome.key == Densities.key
        labels = ResponseBags() if densities else Targets(self.outcome.names)
        return Problem(LabelledBags(store, labels, *bags), self.outcome)
