"""`Outcome`, the interface of numbers, classes and densities, and `Prediction`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...core import TextOrList
from ...core.arrays import Integers
from ...core.errors import DataError, ParameterError
from ...core.units import surely_finite
from ...data.bags.bags import Bags, as_bags
from ...data.labelled.inputs import BagsLike, LabelsLike, with_targets, with_values
from ...data.labelled.labelled import LabelledBags
from ...data.labelled.labels import Targets
from ...data.store.plan import Range
from ...data.store.store import BagStore
from ...embeddings.base import Embedding
from ..ridge.linear_columns import LINEAR
from .details import Found, Judged, Rows, determination

if TYPE_CHECKING:
    from ..errors import Errors

FLOAT = np.dtype(np.float64)
UNNAMED = "y"  # the one target of labels without a name

Target = TextOrList | None
"""Columns of a store."""

_Labels = Any
"""Labels of a batch of bags: an array or `Responses`, depending on the kind of outcome."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predictions for n bags.

    Attributes
    ----------
    values : shape (n,) or (n, k)
        Targets, classes, or coefficients of densities.
    probabilities : float64, shape (n, n_classes), or None
        Class probabilities; None for other outcomes.
    more : mapping
        Additional columns by their names, such as "std", of n rows each.
    """

    values: NDArray[Any]
    probabilities: Rows | None = None
    more: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by their names in a store of predictions."""
        own = {"predictions": self.values, "probabilities": self.probabilities, **self.more}
        return {name: array for name, array in own.items() if array is not None}


@dataclass(frozen=True)
class Layout:
    """Shape and type of an array of predictions, without its first axis, the bags."""

    tail: tuple[int, ...]
    dtype: np.dtype[Any]


