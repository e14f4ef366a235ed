"""`SlicedWassersteinEmbedding`: embed a bag as quantiles of its points along directions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..core import Integer, RandomSeed
from ..core.arrays import Floats, Integers, by_precision
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from .base import ChoiceSample, UnboundedEmbedding, UnboundedSpec
from .bases.functions import MAX_FUNCTIONS
from .description import Description
from .kernels.same_bits import INTERMEDIATE_BYTES
from .kernels.sliced_kernels import sliced_quantiles
from .kinds import embedding
from .random_features.frequencies import draw_frequencies

Directions = Annotated[int, Integer(1, MAX_FUNCTIONS)]
Quantiles = Annotated[int, Integer(1, MAX_FUNCTIONS)]


@dataclass(frozen=True, kw_only=True)
class SlicedWassersteinSpec(UnboundedSpec):
    """Fitted quantiles; see `SlicedWassersteinEmbedding` for the fields.

    See Also
    --------
    bagbasis.SlicedWassersteinEmbedding : Quantiles along directions.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import SlicedWassersteinEmbedding
    >>> spec = SlicedWassersteinEmbedding(n_directions=8).fit(X).spec_
    >>> spec.n_features
    128
    """

    bytes_before_kernels: ClassVar[int] = INTERMEDIATE_BYTES
    n_directions: Directions
    n_quantiles: Quantiles
    seed: RandomSeed

    @override
    def check_together(self) -> None:
        Integer(1, MAX_FUNCTIONS // self.n_quantiles).check("n_directions", self.n_directions)

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return self.n_directions * self.n_quantiles

    @property
    @override
    def seconds_per_point(self) -> float:
        return seconds_to_sort(self.n_directions, self.n_dims)

    @property
    @override
    def seconds_per_bag(self) -> float:
        return 2e-9 * self.n_features

    @override
    def describe(self) -> Description:
        return Description(f"{self.n_quantiles} quantiles along {self.n_directions} directions")

    def directions(self) -> Floats:
        """Return unit vectors, shape (n_directions, n_dims), orthogonal within blocks of n_dims."""
        return unit_vectors(self.n_dims, self.n_directions, self.seed)

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        columns = np.ascontiguousarray(self.directions().T)
        arguments = columns, self.n_quantiles, np.empty(0), by_precision(out), outside
        self.run_kernel(sliced_quantiles, bags, self.margin, *arguments)


def seconds_to_sort(n_directions: int, n_dims: int, n_axes: int = 0) -> float:
    """Return CPU seconds per point for projecting on directions that are not axes, and sorting."""
    n_products = (n_directions - n_axes) * n_dims
    return 1e-8 * n_directions + 1e-9 * n_products  # sorting takes most of the time


@lru_cache(maxsize=4)
def unit_vectors(n_dims: int, n_directions: int, seed: int) -> Floats:
    """Return unit vectors, shape (n_directions, n_dims), orthogonal within blocks of n_dims.

    The array is cached; do not write to it.
    """
    drawn = draw_frequencies("gaussian", n_dims, n_directions, 1.0, seed, orthogonal=True)
    directions: Floats = np.ascontiguousarray((drawn / np.linalg.norm(drawn, axis=0)).T)
    return directions


@embedding("sliced_wasserstein", SlicedWassersteinSpec)
class SlicedWassersteinEmbedding(UnboundedEmbedding[SlicedWassersteinSpec]):
    """Quantiles along directions; distances are sliced Wasserstein distances.

    A bag's points are projected onto unit vectors θ. In one dimension, the squared 2-Wasserstein
    distance between two bags is ∫ (Q(u) − Q'(u))² du, where Q and Q' are the quantile functions.
    For each θ, A(X) holds the means of Q over n_quantiles equal intervals. ‖A(X) − A(Y)‖²
    approximates the mean of the squared distances over θ from below. This mean is the squared
    sliced Wasserstein distance. No density is estimated, so that bags may have few points and many
    coordinates.

    Parameters
    ----------
    n_directions
        Number of directions θ, which are orthogonal within blocks of d. In one dimension there is
        one direction.
    n_quantiles
        Number of intervals of [0, 1] for each direction.
    seed
        Seed for drawing the directions.

    Attributes
    ----------
    spec_ : SlicedWassersteinSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    The reference is Kolouri, Zou and Rohde, Sliced Wasserstein kernels for probability
    distributions (2016). A bag and its repetition have the same embedding. If n_directions is a
    multiple of d, the squared distance between a bag and the bag moved by c is ‖c‖² / d, with c in
    units of the box.

    See Also
    --------
    MeanMapEmbedding : Kernel mean embedding.
    ExtremesEmbedding : Outermost points along directions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import SlicedWassersteinEmbedding
    >>> embedding = SlicedWassersteinEmbedding(n_directions=8, n_quantiles=5)
    >>> embedding.fit_transform(X).shape
    (80, 40)
    """

    n_directions: Directions = 32
    n_quantiles: Quantiles = 16
    seed: RandomSeed = 0

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> SlicedWassersteinSpec:
        # nothing is chosen from the sample
        n_directions = self.n_directions if box.n_dims > 1 else 1
        return SlicedWassersteinSpec(
            n_directions=n_directions,
            n_quantiles=self.n_quantiles,
            seed=self.seed,
            out_of_box=out_of_box,
            box=box,
        )
