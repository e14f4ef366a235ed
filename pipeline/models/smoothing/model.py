"""`SmootherModel`: the fitted model of a kernel smoother."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.arrays import Floats, Integers
from ...core.errors import ModelError
from ...data.bags.bags import Bags
from ...data.store.store import BagStore
from ...execution.costs import Cost
from ...execution.lazy_dask import LazyArray
from ...execution.passes import Reduction, run_pass
from ...execution.progress import Progress
from ...execution.worker_threads import kernel_threads
from ..fitted_model import check_names, in_fitted_order
from ..fitting.feature_map import FeatureMap
from ..outcomes.base import Outcome
from ..predictions.features import lazy_predictions
from ..predictions.outside import tell_outside
from ..ridge_model import NOT_FINITE
from .sums import SMOOTHED_ROWS, QuerySums, SmootherSums, TrainingRows, smoothing_cost

QUERIES_AT_ONCE = 4096  # bags predicted by one pass over the training bags


@dataclass(frozen=True, eq=False)
class SmootherModel:
    """The training bags of a smoother, and its bandwidth; a `ScoringModel`.

    Attributes
    ----------
    training : TrainingRows
        Training bags, kept in memory or read again by every prediction.
    features : FeatureMap
        The fitted embedding.
    outcome : Outcome
    precision : {"float32", "float64"}
    centre : shape (s,)
        Origin that is subtracted from embeddings.
    exponents : int64, shape (k,)
        Exponents of the units of the targets, see `units_of`.
    mean_targets : float64, shape (k,)
        Mean of some encoded labels.
    origin : float64, shape (k,)
        Number that is subtracted from each target: 0, unless the labels are far from 0.
    bandwidth : float
        Bandwidth h of the kernel.
    holdout : float or dict
        Bags that were left out of the fit, see `Holdout`.
    report : dict
        Identity of the data, and names of the coordinates, if they have names.
    """

    training: TrainingRows
    features: FeatureMap
    outcome: Outcome
    precision: str
    centre: NDArray[Any]
    exponents: Integers
    mean_targets: Floats
    origin: Floats
    bandwidth: float = np.nan
    holdout: float | dict[str, Any] = 0.0
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def prediction_cost(self) -> Cost:
        """Cost of a prediction: that of `features`."""
        return self.features.cost

    def predict(self, bags: Bags, progress: Progress | None = None) -> NDArray[Any]:
        """Return the predictions of bags in memory, from passes over the training bags."""
        return self.outcome.predict(self.smooth(bags, progress)).values

    def apply(
        self,
        X: BagStore,
        of_bags: Callable[[Bags], NDArray[Any]],
        *,
        tail: tuple[int, ...],
        dtype: DTypeLike = np.float64,
    ) -> LazyArray:
        """Return the rows that ``of_bags`` computes for a store, each of shape ``tail``.

        The result is a lazy dask.array, chunked by bags.

        Raises
        ------
        ModelError
            If the bags have another dimension, or other names of coordinates.
        """
        check_names(self.report, X)
        self._check_dims(X.n_dims)
        return lazy_predictions(of_bags, self.prediction_cost, X, tail, dtype)

    def decision_rows(self, bags: Bags) -> Floats:
        """Return smoothed rows of encoded labels for bags in memory, shape (n_bags, k)."""
        return self.smooth(bags, None)

    def smooth(self, bags: Bags, progress: Progress | None) -> Floats:
        """Return `decision_rows`, from passes over the training bags with progress reports."""
        bags = in_fitted_order(bags, self.report)
        self._check_dims(bags.n_dims)
        bandwidth = np.array([self.bandwidth])
        out = np.empty((len(bags), self.outcome.n_targets))
        outside = np.zeros(len(bags), np.int64)
        for start in range(0, len(bags), QUERIES_AT_ONCE):
            at = slice(start, start + QUERIES_AT_ONCE)
            block = bags[at]
            with kernel_threads():
                embedded = self.features.embed(block, self.precision, outside[at])
                queries = embedded[0] - self.centre
            sums = self.sums(queries, bandwidth, None, progress)
            smoothed = np.ldexp(sums.predictions[0], self.exponents)
            out[start : start + len(block)] = smoothed + self.origin
        tell_outside(outside, bags, self.report, self.features.embedding)
        self.outcome.check_finite(out, "a prediction", NOT_FINITE)
        return out

    def _check_dims(self, n_dims: int) -> None:
        if n_dims != self.features.n_dims:
            raise ModelError(
                f"the smoother was fitted on bags of dimension {self.features.n_dims}, these "
                f"have {n_dims}"
            )

    def sums(
        self,
        queries: NDArray[Any],
        bandwidths: Floats,
        own: Integers | None,
        progress: Progress | None,
    ) -> SmootherSums:
        """Return the sums of a pass over the training bags, without the ``own`` bag of a query."""
        k = self.outcome.n_targets
        sums = partial(QuerySums, queries, bandwidths, k, own)
        cost = smoothing_cost(len(queries), len(bandwidths), queries.shape[1], k)
        cost = self.training.cost + cost
        smoothing = Reduction(sums, operator.add, cost, SMOOTHED_ROWS, "smooth")
        result: SmootherSums = run_pass(self.training, smoothing, progress=progress)
        return result
