"""`ShrunkEmbedding`: shrink the embeddings of small bags towards the mean of all bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core import Open
from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ...data.bags.bags import Bags, take_rows
from ...data.bags.box import Box
from ...execution.costs import Cost
from ..base import ChoiceSample, Embedding, EmbeddingSpec, InnerEmbedding
from ..description import Description
from ..kinds import check_inner, embedding, from_params
from ..projection import ProjectionEmbedding
from ..remembering import fill_once
from .inner import ITEM, InnerSpec

_SECONDS_PER_NUMBER = 4e-9  # for shrinking one feature of an embedding
ARRAYS_HELD = 4  # arrays of the size of the embeddings that exist at once while they are shrunk
SEED = 4004  # for drawing the halves; differs from the seeds of embeddings


@dataclass(frozen=True, kw_only=True)
class ShrunkSpec(InnerSpec):
    """A fitted shrunk embedding.

    Attributes
    ----------
    embedding : EmbeddingSpec
        Embedding that is shrunk.
    shrunk_mean, between, within : bytes
        Bytes of float64 arrays of shape (s,): the mean of the embeddings, the variance between
        bags, and the variance within bags, that is, of the embedding of a single point.

    See Also
    --------
    bagbasis.ShrunkEmbedding : Shrink embeddings of small bags.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import ShrunkEmbedding
    >>> spec = ShrunkEmbedding().fit(X).spec_
    >>> spec.n_features
    100
    """

    shrunk_mean: Annotated[bytes, Open("bytes of float64")]
    between: Annotated[bytes, Open("bytes of float64")]
    within: Annotated[bytes, Open("bytes of float64")]
    array_names = ("shrunk_mean", "between", "within")
    made = "shrunk embeddings"

    @property
    def n_features(self) -> int:
        """Length s of the embedding."""
        return self.embedding.n_features

    @property
    @override
    def blocks(self) -> tuple[tuple[int, float], ...]:
        return self.embedding.blocks

    @property
    @override
    def cost(self) -> Cost:
        # weights are in memory together with the output
        s = self.n_features
        own = Cost(seconds_per_bag=s * _SECONDS_PER_NUMBER, bytes_per_bag=ARRAYS_HELD * ITEM * s)
        return self.embedding.cost + own

    @override
    def describe(self) -> Description:
        inner = self.embedding.describe()
        return Description(
            f"{inner.text}, shrunk by bag size", series=inner.series, points=inner.points
        )

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        return self.embedding.feature_names(coordinates)

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        fill_once(self.embedding, bags, out, outside)
        mean = np.frombuffer(self.shrunk_mean)
        factors, _ = self._shrinkage(self.points_embedded(bags, outside))
        np.add(mean, factors * (out - mean), out=out, casting="same_kind")

    @property
    @override
    def is_uncertain(self) -> bool:
        return True

    @override
    def deviations(self, n_points: Integers) -> Floats:
        # √(A − A (A + S/n)⁻¹ A)
        factors, noise = self._shrinkage(n_points)
        return np.sqrt(factors * noise)

    def _shrinkage(self, n_points: Integers) -> tuple[Floats, Floats]:
        """Return A / (A + S/n), which is 1 if A and S are 0, and S/n, shapes (n_bags, s)."""
        between, within = np.frombuffer(self.between), np.frombuffer(self.within)
        noise = within / np.maximum(n_points, 1)[:, None]
        whole = between + noise
        return np.where(whole > 0, between / np.where(whole > 0, whole, 1), 1.0), noise


@embedding("shrunk", ShrunkSpec, nesting=3)
class ShrunkEmbedding(Embedding[ShrunkSpec]):
    """Shrink the embeddings of small bags towards the mean of all bags (empirical Bayes).

    The embedding z of a bag of n points is its expectation plus noise of variance S/n. Let m be the
    mean of all bags and A the variance between bags. The posterior mean m + A (A + S/n)⁻¹ (z − m)
    is computed for each feature, so that bags of few points are shrunk towards m (Law et al. 2018,
    "Bayesian approaches to distribution regression", §4). The posterior variance
    A − A (A + S/n)⁻¹ A widens the standard deviations of predictions. Use it if some bags have
    several times as many points as other bags.

    Parameters
    ----------
    embedding : embedding
        Unfitted embedding without its own box. Default: `ProjectionEmbedding()`.

    Attributes
    ----------
    spec_ : ShrunkSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    S is estimated from differences between random halves of up to 4,096 bags. This also works for
    embeddings that are not means. A is the variance of the same bags less the mean of S/n, but not
    below 0. If there is only one bag, or no bag has two points, embeddings are not changed. Use
    ``set_params(embedding__n_directions=64)`` to set parameters of the inner embedding.

    See Also
    --------
    SizeEmbedding : The number of points as a feature.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding, ShrunkEmbedding
    >>> ShrunkEmbedding(MomentsEmbedding()).fit_transform(X).shape
    (80, 5)
    """

    _defaults: ClassVar[dict[str, Any]] = {"embedding": ProjectionEmbedding}

    embedding: InnerEmbedding = field(default=None, kw_only=False)

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> ShrunkSpec:
        # reads the sample
        inner = check_inner(self.embedding, self)
        spec: EmbeddingSpec = inner.decide(sample, out_of_box, box)
        mean, between, within = _variances(spec, sample)
        return ShrunkSpec(
            embedding=spec,
            shrunk_mean=mean.tobytes(),
            between=between.tobytes(),
            within=within.tobytes(),
            out_of_box=out_of_box,
            box=box,
        )

    @classmethod
    @override
    def from_params(cls, params: dict[str, Any]) -> Self:
        # in ``params`` the embedding is {name, params}
        return cls(**{**params, "embedding": from_params(params["embedding"])})


def _variances(spec: EmbeddingSpec, sample: ChoiceSample) -> tuple[Floats, Floats, Floats]:
    """Return the mean, the variance between bags and the variance of a point within bags."""
    rng = np.random.Generator(np.random.Philox(SEED))
    parts: list[Floats] = []
    inverse: list[Floats] = []
    squares, weight = np.zeros(spec.n_features), 0.0
    for bags in sample():
        rows, n_points = _embedded(spec, bags)
        inside = np.isfinite(rows).all(axis=1)
        parts.append(rows[inside])
        inverse.append(1 / n_points[inside])
        halves, of_half = _embedded(spec, _halves(bags, rng))
        differ = halves[::2] - halves[1::2]
        inside = np.isfinite(differ).all(axis=1)
        squares += (differ[inside] ** 2).sum(axis=0)
        weight += float((1 / of_half.reshape(-1, 2)[inside]).sum())
    if not sum(map(len, parts)):
        raise DataError("no bags to tell the noise of embeddings by")
    rows = np.concatenate(parts)
    mean = rows.mean(axis=0)
    if len(rows) == 1 or not weight:
        return mean, np.zeros_like(mean), np.zeros_like(mean)
    within = squares / weight
    noise = within * np.concatenate(inverse).mean()
    return mean, np.maximum(rows.var(axis=0, ddof=1) - noise, 0.0), within


def _embedded(spec: EmbeddingSpec, bags: Bags) -> tuple[Floats, Integers]:
    """Return the embeddings (NaN for bags without points) and the number of embedded points."""
    rows, outside = np.empty((len(bags), spec.n_features)), np.zeros(len(bags), np.int64)
    fill_once(spec, bags, rows, outside)
    return rows, spec.points_embedded(bags, outside)


def _halves(bags: Bags, rng: np.random.Generator) -> Bags:
    """Return two random halves of each bag of two or more points, one after the other."""
    bags = take_rows(bags, np.flatnonzero(bags.sizes > 1))
    owner = np.repeat(np.arange(len(bags)), bags.sizes)
    order = np.lexsort((rng.random(bags.n_points), owner))
    middles = bags.offsets[:-1] + bags.sizes // 2
    offsets = np.append(np.stack([bags.offsets[:-1], middles], axis=1).ravel(), bags.offsets[-1])
    return Bags.trusted(bags.points[order], offsets, names=bags.coordinate_names)
