"""`Outcome`, the interface of what a model learns, and `Prediction`, what it predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

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
from .details import ErrorSums, Found, Judged, Rows, determination

FLOAT = np.dtype(np.float64)
UNNAMED = "y"  # the one target of labels without a name

Target = str | Sequence[str] | None
"""Columns of a store."""

Labels = Any
"""Those of a batch of bags, an array or `Responses`: each kind of outcome takes its own."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What is predicted for n bags.

    Attributes
    ----------
    values : shape (n,) or (n, k)
        Targets, classes, or coefficients of densities.
    probabilities : float64, shape (n, n_classes), or None
        Class probabilities; None for other outcomes.
    more : mapping
        Columns that were asked for, such as "std", of n rows each.
    """

    values: NDArray[Any]
    probabilities: Rows | None = None
    more: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names that they have in a store of predictions."""
        own = {"predictions": self.values, "probabilities": self.probabilities, **self.more}
        return {name: array for name, array in own.items() if array is not None}


@dataclass(frozen=True)
class Layout:
    """Shape and type of an array of predictions, without its first axis, the bags."""

    tail: tuple[int, ...]
    dtype: np.dtype[Any]


class Outcome(ABC):
    """What a model learns, as decided from the labels: immutable, small, picklable.

    Attributes
    ----------
    key : str
        Where a saved model keeps what only this kind of outcome has.
    kind : str
        Noun for what is learnt.
    baseline : str
        The only value of the estimators' parameter ``baseline`` besides None.
    judged_penalties : tuple of str
        Values of ``alpha`` that choose the penalty by its error on held-out bags.
    has_intervals : bool
        Whether errors of held-out bags give intervals, and the posterior deviations.
    has_sets : bool
        Whether errors of held-out bags give sets of classes.
    has_heads : bool
        Whether trees can learn it.
    has_folded_penalties : bool
        Whether alpha="auto" takes folds for few bags.
    keeps_mean : bool
        Whether a saved model keeps the mean of the encoded labels.
    single : bool
        Whether labels are one number per bag, without an axis of targets.
    names : tuple of str
        Targets of a store, or names of the labels in memory; empty where these have none, and
        for responses.
    n_targets : int
        Columns that are regressed, k.
    n_independent : int
        How many of them say something of their own.
    measure : str
        What `error` is, in words.
    score_measure : str
        Noun for a score.
    has_squared_losses : bool
        Whether losses are squared gaps to the labels and compared with those of their mean, so
        that scores follow from the sums of a fit.
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
            """See above."""

        @property
        def n_targets(self) -> int:
            """See above."""

        @property
        def measure(self) -> str:
            """See above."""

        @property
        def single(self) -> bool:
            """See above."""

    @property
    def n_independent(self) -> int:
        """See above."""
        return self.n_targets

    @property
    def n_labels(self) -> int:
        """Columns of the labels of bags, before they are encoded."""
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
            No bags or no labels, or labels that do not fit the bags.
        ParameterError
            Labels for a store, or a target for bags in memory.
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
        """Return a range of bags with their labels, and the outcome that these labels decide.

        The first three arguments as in `label`. ``bags`` None means all of them.
        """

    def named(self, names: Sequence[str]) -> Self:
        """Return the outcome with names of its targets, as columns of a frame or store have them.

        Raises
        ------
        DataError
            Labels that have no names, such as responses.
        """
        raise DataError(f"target: a model of {self.kind} takes no column of a frame as its labels")

    def take_labels(self, store: BagStore) -> LabelledBags:
        """Return the bags of a store with the labels of this kind.

        Raises
        ------
        DataError
            The store has none, or others.
        """
        if not self.names:
            raise DataError(
                f"{store.url}: the model was fitted to labels in memory, whose name in a store is "
                "not known; fit it to a store, or give the labels: evaluate(model, store, y)"
            )
        store.target_columns(self.names)
        return LabelledBags(store, Targets(self.names))

    def take_labelled(
        self, data: BagsLike | LabelledBags, labels: LabelsLike = None
    ) -> LabelledBags:
        """Return bags with the labels that a model of this outcome is judged by.

        Parameters
        ----------
        data : BagStore, LabelledBags, Bags, or list of arrays (n_i, n_dims)
        labels : optional
            Labels of bags in memory, as for ``fit``; for a store, targets instead of those of a
            store.

        Raises
        ------
        DataError
            No labels, or others than those of the fit.
        ParameterError
            Labels for `LabelledBags`, or responses for a store.
        """
        if isinstance(data, LabelledBags):
            if labels is not None:
                raise ParameterError("y is given, but the data carry their labels; leave y out")
            return data
        if isinstance(data, BagStore):
            return self.take_labels(data) if labels is None else self.label_again(data, labels)
        return self.label_again(as_bags(data), labels)

    def label_again(self, bags: Bags | BagStore, labels: LabelsLike) -> LabelledBags:
        """Return bags with labels that are given, as `encode` takes them."""
        if isinstance(bags, BagStore):
            return with_values(bags, labels)[0]
        return with_targets(bags, labels)[0]

    @abstractmethod
    def encode(self, labels: Labels) -> tuple[Rows, int]:
        """Return the numbers to regress on, and the count of response points outside their box.

        Parameters
        ----------
        labels : shape (n, number of targets), or `Responses`
            Labels of bags, none of which is missing.

        Returns
        -------
        float64, shape (n, k)
        """

    def find_new(self, blocks: Iterable[NDArray[Any]]) -> Rows:
        """Return the labels in some blocks that have no column yet, sorted.

        The blocks are read only if there can be such labels.
        """
        return np.empty(0)

    # ------------------------------------------------------------------ predictions

    def predict(self, scores: Rows) -> Prediction:
        """Turn the regression's raw rows, shape (n, k), into predictions."""
        return Prediction(scores)

    def stored(self) -> dict[str, Layout]:
        """Describe the arrays of `Prediction.arrays` before there are any."""
        return {"predictions": Layout((self.n_targets,), FLOAT)}

    @abstractmethod
    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """Return the predictions as named columns of a table."""

    def more_columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """Return ``prediction.more`` as named columns: ``std``, or ``std_<target>`` of several."""
        columns: dict[str, NDArray[Any]] = {}
        for name, values in prediction.more.items():
            if values.ndim == 1:
                columns[name] = values
            else:
                names = self.names or range(self.n_targets)
                columns |= {f"{name}_{t}": v for t, v in zip(names, values.T, strict=True)}
        return columns

    @property
    def target_labels(self) -> tuple[str, ...]:
        """The names of the targets; "y", or "target 1", … of several, where they have none."""
        if self.names or self.n_labels == 1:
            return self.names or (UNNAMED,)
        return tuple(f"target {j + 1}" for j in range(self.n_labels))

    def call(self, j: int) -> str:
        """Return the name of column ``j`` of the encoded labels, for messages."""
        return f"target {self.names[j]!r}" if self.names else self.target_labels[j]

    def check_finite(self, rows: Rows, what: str, remedy: str) -> None:
        """Raise DataError for the first column of (n, k) that holds an infinity or NaN.

        The message says ``what`` the rows are, and how to put it right.
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
        """Return how unlike its prediction each label is, shape (n, `n_labels`): the error."""
        return np.abs(scores - targets)

    def error(self, losses: Rows, variances: Rows) -> float:
        """Return one number from the mean loss of each column; lower is better.

        ``variances`` are those of the encoded labels, shape (k,).
        """
        return float(losses.sum())

    def constant_error(self, mean: Rows, variances: Rows) -> float:
        """Return the error of the best constant from mean and variance of the encoded labels."""
        return self.error(variances, variances)

    def units(self) -> Rows | None:
        """Return what each target's squared error is divided by where a penalty is chosen.

        None: by the variance of the target.
        """
        return None

    # ------------------------------------------------------------------ scores

    def scored(self, losses: Rows) -> Rows:
        """Return losses (…, k) by what is scored, (…, m): targets, a class, or whole densities."""
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
    def sum_references(self, errors: ErrorSums) -> Rows:
        """Return the weighed sum of `references` over the bags of ``errors``, shape (m,)."""

    def score(self, errors: ErrorSums) -> Rows:
        """Return the score of each that is scored, shape (m,); see `determination`."""
        return determination(self.scored(errors.losses), self.sum_references(errors))

    @property
    def names_by_code(self) -> tuple[str, ...]:
        """What people call the classes 0, 1, … of labels in memory; empty of all else."""
        return ()

    @abstractmethod
    def details(self, judged: Judged) -> Found:
        """Return the details of the errors on a batch of bags, for reports and pictures."""

    def exponents(self, targets: Rows, scores: Rows | None = None) -> Integers:
        """Return the units 2^e that encoded labels (n, k) are judged in, shape (k,): 1 by default.

        ``scores`` are what is predicted.
        """
        return np.zeros(targets.shape[1], dtype=np.int64)

    # ------------------------------------------------------------------ descriptions

    def report_outside(self, n_responses_outside: int) -> dict[str, int]:
        """Return what the report of a fit says of response points outside their box."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return what reports and stores of predictions say of it, in types that JSON knows."""
        return self.to_dict()

    def identify(self) -> dict[str, Any]:
        """Return what encoded labels depend on, in types that JSON knows."""
        return self.to_dict()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what a saved model keeps of it besides the names, the first item under `key`."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        """Return the outcome of a model with k columns from what `to_dict` gave.

        Raises
        ------
        ValueError
            It does not fit k columns.
        """
