"""`NetworkModel`: what evaluation, predictions and saving ask of a fitted network of bags."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np

from ..core.arrays import Floats
from ..core.errors import ModelError
from ..data.bags.bags import Bags
from ..data.labelled.inputs import BagsLike
from ..execution.costs import Cost
from ..models.fitted_model import NO_COLUMNS, MoreColumns, PredictedRows
from ..models.loading import LEAF_NAME
from ..models.model_state import ModelState
from ..models.outcomes.base import Outcome, Prediction
from .examples import PREDICTED_AT_ONCE
from .files import leaves_of
from .training import Network

_SECONDS_PER_WEIGHT = 1e-9  # and point: a plan needs the order of magnitude


class FittedNetwork(Protocol):
    """What is asked of a fitted network of bags."""

    network_: Network
    n_features_in_: int

    @property
    def longest(self) -> int:
        """Points of the longest bag."""
        ...

    @property
    def numbers_per_point(self) -> int:
        """Numbers that are held of a point."""
        ...

    def decision_rows(self, X: BagsLike) -> Floats:
        """Return the rows that the outcome reads."""
        ...

    def header(self) -> dict[str, Any]:
        """Return what a file holds besides the arrays."""
        ...

    def arrays(self) -> Network:
        """Return the network's arrays as a pytree."""
        ...


@dataclass(frozen=True)
class NetworkFeatures:
    """What a network sees of a bag: its points.

    Attributes
    ----------
    n_dims : int
        Coordinates of a point.
    n_features : int
        Numbers of the last layer but one.
    cost : Cost
    """

    n_dims: int
    n_features: int
    cost: Cost


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A fitted network as a model of a store's bags; it travels to workers.

    Attributes
    ----------
    estimator : fitted network
    outcome : Outcome
        Outcome that was learnt.
    holdout : float or dict
        Bags that were left out of the fit, see `Holdout`.
    report : dict
        Counts of the fit.
    """

    estimator: FittedNetwork
    outcome: Outcome
    holdout: float | dict[str, Any]
    report: dict[str, Any]

    @property
    def mean_targets(self) -> None:
        """Neither outcome of networks keeps it."""
        return None

    @property
    def features(self) -> NetworkFeatures:
        """What the network sees of a bag."""
        estimator = self.estimator
        sizes = [leaf.size for leaf in jax.tree.leaves(estimator.network_) if hasattr(leaf, "size")]
        held = 8 * PREDICTED_AT_ONCE * estimator.longest * estimator.numbers_per_point
        cost = Cost(_SECONDS_PER_WEIGHT * sum(sizes), 1e-5, 0, held)
        return NetworkFeatures(estimator.n_features_in_, estimator.numbers_per_point, cost)

    @property
    def prediction_cost(self) -> Cost:
        """What predictions take: `features`, and what else a model sees of a bag."""
        return self.features.cost

    def decision_rows(self, bags: Bags) -> Floats:
        """Return numbers, or the probability of each class, shape (n_bags, k)."""
        if not len(bags):
            return np.empty((0, self.outcome.n_targets))
        return self.estimator.decision_rows(bags)

    def predicted(self, bags: Bags, columns: MoreColumns = NO_COLUMNS) -> Prediction:
        """Return everything that is predicted for bags in memory."""
        none = PredictedRows.none(self.outcome.n_targets)
        return self.with_columns(none._replace(values=self.decision_rows(bags)), columns)

    def with_columns(self, rows: PredictedRows, columns: MoreColumns) -> Prediction:
        """Return predictions of raw rows; ModelError for any additional column."""
        if columns.names:
            raise ModelError(
                f"columns: {columns.names[0]!r} is of Double-Basis models; a network predicts "
                "without deviations and intervals: leave it out"
            )
        return self.outcome.predict(rows.values)

    def state(self) -> ModelState:
        """Return everything that is saved besides the parameters."""
        estimator = self.estimator
        leaves = leaves_of(estimator.arrays())
        header = {key: value for key, value in estimator.header().items() if key != "report"}
        attributes = json.loads(json.dumps({"network": header, "report": self.report}))
        arrays = {LEAF_NAME.format(i): leaf.astype(np.float64) for i, leaf in enumerate(leaves)}
        return ModelState({**attributes, "n_arrays": len(leaves)}, arrays)