class Outcome(ABC):
    """The kind of labels that a model learns, with their encoding, losses and predictions.

    An outcome is made from the labels before a fit. It is immutable, small and picklable.

    Attributes
    ----------
    key : str
        Key of the entry that only this kind of outcome has in a saved model.
    kind : str
        Noun for the labels that are learnt.
    baseline : str
        The only value of the estimators' parameter ``baseline`` besides None.
    judged_penalties : tuple of str
        Values of ``alpha`` that choose the penalty by its error on held-out bags.
    has_intervals : bool
        Whether predictions have intervals, from errors of held-out bags, and standard deviations.
    has_sets : bool
        Whether predictions have sets of classes, from errors of held-out bags.
    has_heads : bool
        Whether trees can learn these labels.
    has_folded_penalties : bool
        Whether alpha="auto" uses folds with few bags.
    keeps_mean : bool
        Whether a saved model keeps the mean of the encoded labels.
    single : bool
        Whether labels are one number per bag, without an axis of targets.
    names : tuple of str
        Names of the targets of a store, or of labels in memory; empty for labels without names and
        for responses.
    n_targets : int
        Number of columns that are regressed, k.
    n_independent : int
        Number of linearly independent columns.
    measure : str
        Name of the measure that `error` gives.
    score_measure : str
        Name of the score.
    has_squared_losses : bool
        Whether losses are squared errors, compared with those of the mean label. Scores then follow
        from the sums of a fit.
    """

    key: ClassVar[str]
    kind: ClassVar[str]
    baseline: ClassVar[str] = LINEAR
    judged_penalties: ClassVar[tuple[str, ...]] = ("validation",)
    has_intervals: ClassVar[bool] = False
    has_sets: ClassVar[bool] = False
    has_heads: ClassVar[bool] = False
    has_folded_penalties: ClassVar[bool] = True
    keeps_mean: ClassVar[bool] = False
    score_measure: ClassVar[str] = "R²"
    has_squared_losses: ClassVar[bool] = False

    if TYPE_CHECKING:  # at run time an inherited property would shadow a field of its name

        @property
        def names(self) -> tuple[str, ...]:
            """Names of the targets; empty for labels without names."""

        @property
        def n_targets(self) -> int:
            """Number of columns that are regressed."""

        @property
        def measure(self) -> str:
            """Name of the measure that `error` gives."""

        @property
        def single(self) -> bool:
            """Whether labels are one number per bag, without an axis of targets."""

    @property
    def n_independent(self) -> int:
        """Number of linearly independent columns."""
        return self.n_targets

    @property
    def n_labels(self) -> int:
        """Number of columns of the labels, before they are encoded."""
        return self.n_targets

    # ------------------------------------------------------------------ labels

    @classmethod
    def label(cls, X: BagsLike | LabelledBags, labels: LabelsLike, target: Target) -> LabelledBags:
        """Return bags with labels of this kind.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        labels : array, list or None
            Labels of bags in memory: targets, or responses.
        target : str, list of str or None
            Name of the target, or names, for a store.

        Raises
        ------
        DataError
            If there are no bags or no labels, or the labels do not fit the bags.
        ParameterError
            If labels are given for a store, or a target for bags in memory.
        """
        return with_targets(X, labels, target)[0]

    @classmethod
    @abstractmethod
    def from_labels(
        cls,
        X: BagsLike | LabelledBags,
        labels: LabelsLike,
        target: Target,
        bags: Range | None,
        response_embedding: Embedding | None,
    ) -> tuple[LabelledBags, Self]:
        """Return a range of bags with their labels, and the outcome for these labels.

        The first three arguments are those of `label`. If ``bags`` is None, all bags are used.
        """

    def named(self, names: Sequence[str]) -> Self:
        """Return the outcome with names for its targets, those of columns of a frame or store.

        Raises
        ------
        DataError
            If the labels have no names, such as responses.
        """
        raise DataError(f"target: a model of {self.kind} takes no column of a frame as its labels")

    def take_labels(self, store: BagStore) -> LabelledBags:
        """Return the bags of a store with the labels of this kind.

        Raises
        ------
        DataError
            If the store has no labels, or labels of another kind.
        """
        if not self.names:
            raise DataError(
                f"{store.url}: the model was fitted to labels in memory, whose name in a store is "
                "not known; fit it to a store, or give the labels: evaluate(model, store, y)"
            )
        store.target_columns(self.names)
        return LabelledBags(store, Targets(self.names))

    def other_labels(self, store: BagStore, name: str, theirs: str, ours: str) -> DataError:
        """Return the error for a target of a store whose labels are of another kind."""
        return DataError(
            f"{store.url}: target {name!r} has {theirs}, the model was fitted to {ours}; give such "
            "labels: evaluate(model, store, y)"
        )

    def take_labelled(
        self, data: BagsLike | LabelledBags, labels: LabelsLike = None
    ) -> LabelledBags:
        """Return bags with labels on which a model of this outcome is judged.

        Parameters
        ----------
        data : BagStore, LabelledBags, Bags, or list of arrays (n_i, n_dims)
        labels : optional
            Labels of bags in memory, as for ``fit``. For a store, targets that replace those in the
            store.

        Raises
        ------
        DataError
            If there are no labels, or labels of another kind than those of the fit.
        ParameterError
            If labels are given for `LabelledBags`, or responses for a store.
        """
        if isinstance(data, LabelledBags):
            if labels is not None:
                raise ParameterError("y is given, but the data carry their labels; leave y out")
            return data
        if isinstance(data, BagStore):
            return self.take_labels(data) if labels is None else self.label_again(data, labels)
        return self.label_again(as_bags(data), labels)

    def label_again(self, bags: Bags | BagStore, labels: LabelsLike) -> LabelledBags:
        """Return bags with the given labels, in the form that `encode` accepts."""
        if isinstance(bags, BagStore):
            return with_values(bags, labels)[0]
        return with_targets(bags, labels)[0]

    @abstractmethod
    def encode(self, labels: _Labels) -> tuple[Rows, int]:
        """Return the encoded labels, and the number of response points outside their box.

        Parameters
        ----------
        labels : shape (n, number of targets), or `Responses`
            Labels of bags, none of which is missing.

        Returns
        -------
        float64, shape (n, k)
        """

    def find_new(self, blocks: Iterable[NDArray[Any]]) -> Rows:
        """Return the sorted labels in some blocks that have no column yet.

        The blocks are read only if there can be such labels.
        """
        return np.empty(0)

    # ------------------------------------------------------------------ predictions

    def predict(self, scores: Rows) -> Prediction:
        """Turn the raw rows of the regression, shape (n, k), into predictions."""
        return Prediction(scores)

    def stored(self) -> dict[str, Layout]:
        """Return shape and type of the arrays of `Prediction.arrays`, before predicting."""
        return {"predictions": Layout((self.n_targets,), FLOAT)}

    def layout(self, array: str, X: BagsLike) -> Layout:
        """Return shape and type of an array of predictions of bags.

        Raises
        ------
        ParameterError
            If the model does not predict this array.
        ModelError
            If bags were removed from the store, and the array has no value for missing bags.
        """
        arrays = self.stored()
        if array not in arrays:
            raise ParameterError(f"predict: the model does not predict {array!r}; leave array out")
        return arrays[array]

    @abstractmethod
    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """Return the predictions as named columns of a table."""

    def more_columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """Return ``prediction.more`` as named columns: ``std``, or ``std_<target>`` if several."""
        columns: dict[str, NDArray[Any]] = {}
        for name, values in prediction.more.items():
            if values.ndim == 1:
                columns[name] = values
            else:
                each = zip(self.columns_in_words, values.T, strict=True)
                columns |= {f"{name}_{t}": v for t, v in each}
        return columns

    @property
    def columns_in_words(self) -> Sequence[object]:
        """Names, or numbers, of the columns that are regressed, for columns of tables."""
        return self.names or range(self.n_targets)

    @property
    def target_labels(self) -> tuple[str, ...]:
        """Names of the targets; without names "y", or "target 1", "target 2", … if several."""
        if self.names or self.n_labels == 1:
            return self.names or (UNNAMED,)
        return tuple(f"target {j + 1}" for j in range(self.n_labels))

    def call(self, j: int) -> str:
        """Return the name of column ``j`` of the encoded labels, for messages."""
        return f"target {self.names[j]!r}" if self.names else self.target_labels[j]

    def check_finite(self, rows: Rows, what: str, remedy: str) -> None:
        """Raise DataError for the first column of (n, k) with an infinity or NaN.

        The message names the rows by ``what``, and ends with the ``remedy``.
        """
        if surely_finite(rows):
            return
        bad = ~np.isfinite(rows).all(axis=0)
        if bad.any():
            raise DataError(f"{what} of {self.call(int(bad.argmax()))} is not finite; {remedy}")

    # ------------------------------------------------------------------ errors

    def losses(self, scores: Rows, targets: Rows) -> Rows:
        """Return the loss of raw rows against encoded labels, one row per bag."""
        return np.asarray((scores - targets) ** 2)

    def nonconformity(self, scores: Rows, targets: Rows) -> Rows:
        """Return the nonconformity score of each label, shape (n, `n_labels`): absolute errors."""
        return np.abs(scores - targets)

    def error(self, losses: Rows, variances: Rows) -> float:
        """Return the error as one number, from the mean loss of each column; lower is better.

        ``variances`` are the variances of the encoded labels, shape (k,).
        """
        return float(losses.sum())

    def constant_error(self, mean: Rows, variances: Rows) -> float:
        """Return the error of the best constant from mean and variance of the encoded labels."""
        return self.error(variances, variances)

    def units(self) -> Rows | None:
        """Return divisors of the squared errors of the targets, for the choice of a penalty.

        None: each error is divided by the variance of the target.
        """
        return None

    # ------------------------------------------------------------------ scores

    def scored(self, losses: Rows) -> Rows:
        """Return losses (…, k) by scored quantity, (…, m): target, class or whole density."""
        return losses

    @property
    def scored_names(self) -> tuple[str, ...]:
        """Names of the scored quantities: targets, a class, or whole densities."""
        return self.target_labels

    @abstractmethod
    def references(self, targets: Rows, weights: Rows, mean_targets: Rows | None) -> Rows:
        """Return the reference loss of each bag, with which its loss is compared, shape (n, m).

        A score is 1 − mean loss / mean reference, see `determination`.

        Parameters
        ----------
        targets : shape (n, k)
            Encoded labels of all bags that are scored.
        weights : shape (n,)
            Weights of the bags.
        mean_targets : shape (k,), or None
            `ScoringModel.mean_targets`.
        """

    @abstractmethod
    def sum_references(self, errors: Errors) -> Rows:
        """Return the weighted sum of `references` over the bags of ``errors``, shape (m,)."""

    def score(self, errors: Errors) -> Rows:
        """Return the score of each scored quantity, shape (m,); see `determination`."""
        return determination(self.scored(errors.losses), self.sum_references(errors))

    @property
    def names_by_code(self) -> tuple[str, ...]:
        """Names of the classes 0, 1, … of labels in memory; empty for other labels."""
        return ()

    @abstractmethod
    def details(self, judged: Judged) -> Found:
        """Return the details of the errors on a batch of bags, for reports and pictures."""

    def exponents(self, targets: Rows, scores: Rows | None = None) -> Integers:
        """Return the exponents e of the units 2^e for errors, shape (k,): 0 by default.

        ``targets`` are encoded labels (n, k), and ``scores`` raw predictions of them.
        """
        return np.zeros(targets.shape[1], dtype=np.int64)

    # ------------------------------------------------------------------ descriptions

    def report_outside(self, n_responses_outside: int) -> dict[str, int]:
        """Return the entries of a fit's report on response points outside their box."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return a description for reports and stores of predictions, in types that JSON knows."""
        return self.to_dict()

    def identify(self) -> dict[str, Any]:
        """Return the values on which encoded labels depend, in types that JSON knows."""
        return self.to_dict()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the saved values besides the names, the first item under `key`."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        """Return the outcome of a model with k columns, from the result of `to_dict`.

        Raises
        ------
        ValueError
            If the outcome does not fit k columns.
        """
