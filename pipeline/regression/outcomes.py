"""What a model learns: numbers, classes or densities.

An `Outcome` is decided from the labels before a fit. Everything that depends on the kind of label
asks it: the numbers to regress on, what raw scores predict, the names of predictions in files, the
definition of the error, and what a saved model stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..bags import BagStore, Responses
from ..bags.labelled import LabelledBags
from ..bags.labels import ResponseBags, Targets
from ..embeddings import ProjectionSpec
from ..errors import DataError
from .outcome_base import FLOAT, Layout, Outcome, Prediction, Rows

__all__ = [
    "OUTCOMES",
    "Classes",
    "Densities",
    "Outcome",
    "Prediction",
    "Reals",
    "Rows",
    "identify_outcome",
]


@dataclass(frozen=True)
class Reals(Outcome):
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
        """See `Outcome`."""
        if self.n_targets == 1:
            return "RMSE"
        return "root of the targets' mean of squared error over variance"

    def encode(self, labels: NDArray[Any]) -> tuple[Rows, int]:
        """See `Outcome.encode`."""
        return labels, 0

    def predict(self, scores: Rows) -> Prediction:
        """See `Outcome.predict`."""
        return Prediction(scores[:, 0] if self.single else scores)

    def stored(self) -> dict[str, Layout]:
        """See `Outcome.stored`."""
        return {"predictions": Layout(() if self.single else (self.n_targets,), FLOAT)}

    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """See `Outcome.columns`."""
        if self.single:
            return {self.names[0] if self.names else "prediction": prediction.values}
        names = self.names or [f"prediction_{j}" for j in range(self.n_targets)]
        return dict(zip(names, prediction.values.T, strict=True))

    def error(self, losses: Rows, variances: Rows) -> float:
        """See `Outcome.error`."""
        if self.n_targets > 1:
            losses = losses / np.where(variances > 0, variances, 1.0)
        return float(np.sqrt(losses.mean()))

    def describe(self) -> dict[str, Any]:
        """See `Outcome.describe`."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """See `Outcome.to_dict`."""
        return {self.key: self.single}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        """See `Outcome.from_dict`."""
        return cls(k, values[cls.key], names)


@dataclass(frozen=True)
class Classes(Outcome):
    """One column per class.

    Attributes
    ----------
    classes : tuple of int, float or str
        Sorted. Labels of text are encoded by their positions, others by themselves.
    class_names : tuple of str
        What the store that was fitted to calls them; empty where they have no names. Predictions
        have these in place of the store's numbers, which are its own.
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()

    key: ClassVar[str] = "classes"
    measure: ClassVar[str] = "error rate"

    @property
    def n_targets(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @property
    def n_independent(self) -> int:
        """See `Outcome`: the indicators add up to 1."""
        return max(1, self.n_targets - 1)

    def call(self, j: int) -> str:
        """See `Outcome.call`."""
        return f"class {(self.class_names or self.classes)[j]!r}"

    @property
    def values(self) -> NDArray[Any]:
        """The classes as predictions have them, shape (n_classes,)."""
        return np.array(self.class_names or self.classes)

    @property
    def codes(self) -> Rows:
        """The classes as labels have them, shape (n_classes,)."""
        if isinstance(self.classes[0], str):
            return np.arange(len(self.classes), dtype=np.float64)
        return np.array(self.classes, dtype=np.float64)

    def codes_of(self, values: Sequence[Any]) -> Rows:
        """Return classes of predictions as labels have them; -1 for those there are not."""
        known = dict(zip(self.values.tolist(), self.codes.tolist(), strict=True))
        return np.array([known.get(value, -1.0) for value in values])

    def take_labels(self, store: BagStore) -> LabelledBags:
        """See `Outcome.take_labels`; a store with other numbers for classes is read with ours."""
        bags = super().take_labels(store)
        theirs = store.meta.class_names.get(self.names[0])
        if theirs is None or not self.class_names:
            return bags
        ours = dict(zip(self.classes, self.class_names, strict=True))
        if ours.items() <= dict(enumerate(theirs)).items():
            return bags
        new = [name for name in theirs if name not in self.class_names]
        names = [ours.get(code, "") for code in range(max(ours) + 1)] + new
        return replace(bags, labels=Targets(self.names, class_names=tuple(names)))

    def encode(self, labels: NDArray[Any]) -> tuple[Rows, int]:
        """See `Outcome.encode`; a label of no class has a row of zeros."""
        return (labels == self.codes).astype(np.float64), 0

    def find_new(self, blocks: Iterable[NDArray[Any]]) -> Rows:
        """See `Outcome.find_new`."""
        found = np.empty(0)
        for block in blocks:
            found = np.union1d(found, block)
        return np.setdiff1d(found, self.codes)

    def predict(self, scores: Rows) -> Prediction:
        """See `Outcome.predict`."""
        positive = np.maximum(scores, 0.0)
        total = positive.sum(axis=1, keepdims=True)
        even = np.full_like(positive, 1.0 / positive.shape[1])
        shares = np.divide(positive, total, out=even, where=total > 0)
        return Prediction(self.values[scores.argmax(axis=1)], shares)

    def stored(self) -> dict[str, Layout]:
        """See `Outcome.stored`."""
        probabilities = Layout((self.n_targets,), FLOAT)
        return {"predictions": Layout((), self.values.dtype), "probabilities": probabilities}

    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """See `Outcome.columns`."""
        assert prediction.probabilities is not None
        columns = {self.names[0] if self.names else "prediction": prediction.values}
        for j, name in enumerate(self.class_names or self.classes):
            columns[f"p_{name}"] = prediction.probabilities[:, j]
        return columns

    def losses(self, scores: Rows, targets: Rows) -> Rows:
        """Return 1 for a wrong class and 0 for the right one, shape (n, 1)."""
        return 1.0 - np.take_along_axis(targets, scores.argmax(axis=1)[:, None], axis=1)

    def constant_error(self, mean: Rows, variances: Rows) -> float:
        """See `Outcome.constant_error`: of the most frequent class."""
        return 1.0 - float(mean.max())

    def describe(self) -> dict[str, Any]:
        """See `Outcome.describe`."""
        return {self.key: list(self.class_names or self.classes)}

    def identify(self) -> dict[str, Any]:
        """See `Outcome.identify`."""
        return {self.key: list(self.classes)}

    def to_dict(self) -> dict[str, Any]:
        """See `Outcome.to_dict`."""
        named = {"class_names": list(self.class_names)} if self.class_names else {}
        return {**self.identify(), **named}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        """See `Outcome.from_dict`; models of before named no classes."""
        classes, class_names = values[cls.key], values.get("class_names", [])
        if len(classes) != k or len(class_names) not in (0, k):
            raise ValueError(f"{k} rows of coefficients, but classes {classes} {class_names}")
        return cls(tuple(np.array(classes).tolist()), names, tuple(map(str, class_names)))


@dataclass(frozen=True)
class Densities(Outcome):
    """Projection coefficients of response bags, the third basis (004, §3.4)."""

    spec: ProjectionSpec

    key: ClassVar[str] = "response"
    names: ClassVar[tuple[str, ...]] = ()
    measure: ClassVar[str] = "mean squared L2 distance of densities"

    @property
    def n_targets(self) -> int:
        """The number of coefficients, r."""
        return self.spec.n_features

    def call(self, j: int) -> str:
        """See `Outcome.call`."""
        return f"coefficient {tuple(self.spec.indices[j].tolist())} of the responses"

    def take_labels(self, store: BagStore) -> LabelledBags:
        """See `Outcome.take_labels`."""
        if store.response_dims != self.spec.n_dims:
            raise DataError(
                f"{store.url}: responses have dimension {store.response_dims}, the model predicts "
                f"densities in {self.spec.n_dims}"
            )
        return LabelledBags(store, ResponseBags())

    def encode(self, labels: Responses) -> tuple[Rows, int]:
        """See `Outcome.encode`."""
        out = np.empty((len(labels), self.n_targets))
        return out, self.spec.embed(labels.present, out)

    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        """See `Outcome.columns`."""
        names = ["a_" + "_".join(map(str, alpha)) for alpha in self.spec.indices.tolist()]
        return dict(zip(names, prediction.values.T, strict=True))

    def units(self) -> Rows:
        """See `Outcome.units`: 1/r for each of r coefficients.

        The average error in these units is the sum of the squared errors, which is by Parseval a
        squared L2 distance.
        """
        return np.full(self.n_targets, 1.0 / self.n_targets)

    def to_dict(self) -> dict[str, Any]:
        """See `Outcome.to_dict`."""
        return {self.key: self.spec.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        """See `Outcome.from_dict`."""
        spec = ProjectionSpec.from_dict(values[cls.key])
        if spec.n_features != k:
            raise ValueError(f"{k} rows of coefficients do not fit the response basis")
        return cls(spec)


OUTCOMES: tuple[type[Outcome], ...] = (Reals, Classes, Densities)


def identify_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return everything that encoded labels depend on, in types that JSON knows."""
    k = outcome.n_targets
    return {"kind": type(outcome).__name__, "n_targets": k, **outcome.identify()}


def refuse_classes(source: LabelledBags) -> None:
    """Raise DataError if a target of a store has classes: their codes are not numbers."""
    names = source.class_names
    for name in source.target_names:
        if name in names:
            raise DataError(
                f"{source.url}: target {name!r} has classes, {list(names[name])}; learn it with "
                "DoubleBasisClassifier (task: classification)"
            )
