"""`Reals`: the outcome of a model that learns numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..bags.inputs import BagsLike, LabelsLike, with_targets
from ..bags.labelled import LabelledBags, take_range
from ..bags.plan import Range
from ..embeddings import Embedding
from ..errors import DataError
from .outcome_base import FLOAT, Layout, Outcome, Prediction, Rows, Target
from .training_labels import n_targets_of


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
    kind: ClassVar[str] = "numbers"
    has_intervals: ClassVar[bool] = True

    @classmethod
    def from_labels(
        cls,
        X: BagsLike | LabelledBags,
        labels: LabelsLike,
        target: Target,
        bags: Range | None,
        response_embedding: Embedding | None,
    ) -> tuple[LabelledBags, Self]:
        """See `Outcome.from_labels`."""
        source, single = with_targets(X, labels, target)
        refuse_classes(source)
        outcome = cls(n_targets_of(source), single, source.target_names)
        return take_range(source, bags), outcome

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


def refuse_classes(source: LabelledBags) -> None:
    """Raise DataError if a target of a store has classes: their codes are not numbers."""
    names = source.class_names
    for name in source.target_names:
        if name in names:
            raise DataError(
                f"{source.url}: target {name!r} has classes, {list(names[name])}; learn it with "
                "DoubleBasisClassifier (task: classification)"
            )
