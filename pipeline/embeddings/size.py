"""`SizeEmbedding`: embed a bag as the logarithm of its number of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..core.arrays import Integers
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from .base import ChoiceSample, Embedding, EmbeddingSpec
from .description import Description
from .kinds import embedding


@dataclass(frozen=True)
class SizeSpec(EmbeddingSpec):
    """A fitted size embedding; see `SizeEmbedding` for the fields.

    See Also
    --------
    bagbasis.SizeEmbedding : Logarithm of the number of points.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import SizeEmbedding
    >>> SizeEmbedding().fit(X).spec_.n_features
    1
    """

    n_features = 1

    @property
    @override
    def seconds_per_point(self) -> float:
        return 2e-9 * self.n_dims

    @override
    def describe(self) -> Description:
        return Description("logarithm of the number of points")

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        return ["log(n_points)"]

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        outside[:] = self.count_outside(bags)
        n_points = self.points_embedded(bags, outside)
        out[:, 0] = np.where(n_points > 0, np.log(np.maximum(n_points, 1)), np.nan)


@embedding("size", SizeSpec)
class SizeEmbedding(Embedding[SizeSpec]):
    """The logarithm of the number of points, for labels that depend on the size of a bag.

    All other embeddings describe the distribution of the points: a bag and its repetition have the
    same embedding. Use `EmbeddingUnion` to combine this embedding with another one if the label
    depends on the number of points. Examples are totals, such as the mass of a galaxy. Alone, this
    embedding is a baseline. ``embedding="auto"`` tries it if bags have different sizes.

    Parameters
    ----------
    out_of_box
        How to treat points outside the box. Clipped points count as points of the bag; dropped
        points do not.
    box : sequence of (lo, hi)
        Range of each coordinate. Points outside are dropped or rejected if ``out_of_box`` says so.
        Default: as in `ProjectionEmbedding`.

    Attributes
    ----------
    spec_ : SizeSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    This embedding is not in the papers. There, bags are samples of a distribution, and the size of
    a bag carries no information.

    See Also
    --------
    EmbeddingUnion : Combines several embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis import SizeEmbedding
    >>> X = [rng.normal(size=(n, 2)) for n in (10, 100, 1000)]
    >>> SizeEmbedding().fit_transform(X).round(2).ravel()
    array([2.3 , 4.61, 6.91], dtype=float32)
    """

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> SizeSpec:
        # nothing is chosen from the sample
        return SizeSpec(out_of_box=out_of_box, box=box)
