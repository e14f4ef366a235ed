"""`TargetEstimator`: the fit of a regressor and a classifier, to targets as a store has them."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from ..bags.holdout import HoldoutLike
from ..execution import Progress
from ..params import checked
from .base import DoubleBasis
from .checkpoints import CheckpointsLike
from .problem import Target, TrainingBags
from .weights import SampleWeight


class TargetEstimator(DoubleBasis):
    """A Double-Basis estimator of numbers or classes."""

    @checked
    def fit(
        self,
        X: TrainingBags,
        y: ArrayLike | None = None,
        *,
        target: Target = None,
        sample_weight: SampleWeight = None,
        holdout: HoldoutLike = 0.0,
        progress: Progress | None = None,
        checkpoints: CheckpointsLike = None,
    ) -> Self:
        """Fit from one pass over the bags; on a cluster if one is connected and X is a store.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        y : array, shape (n_bags,) or (n_bags, n_targets)
            For bags in memory, numbers or classes; NaN, None or "" where a bag has no label.
        target : str or list of str
            For a store; may be left out when it has one target.
        sample_weight : array, shape (n_bags,), or str, optional
            How much each bag counts, numbers ≥ 0, or a column of the store with them: a bag of
            weight 2 is as the bag twice in all sums, and once in what "gcv" counts.
        holdout : float in [0, 1) or dict, optional
            Bags left out, to evaluate on: a share, by a hash of their index;
            {"fraction": .2, "groups": "patient"}, whole groups of equal values in a column of the
            store, by which alpha="validation" chooses its bags too; or {"after": "2026-01-01",
            "time": "day"}, those later than a date or number (dates are days since 1970-01-01, or
            names of classes; ``time`` may be left out where one column is no target).
        progress : callable (bags done, bags in all), optional
        checkpoints : URL, path or `Checkpoints`, optional
            Where the sums of a store's bags are kept while the pass runs: the same fit started
            again goes on from there. Of a URL they are removed when the fit has ended.

        Raises
        ------
        DataError, ParameterError, StoreError
        """
        problem = self.weighed(self.problem(X, y, target), sample_weight, holdout)
        self.fit_problem(problem, holdout, progress, checkpoints)
        return self
