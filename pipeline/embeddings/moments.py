"""`MomentsEmbedding`: a bag as the mean and the covariance of its points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Bags, Box
from ..errors import ParameterError
from ..threads import KERNELS
from .base import BoxLike, Description, Embedding, EmbeddingSpec, Sample
from .moments_kernels import moments


@dataclass(frozen=True)
class MomentsSpec(EmbeddingSpec):
    """Moments with everything decided; see `MomentsEmbedding` for the fields."""

    covariance: bool

    def checked(self) -> dict[str, Any]:
        """See `EmbeddingSpec.checked`."""
        if not isinstance(self.covariance, (bool, np.bool_)):
            raise ParameterError(f"covariance is {self.covariance!r}; expected True or False")
        return {**super().checked(), "covariance": bool(self.covariance)}

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        d = self.n_dims
        return d + d * (d + 1) // 2 if self.covariance else d

    @property
    def seconds_per_point(self) -> float:
        """See `EmbeddingSpec.seconds_per_point`."""
        return 1.3e-9 * (5 + self.n_dims + self.n_features)

    def describe(self) -> Description:
        """See `EmbeddingSpec.describe`."""
        return Description("mean and covariance" if self.covariance else "mean")

    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        """See `EmbeddingSpec.feature_names`."""
        means = [f"mean({name})" for name in coordinates]
        pairs = combinations_with_replacement(coordinates, 2) if self.covariance else ()
        return means + [f"cov({a},{b})" for a, b in pairs]

    def fill(self, bags: Bags, out: NDArray[Any], outside: NDArray[np.int64]) -> None:
        """See `EmbeddingSpec.fill`."""
        with KERNELS:
            moments(*self.arguments(bags), self.covariance, out, outside)


class MomentsEmbedding(Embedding[MomentsSpec]):
    """Summary statistics: the mean of a bag's points and the upper triangle of their covariance.

    What is commonly done with bags, and the baseline for embeddings of whole densities: it holds
    all there is to know about Gaussian bags, and nothing about shapes beyond. In R^d its length is
    d + d (d + 1) / 2, so that it also fits where d is too large for a density.

    Parameters
    ----------
    covariance : bool, default True
        False: the mean alone.
    out_of_box : {"clip", "drop", "error"}
        What becomes of points outside the box; clipped and dropped ones are counted.
    box : sequence of (lo, hi), optional
        Scaled to [0, 1]^d, so that coordinates of different units weigh alike. Default as in
        `ProjectionEmbedding`.
    dtype : {"float32", "float64"}
        Of what `transform` returns; sums are in double.

    Attributes
    ----------
    spec_ : MomentsSpec
        What was decided at `fit`.

    Notes
    -----
    The covariance is that of the bag's points themselves, Σ (x − x̄)(x − x̄)ᵀ / n: a bag of one
    point has covariance 0, and a bag and its repetition have the same embedding. Counting the
    components of a mixture (as in `HistogramEmbedding`): error 1.79, of the mean alone 2.33
    (`ProjectionEmbedding` 1.55). A bag of 200 points in R² takes twice as long as there.
    """

    def __init__(
        self,
        covariance: bool = True,
        out_of_box: str = "clip",
        box: BoxLike | None = None,
        dtype: str = "float32",
    ) -> None:
        self.covariance = covariance
        self.out_of_box = out_of_box
        self.box = box
        self.dtype = dtype

    def decide(self, sample: Sample, out_of_box: str, box: Box) -> MomentsSpec:
        """See `Embedding.decide`; nothing is chosen from the sample."""
        return MomentsSpec(self.covariance, out_of_box=out_of_box, box=box)
