"""`DoubleBasisClassifier`: the Double-Basis estimator on one-hot classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, cast, overload

from numpy.typing import ArrayLike, NDArray

from ..core import (
    Function,
    Instance,
    ListOf,
    MappingOf,
    None_,
    OneOf,
    Open,
    Real,
    Text,
    Url,
    checked,
    component,
)
from ..core.arrays import Floats
from ..core.sklearn_bases import ClassifierMixin
from ..data.bags.bags import Bags
from ..data.labelled.holdout import HOLDOUT, HoldoutLike
from ..data.labelled.inputs import BagsInMemory, BagsLike
from ..data.labelled.weights import SampleWeight
from ..data.store.store import BagStore
from ..execution.lazy_dask import LazyArray
from ..execution.progress import Progress
from .base import DoubleBasis, Head
from .fitted_model import Array
from .fitting.checkpoints import CheckpointsLike
from .fitting.problem import Groups, TrainingBags
from .judging import score_of
from .outcomes.base import Target
from .outcomes.classes import Classes
from .ridge_model import RidgeModel


@component
class DoubleBasisClassifier(ClassifierMixin, DoubleBasis):
    """The Double-Basis estimator on one-hot classes, bag → class.

    Parameters and attributes as in `DoubleBasisRegressor`, and ``classes_``. Labels in a store
    are the names of its target's classes, in their order, or its target's values (integers where
    they are whole numbers up to 2^53); those of another store are compared by name. For bags in
    memory they are numbers or text, sorted; NaN, None or empty text is a bag without a label. One
    ridge per class is fitted, from one pass.

    Parameters
    ----------
    class_weight : "balanced", mapping from class to number ≥ 0, or None
        What the weight of each bag of a class is multiplied by; "balanced" gives the classes of
        the bags fitted equal weight in all, as scikit-learn does. A class that a mapping leaves
        out has 1. Errors are not weighted by it.
    """

    class_weight: (
        Annotated[
            str | Mapping[Any, float], OneOf("balanced") | MappingOf(Open("class"), Real(ge=0))
        ]
        | None
    ) = None
    head: Head = "ridge"
    _learns = Classes

    @checked(
        target=Text | ListOf(Text) | None_,
        holdout=HOLDOUT,
        progress=Function | None_,
        checkpoints=Instance("Checkpoints") | Url | None_,
    )
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
        """Fit from one pass over the bags; arguments as in `DoubleBasisRegressor.fit`.

        Raises
        ------
        DataError, ParameterError, StoreError
        """
        return self._fit(X, y, target, sample_weight, holdout, groups, progress, checkpoints)

    @overload
    def predict_proba(self, X: BagStore) -> LazyArray: ...
    @overload
    def predict_proba(self, X: BagsInMemory) -> NDArray[Any]: ...
    def predict_proba(self, X: BagsLike) -> Array:
        """Return the probability of each class, shape (n_bags, n_classes).

        A one-hot ridge estimates P(class | bag) by least squares, and `predict` takes the class of
        its largest score. A monotone map takes scores to probabilities, fitted to scores over the
        folds that choose the penalty: they are calibrated, in the same order, and never 0 or 1.
        Where no folds choose the penalty (see ``alpha``) they are the scores clipped at 0 and
        divided by their sum, with one bag more for each class, and may be too even.
        """
        return self._fitted.predict(X, "probabilities")

    @overload
    def decision_function(self, X: BagStore) -> LazyArray: ...
    @overload
    def decision_function(self, X: BagsInMemory) -> NDArray[Any]: ...
    def decision_function(self, X: BagsLike) -> Array:
        """Return the scores that `predict` compares, shape (n_bags, n_classes); lazy for a store.

        For two classes, the second's score less the first's, shape (n_bags,): positive for the
        second.
        """
        model, n = self._fitted, len(self.classes_)
        return model.apply(X, _DecisionScores(model), () if n == 2 else (n,))

    def score(
        self, X: BagsLike, y: ArrayLike | None = None, sample_weight: SampleWeight = None
    ) -> float:
        """Return the accuracy; arguments as in `DoubleBasisRegressor.score`."""
        return score_of(self._fitted, X, y, sample_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes as `predict` has them, shape (n_classes,)."""
        return self._outcome.values

    @property
    def _outcome(self) -> Classes:
        return cast(Classes, self.model_.outcome)


@dataclass(frozen=True)
class _DecisionScores:
    """What `DoubleBasisClassifier.decision_function` gives for bags in memory."""

    model: RidgeModel

    def __call__(self, bags: Bags) -> Floats:
        rows = self.model.decision_rows(bags)
        return rows[:, 1] - rows[:, 0] if rows.shape[1] == 2 else rows
