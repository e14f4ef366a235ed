"""`DoubleBasisClassifier`: the Double-Basis estimator on one-hot classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..bags import Bags, BagStore, as_bags
from ..bags.holdout import HoldoutLike
from ..bags.inputs import as_targets, with_targets
from ..bags.labelled import take_range
from ..bags.plan import Range
from ..embeddings import Embedding
from ..errors import DataError, ParameterError, shown
from ..parameters.regression import TABLES
from ..params import check_number
from ..random_features import RandomFeatures
from ..sklearn_bases import ClassifierMixin
from .fitted_model import Array, BagsLike
from .outcomes import Classes
from .problem import Labels, Problem, Target, TrainingBags
from .ridge_parameters import PenaltiesLike
from .scoring import predictions_of_store, refusing_labels
from .target_estimator import TargetEstimator
from .training_labels import as_integers, class_codes, distinct_labels, n_targets_of, refuse_numbers
from .weights import SampleWeight, Weights


class DoubleBasisClassifier(ClassifierMixin, TargetEstimator):
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

    PARAMETERS = TABLES["DoubleBasisClassifier"]
    outcome_: Classes
    outcome_kind = Classes

    def __init__(
        self,
        embedding: Embedding | None = None,
        random_features: RandomFeatures | Literal[False] | None = None,
        alpha: str | float | PenaltiesLike = "gcv",
        alphas: PenaltiesLike | None = None,
        validation_fraction: float = 0.1,
        precision: str = "float32",
        solver: str = "auto",
        rank: int | None = None,
        uncertainty: bool = False,
        baseline: str | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
    ) -> None:
        ridge = (alpha, alphas, validation_fraction, precision, solver, rank, uncertainty, baseline)
        super().__init__(embedding, random_features, *ridge)
        self.class_weight = class_weight

    def weighed(
        self, problem: Problem, sample_weight: SampleWeight, holdout: HoldoutLike = 0.0
    ) -> Problem:
        """See `DoubleBasis.weighed`; with the weights of classes."""
        problem = super().weighed(problem, sample_weight, holdout)
        if self.class_weight is None:
            return problem
        by_class = self._weights_of_classes(problem, holdout)
        return replace(problem, weights=replace(problem.weights or Weights(), by_class=by_class))

    def _weights_of_classes(self, problem: Problem, holdout: HoldoutLike) -> NDArray[np.float64]:
        outcome, given = cast(Classes, problem.outcome), self.class_weight
        if isinstance(given, str) and given == "balanced":
            counts = np.zeros(outcome.n_targets)
            for _, _, labels in self.parts(problem.source, holdout)[0].label_blocks():
                counts += outcome.encode(labels)[0].sum(axis=0)
            return np.asarray(counts.sum() / (len(counts) * np.maximum(counts, 1)))
        if not isinstance(given, Mapping):
            what = "'balanced', a mapping from class to number, or None"
            raise ParameterError(f"class_weight is {shown(given)}; expected {what}")
        names = [str(one) for one in outcome.values]  # a saved model has its keys as text
        known = {str(code): j for j, code in enumerate(outcome.classes)}  # as models of before
        known |= {name: j for j, name in enumerate(names)}
        weights = np.ones(len(names))
        for name, weight in given.items():
            if str(name) not in known:
                raise ParameterError(f"class_weight has class {name!r}; there are {names}")
            label = f"class_weight of {name!r}"
            weights[known[str(name)]] = cast(float, check_number(label, weight, 0))
        return weights

    def problem(
        self, X: TrainingBags, labels: Labels, target: Target, bags: Range | None = None
    ) -> Problem:
        """See `DoubleBasis.problem`."""
        names = None
        if labels is not None:
            names, labels = class_codes(as_targets(labels))
        source, _ = with_targets(X, labels, target)
        if n_targets_of(source) != 1:
            raise DataError("a classifier has one target; name it with target=")
        source = take_range(source, bags)
        codes = distinct_labels(source)
        refuse_numbers(source, codes)
        classes = names if names is not None else as_integers(codes)
        stored = source.class_names.get(source.target_names[0]) if source.target_names else None
        named = () if stored is None else tuple(stored[int(code)] for code in codes)
        return Problem(source, Classes(tuple(classes.tolist()), source.target_names, named))

    def predict(self, X: BagsLike) -> Array:
        """Return the class of the largest score, shape (n_bags,); lazy for a BagStore."""
        return self._predict(X)

    def predict_proba(self, X: BagsLike) -> Array:
        """Return scores clipped at 0 and divided by their sum, shape (n_bags, n_classes).

        A one-hot ridge estimates P(class | bag) by least squares. In the mean over bags the
        scores are right, and `predict` uses their order, but they are not calibrated: they may be
        exactly 0, and are too even where the fit is strongly penalised.
        """
        return self._predict(X, "probabilities")

    def probabilities(self, bags: Bags) -> NDArray[np.float64]:
        """Return what `predict_proba` gives for bags in memory."""
        return self.predicted(bags).arrays()["probabilities"]

    def decision_function(self, X: BagsLike) -> Array:
        """Return the scores that `predict` compares, shape (n_bags, n_classes); lazy for a store.

        Of two classes the second's less the first's, shape (n_bags,): positive for the second.
        """
        if not isinstance(X, BagStore):
            return self.decision_scores(as_bags(X))
        check_is_fitted(self, "coef_")
        tail = () if len(self.classes_) == 2 else (len(self.classes_),)
        return self._lazy(X, "decision_scores", (), tail, np.float64)

    def decision_scores(self, bags: Bags) -> NDArray[np.float64]:
        """Return what `decision_function` gives for bags in memory."""
        rows = self.decision_rows(bags)
        return rows[:, 1] - rows[:, 0] if rows.shape[1] == 2 else rows

    def score(
        self, X: BagsLike, y: ArrayLike | None = None, sample_weight: SampleWeight = None
    ) -> float:
        """Return the accuracy; arguments as in `DoubleBasisRegressor.score`."""
        check_is_fitted(self, "coef_")
        if y is not None or not isinstance(X, BagStore):
            with refusing_labels(y, sample_weight):
                return super().score(X, y, sample_weight)
        labels, predicted, weights = predictions_of_store(self, X, sample_weight)
        codes = self.outcome_.codes_of(np.asarray(predicted).tolist())
        return float(np.average(labels[:, 0] == codes, weights=weights))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes as `predict` has them, shape (n_classes,)."""
        return self.outcome_.values
