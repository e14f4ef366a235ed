"""`Outcome`, the interface of what a model learns, and `Prediction`, what it predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..bags import BagStore
from ..bags.inputs import BagsLike, LabelsLike, with_targets
from ..bags.labelled import LabelledBags
from ..bags.labels import Targets
from ..bags.plan import Range
from ..embeddings import Embedding
from ..errors import DataError
from ..units import surely_finite
from .linear_columns import LINEAR

Rows = NDArray[np.float64]
FLOAT = np.dtype(np.float64)

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
        Of classes only.
    more : mapping
        Columns that were asked for, such as "std", of n rows each.
    """

    values: NDArray[Any]
    probabilities: Rows | None = None
    more: Mapping[str, Rows] = field(default_factory=dict)

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
    """What a model learns, with everything decided from the labels: immutable, small, picklable.

    Attributes
    ----------
    key : str
        Where a saved model keeps what only this kind of outcome has.
    kind : str
        What is learnt, in a word.
    baseline : str
        The only value of the estimators' parameter ``baseline`` beside None.
    judged_penalties : tuple of str
        Values of ``alpha`` that choose the penalty by its error on held-out bags.
    has_intervals : bool
        Whether errors of held-out bags give intervals, and the posterior deviations.
    keeps_mean : bool
        Whether a saved model keeps the mean of the encoded labels.
    names : tuple of str
        The store's targets; empty for labels in memory, and for responses.
    n_targets : int
        Columns that are regressed, k.
    n_independent : int
        How many of them say something of their own.
    measure : str
        What `error` is, in words.
    """

    key: ClassVar[str]
    kind: ClassVar[str]
    baseline: ClassVar[str] = LINEAR
    judged_penalties: ClassVar[tuple[str, ...]] = ("validation",)
    has_intervals: ClassVar[bool] = False
    keeps_mean: ClassVar[bool] = False

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
    def n_independent(self) -> int:
        """See above."""
        return self.n_targets

    # ------------------------------------------------------------------ labels

    @classmethod
    def label(cls, X: BagsLike | LabelledBags, labels: LabelsLike, target: Target) -> LabelledBags:
        """Return bags with labels of this kind.

        Parameters
        ----------
        X : BagStore, Bags, or list of arrays (n_i, n_dims)
        labels : array, list or None
            Of bags in memory: targets, or responses.
        target : str, list of str or None
            Of a store.

        Raises
        ------
        DataError
            No bags or no labels, or labels that do not fit the bags.
        ParameterError
            Labels beside a store, or a target beside bags in memory.
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
                "not known; give LabelledBags(store, Targets(names))"
            )
        store.target_columns(self.names)
        return LabelledBags(store, Targets(self.names))

    @abstractmethod
    def encode(self, labels: Labels) -> tuple[Rows, int]:
        """Return the numbers to regress on, and the count of response points outside their box.

        Parameters
        ----------
        labels : shape (n, number of targets), or `Responses`
            Of bags that all have one.

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

    def call(self, j: int) -> str:
        """Return the name of column ``j`` of the encoded labels, for messages."""
        return f"target {self.names[j]!r}" if self.names else f"target {j + 1}"

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
        """Return what a saved model keeps of it beside the names, the first item under `key`."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        """Return the outcome of a model with k columns from what `to_dict` gave.

        Raises
        ------
        ValueError
            It does not fit k columns.
        """
