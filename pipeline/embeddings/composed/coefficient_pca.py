"""`CoefficientPCA`: principal components of the coefficients of another embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core import Fraction, Integer, Open
from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ...data.bags.bags import Bags
from ...data.bags.box import Box
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.store.plan import Range
from ...data.store.sampling import RunSample
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.passes import rows_of, run_pass
from ...execution.products import multiply
from ...execution.progress import Progress, note
from ..base import ChoiceSample, Embedding, EmbeddingSpec, InnerEmbedding
from ..description import Description
from ..kinds import check_inner, embedding, from_params
from ..projection import ProjectionEmbedding
from .inner import ITEM, InnerSpec
from .row_moments import (
    RowsOf,
    count_axes,
    measure_moments,
    principal_axes,
    seconds_per_row,
    signed,
)

# Smallest deviations, relative to the largest one and to the mean. Smaller deviations come from
# rounding of float32 coefficients, which whitening would amplify.
_MIN_DEVIATION = 1e-5, 1e-7


@dataclass(frozen=True, kw_only=True)
class CoefficientPCASpec(InnerSpec):
    """Fitted principal components.

    Attributes
    ----------
    embedding : EmbeddingSpec
        Embedding whose coefficients are reduced.
    principal_mean, principal_axes : bytes
        Bytes of float64 arrays, shapes (s,) and (k, s). The features are axes · (A(X) − mean).

    See Also
    --------
    bagbasis.CoefficientPCA : Principal components of an embedding.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import CoefficientPCA
    >>> spec = CoefficientPCA(n_components=3).fit(X).spec_
    >>> spec.n_features
    3
    """

    principal_mean: Annotated[bytes, Open("bytes of float64")]
    principal_axes: Annotated[bytes, Open("bytes of float64")]
    array_names = ("principal_mean", "principal_axes")
    described = ("n_components", "digest")
    made = "components"

    @property
    def mean(self) -> Floats:
        """Mean of the coefficients, which is subtracted, shape (s,)."""
        return np.frombuffer(self.principal_mean)

    @property
    def axes(self) -> Floats:
        """Principal axes, divided by standard deviations if whitened, shape (k, s)."""
        return np.frombuffer(self.principal_axes).reshape(-1, self.embedding.n_features)

    @property
    def n_components(self) -> int:
        """Length k of the embedding."""
        return len(self.principal_axes) // len(self.principal_mean)

    @property
    def n_features(self) -> int:
        """Length k of the embedding."""
        return self.n_components

    @property
    @override
    def cost(self) -> Cost:
        # the coefficients are in memory together with the output
        k = self.n_features
        return self.embedding.cost + Cost(
            seconds_per_bag=2 * k * self.embedding.n_features * SECONDS_PER_PRODUCT,
            bytes_per_bag=ITEM * k,
            bytes_per_task=2 * (len(self.principal_axes) + len(self.principal_mean)),
        )

    @override
    def describe(self) -> Description:
        # densities are drawn from the coefficients of the inner embedding
        inner = self.embedding.describe()
        return Description(
            f"{self.n_features} principal components of {inner.text}", series=inner.series
        )

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        return [f"pca{j}" for j in range(self.n_features)]

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        rows = np.empty((len(bags), self.embedding.n_features), out.dtype)
        self.embedding.fill(bags, rows, outside)
        rows -= self.mean.astype(out.dtype, copy=False)
        multiply(rows, self.axes.T.astype(out.dtype, copy=False), out)


@embedding("coefficient_pca", CoefficientPCASpec, nesting=2)
class CoefficientPCA(Embedding[CoefficientPCASpec]):
    """Reduce an embedding to its leading principal components.

    This is the functional PCA of Oliva 2018, §5.1. It finds basis functions ψ_i = Σ_α v_α⁽ⁱ⁾ φ_α
    along which bags differ most. Use it to shorten a long embedding before random features are
    computed, for example the 4,000 coefficients of `HDDEmbedding("tv")` to 64.

    Parameters
    ----------
    embedding : embedding
        Unfitted embedding without its own box. Default: `ProjectionEmbedding()`.
    n_components
        Number of components. If bags differ along fewer axes, there are fewer components. A float
        is the fraction of the variance that the components must explain.
    whiten
        Whether to divide each component by its standard deviation over the bags.
    max_bags
        Approximate number of bags from which the components are computed, in evenly spread runs.
        Default: all bags, with or without labels. This pass costs as much as a fit with one random
        feature per coefficient.

    Attributes
    ----------
    spec_ : CoefficientPCASpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    AᵀA is computed in one pass over the bags, on the cluster if one is open. If there are at most
    as many bags as coefficients, all embeddings are stored and AAᵀ is used instead. Use
    ``set_params(embedding__distance="tv")`` to set parameters of the inner embedding.

    See Also
    --------
    PointTransformer : Principal components of points instead of embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from bagbasis import CoefficientPCA, ProjectionEmbedding
    >>> CoefficientPCA(ProjectionEmbedding(n_per_dim=6), n_components=3).fit_transform(X).shape
    (80, 3)
    """

    _defaults: ClassVar[dict[str, Any]] = {"embedding": ProjectionEmbedding}

    smoothness: ClassVar = {"n_components": {}}
    embedding: InnerEmbedding = field(default=None, kw_only=False)
    n_components: Annotated[int, Integer(1)] | Annotated[float, Fraction] = 64
    whiten: bool = False
    max_bags: Annotated[int, Integer(1)] | None = None

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> CoefficientPCASpec:
        # takes a pass over the bags
        wanted, max_bags = self.n_components, self.max_bags
        inner = check_inner(self.embedding, self)
        spec: EmbeddingSpec = inner.decide(sample, out_of_box, box)
        source, ranges = sample.every_bag, None
        if max_bags is not None and max_bags < source.n_bags:
            ranges = RunSample.of_about(max_bags).ranges(source.start, source.end)
        rows = partial(_finite_rows, spec, sample.mapped)
        mean, variances, axes = _principal(source, rows, spec, wanted, ranges, sample.progress)
        deviations = np.sqrt(variances)
        least = max(np.array(_MIN_DEVIATION) * (deviations[0], np.abs(mean).max()))
        rank = int((deviations > least).sum())
        n_kept = count_axes(variances, wanted) if isinstance(wanted, float) else wanted
        components = axes[: max(1, min(n_kept, rank))]
        if self.whiten and rank:
            components = components / deviations[: len(components), None]
        return CoefficientPCASpec(
            embedding=spec,
            principal_mean=mean.tobytes(),
            principal_axes=np.ascontiguousarray(components).tobytes(),
            out_of_box=out_of_box,
            box=box,
        )

    @classmethod
    @override
    def from_params(cls, params: dict[str, Any]) -> Self:
        # in ``params`` the embedding is {name, params}
        return cls(**{**params, "embedding": from_params(params["embedding"])})


def _principal(
    source: LabelledBags,
    rows: RowsOf,
    spec: EmbeddingSpec,
    wanted: float,
    ranges: Sequence[Range] | None,
    progress: Progress | None,
) -> tuple[Floats, Floats, Floats]:
    """Return mean, variances and axes of the embeddings, in descending order of variance."""
    note(progress, "principal components")
    s = spec.n_features
    n_bags = source.n_bags if ranges is None else sum(b - a for a, b in ranges)
    if n_bags <= s:
        coefficients = rows_of("coefficients", partial(_of_batch, rows), spec.cost)
        return _principal_of_rows(run_pass(source, coefficients, ranges=ranges, progress=progress))
    cost = spec.cost + Cost(seconds_per_bag=seconds_per_row(s))
    moments = measure_moments(source, rows, s, cost, ranges, progress)
    _check_count(moments.n)
    every = None if isinstance(wanted, float) else int(wanted)
    values, axes = principal_axes(moments.scatter, every)
    return moments.mean, values / max(1, moments.n - 1), signed(axes)


def _principal_of_rows(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the result of `_principal` for at most as many rows as columns."""
    _check_count(len(rows))
    mean = rows.mean(axis=0)
    rows = rows - mean
    values, vectors = principal_axes(rows @ rows.T)
    axes = vectors @ rows
    norms = np.linalg.norm(axes, axis=1, keepdims=True)
    return mean, values / max(1, len(rows) - 1), signed(axes / np.where(norms > 0, norms, 1))


def _check_count(n: int) -> None:
    if not n:
        raise DataError("no bags to take principal components of")


def _finite_rows(spec: EmbeddingSpec, mapped: Callable[[Bags], Bags] | None, bags: Bags) -> Floats:
    """Return the coefficients of bags, without bags whose points were all dropped."""
    bags = bags if mapped is None else mapped(bags)
    rows = np.empty((len(bags), spec.n_features))
    spec.fill(bags, rows, np.zeros(len(bags), np.int64))
    return rows[np.isfinite(rows).all(axis=1)]


def _of_batch(rows: RowsOf, batch: Batch) -> NDArray[Any]:
    return rows(batch.bags)
