"""`ExtremesEmbedding`: embed a bag as its outermost points along directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..core import Integer, RandomSeed, Real
from ..core.arrays import Floats, Integers, by_precision
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from .base import ChoiceSample, UnboundedEmbedding, UnboundedSpec
from .bases.functions import MAX_FUNCTIONS
from .description import Description
from .kernels.same_bits import INTERMEDIATE_BYTES
from .kernels.sliced_kernels import sliced_quantiles
from .kinds import embedding
from .sliced import Directions, seconds_to_sort, unit_vectors

N_SHARES = 4  # quantiles per direction: 0, tail, 1 − tail, 1

Tail = Annotated[float, Real(gt=0, lt=0.5)]


@dataclass(frozen=True, kw_only=True)
class ExtremesSpec(UnboundedSpec):
    """Fitted extremes; see `ExtremesEmbedding` for the fields.

    See Also
    --------
    bagbasis.ExtremesEmbedding : Outermost points along directions.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import ExtremesEmbedding
    >>> spec = ExtremesEmbedding(n_directions=8).fit(X).spec_
    >>> spec.n_features
    32
    """

    bytes_before_kernels: ClassVar[int] = INTERMEDIATE_BYTES
    n_directions: Directions
    tail: Tail
    seed: RandomSeed

    @override
    def check_together(self) -> None:
        Integer(1, MAX_FUNCTIONS // N_SHARES).check("n_directions", self.n_directions)

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return self.n_directions * N_SHARES

    @property
    def shares(self) -> Floats:
        """Levels of the four quantiles, shape (4,)."""
        return np.array([0.0, self.tail, 1.0 - self.tail, 1.0])

    @property
    @override
    def seconds_per_point(self) -> float:
        return seconds_to_sort(self.n_directions, self.n_dims, self._n_axes)

    @override
    def describe(self) -> Description:
        shares = ", ".join(f"{share:g}" for share in self.shares.tolist())
        return Description(f"quantiles {shares} along {self.n_directions} directions")

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        # directions that mix coordinates are numbered
        more = [f"direction{k}" for k in range(self._n_axes, self.n_directions)]
        names = [*coordinates[: self._n_axes], *more]
        return [f"q{share:g}({name})" for name in names for share in self.shares.tolist()]

    def directions(self) -> Floats:
        """Return unit vectors, shape (n_directions, n_dims); coordinate axes come first."""
        return np.concatenate([np.eye(self._n_axes, self.n_dims), self._mixed])

    @property
    def _n_axes(self) -> int:
        return self.n_dims if self.n_dims <= self.n_directions else 0

    @property
    def _mixed(self) -> Floats:
        """Directions that are not coordinate axes."""
        n = self.n_directions - self._n_axes
        return unit_vectors(self.n_dims, n, self.seed) if n else np.empty((0, self.n_dims))

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        columns = np.ascontiguousarray(self._mixed.T)
        arguments = self.margin, columns, 0, self.shares, by_precision(out), outside
        self.run_kernel(sliced_quantiles, bags, *arguments)


@embedding("extremes", ExtremesSpec)
class ExtremesEmbedding(UnboundedEmbedding[ExtremesSpec]):
    """Outermost points along directions, for labels that a single point decides.

    A mean over a large bag hardly depends on a single point, but the extremes do. For each of
    n_directions unit vectors θ, A(X) holds four quantiles of θᵀx over the bag's points: 0, tail,
    1 − tail and 1. Quantiles 0 and 1 are the minimum and the maximum; the two inner quantiles are
    not moved by a single outlier. Use `EmbeddingUnion` to combine extremes with another embedding.

    Parameters
    ----------
    n_directions
        Number of directions θ. The first directions are the coordinate axes; the others are
        random, and orthogonal within blocks of d. With fewer directions than coordinates, all
        directions are random. In one dimension there is one direction.
    tail
        Fraction of the points beyond each of the two inner quantiles. In bags of fewer than
        1 / tail points, the inner quantiles equal the minimum and the maximum.
    seed
        Seed for drawing the directions.

    Attributes
    ----------
    spec_ : ExtremesSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    This embedding is not in the papers. Minima and maxima of coordinates are common features for
    decision trees on bags (Gärtner, Flach, Kowalczyk and Smola, Multi-instance kernels, 2002). A
    bag and its repetition have the same embedding. The embedding sorts all projections, like
    `SlicedWassersteinEmbedding`.

    See Also
    --------
    EmbeddingUnion : Combines several embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import ExtremesEmbedding
    >>> ExtremesEmbedding(n_directions=8).fit_transform(X).shape
    (80, 32)
    """

    n_directions: Directions = 32
    tail: Tail = 0.01
    seed: RandomSeed = 0

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> ExtremesSpec:
        # nothing is chosen from the sample
        return ExtremesSpec(
            n_directions=self.n_directions if box.n_dims > 1 else 1,
            tail=self.tail,
            seed=self.seed,
            out_of_box=out_of_box,
            box=box,
        )
