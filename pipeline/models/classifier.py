"""`DoubleBasisClassifier`: the Double-Basis estimator on one-hot classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Self, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..core import (
    Integer,
    MappingOf,
    OneOf,
    Open,
    Real,
    checked,
    component,
)
from ..core.arrays import Bools, Floats
from ..core.sklearn_bases import ClassifierMixin
from ..data.bags.bags import Bags, BagsInMemory
from ..data.labelled.holdout import HoldoutLike
from ..data.labelled.inputs import BagsLike
from ..data.labelled.weights import SampleWeight
from ..data.store.store import BagStore
from ..execution.lazy_dask import LazyArray
from ..execution.progress import Progress
from .base import DoubleBasis, Head
from .conformal import conformalized
from .fitted_model import COVERAGE, PredictionArray
from .fitting.checkpoints import CheckpointsLike
from .fitting.problem import MAX_FOLDS, Groups, TrainingBags
from .judging import score_of
from .outcomes.base import Target
from .outcomes.classes import Classes
from .ridge_model import RidgeModel


@component
class DoubleBasisClassifier(ClassifierMixin, DoubleBasis):
    """Predict the class of each bag: the Double-Basis estimator on one-hot classes.

    One ridge regression per class is fitted to one-hot labels, in one pass over the bags.
    Parameters and attributes are those of `DoubleBasisRegressor`, in addition to ``classes_``.

    The classes of a store are the class names of its target, in their order. Without class names,
    they are the values of the target, integers if all are whole numbers up to 2^53. Labels of
    another store are compared by name. The classes of bags in memory are the sorted labels,
    numbers or text. A label that is NaN or None is missing; empty text is missing, too, with a
    warning.

    Parameters
    ----------
    class_weight : "balanced", mapping from class to number ≥ 0, or None
        Factor for the weight of each bag of a class; "balanced" gives all classes of the bags
        fitted the same total weight, as in scikit-learn. Classes that are missing in a mapping
        have the factor 1. Errors are not weighted by these factors. Default: None, a factor of 1.

    See Also
    --------
    DoubleBasisRegressor : Predicts numbers.
    evaluate : Errors next to those of baselines.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import DoubleBasisClassifier
    >>> labels = np.where(y > 1.25, 'wide', 'narrow')
    >>> model = DoubleBasisClassifier('moments').fit(X, labels)
    >>> list(model.classes_)
    [np.str_('narrow'), np.str_('wide')]
    >>> model.predict_proba(X[:3]).shape, model.decision_function(X[:3]).shape
    ((3, 2), (3,))
    >>> bool((model.predict_log_proba(X[:3]) == np.log(model.predict_proba(X[:3]))).all())
    True
    """

    class_weight: (
        Annotated[
            str | Mapping[Any, float], OneOf("balanced") | MappingOf(Open("class"), Real(ge=0))
        ]
        | None
    ) = None
    head: Head = "ridge"
    _learns = Classes

    @checked
    def fit(
        self,
        X: TrainingBags,
        y: ArrayLike | None = None,
        *,
        target: Target = None,
        sample_weight: SampleWeight = None,
        holdout: HoldoutLike = 0.0,
        groups: Groups = None,
        progress: Progress | None = None,
        checkpoints: CheckpointsLike = None,
    ) -> Self:
        """Fit in one pass over the bags; see `DoubleBasisRegressor.fit` for the arguments."""
        return self._fit(X, y, target, sample_weight, holdout, groups, progress, checkpoints)

    @overload
    def predict_proba(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict_proba(self, X: BagsInMemory) -> NDArray[Any]: ...
    def predict_proba(self, X: BagsLike) -> PredictionArray:
        """Return the probability of each class, shape (n_bags, n_classes).

        The ridge regression on one-hot labels estimates P(class | bag) by least squares, and
        `predict` returns the class with the largest score. A monotone map turns scores into
        probabilities. It is fitted to out-of-fold scores, from the folds that choose the penalty.
        The probabilities are calibrated, have the order of the scores, and are never 0 or 1.

        If no folds choose the penalty (see ``alpha``), the scores are clipped at 0, smoothed by one
        additional bag of each class, and divided by their sum. These probabilities may be too even.
        """
        return self._fitted.predict(X, "probabilities")

    @overload
    def predict_log_proba(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict_log_proba(self, X: BagsInMemory) -> NDArray[Any]: ...
    def predict_log_proba(self, X: BagsLike) -> PredictionArray:
        """Return the logarithms of `predict_proba`, shape (n_bags, n_classes)."""
        return cast(PredictionArray, np.log(self.predict_proba(X)))

    @overload
    def decision_function(self, X: BagStore) -> LazyArray: ...
    @overload
    def decision_function(self, X: BagsInMemory) -> NDArray[Any]: ...
    def decision_function(self, X: BagsLike) -> PredictionArray:
        """Return the scores that `predict` compares, shape (n_bags, n_classes); lazy for a store.

        For two classes, the score of the second class minus the score of the first, shape
        (n_bags,). A positive value predicts the second class.
        """
        model, n = self._fitted, len(self.classes_)
        return model.apply(X, partial(_decision_scores, model), tail=() if n == 2 else (n,))

    @checked
    def conformalize(
        self,
        X: TrainingBags,
        y: ArrayLike | None = None,
        *,
        cv: Annotated[int, Integer(2, MAX_FOLDS)] | None = None,
        groups: str | ArrayLike | None = None,
        sample_weight: SampleWeight = None,
        progress: Progress | None = None,
    ) -> Self:
        """Calibrate the prediction sets, on held-out bags or on folds.

        A fit with ``holdout`` calibrates the model on its held-out bags by itself. Arguments and
        exceptions are those of `DoubleBasisRegressor.conformalize`.
        """
        check_is_fitted(self)
        self.model_ = conformalized(self, X, y, cv, groups, sample_weight, progress)
        return self

    @checked
    def predict_set(self, X: BagsLike, *, coverage: float = COVERAGE) -> PredictionArray:
        """Return which classes are in the prediction set of each bag, shape (n_bags, n_classes).

        A set contains the predicted class and all other classes that are likely enough. At least
        the fraction ``coverage`` of new bags have their true class in their set, on average over
        bags, not for each class by itself. Confident predictions have sets of one class. The
        columns are in the order of ``classes_``; for a store the result is lazy.

        With held-out bags, the method is split conformal prediction, with the probability of the
        true class as the score (Sadinle et al. 2019). The coverage holds for any distribution of
        exchangeable bags. With folds, the method is CV+ (Romano et al. 2020). The coverage is about
        the requested fraction, and at least 1 − 2 (1 − coverage) less a small term. No bag is lost
        to a holdout.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        coverage : float in (0, 1)

        Raises
        ------
        ModelError
            If the model is not calibrated: no bags were held out, and `conformalize` was not
            called.
        ParameterError
            If there are too few calibration bags for the coverage.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> spread = rng.uniform(0.5, 2.0, 100)
        >>> X = [rng.normal(0, s, (30, 2)) for s in spread]
        >>> from bagbasis import DoubleBasisClassifier
        >>> labels = np.where(spread > 1.25, 'wide', 'narrow')
        >>> model = DoubleBasisClassifier('moments').fit(X, labels, holdout=0.3)
        >>> model.predict_set(X[:3], coverage=0.8).shape
        (3, 2)
        """
        model = self._fitted
        model.require_calibration().rank(coverage)
        return model.apply(
            X, partial(_sets, model, coverage), tail=(len(self.classes_),), dtype=np.bool_
        )

    @checked
    def score(
        self, X: BagsLike, y: ArrayLike | None = None, *, sample_weight: SampleWeight = None
    ) -> float:
        """Return the accuracy; see `DoubleBasisRegressor.score` for the arguments."""
        return score_of(self._fitted, X, y, sample_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, as `predict` returns them, shape (n_classes,)."""
        return self._outcome.values

    @property
    def _outcome(self) -> Classes:
        return cast(Classes, self.model_.outcome)


def _sets(model: RidgeModel, coverage: float, bags: Bags) -> Bools:
    """Return what `DoubleBasisClassifier.predict_set` gives for bags in memory."""
    return model.sets_of(model.interval_rows(bags), coverage)


def _decision_scores(model: RidgeModel, bags: Bags) -> Floats:
    """Return what `DoubleBasisClassifier.decision_function` gives for bags in memory."""
    rows = model.decision_rows(bags)
    return rows[:, 1] - rows[:, 0] if rows.shape[1] == 2 else rows
