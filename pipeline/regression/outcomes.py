"""What a model learns: numbers, classes or densities, from the labels of bags to predictions.

An `Outcome` is decided from labels before a fit, and everything that depends on the kind of label
asks it: the rows that are regressed, what raw scores predict, what predictions are called in files,
what an error is, and what a saved model keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bags import BagStore, Responses
from ..bags.labelled import LabelledBags, ResponseBags, Targets
from ..embeddings import ProjectionSpec
from ..errors import DataError

Rows = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """What is predicted for n bags.

    Attributes
    ----------
    values : shape (n,) or (n, k)
        Targets, classes, or coefficients of densities.
    probabilities : float64, shape (n, n_classes), or None
        Of classes only.
    """

    values: NDArray[Any]
    probabilities: Rows | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by the names that they have in a store of predictions."""
        if self.probabilities is None:
            return {"predictions": self.values}
        return {"predictions": self.values, "probabilities": self.probabilities}


@dataclass(frozen=True)
class Column:
    """Shape and type of an array of predictions, but for its first axis, the bags."""

    tail: tuple[int, ...]
    dtype: np.dtype[Any]


class Outcome(Protocol):
    """A kind of label with everything decided: immutable, small, picklable."""

    key: ClassVar[str]
    """Under which a saved model keeps what only this outcome has."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the targets in a store; empty for labels in memory, and for responses."""
        ...

    @property
    def n_targets(self) -> int:
        """Columns that are regressed, k."""
        ...

    @property
    def measure(self) -> str:
        """What `error` is, in words."""
        ...

    def take_labels(self, store: BagStore) -> LabelledBags:
        """The bags of a store with the labels of this kind.

        Raises
        ------
        DataError
            The store has none, or others.
        """
        ...

    def encode(self, labels: Any) -> tuple[Rows, int]:
        """What is regressed for labelled bags, and the points of responses outside their box.

        Parameters
        ----------
        labels : shape (n, number of targets), or `Responses`
            Of bags that all have one.

        Returns
        -------
        float64, shape (n, k)
        """
        ...

    def predict(self, scores: Rows) -> Prediction:
        """Turn the regression's raw rows, shape (n, k), into predictions."""
        ...

    def losses(self, scores: Rows, targets: Rows) -> Rows:
        """How wrong raw rows are about encoded labels, one row per bag."""
        ...

    def error(self, losses: Rows, variances: Rows) -> float:
        """One number from the mean loss of each column, see `measure`; lower is better.

        ``variances`` are those of the encoded labels, shape (k,).
        """
        ...

    def find_new(self, blocks: Iterable[NDArray[Any]]) -> Rows:
        """Labels among some blocks that have no column yet, sorted; read only where that can be."""
        ...

    def units(self) -> Rows | None:
        """Squared errors of each target are divided by these where a penalty is chosen.

        None: by the variance of the target.
        """
        ...

    def stored(self) -> dict[str, Column]:
        """The arrays of `Prediction.arrays`, before there are any."""
        ...

    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """The predictions as named columns of a table."""
        ...

    def describe(self) -> dict[str, Any]:
        """What reports and stores of predictions say of it, in types that JSON knows."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """What a saved model keeps under `key`, beside the names, as its item."""
        ...


def _take_targets(store: BagStore, names: tuple[str, ...]) -> LabelledBags:
    if not names:
        raise DataError(
            f"{store.url}: the model was fitted to labels in memory, whose name in a store is not "
            "known; give LabelledBags(store, Targets(names))"
        )
    store.target_columns(names)
    return LabelledBags(store, Targets(names))


class _ByPosition:
    """Labels of a whole batch, with the positions of those that are encoded."""

    def labelled(self, labels: Any) -> NDArray[np.bool_]:
        """Which bags of the batch have a label, shape (n_bags,)."""
        if isinstance(labels, Responses):
            return np.asarray(labels.sizes > 0)
        return np.asarray(~np.isnan(labels).any(axis=1))

    def rows(self, labels: Any, rows: NDArray[np.int64]) -> tuple[Rows, int]:
        """As `Outcome.encode`, of labelled bags of the batch."""
        if isinstance(labels, Responses):
            chosen = labels.of(rows)
            return self.encode(Responses.trusted(chosen.points, chosen.offsets))  # type: ignore[attr-defined]
        return self.encode(labels[rows])  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Reals(_ByPosition):
    """The targets themselves.

    Attributes
    ----------
    single : bool
        Whether predictions have shape (n,) and not (n, 1).
    """

    n_targets: int
    single: bool = False
    names: tuple[str, ...] = ()

    key: ClassVar[str] = "single_target"

    @property
    def measure(self) -> str:
        if self.n_targets == 1:
            return "RMSE"
        return "root of the targets' mean of squared error over variance"

    def take_labels(self, store: BagStore) -> LabelledBags:
        return _take_targets(store, self.names)

    def encode(self, labels: NDArray[Any]) -> tuple[Rows, int]:
        return labels, 0

    def predict(self, scores: Rows) -> Prediction:
        return Prediction(scores[:, 0] if self.single else scores)

    def losses(self, scores: Rows, targets: Rows) -> Rows:
        return np.asarray((scores - targets) ** 2)

    def error(self, losses: Rows, variances: Rows) -> float:
        if self.n_targets > 1:
            losses = losses / np.where(variances > 0, variances, 1.0)
        return float(np.sqrt(losses.mean()))

    def find_new(self, blocks: Iterable[NDArray[Any]]) -> Rows:
        return np.empty(0)

    def units(self) -> None:
        return None

    def stored(self) -> dict[str, Column]:
        tail = () if self.single else (self.n_targets,)
        return {"predictions": Column(tail, np.dtype(np.float64))}

    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        if self.single:
            return {self.names[0] if self.names else "prediction": prediction.values}
        names = self.names or [f"prediction_{j}" for j in range(self.n_targets)]
        return dict(zip(names, prediction.values.T, strict=True))

    def describe(self) -> dict[str, Any]:
        return {}

    def to_dict(self) -> dict[str, Any]:
        return {self.key: self.single}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Reals:
        """The inverse of `to_dict`, of a model with k columns."""
        return cls(k, values[cls.key], names)


@dataclass(frozen=True)
class Classes(_ByPosition):
    """One column per class.

    Attributes
    ----------
    classes : tuple of int, float or str
        Sorted. Labels of text are encoded by their positions, others by themselves.
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...] = ()

    key: ClassVar[str] = "classes"
    measure: ClassVar[str] = "error rate"

    @property
    def n_targets(self) -> int:
        return len(self.classes)

    @property
    def values(self) -> NDArray[Any]:
        """The classes as predictions have them, shape (n_classes,)."""
        return np.array(self.classes)

    @property
    def codes(self) -> Rows:
        """The classes as labels have them, shape (n_classes,)."""
        if isinstance(self.classes[0], str):
            return np.arange(len(self.classes), dtype=np.float64)
        return np.array(self.classes, dtype=np.float64)

    def take_labels(self, store: BagStore) -> LabelledBags:
        return _take_targets(store, self.names)

    def encode(self, labels: NDArray[Any]) -> tuple[Rows, int]:
        return (labels == self.codes).astype(np.float64), 0

    def predict(self, scores: Rows) -> Prediction:
        positive = np.maximum(scores, 0.0)
        total = positive.sum(axis=1, keepdims=True)
        even = np.full_like(positive, 1.0 / positive.shape[1])
        shares = np.divide(positive, total, out=even, where=total > 0)
        return Prediction(self.values[scores.argmax(axis=1)], shares)

    def losses(self, scores: Rows, targets: Rows) -> Rows:
        """1 for a wrong class and 0 for the right one, shape (n, 1)."""
        return 1.0 - np.take_along_axis(targets, scores.argmax(axis=1)[:, None], axis=1)

    def error(self, losses: Rows, variances: Rows) -> float:
        return float(losses.sum())

    def find_new(self, blocks: Iterable[NDArray[Any]]) -> Rows:
        found = np.empty(0)
        for block in blocks:
            found = np.union1d(found, block[~np.isnan(block)])
        return np.setdiff1d(found, self.codes)

    def units(self) -> None:
        return None

    def stored(self) -> dict[str, Column]:
        return {
            "predictions": Column((), self.values.dtype),
            "probabilities": Column((self.n_targets,), np.dtype(np.float64)),
        }

    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        assert prediction.probabilities is not None
        shares = {f"p_{c}": prediction.probabilities[:, j] for j, c in enumerate(self.classes)}
        return {self.names[0] if self.names else "prediction": prediction.values, **shares}

    def describe(self) -> dict[str, Any]:
        return self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        return {self.key: list(self.classes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Classes:
        """The inverse of `to_dict`; ValueError unless there are k classes."""
        classes = values[cls.key]
        if len(classes) != k:
            raise ValueError(f"{k} rows of coefficients, but classes {classes}")
        return cls(tuple(np.array(classes).tolist()), names)


@dataclass(frozen=True)
class Densities(_ByPosition):
    """Projection coefficients of response bags, the third basis (004, §3.4)."""

    spec: ProjectionSpec

    key: ClassVar[str] = "response"
    names: ClassVar[tuple[str, ...]] = ()
    measure: ClassVar[str] = "mean squared L2 distance of densities"

    @property
    def n_targets(self) -> int:
        return self.spec.n_features

    def take_labels(self, store: BagStore) -> LabelledBags:
        if store.response_dims != self.spec.n_dims:
            raise DataError(
                f"{store.url}: responses have dimension {store.response_dims}, the model predicts "
                f"densities in {self.spec.n_dims}"
            )
        return LabelledBags(store, ResponseBags())

    def encode(self, labels: Responses) -> tuple[Rows, int]:
        out = np.empty((len(labels), self.n_targets))
        return out, self.spec.embed(labels.present, out)

    def predict(self, scores: Rows) -> Prediction:
        return Prediction(scores)

    def losses(self, scores: Rows, targets: Rows) -> Rows:
        """Squared errors of the coefficients: their sum is a squared L2 distance (Parseval)."""
        return np.asarray((scores - targets) ** 2)

    def error(self, losses: Rows, variances: Rows) -> float:
        return float(losses.sum())

    def find_new(self, blocks: Iterable[NDArray[Any]]) -> Rows:
        return np.empty(0)

    def units(self) -> Rows:
        """Alike for all coefficients: an average of errors in units of 1/r is their sum."""
        return np.full(self.n_targets, 1.0 / self.n_targets)

    def stored(self) -> dict[str, Column]:
        return {"predictions": Column((self.n_targets,), np.dtype(np.float64))}

    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        names = ["a_" + "_".join(map(str, alpha)) for alpha in self.spec.indices.tolist()]
        return dict(zip(names, prediction.values.T, strict=True))

    def describe(self) -> dict[str, Any]:
        return self.to_dict()

    def to_dict(self) -> dict[str, Any]:
        return {self.key: self.spec.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Densities:
        """The inverse of `to_dict`; ValueError unless the basis has k functions."""
        spec = ProjectionSpec.from_dict(values[cls.key])
        if spec.n_features != k:
            raise ValueError(f"{k} rows of coefficients do not fit the response basis")
        return cls(spec)


OUTCOMES: tuple[type[Reals] | type[Classes] | type[Densities], ...] = (Reals, Classes, Densities)


def identify_outcome(outcome: Outcome) -> dict[str, Any]:
    """Everything that encoded labels depend on, in types that JSON knows."""
    k = outcome.n_targets
    return {"kind": type(outcome).__name__, "n_targets": k, **outcome.to_dict()}
