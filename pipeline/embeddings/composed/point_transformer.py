"""`PointTransformer`: transform points before they are embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from ...core import Instance, Integer, ListOf, Open, check_parameters
from ...core.arrays import Floats, Integers
from ...core.errors import BagError, DataError, ParameterError
from ...core.sklearn_bases import BaseEstimator
from ...data.bags.bags import Bags, BagsInMemory, as_bags
from ...data.bags.box import Box, range_of
from ...data.store.plan import plan_partitions
from ...data.store.sampling import spread_rows
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.progress import note
from ..base import BoxLike, ChoiceSample, Embedding, EmbeddingSpec, InnerEmbedding
from ..description import Description
from ..kinds import check_inner, embedding, from_params, is_below, with_name
from ..projection import ProjectionEmbedding
from ..refusals import check_dims
from ..transforms import NO_ARRAYS, Arrays
from .point_maps import PointMap, PointStep, fit_steps, transformer_of
from .row_moments import RowMoments, measure_moments, seconds_per_row

# With more coordinates, only variances are computed if no step rotates: the scatter of 2,212 points
# of 5,863 coordinates took six seconds. With fewer, results have the bits of earlier versions.
VARIANCES_ALONE = 1024
# Transformed points in memory at a time, and their numbers: 32 MiB of points of many coordinates.
_POINTS_AT_ONCE, _NUMBERS_AT_ONCE = 2**14, 2**22
_SECONDS_PER_NUMBER = 5e-9  # for copying, mapping and checking a coordinate


@dataclass(frozen=True, kw_only=True)
class PointTransformerSpec(EmbeddingSpec):
    """A fitted embedding of transformed points.

    Attributes
    ----------
    steps : tuple of PointStep
        Steps of the transformation.
    n_coordinates : int
        Number of coordinates of a point before the steps.
    embedding : EmbeddingSpec
        Embedding of the transformed points; its box is a box of transformed points.

    See Also
    --------
    bagbasis.PointTransformer : Transform points before they are embedded.
    EmbeddingSpec : Base class of fitted embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bagbasis import MomentsEmbedding, PointTransformer
    >>> spec = PointTransformer(StandardScaler(), MomentsEmbedding()).fit(X).spec_
    >>> spec.n_features
    5
    """

    steps: Annotated[tuple[PointStep, ...], ListOf(Instance("PointStep"))]
    n_coordinates: Annotated[int, Integer(1)]
    embedding: Annotated[EmbeddingSpec, Instance()]

    @override
    def check_together(self) -> None:
        inner = self.embedding
        if not is_below(type(inner), self.nesting):
            raise ParameterError(f"points are not transformed for a {type(inner).__name__}")
        if (inner.box, inner.out_of_box) != (self.box, self.out_of_box):
            raise ParameterError("transformed points have the box and out_of_box of the embedding")
        n = self.mapped.n_outputs(self.n_coordinates)
        if n != inner.n_dims:
            raise ParameterError(f"the steps make {n} coordinates, the box has {inner.n_dims}")

    @property
    def n_dims(self) -> int:
        """Number of coordinates of a point before it is transformed."""
        return self.n_coordinates

    @property
    def mapped(self) -> PointMap:
        """Map from bags to bags of transformed points."""
        return PointMap(self.steps)

    @property
    def n_features(self) -> int:
        """Length of the embedding."""
        return self.embedding.n_features

    @override
    def with_margin(self) -> Self:
        return replace(self, embedding=self.embedding.with_margin())

    @property
    @override
    def blocks(self) -> tuple[tuple[int, float], ...]:
        return self.embedding.blocks

    @property
    @override
    def seconds_per_point(self) -> float:
        return self.embedding.seconds_per_point + _seconds(self.steps, self.n_dims)

    @property
    @override
    def cost(self) -> Cost:
        widest = max(self.n_dims, self.embedding.n_dims)
        return self.embedding.cost + Cost(
            seconds_per_point=_seconds(self.steps, self.n_dims),
            bytes_per_bag=8,  # its offset
            bytes_per_task=4 * 8 * widest * _points_at_once(widest),
        )

    @override
    def describe(self) -> Description:
        # densities of transformed points are not drawn
        inner = self.embedding.describe()
        return Description(
            f"{inner.text} of transformed points", series=None, points="transformed points"
        )

    @override
    def feature_names(self, coordinates: Sequence[str]) -> list[str]:
        # principal components get new names
        for step in self.steps:
            if step.columns is not None:
                coordinates = [coordinates[j] for j in step.columns]
            if step.axes is not None:
                coordinates = [f"pca{j}" for j in range(len(step.axes))]
        return self.embedding.feature_names(coordinates)

    @override
    def are_outside(self, points: NDArray[Any], margin: float = 0.0) -> NDArray[np.bool_]:
        bags = Bags.trusted(points, np.array([0, len(points)]))
        return self.embedding.are_outside(self.mapped(bags).points, margin)

    @override
    def fill(self, bags: Bags, out: NDArray[Any], outside: Integers) -> None:
        at_once = _points_at_once(max(self.n_dims, self.embedding.n_dims))
        for start, stop in plan_partitions(bags.offsets, 1, at_once):
            try:
                mapped = self.mapped(bags[start:stop])
            except BagError as error:
                raise BagError(start + error.bag, error.reason) from error
            self.embedding.fill(mapped, out[start:stop], outside[start:stop])

    @property
    @override
    def is_uncertain(self) -> bool:
        return self.embedding.is_uncertain

    @override
    def deviations(self, n_points: Integers) -> Floats:
        return self.embedding.deviations(n_points)

    @override
    def arrays(self) -> dict[str, Floats]:
        return self.embedding.arrays()

    @override
    def to_dict(self) -> dict[str, Any]:
        steps = [step.to_dict() for step in self.steps]
        inner = with_name(self.embedding)
        return {**super().to_dict(), "steps": steps, "embedding": inner}

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], arrays: Arrays = NO_ARRAYS) -> Self:
        steps = values.get("steps")
        if isinstance(steps, list):
            values = {**values, "steps": tuple(map(PointStep.from_dict, steps))}
        return super().from_dict(values, arrays)


@embedding("point_transformer", PointTransformerSpec, nesting=4)
class PointTransformer(Embedding[PointTransformerSpec]):
    """Transform points (standardise, rotate, take logarithms) before they are embedded.

    The mean and the scatter matrix of all points are computed in one pass over a store, on the
    cluster if one is open. The fitted transformer is the same as scikit-learn's for all points
    stacked. The box is then measured on the transformed points; you do not have to set it.
    `BagStandardizer` of skl-groups (Sutherland 2016, App. A) is
    ``PointTransformer(StandardScaler())``, and `BagPCA` is
    ``PointTransformer(PCA(n_components=3, whiten=True))``.

    Parameters
    ----------
    transformer : scikit-learn transformer, default StandardScaler()
        Transformer of scikit-learn, which `fit` does not change. It is a StandardScaler, a PCA, a
        FunctionTransformer of numpy's log, log1p, log10, sqrt, cbrt or arcsinh, or a Pipeline of
        these. ``ColumnTransformer([("kept", "passthrough", [0, 3])])`` selects coordinates. No
        other transformer can be fitted in one pass and saved without pickle.
    embedding : embedding
        Embedding of the transformed points: an unfitted embedding without its own box. Default:
        `ProjectionEmbedding()`.
    out_of_box
        How to treat transformed points outside the box; clipped and dropped points are counted.
    box : sequence of (lo, hi)
        Box of the transformed points. Default: a box around the transformed points of up to 4,096
        bags, which a few outliers do not stretch. The box of a store is not used.

    Attributes
    ----------
    spec_ : PointTransformerSpec
        The fitted embedding, with all parameters that `fit` chose.

    Notes
    -----
    A transformer after a FunctionTransformer needs a separate pass. Use
    ``set_params(transformer__n_components=5, embedding__n_per_dim=8)`` to set parameters.

    See Also
    --------
    CoefficientPCA : Principal components of embeddings instead of points.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(0.5, 2.0, 80)
    >>> X = [rng.normal(0, s, (30, 2)) for s in y]
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bagbasis import MomentsEmbedding, PointTransformer
    >>> embedding = PointTransformer(StandardScaler(), MomentsEmbedding()).fit(X)
    >>> embedding.transform(X).shape
    (80, 5)
    >>> embedding.transform_points(X).n_points  # the points that are embedded
    2400
    """

    _defaults: ClassVar[dict[str, Any]] = {
        "embedding": ProjectionEmbedding,
        "transformer": StandardScaler,
    }

    transformer: Annotated[Any, Open("a transformer of scikit-learn, or None")] = field(
        default=None, kw_only=False
    )
    embedding: InnerEmbedding = field(default=None, kw_only=False)

    @override
    def resolve(self, n_dims: int, box: Box, sample: ChoiceSample) -> PointTransformerSpec:
        # ``box`` is not used: it is a box of untransformed points
        check_parameters(self)
        spec = self._decided(sample, self.out_of_box, self.box)
        return spec.with_margin() if self.box is None else spec

    @override
    def decide(self, sample: ChoiceSample, out_of_box: str, box: Box) -> PointTransformerSpec:
        # takes a pass over the bags; ``box`` is a box of transformed points
        return self._decided(sample, out_of_box, box)

    def _decided(
        self, sample: ChoiceSample, out_of_box: str, box: BoxLike | None
    ) -> PointTransformerSpec:
        inner = check_inner(self.embedding, self)
        transformer = StandardScaler() if self.transformer is None else self.transformer
        steps = fit_steps(transformer, partial(_measure, sample))
        mapped, n_dims = PointMap(steps), sample.source.n_dims
        n_outputs = mapped.n_outputs(n_dims)  # refuses steps that do not fit
        after = replace(sample, responses=False, mapped=mapped)
        box = box_of_sample(after) if box is None else Box.of(box, n_outputs)
        spec = inner.decide(after, out_of_box, box)
        return PointTransformerSpec(
            steps=steps, n_coordinates=n_dims, embedding=spec, out_of_box=out_of_box, box=box
        )

    def transform_points(self, X: BagsInMemory) -> Bags:
        """Return bags of the transformed points, float32 or float64 like the points of X.

        Raises
        ------
        DataError
            If the bags have another dimension, or a transformed point is not finite.
        """
        check_is_fitted(self)
        bags = self._in_order(as_bags(X))
        check_dims(bags, self.spec_.n_dims)
        return self.spec_.mapped(bags)

    @classmethod
    @override
    def from_params(cls, params: dict[str, Any]) -> Self:
        # in ``params`` transformers are a list of {name, parameters}
        steps = params["transformer"]
        transformer: BaseEstimator | None = None if steps is None else transformer_of(steps)
        inner = from_params(params["embedding"])
        return cls(**{**params, "transformer": transformer, "embedding": inner})


class PointScales:
    """Transformed points of bags in memory, for several transformers.

    Each transformer is fitted as in `PointTransformer`. Transformers with the same first steps
    share one pass over the points.
    """

    def __init__(self, bags: Bags) -> None:
        self._bags = bags
        self._measure = cache(partial(_measure, ChoiceSample.whole(bags)))

    def put(self, transformer: object) -> tuple[PointMap, Bags, Box]:
        """Return the fitted steps of a transformer, bags of transformed points, and their box.

        Raises
        ------
        BagError
            If a transformed point is not finite.
        ParameterError
            If `PointTransformer` does not support the transformer.
        """
        mapped = PointMap(fit_steps(transformer, self._measure))
        bags = mapped(self._bags)
        return mapped, bags, box_of_sample(ChoiceSample.whole(bags))


def box_of_sample(sample: ChoiceSample) -> Box:
    """Return the unit cube if it contains the points of a sample, else a box around them.

    `Box.around` makes the box, which a few outliers do not stretch.
    """
    samples: list[NDArray[Any]] = []
    ends: list[NDArray[Any]] = []
    for bags in sample():
        wanted = Box.sample_size(bags.n_dims) // sample.runs.n_runs
        samples.append(spread_rows(bags.points, wanted))
        ends += range_of(bags.points)
    if not samples:
        raise DataError("no bags to measure a box of")
    lo, hi = range_of(np.stack(ends))
    if (lo >= 0).all() and (hi <= 1).all():
        return Box.unit(len(lo))
    every = samples[0] if len(samples) == 1 else np.concatenate(samples)  # without a copy
    return Box.around(lo, hi, sample=every)


def _measure(sample: ChoiceSample, steps: tuple[PointStep, ...], rotates: bool) -> RowMoments:
    """Return the moments of all points after the steps, computed in one pass."""
    note(sample.progress, "moments of all points")
    source, mapped = sample.every_bag, PointMap(steps)
    n = mapped.n_outputs(source.n_dims)
    diagonal = n > VARIANCES_ALONE and not rotates
    seconds = _seconds(steps, source.n_dims) + seconds_per_row(n, diagonal)
    rows = partial(_points, mapped)
    cost = Cost(seconds_per_point=seconds)
    moments = measure_moments(source, rows, n, cost, progress=sample.progress, diagonal=diagonal)
    if not moments.n:
        raise DataError("no bags to transform the points of")
    return moments


def _points(mapped: PointMap, bags: Bags) -> NDArray[Any]:
    return mapped(bags).points


def _points_at_once(n_dims: int) -> int:
    return min(_POINTS_AT_ONCE, max(1, _NUMBERS_AT_ONCE // n_dims))


def _seconds(steps: Sequence[PointStep], n_dims: int) -> float:
    """Return the seconds of one core per point for the steps, in order of magnitude."""
    products = sum(2 * n_dims * len(step.axes or ()) for step in steps)
    return products * SECONDS_PER_PRODUCT + (1 + len(steps)) * n_dims * _SECONDS_PER_NUMBER
