"""Predictions of a regressor of real numbers: values, standard deviations and intervals."""

from __future__ import annotations

import logging
import time
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..arrays import Floats
from ..bags import Bags, BagStore, as_bags
from ..bags.columns import Column
from ..bags.holdout import Holdout, HoldoutLike
from ..errors import DataError, ModelError
from ..execution import Progress
from ..params import checked
from .checkpoints import CheckpointsLike
from .conformal import Calibration
from .fitted_model import COVERAGE, Array, BagsLike, MoreColumns
from .linear_model import NOT_FINITE
from .outcomes import Reals
from .problem import Problem, TrainingBags
from .stored_predictions import take_subset
from .target_estimator import TargetEstimator

logger = logging.getLogger(__name__)


class RealPrediction(TargetEstimator):
    """The predictions of `DoubleBasisRegressor`, and how certain they are."""

    outcome_: Reals

    @checked
    def predict(self, X: BagsLike, return_std: bool = False) -> Array:
        """Predict targets, shape (n_bags,) or (n_bags, n_targets), float64.

        numpy for bags in memory, a lazy dask.array for a BagStore.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        return_std : bool
            Also return the standard deviation of a new bag's label, of the same shape, as
            scikit-learn's BayesianRidge does: √(σ² (1 + h)), see `Posterior`. It has the noise
            of labels, the same for every bag, and what the fit does not know of ψ and the
            intercept; not that λ, σ² and both bases were chosen from the data, nor that a bag
            has few points. `predict_interval` promises a coverage.

        Raises
        ------
        ModelError
            Bags of another dimension, or ``return_std`` of a model without a posterior, or
            without residuals.
        """
        if not return_std:
            return self._predict(X)
        self.needed_posterior()
        tail = (2, *self.outcome_.stored()["predictions"].tail)
        if isinstance(X, BagStore):
            both = self._lazy(X, "values_and_deviations", (), tail, np.float64)
        else:
            both = self.values_and_deviations(as_bags(X))
        return both[:, 0], both[:, 1]

    def values_and_deviations(self, bags: Bags) -> Floats:
        """Return predictions and their deviations, shape (n_bags, 2) or (n_bags, 2, n_targets)."""
        found = self.predicted(bags, MoreColumns(["std"]))
        return np.stack([found.values, found.more["std"]], axis=1)

    @checked
    def conformalize(
        self,
        X: TrainingBags,
        y: ArrayLike | None = None,
        *,
        groups: str | ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Compute the errors for `predict_interval` from bags that were not fitted.

        A fit with ``holdout`` does this itself, with the groups of the holdout.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
            Of the store that was fitted to, the bags held out; of any other, all. They have to be
            like those that will be predicted: bags held out by time tell whether they are.
        y : array, shape (n_bags,) or (n_bags, n_targets)
            For bags in memory.
        groups : str or array, shape (n_bags,), optional
            Such as patients: one bag of each group counts, chosen by a hash, and the coverage is
            promised to a bag of a new group. A column of a store, or values for every bag.
        progress : callable (bags done, bags in all), optional

        Raises
        ------
        DataError
            No labelled bags, or other targets than the model's.
        ModelError
            A store that the model was fitted to without a holdout.
        """
        check_is_fitted(self, "coef_")
        source = (
            self.outcome_.take_labels(X) if isinstance(X, BagStore) else self.labelled(X, y, None)
        )
        if source.url is not None and source.url == self.report_["data_url"]:
            if not self.holdout_:
                raise ModelError(
                    f"{source.url}: the model was fitted to these bags, whose errors are too small "
                    "to promise by; fit with holdout=, or give other bags"
                )
            source = take_subset(source, self, "holdout")
        column = None if groups is None else Column.of(source.data, "groups", groups)
        self.calibration_ = Calibration.of(self, source, column, progress)
        if self.calibration_ is None:
            raise DataError(f"{source.url or 'bags in memory'}: no labelled bag to take errors of")
        return self

    @checked
    def predict_interval(self, X: BagsLike, coverage: float = COVERAGE) -> tuple[Array, Array]:
        """Return lower and upper ends of intervals that hold a bag's label, as `predict` does.

        Split conformal prediction from the bags held out (Lei et al. 2018): at least the share
        ``coverage`` of new bags has its label within, on average over what was held out, whatever
        the law of the bags, as long as new bags are exchangeable with these; of several targets
        for each by itself. All intervals of a target have one width. By groups, see
        `conformalize`.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        coverage : float in (0, 1)

        Raises
        ------
        ModelError
            Nothing was held out.
        ParameterError
            Too few bags were held out for the coverage.
        """
        check_is_fitted(self, "coef_")
        margins = self.outcome_.predict(self._margins(coverage)[None]).values[0]
        predicted = self._predict(X)
        return predicted - margins, predicted + margins

    def more_column(self, name: str, rows: Array, scores: Array, coverage: float) -> Array:
        """See `LinearModel.more_column`; also ends of intervals and "std", as predictions are."""
        if name in ("lower", "upper"):
            margins = self._margins(coverage)
            return self.outcome_.predict(rows + (margins if name == "upper" else -margins)).values
        if name != "std":
            return super().more_column(name, rows, scores, coverage)
        posterior = self.needed_posterior()
        if not np.isfinite(posterior.noise).all():
            raise ModelError(
                "the noise of the labels is not known: the model goes through all bags that it "
                "was fitted to; fit it with a larger alpha, or to more bags"
            )
        deviations = posterior.deviations(scores[:, 0])
        self.outcome_.check_finite(deviations, "a standard deviation", NOT_FINITE)
        return self.outcome_.predict(deviations).values

    def fit_problem(
        self,
        problem: Problem,
        holdout: HoldoutLike,
        progress: Progress | None,
        checkpoints: CheckpointsLike = None,
    ) -> None:
        """See `DoubleBasis.fit_problem`; errors of the bags held out come with the fit."""
        super().fit_problem(problem, holdout, progress, checkpoints)
        clock, groups = time.perf_counter(), Holdout.of(self.holdout_).groups
        if not self.holdout_:
            return
        try:
            column = None if groups is None else Column.of(problem.source.data, "groups", groups)
            held = take_subset(problem.source, self, "holdout")
            # without progress, which would begin again at 0
            self.calibration_ = Calibration.of(self, held, column)
        except DataError as error:  # a bag that is refused does not take the fit with it
            logger.warning("the model has no intervals: %s", error)
        self.report_["seconds"]["calibrate"] = time.perf_counter() - clock

    def _margins(self, coverage: float) -> Floats:
        if self.calibration_ is None:
            raise ModelError(
                "the model has no errors of held-out bags: fit with holdout=.1, or call "
                "conformalize with bags that it was not fitted to"
            )
        return self.calibration_.margins(coverage)
