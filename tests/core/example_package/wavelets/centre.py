"""An embedding: the centre of the box of a bag, raised to a power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bagbasis.core import Real
from bagbasis.embeddings import Description, Embedding, EmbeddingSpec
from bagbasis.embeddings.kinds import embedding

Power = Annotated[float, Real(gt=0, le=4)]


@dataclass(frozen=True)
class CentreSpec(EmbeddingSpec):
    """The embedding with everything decided."""

    power: Power

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return self.n_dims

    @property
    def seconds_per_point(self) -> float:
        """Time that a point takes one core."""
        return 1e-8

    def describe(self) -> Description:
        """Return what reports say."""
        return Description("centre")

    def fill(self, bags: Any, out: NDArray[Any], outside: NDArray[np.int64]) -> None:
        """Write the centre of each bag."""
        for i, bag in enumerate(bags):
            unit = self.box.to_unit(bag)
            outside[i] = ((unit < 0) | (unit > 1)).any(axis=1).sum()
            unit = np.clip(unit, 0, 1)
            out[i] = ((unit.min(axis=0) + unit.max(axis=0)) / 2) ** self.power


@embedding("centre", CentreSpec)
class CentreEmbedding(Embedding[CentreSpec]):
    """The centre of a bag.

    Parameters
    ----------
    power
        Exponent of each coordinate of the centre.
    """

    power: Power = 1.0

    def decide(self, sample: Any, out_of_box: str, box: Any) -> CentreSpec:
        """Return the spec."""
        return CentreSpec(self.power, out_of_box=out_of_box, box=box)
