"""`RankedSummariesEmbedding`: embed a bag as the ranks of its summary statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..core import Integer, ListOf, Real
from ..core.arrays import Floats, Integers
from ..core.errors import DataError, ParameterError
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from ..execution.costs import Cost
from .base import ChoiceSample, UnboundedEmbedding, UnboundedSpec
from .bases.functions import MAX_FUNCTIONS
from .composed.union import UnionSpec
from .description import Description
from .extremes import ExtremesSpec
from .kinds import embedding
from .moments import MomentsSpec

MAX_COVARIANCES = 300  # of summaries of bags; there would be more from 25 coordinates on
TAIL = 0.01  # fraction of the points beyond the inner quantiles
_SECONDS_PER_NUMBER = 4e-9  # for the code of one level
_HELD = 3  # arrays of the size of the output that exist at once

LevelCount = Annotated[int, Integer(1, 64)]


@dataclass(frozen=True, kw_only=True)
class RankedSummariesSpec(UnboundedSpec):
    """Fitted ranks of summary statistics; see `RankedSummariesEmbedding`.

    Attributes
    ----------
    n_levels : int
        Number of features of each statistic.
    quantiles : tuple of float
        Quantiles of each statistic over bags, from 0 to 1 in steps of 1 / n_levels, one statistic
        after the other.

    See Also
    --------
    bagbasis.RankedSummariesEmbedding : Ranks of summary statistics.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import RankedSummariesEmbedding
    >>> RankedSummariesEmbedding(n_levels=2).fit(X).spec_.n_features
    26
    """

    n_levels: LevelCount
    quantiles: Annotated[tuple[float, ...], ListOf(Real(), 1)]

    OMITTED: ClassVar = ()

    @override
    def check_together(self) -> None:
        n = self._summaries.n_features * (self.n_levels + 1)
        if len(self.quantiles) != n:
            raise ParameterError(f"quantiles has {len(self.quantiles)} numbers; expected {n}")

    @property
    def _summaries(self) -> UnionSpec:
        return summaries_of(self.box, self.out_of_box, self.margin)

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return len(self.quantiles) // (self.n_levels + 1) * self.n_levels

    @property
    @override
    def seconds_per_point(self) -> float:
        return self._summaries.seconds_per_point

    @property
    @override
    def cost(self) -> Cost:
        s = self.n_features
        own = Cost(seconds_per_bag=s * _SECONDS_PER_NUMBER, bytes_per_bag=8 * _HELD * s)
        return self._summaries.cost + own

    @override
    def describe(self) -> Description:
        return Description("ranks of means, covariances and extremes of coordinates")

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        names = [name for part in self._summaries.parts for name in part.feature_names(coordinates)]
        return [f"rank({name}, {level})" for name in names for level in range(self.n_levels)]

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        rows = _rows_of(self._summaries, bags, outside)
        knots = np.array(self.quantiles).reshape(rows.shape[1], -1)
        low, high = knots[:, :-1], knots[:, 1:]
        widths = np.where(high > low, high - low, 1.0)
        codes = rows[:, :, None] - low
        codes /= widths
        steps = high <= low  # equal quantiles make a step, which is halved at the quantile itself
        codes[:, steps] = 0.5 + 0.5 * np.sign(codes[:, steps])
        out[...] = np.clip(codes, 0.0, 1.0, out=codes).reshape(len(rows), -1)


@embedding("ranked_summaries", RankedSummariesSpec)
class RankedSummariesEmbedding(UnboundedEmbedding[RankedSummariesSpec]):
    """Ranks of summary statistics among bags, which monotone transformations do not change.

    The statistics of a bag are the means and covariances of its points, and minimum, maximum and
    the quantiles .01 and .99 of each coordinate. The rank r of a statistic among the training bags,
    from 0 to 1, is written as n_levels numbers (a thermometer code): number j is 0 below the rank
    j / n_levels, 1 above the rank (j + 1) / n_levels, and linear between them. The squared distance
    of two codes is about the distance |r − r'|. The Gaussian kernel of the embedding is therefore
    about a Laplace kernel of ranks, which behaves like the average of many trees: it depends on the
    order of the statistics, and outliers do not stretch it.

    Parameters
    ----------
    n_levels
        Number of features of each statistic.

    Attributes
    ----------
    spec_ : RankedSummariesSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    This embedding is not in the papers. With 25 coordinates or more, variances and covariances are
    left out. A bag and its repetition have the same embedding. With up to 1,024 labelled bags and
    2,048 coordinates, ``embedding="auto"`` averages the kernel of the best embedding with the
    kernel of this one, unless this is worse by more than a standard error.

    See Also
    --------
    MomentsEmbedding : Means and covariances themselves.
    ExtremesEmbedding : Extremes along directions.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import RankedSummariesEmbedding
    >>> RankedSummariesEmbedding().fit_transform(X).shape
    (80, 52)
    """

    n_levels: LevelCount = 4

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> RankedSummariesSpec:
        # quantiles are those of the sample
        summaries = summaries_of(box, out_of_box, 0.0)
        each = [_rows_of(summaries, bags, np.zeros(len(bags), np.int64)) for bags in sample()]
        rows = np.concatenate(each) if each else np.empty((0, 1))
        rows = rows[np.isfinite(rows).all(axis=1)]  # a bag without points is NaN
        if not len(rows):
            raise DataError("no bags to rank summary statistics by")
        Integer(1, MAX_FUNCTIONS // rows.shape[1]).check("n_levels", self.n_levels)
        knots = np.quantile(rows, np.linspace(0, 1, self.n_levels + 1), axis=0)
        quantiles = tuple(knots.T.ravel().tolist())
        return RankedSummariesSpec(
            n_levels=self.n_levels, quantiles=quantiles, out_of_box=out_of_box, box=box
        )


def summaries_of(box: Box, out_of_box: str, margin: float) -> UnionSpec:
    """Return the embedding whose features are ranked: moments, and extremes of each coordinate."""
    d = box.n_dims
    shared: dict[str, Any] = {"out_of_box": out_of_box, "box": box, "margin": margin}
    with_covariances = d * (d + 1) // 2 <= MAX_COVARIANCES
    return UnionSpec(
        names=("moments", "extremes"),
        parts=(
            MomentsSpec(covariance=with_covariances, **shared),
            ExtremesSpec(n_directions=d, tail=TAIL, seed=0, **shared),
        ),
        join="product",
        scales=(1.0, 1.0),
        weights=(1.0, 1.0),
        out_of_box=out_of_box,
        box=box,
    )


def _rows_of(summaries: UnionSpec, bags: Bags, outside: Integers) -> Floats:
    """Return the summaries of bags, and count their points outside."""
    rows = np.empty((len(bags), summaries.n_features))
    summaries.fill(bags, rows, outside)
    return rows
