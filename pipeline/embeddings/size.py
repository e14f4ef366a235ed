"""`SizeEmbedding`: a bag as its number of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import Integers
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from .base import ChoiceSample, Embedding, EmbeddingSpec
from .description import Description
from .kinds import embedding

NUMBERS_AT_ONCE = 2048  # that are compared with the box: some KiB of memory


@dataclass(frozen=True)
class SizeSpec(EmbeddingSpec):
    """The number of points with everything decided; see `SizeEmbedding`."""

    n_features = 1

    @property
    def seconds_per_point(self) -> float:
        """See `EmbeddingSpec.seconds_per_point`."""
        return 2e-9 * self.n_dims

    def describe(self) -> Description:
        """See `EmbeddingSpec.describe`."""
        return Description("logarithm of the number of points")

    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        """See `EmbeddingSpec.feature_names`."""
        return ["log(n_points)"]

    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        """See `EmbeddingSpec.fill`."""
        outside[:] = 0
        step = max(1, NUMBERS_AT_ONCE // self.n_dims)
        for start in range(0, bags.n_points, step):
            rows = start + np.flatnonzero(self.are_outside(bags.points[start : start + step]))
            np.add.at(outside, np.searchsorted(bags.offsets, rows, "right") - 1, 1)
        n_points = self.points_embedded(bags, outside)
        out[:, 0] = np.where(n_points > 0, np.log(np.maximum(n_points, 1)), np.nan)


@embedding("size", SizeSpec)
class SizeEmbedding(Embedding[SizeSpec]):
    """The logarithm of a bag's number of points, for labels that depend on it.

    All other embeddings are of the distribution of the points: a bag and its repetition are one to
    them. Join this one to another by `EmbeddingUnion` where the number of points matters, as it
    does for totals: the number of items of an order, the mass of a galaxy. By itself it is a
    baseline. ``embedding="auto"`` tries it where bags have different numbers of points.

    Parameters
    ----------
    out_of_box : {"clip", "drop", "error"}, default "clip"
        How to treat points outside the box. Clipped points count as points of the bag, dropped
        ones do not.
    box : sequence of (lo, hi), optional
        The box outside which points are dropped or refused. Default as in `ProjectionEmbedding`.
    dtype : {"float32", "float64"}, default "float32"
        Type of what `transform` returns.

    Attributes
    ----------
    spec_ : SizeSpec
        What was decided at `fit`.

    Notes
    -----
    Not in the papers, where bags are samples of a distribution and their sizes carry no
    information.
    """

    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> SizeSpec:
        """See `Embedding.decide`; nothing is chosen from the sample."""
        return SizeSpec(out_of_box=out_of_box, box=box)
