"""`Reals`: the outcome of a model that learns numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core.arrays import Integers
from ...core.errors import DataError, shown
from ...core.units import units_of_labels
from ...data.bags.bags import Bags
from ...data.labelled.frame_columns import from_frame
from ...data.labelled.inputs import BagsLike, LabelsLike, with_targets
from ...data.labelled.labelled import LabelledBags, take_range
from ...data.labelled.labels import Targets
from ...data.store.plan import Range
from ...data.store.store import BagStore
from ...embeddings.base import Embedding
from .base import FLOAT, Layout, Outcome, Prediction, Target
from .details import (
    SAMPLED_TARGETS,
    Found,
    Judged,
    RealDetails,
    Rows,
    determination,
    weighted_sum,
)
from .training_labels import n_targets_of

if TYPE_CHECKING:
    from ..errors import Errors

_MIN_RELATIVE_SPREAD = 1e-14  # a smaller spread of targets, relative to their mean, counts as zero


@dataclass(frozen=True)
class Reals(Outcome):
    """Outcome of models that predict numbers: the encoded labels are the targets.

    Attributes
    ----------
    single : bool
        Whether predictions have shape (n,) instead of (n, 1).
    """

    n_targets: int
    single: bool = False
    names: tuple[str, ...] = ()

    key: ClassVar[str] = "single_target"
    has_heads: ClassVar[bool] = True
    kind: ClassVar[str] = "numbers"
    has_intervals: ClassVar[bool] = True
    has_squared_losses: ClassVar[bool] = True

    @classmethod
    @override
    def from_labels(
        cls,
        X: BagsLike | LabelledBags,
        labels: LabelsLike,
        target: Target,
        bags: Range | None,
        response_embedding: Embedding | None,
    ) -> tuple[LabelledBags, Self]:
        X, labels, target, *_ = from_frame(X, labels, target)
        source, single = with_targets(X, labels, target)
        refuse_labels_of_classes(source)
        outcome = cls(n_targets_of(source), single, source.target_names)
        return take_range(source, bags), outcome

    @override
    def named(self, names: Sequence[str]) -> Self:
        return replace(self, names=tuple(names))

    @override
    def label_again(self, bags: Bags | BagStore, labels: LabelsLike) -> LabelledBags:
        source = super().label_again(bags, labels)
        n = n_targets_of(source)
        if n != self.n_targets:
            raise DataError(f"y has {n} targets, the model predicts {self.n_targets}")
        return self._in_order(source)

    @override
    def take_labels(self, store: BagStore) -> LabelledBags:
        bags = super().take_labels(store)
        for name in self.names:
            if classes := store.meta.class_names.get(name):
                theirs = f"the classes {shown(list(classes))}"
                raise self.other_labels(store, name, theirs, "numbers")
        return bags

    def _in_order(self, source: LabelledBags) -> LabelledBags:
        """Return labels with named columns in the order of the model's targets."""
        names, labels = source.target_names, source.labels
        if n_targets_of(source) == 1 or not names or not self.names or names == self.names:
            return source
        if set(names) != set(self.names):
            raise DataError(
                f"y has the columns {shown(list(names))}, the model was fitted to "
                f"{shown(list(self.names))}; name them alike, or give y.to_numpy() in the order "
                "of the model's targets"
            )
        assert isinstance(labels, Targets)
        columns = [names.index(name) for name in self.names]
        return replace(source, labels=Targets(self.names, labels.in_memory()[:, columns]))

    @property
    @override
    def measure(self) -> str:
        if self.n_targets == 1:
            return "RMSE"
        return "RMSE in standard deviations of the targets"

    @override
    def encode(self, labels: NDArray[Any]) -> tuple[Rows, int]:
        return labels, 0

    @override
    def predict(self, scores: Rows) -> Prediction:
        return Prediction(scores[:, 0] if self.single else scores)

    @override
    def stored(self) -> dict[str, Layout]:
        return {"predictions": Layout(() if self.single else (self.n_targets,), FLOAT)}

    @override
    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        if self.single:
            return {self.names[0] if self.names else "prediction": prediction.values}
        names = self.names or [f"prediction_{j}" for j in range(self.n_targets)]
        return dict(zip(names, prediction.values.T, strict=True))

    @override
    def error(self, losses: Rows, variances: Rows) -> float:
        if self.n_targets > 1:
            losses = losses / np.where(variances > 0, variances, 1.0)
        return float(np.sqrt(losses.mean()))

    @override
    def references(self, targets: Rows, weights: Rows, mean_targets: Rows | None) -> Rows:
        # squared distances to the mean of the bags that are scored
        mean = np.average(targets, axis=0, weights=weights)
        gaps = targets - mean
        return np.where(np.abs(gaps) > _MIN_RELATIVE_SPREAD * np.abs(mean), gaps, 0.0) ** 2

    @override
    def sum_references(self, errors: Errors) -> Rows:
        return np.where(errors.scatter <= rounding_of(errors), 0.0, errors.scatter)

    @override
    def score(self, errors: Errors) -> Rows:
        return determination(errors.losses, errors.scatter, rounding_of(errors))

    @override
    def details(self, judged: Judged) -> Found:
        gaps, shown, w = judged.scores - judged.targets, slice(SAMPLED_TARGETS), judged.weights
        sums = weighted_sum(np.abs(gaps), w), weighted_sum(gaps, w)
        true = judged.targets[:, shown].astype(np.float64)
        return Found(RealDetails(judged.names, *sums), true, judged.scores[:, shown])

    @override
    def exponents(self, targets: Rows, scores: Rows | None = None) -> Integers:
        # columns of zeros have the units of what is predicted
        return units_of_labels(targets, targets if scores is None else scores)

    @override
    def describe(self) -> dict[str, Any]:
        return {}

    @override
    def to_dict(self) -> dict[str, Any]:
        return {self.key: self.single}

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        return cls(k, values[cls.key], names)


def rounding_of(errors: Errors) -> Rows:
    """Return the largest sum of squared errors to equal labels that is due to rounding alone."""
    return errors.weight * (_MIN_RELATIVE_SPREAD * errors.mean) ** 2


def refuse_labels_of_classes(source: LabelledBags) -> None:
    """Raise DataError if a target of a store has classes: their codes are not numbers."""
    names = source.class_names
    for name in source.target_names:
        if name in names:
            raise DataError(
                f"{source.url}: target {name!r} has classes, {shown(list(names[name]))}; learn it "
                "with DoubleBasisClassifier (in a config or with --set: model.task=classification)"
            )
