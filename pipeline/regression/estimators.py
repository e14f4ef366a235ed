"""`DoubleBasisRegressor` and `DoubleBasisClassifier`: distribution to real regression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from ..bags import Bags, BagStore, as_bags
from ..bags.holdout import HoldoutLike
from ..bags.inputs import as_targets, with_targets
from ..bags.labelled import LabelledBags, take_range
from ..bags.labels import Targets
from ..bags.plan import Range
from ..bags.targets import MISSING
from ..embeddings import Embedding
from ..errors import BagbasisError, DataError, ParameterError, shown
from ..execution import Progress
from ..params import check_number, checked
from ..random_features import RandomFourierFeatures
from ..sklearn_bases import ClassifierMixin, RegressorMixin
from .base import DoubleBasis, Labels, PenaltiesLike, Problem, Target, TrainingBags
from .checkpoints import CheckpointsLike
from .linear_model import Array, BagsLike
from .outcomes import Classes, Reals, refuse_classes
from .real_prediction import RealPrediction
from .stored_predictions import predict_labelled
from .weights import SampleWeight, Weights

EXACT = 2**53  # up to it every integer is a float64
MAX_CLASSES = 10_000  # more distinct labels are taken for real numbers
MAX_NUMBERS = 20  # more distinct whole numbers of a store are no classes, unless it names them


class DoubleBasisRegressor(RegressorMixin, RealPrediction):
    """The (ridge) Double-Basis estimator, bag → real vector (004, §3.2, eq. 3.16-3.20).

    Parameters
    ----------
    embedding : embedding, default `ProjectionEmbedding()`
        The first basis.
    random_features : `RandomFourierFeatures` or False, default with its defaults
        The second basis. False: the model is linear in the embedding (001, §5.2).
    alpha : float ≥ 0, list of float ≥ 0, "gcv" (default) or "validation"
        The penalty λ on ‖ψ‖₂², in units of the sum of squares (as in scikit-learn's Ridge);
        0 is least squares, of least norm where ZᵀZ is singular. A list is searched by
        generalised cross-validation. "gcv" and "validation" search ``alphas``.
    alphas : list of float ≥ 0, optional
        The grid of "gcv" and "validation". By default half decades from n · 10^−12 (in float32
        10^−9, or 10^−7 where bags are more than features) to n · 10², of which with many
        features only those about the best one are tried. A best one at the edge is warned of.
    validation_fraction : float in (0, 1)
        Share of the bags that alpha="validation" holds out, by a hash of their index. They have
        their own statistics, so the path takes one pass, and the final fit uses all bags.
    precision : {"float32", "float64"}
        Of features and products. Sums are float64 always, and products too where bags are no
        more than features. float32 resolves penalties down to about n · 10^−6.
    solver : {"auto", "cholesky", "cg"}
        "cholesky" solves exactly, from the sums of one pass. "cg" takes conjugate gradients, a
        pass a step over features that are kept as far as there is memory: for many features, and
        with a number or "validation" as alpha. "auto" is "cg" where that is at least as fast, or
        where D² numbers do not fit, unless checkpoints keep the sums.
    rank : int ≥ 1, optional
        Bags that the preconditioner of "cg" is made from; default D / 4, at most 2,048.
    uncertainty : bool, default False
        Keep the spread of the bags fitted, for ``return_std`` and `bag_scores`: up to D × D
        numbers in memory and in the saved model, and an eigendecomposition more (a second for
        2,048 features, some ten for 4,096). Not with "cg".

    Attributes
    ----------
    coef_ : float64, shape (n_targets, n_features)
    intercept_ : float64, shape (n_targets,)
        Not penalised.
    alpha_ : float
        The penalty used; ``alphas_`` and ``alpha_scores_`` those tried and their scores (mean
        squared error over target variance; lower is better).
    features_ : FeatureMap
        Both bases with everything decided.
    target_names_ : tuple of str
        Empty for targets given as an array.
    report_ : dict
        Counts of bags (fitted, unlabelled, held out) and points (outside the box), seconds.
    posterior_ : Posterior or None
        With ``uncertainty``: spread of the features and ``noise``, σ² of each target.
    calibration_ : Calibration or None
        With ``holdout``: errors of up to 10,000 bags held out, for `predict_interval`.
    """

    outcome_: Reals
    outcome_kind = Reals

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
    ) -> DoubleBasisRegressor:
        """Fit from one pass over the bags; on a cluster if one is connected and X is a store.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        y : array, shape (n_bags,) or (n_bags, n_targets)
            For bags in memory; NaN where a bag has no label.
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

    def problem(
        self, X: TrainingBags, labels: Labels, target: Target, bags: Range | None = None
    ) -> Problem:
        """See `DoubleBasis.problem`."""
        source, single = with_targets(X, labels, target)
        refuse_classes(source)
        outcome = Reals(_n_targets(source), single, source.target_names)
        return Problem(take_range(source, bags), outcome)

    def score(
        self, X: BagsLike, y: ArrayLike | None = None, sample_weight: SampleWeight = None
    ) -> float:
        """Return R², mean of the targets; of the store that was fitted on the bags held out.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        y : array, shape (n_bags,) or (n_bags, n_targets)
            None: the store's, whose bags without one are left out.
        sample_weight : array, shape (n_bags,), or str, optional
            Of ``y``, or of the bags of a store, or a column of it.

        Raises
        ------
        DataError
            No labels, or weights that are missing, negative or all 0.
        """
        check_is_fitted(self, "coef_")
        if y is not None or not isinstance(X, BagStore):
            with _refusing_labels(y):
                return super().score(X, y, sample_weight)
        labels, predicted, weights = _of_store(self, X, sample_weight)
        return float(r2_score(labels, predicted, sample_weight=weights))

    @property
    def single_target_(self) -> bool:
        """Whether predictions have shape (n_bags,)."""
        return self.outcome_.single


class DoubleBasisClassifier(ClassifierMixin, DoubleBasis):
    """The Double-Basis estimator on one-hot classes, bag → class.

    Parameters and attributes as in `DoubleBasisRegressor`, and ``classes_``, sorted; labels in
    a store are its target's values (integers where they are whole numbers up to 2^53). For bags in
    memory they are numbers or text; NaN, None or empty text is a bag without a label.

    Parameters
    ----------
    class_weight : "balanced", mapping from class to number ≥ 0, or None
        What the weight of each bag of a class is multiplied by; "balanced" gives the classes of
        the bags fitted equal weight in all, as scikit-learn does. A class that a mapping leaves
        out has 1. Errors are not weighted by it.
    """

    outcome_: Classes
    outcome_kind = Classes

    def __init__(
        self,
        embedding: Embedding | None = None,
        random_features: RandomFourierFeatures | Literal[False] | None = None,
        alpha: str | float | PenaltiesLike = "gcv",
        alphas: PenaltiesLike | None = None,
        validation_fraction: float = 0.1,
        precision: str = "float32",
        solver: str = "auto",
        rank: int | None = None,
        uncertainty: bool = False,
        class_weight: str | Mapping[Any, float] | None = None,
    ) -> None:
        ridge = (alpha, alphas, validation_fraction, precision, solver, rank, uncertainty)
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
        names = [str(one) for one in outcome.classes]  # a saved model has its keys as text
        weights = np.ones(len(names))
        for name, weight in given.items():
            if str(name) not in names:
                raise ParameterError(f"class_weight has class {name!r}; there are {names}")
            label = f"class_weight of {name!r}"
            weights[names.index(str(name))] = cast(float, check_number(label, weight, 0))
        return weights

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
    ) -> DoubleBasisClassifier:
        """Fit one ridge per class from one pass; arguments as in `DoubleBasisRegressor.fit`."""
        problem = self.weighed(self.problem(X, y, target), sample_weight, holdout)
        self.fit_problem(problem, holdout, progress, checkpoints)
        return self

    def problem(
        self, X: TrainingBags, labels: Labels, target: Target, bags: Range | None = None
    ) -> Problem:
        """See `DoubleBasis.problem`."""
        names = None
        if labels is not None:
            names, labels = _class_codes(as_targets(labels))
        source, _ = with_targets(X, labels, target)
        if _n_targets(source) != 1:
            raise DataError("a classifier has one target; name it with target=")
        source = take_range(source, bags)
        codes = _distinct(source)
        _refuse_numbers(source, codes)
        classes = names if names is not None else _as_integers(codes)
        return Problem(source, Classes(tuple(classes.tolist()), source.target_names))

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
            with _refusing_labels(y):
                return super().score(X, y, sample_weight)
        labels, predicted, weights = _of_store(self, X, sample_weight)
        return float(np.average(labels[:, 0] == predicted, weights=weights))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted, shape (n_classes,)."""
        return self.outcome_.values


@contextmanager
def _refusing_labels(y: ArrayLike | None) -> Iterator[None]:
    """Re-raise what scikit-learn refuses of labels and weights of bags in memory."""
    if y is None:
        raise DataError("y is missing: bags in memory have no labels of their own")
    try:
        yield
    except BagbasisError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"y, or sample_weight, can not be scored against: {error}") from error


def _of_store(
    model: DoubleBasis, store: BagStore, sample_weight: SampleWeight
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
    given = Weights.of_bags(store, sample_weight)
    index, labels, predicted = predict_labelled(model, store)
    weights = None if given is None else given.of(index, labels)
    if weights is not None and not weights.any():
        raise DataError("sample_weight: the weights of all bags are 0")
    return labels, predicted, weights


def _refuse_numbers(source: LabelledBags, codes: NDArray[np.float64]) -> None:
    """Raise DataError for a target of a store that has no classes, and values unlike labels."""
    [name] = source.target_names or ("",)
    whole = (codes == np.round(codes)).all()
    is_label = source.in_memory or name in source.class_names
    if not (is_label or (whole and len(codes) <= MAX_NUMBERS)):
        raise DataError(
            f"{source.url}: target {name!r} has numbers, {len(codes)} different ones; learn it "
            "with DoubleBasisRegressor (task: regression), or make a store that has their "
            f"classes (ingest with target_types: {{{name}: class}})"
        )


def _n_targets(source: LabelledBags) -> int:
    targets = source.labels.values if isinstance(source.labels, Targets) else None
    if targets is not None:
        if targets.dtype.kind not in "iufb":
            raise DataError(f"y has dtype {targets.dtype}; expected numbers")
        if np.isinf(targets.astype(np.float64)).any():
            raise DataError("y has an infinite value; use NaN for bags without a label")
        return int(targets.shape[1])
    return len(source.target_names)


def _class_codes(labels: NDArray[Any]) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """Return class names and their positions as targets for text; None and y for numbers.

    Empty text, None and NaN mean that there is no label, as in a store.
    """
    if labels.ndim != 1:
        raise DataError(f"y has shape {labels.shape}; expected one class per bag")
    if labels.dtype.kind in "iufb":
        _check_integers(labels)
        return None, labels
    if labels.dtype.kind not in "OUST":
        raise DataError(f"y has dtype {labels.dtype}; expected numbers or text")
    missing = np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)
    if labels.dtype.kind == "O":
        text = [isinstance(label, str) for label in labels[~missing].tolist()]
        if not any(text):
            _check_integers(labels[~missing])
            return None, _numeric(np.where(missing, np.nan, labels))
        if not all(text):
            raise DataError("y mixes text with other labels; give all classes as text")
    codes = np.full(len(labels), np.nan)
    names, codes[~missing] = np.unique(labels[~missing].astype(str), return_inverse=True)
    return names, codes


def _check_integers(labels: NDArray[Any]) -> None:
    """Raise DataError for integers that are not themselves as float64, which targets are."""
    for label in labels.tolist() if labels.dtype.kind in "iuO" else ():
        if isinstance(label, Integral) and abs(int(label)) > EXACT:
            raise DataError(
                f"the label {label} is an integer beyond ±2^53, which stands for its neighbours "
                "too as float64: give the labels as text, or as numbers from 0"
            )


def _is_missing(label: object) -> bool:
    return not label if isinstance(label, str) else str(label) in MISSING


def _numeric(labels: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y holds a label that is neither text nor a number ({error})") from error


def _distinct(source: LabelledBags) -> NDArray[np.float64]:
    """Return the distinct labels, sorted."""
    found = np.empty(0)
    for _, _, labels in source.label_blocks():
        found = np.union1d(found, labels.astype(np.float64)[:, 0])
        if len(found) > MAX_CLASSES:
            raise DataError(f"more than {MAX_CLASSES} classes: is the target a real number?")
    if len(found) < 2:
        raise DataError(f"a classifier needs two classes, the labels have {len(found)}")
    return found


def _as_integers(codes: NDArray[np.float64]) -> NDArray[Any]:
    """Return whole numbers as integers, unless one of them may stand for its neighbours too."""
    whole = (codes == np.round(codes)) & (np.abs(codes) <= EXACT)
    return codes.astype(np.int64) if whole.all() else codes
