"""A baseline's columns, which stand next to the random features and are linear in an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...embeddings.base import EmbeddingSpec
from ...embeddings.registered import spec_from_dict, spec_to_dict

LINEAR, OWN = "linear", "own"  # baselines: the embedding itself, and a bag's own coefficients


@dataclass(frozen=True)
class LinearColumns:
    """The columns (a − shift) · scale of bags with a vector a.

    Centred, and of a total variance of about 1, as random features: so float32 sums of their
    products keep the digits of what varies, and the same penalties are small for both.

    Attributes
    ----------
    spec : EmbeddingSpec or None
        Embedding that gives a. None: the one from which the random features are made.
    shift : tuple of float, shape (m,)
        The mean of a sample.
    scale : float
    """

    spec: EmbeddingSpec | None
    shift: tuple[float, ...]
    scale: float

    @classmethod
    def of(cls, spec: EmbeddingSpec | None, sample: Floats) -> Self:
        """Return the columns whose shift and scale are a sample's, shape (n, m)."""
        total = float(sample.var(axis=0).sum())
        mean: Sequence[float] = sample.mean(axis=0).tolist()
        return cls(spec, tuple(mean), total**-0.5 if total > 0 else 1.0)

    @property
    def n_columns(self) -> int:
        """How many there are, m."""
        return len(self.shift)

    @property
    def n_embedded(self) -> int:
        """How many of them are embedded for them alone."""
        return 0 if self.spec is None else self.n_columns

    def write(self, vectors: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the columns of vectors (n, m) into ``out``, shape (n, m)."""
        np.subtract(vectors, np.array(self.shift), out=out, casting="same_kind")
        out *= out.dtype.type(self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Describe them in types that JSON knows."""
        spec = None if self.spec is None else spec_to_dict(self.spec)
        return {"embedding": spec, "shift": list(self.shift), "scale": self.scale}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the inverse of `to_dict`; ValueError for another number of columns."""
        spec = None if values["embedding"] is None else spec_from_dict(values["embedding"])
        if spec is not None and spec.n_features != len(values["shift"]):
            raise ValueError("the columns of the baseline do not fit their embedding")
        return cls(spec, tuple(values["shift"]), values["scale"])
