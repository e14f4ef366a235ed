"""`MomentsEmbedding`: embed a bag as the mean and the covariance of its points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations_with_replacement
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..core import ListOf, Real
from ..core.arrays import Integers, by_precision
from ..core.errors import DataError, ParameterError
from ..data.bags.bags import Bags
from ..data.bags.box import Box
from .base import ChoiceSample, UnboundedEmbedding, UnboundedSpec
from .description import Description
from .kernels.moments_kernels import moments
from .kernels.same_bits import INTERMEDIATE_BYTES
from .kinds import embedding
from .remembering import fill_once

_MIN_RELATIVE_SPREAD = (
    1e-12  # relative to a moment; a smaller spread is rounding and is not scaled up
)


PerMoment = Annotated[tuple[float, ...], ListOf(Real())]


@dataclass(frozen=True)
class MomentsSpec(UnboundedSpec):
    """Fitted moments; see `MomentsEmbedding` for the fields.

    See Also
    --------
    bagbasis.MomentsEmbedding : Means and covariances.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding
    >>> spec = MomentsEmbedding(covariance=False).fit(X).spec_
    >>> spec.n_features
    2
    """

    bytes_before_kernels: ClassVar[int] = INTERMEDIATE_BYTES
    covariance: bool
    _: KW_ONLY
    center: PerMoment | None = None
    scale: PerMoment | None = None

    OMITTED: ClassVar = (*UnboundedSpec.OMITTED, "center", "scale")

    @override
    def check_together(self) -> None:
        for name in ("center", "scale"):
            numbers = getattr(self, name)
            if numbers is not None and len(numbers) != self.n_features:
                raise ParameterError(
                    f"{name} has {len(numbers)} numbers for {self.n_features} moments"
                )

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        d = self.n_dims
        return d + d * (d + 1) // 2 if self.covariance else d

    @property
    @override
    def seconds_per_point(self) -> float:
        return 1.3e-9 * (5 + self.n_dims + self.n_features)

    @override
    def describe(self) -> Description:
        text = "mean and covariance" if self.covariance else "mean"
        return Description(text if self.scale is None else f"standardised {text}")

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        means = [f"mean({name})" for name in coordinates]
        pairs = combinations_with_replacement(coordinates, 2) if self.covariance else ()
        return means + [f"cov({a},{b})" for a, b in pairs]

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        self.run_kernel(moments, bags, self.margin, self.covariance, by_precision(out), outside)
        if self.center is not None and self.scale is not None:
            out -= np.array(self.center, out.dtype)
            out /= np.array(self.scale, out.dtype)


@embedding("moments", MomentsSpec)
class MomentsEmbedding(UnboundedEmbedding[MomentsSpec]):
    """Summary statistics: the mean of a bag's points and the upper triangle of their covariance.

    This is a common way to represent bags, and the baseline for embeddings of whole densities. It
    describes Gaussian bags completely, but no other property of a shape. Its length in R^d is
    d + d (d + 1) / 2, so that it can be used if d is too large for density estimates.

    Parameters
    ----------
    covariance
        Whether to include the covariances; if False, the embedding is the mean.
    standardize
        Whether to subtract the mean of each moment over a sample of bags and divide by its standard
        deviation. Covariances, which are smaller than means, then count in distances between bags.

    Attributes
    ----------
    spec_ : MomentsSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    The covariance is Σ (x − x̄)(x − x̄)ᵀ / n, with divisor n instead of n − 1. A bag of one point has
    covariance 0, and a bag and its repetition have the same embedding.

    See Also
    --------
    MeanMapEmbedding : Kernel mean embedding, which depends on the whole distribution.
    PointTransformer : Transforms points before their moments are taken.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import MomentsEmbedding
    >>> embedding = MomentsEmbedding().fit(X)
    >>> list(embedding.get_feature_names_out())
    ['mean(x0)', 'mean(x1)', 'cov(x0,x0)', 'cov(x0,x1)', 'cov(x1,x1)']
    >>> embedding.transform(X).shape
    (80, 5)
    """

    covariance: bool = True
    standardize: bool = True

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> MomentsSpec:
        # the sample is read only to standardise
        spec = MomentsSpec(self.covariance, out_of_box=out_of_box, box=box)
        return _standardized(spec, sample()) if self.standardize else spec

    @classmethod
    @override
    def from_params(cls, params: dict[str, Any]) -> Self:
        # models of versions without ``standardize`` were not standardised
        return cls(**{"standardize": False, **params})


def _standardized(spec: MomentsSpec, sample: Iterable[Bags]) -> MomentsSpec:
    """Return the spec with the mean and the standard deviation of each moment over a sample."""
    parts = []
    for bags in sample:
        rows = np.empty((len(bags), spec.n_features))
        fill_once(spec, bags, rows, np.empty(len(bags), np.int64))
        parts.append(rows[np.isfinite(rows[:, 0])])  # a bag without points is NaN
    rows = np.concatenate(parts) if parts else np.empty((0, spec.n_features))
    if len(rows) == 0:
        raise DataError("no bags to standardise the moments by; pass standardize=False")
    spread = rows.std(axis=0)
    alike = spread <= _MIN_RELATIVE_SPREAD * np.abs(rows).max(axis=0)
    return replace(
        spec,
        center=tuple(rows.mean(axis=0).tolist()),
        scale=tuple(np.where(alike, 1.0, spread).tolist()),
    )
