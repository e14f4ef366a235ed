"""What a bag's label becomes in the regression: numbers, one-hot classes, or coefficients."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bags import Responses
from ..embeddings import ProjectionSpec


class Encoding(Protocol):
    """From the labels of a batch of bags, as a source gives them, to rows of targets."""

    @property
    def n_targets(self) -> int: ...
    def labelled(self, labels: Any) -> NDArray[np.bool_]:
        """Which bags of the batch have a label, shape (n_bags,)."""
        ...

    def rows(self, labels: Any, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
        """Targets of labelled bags of the batch, shape (len(rows), n_targets), and how many
        points of their responses lie outside the box."""
        ...


@dataclass(frozen=True)
class Reals:
    """The targets themselves; NaN is no label."""

    n_targets: int

    def labelled(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        return ~np.isnan(labels).any(axis=1)

    def rows(self, labels: NDArray[Any], rows: NDArray[np.int64]) -> tuple[NDArray[Any], int]:
        return labels[rows], 0


@dataclass(frozen=True)
class OneHot(Reals):
    """One column a class."""

    n_targets: int
    classes: tuple[float, ...]

    @classmethod
    def of(cls, classes: NDArray[np.float64]) -> OneHot:
        return cls(len(classes), tuple(classes.tolist()))

    def rows(self, labels: NDArray[Any], rows: NDArray[np.int64]) -> tuple[NDArray[Any], int]:
        return (labels[rows] == np.array(self.classes)).astype(np.float64), 0


@dataclass(frozen=True)
class ResponseCoefficients:
    """Projection coefficients of response bags, the third basis (004, §3.4)."""

    spec: ProjectionSpec

    @property
    def n_targets(self) -> int:
        return self.spec.n_features

    def labelled(self, labels: Responses) -> NDArray[np.bool_]:
        return labels.sizes > 0

    def rows(self, labels: Responses, rows: NDArray[np.int64]) -> tuple[NDArray[Any], int]:
        out = np.empty((len(rows), self.n_targets))
        chosen = labels.of(rows)
        return out, self.spec.embed(chosen, out)


def encoding_to_dict(encoding: Encoding) -> dict[str, Any]:
    """Everything that an encoding's rows depend on, in types JSON knows."""
    return {"kind": type(encoding).__name__, **asdict(encoding)}  # type: ignore[call-overload]
