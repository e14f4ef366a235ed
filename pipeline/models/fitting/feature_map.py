"""`FeatureMap`: the regression features of bags, from the first and the second basis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.arrays import Floats, Integers
from ...core.errors import BagError, DataError, warn
from ...core.units import surely_finite
from ...data.bags.bags import Bags
from ...data.bags.box import SHOWN_DIMS
from ...data.bags.coordinates import Names
from ...data.labelled.labelled import LabelledBags, naming
from ...data.labelled.wide_bags import warn_of_wide_bag
from ...data.store.sampling import RunSample
from ...embeddings.base import ChoiceSample, Embedding, EmbeddingSpec
from ...embeddings.composed.point_transformer import PointTransformerSpec
from ...embeddings.kinds import names_of_arrays
from ...embeddings.random_features.base import FeatureSpec, RandomFeatures, SampleRows
from ...embeddings.random_features.completion import COMPLETE, Completion
from ...embeddings.random_features.learned_spec import LearnedSpec
from ...embeddings.random_features.registered import DEFAULT_FEATURES, RANDOM_FEATURES
from ...embeddings.registered import spec_from_dict, spec_to_dict
from ...embeddings.transforms import Arrays
from ...execution.costs import Cost
from ...execution.progress import Progress
from ...execution.worker_threads import kernel_threads
from ..ridge.linear_columns import LinearColumns

# The mean of exp(−d²/2σ²) over pairs of bags is .6 where σ is their median distance, .995 where it
# is ten times that: bags hardly differ in their features; below .01 each is like itself alone.
USUAL_SIMILARITY = (0.01, 0.995)
SECOND_BASIS, BESIDE = "random_features", "beside"  # in descriptions
MAX_OUTSIDE = 0.01  # fraction of the points: a larger one is warned of
_FEW_BAGS = 20  # with fewer bags the mean similarity says little
MAPPED_ROWS = 1024  # bags whose features are in memory at a time: 16 MiB of 4,096 in float32


@dataclass(frozen=True)
class FeatureMap:
    """z(A(X)): an embedding A, random features z of it (or None), and a baseline's columns."""

    embedding: EmbeddingSpec
    second: FeatureSpec | None
    beside: LinearColumns | None = None

    @property
    def n_dims(self) -> int:
        """Number of coordinates of a point."""
        return self.embedding.n_dims

    @property
    def n_penalized(self) -> int:
        """Number of penalised features, D, which come first; s without random features."""
        return self.second.n_features if self.second else self.embedding.n_features

    @property
    def n_features(self) -> int:
        """Number of features of a bag, including the columns of a baseline, which come last."""
        return self.n_penalized + (self.beside.n_columns if self.beside else 0)

    @property
    def n_embedded(self) -> int:
        """Number of columns of `embed`: s, and those that a baseline embeds by itself."""
        return self.embedding.n_features + (self.beside.n_embedded if self.beside else 0)

    @property
    def cost(self) -> Cost:
        """Cost of features in double precision; see `cost_in`."""
        return self.cost_in("float64")

    def cost_in(self, precision: str) -> Cost:
        """Return the cost of features in a precision, without the block they are written to."""
        # the embeddings in another precision
        cost = self.embedding.cost + Cost(bytes_per_bag=8 * self.n_embedded)
        if self.second is not None:
            cost += self.second.cost_in(precision)
        if self.beside is not None:
            cost += Cost(bytes_per_task=16 * MAPPED_ROWS * self.n_features)
            if self.beside.spec is not None:
                cost += self.beside.spec.cost
        return cost

    def embed(
        self, bags: Bags, dtype: DTypeLike, outside: Integers | None = None
    ) -> tuple[NDArray[Any], int]:
        """Embed bags: A, shape (n_bags, n_embedded), and the number of points outside the box.

        ``outside`` (n_bags,), zeros, is filled with the points of each bag outside.

        Raises
        ------
        BagError
            If a bag cannot be embedded, or its embedding is not finite.
        """
        embeddings = np.empty((len(bags), self.embedding.n_features), dtype=dtype)
        n_outside = self.embedding.embed(bags, embeddings, outside)
        if not surely_finite(embeddings):
            bad = np.flatnonzero(~np.isfinite(embeddings).all(axis=1))
            if len(bad):
                bag = int(bad[0])
                if bags.sizes[bag] == 0:
                    reason = "it has no points: it is empty, or was removed; leave it out"
                    raise BagError(bag, reason)
                raise BagError(bag, "its embedding is not finite; verify the store")
        if self.beside is None or self.beside.spec is None:
            return embeddings, n_outside
        more = np.empty((len(bags), self.beside.n_columns), dtype=dtype)
        self.beside.spec.embed(bags, more)  # its points outside are counted already
        return np.concatenate([embeddings, more], axis=1), n_outside

    @property
    def completion(self) -> Completion:
        """Completion of the features that `begin` writes."""
        return COMPLETE if self.second is None else self.second.completion

    def begin(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write rows into ``out`` that `completion` turns into sums of z; only sums are wanted."""
        self._write(embeddings, out, begun=True)

    def features_of(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write z of each embedding into ``out``, shape (n, n_features)."""
        self._write(embeddings, out, begun=False)

    def _write(self, embeddings: NDArray[Any], out: NDArray[Any], begun: bool) -> None:
        if self.beside is None:
            self._penalized_of(embeddings, out, begun)
            return
        s, d = self.embedding.n_features, self.n_penalized
        first_own = s if self.beside.n_embedded else 0
        for start in range(0, len(out), MAPPED_ROWS):
            rows, block = (some[start : start + MAPPED_ROWS] for some in (embeddings, out))
            z = np.empty((len(rows), d), out.dtype)  # kernels write whole arrays
            self._penalized_of(np.ascontiguousarray(rows[:, :s]), z, begun)
            block[:, :d] = z
            self.beside.write(rows[:, first_own:], block[:, d:])

    def _penalized_of(self, embeddings: NDArray[Any], out: NDArray[Any], begun: bool) -> None:
        if self.second is None:
            out[:] = embeddings
        else:
            (self.second.begin if begun else self.second.transform)(embeddings, out)

    def embedded(
        self, bags: Bags, dtype: DTypeLike, outside: Integers | None = None
    ) -> Iterator[tuple[int, NDArray[Any], int]]:
        """(first bag, what `embed` gives, points outside) of consecutive blocks; see `embed`."""
        for start in range(0, len(bags), MAPPED_ROWS):
            rows = slice(start, start + MAPPED_ROWS)
            with naming(None, range(start, len(bags))):
                counts = None if outside is None else outside[rows]
                yield start, *self.embed(bags[rows], dtype, counts)

    def blocks(self, bags: Bags, dtype: DTypeLike) -> Iterator[tuple[int, NDArray[Any], int]]:
        """(first bag, features, points outside) of consecutive blocks; the array is reused."""
        buffer = np.empty((min(MAPPED_ROWS, len(bags)), self.n_features), dtype=dtype)
        for start, embeddings, n_outside in self.embedded(bags, dtype):
            features = buffer[: len(embeddings)]
            self.features_of(embeddings, features)
            yield start, features, n_outside

    def to_dict(self) -> dict[str, Any]:
        """Describe both bases in types that JSON knows."""
        second = None if self.second is None else self.second.to_dict()
        beside = {} if self.beside is None else {BESIDE: self.beside.to_dict()}
        return {"embedding": spec_to_dict(self.embedding), SECOND_BASIS: second, **beside}

    def arrays(self) -> dict[str, Floats]:
        """Return the arrays that a saved model keeps in addition to the description."""
        second = {} if self.second is None else self.second.arrays()
        return {**self.embedding.arrays(), **second}

    @staticmethod
    def array_names(values: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of the `arrays` of a map that `to_dict` described."""
        first = names_of_arrays(values["embedding"])
        second = values[SECOND_BASIS]
        return first if second is None else (*first, *_spec_kind(second).array_names)

    @classmethod
    def from_dict(cls, values: dict[str, Any], arrays: Arrays) -> FeatureMap:
        """Return the map from the results of `to_dict` and `arrays`."""
        first, second = spec_from_dict(values["embedding"], arrays), values[SECOND_BASIS]
        beside = LinearColumns.from_dict(values[BESIDE]) if BESIDE in values else None
        if beside is not None and beside.spec is None and beside.n_columns != first.n_features:
            raise ValueError("the columns of the baseline do not fit the embedding")
        return cls(first, second and _spec_kind(second).from_dict(second, arrays), beside)


DrawLinearColumns = Callable[[FeatureMap, SampleRows], LinearColumns | None]
"""A function from the embedding and a sample of its rows to the columns of a baseline."""

Learn = Callable[[RandomFeatures, FeatureMap, SampleRows], FeatureSpec]
"""A function that learns random features from labels, given a map and sampled embeddings."""


def _spec_kind(values: dict[str, Any]) -> type[FeatureSpec]:
    return RANDOM_FEATURES.saved(values.get("name", DEFAULT_FEATURES)).spec_kind


def in_embedded_order(source: LabelledBags, embedding: object) -> LabelledBags:
    """Return bags with their coordinates in the order of those that an embedding was fitted on.

    Raises
    ------
    DataError
        If the coordinates have other names.
    """
    names: Names = getattr(embedding, "coordinate_names", None)
    return source.in_order_of(names, "the embedding was fitted on")


def resolve_features(
    source: LabelledBags,
    embedding: Embedding,
    random_features: RandomFeatures | None,
    beside: DrawLinearColumns | None = None,
    learn: Learn | None = None,
    progress: Progress | None = None,
) -> FeatureMap:
    """Fit both bases to samples of the data; parts that are fitted already are kept.

    If ``random_features`` is None, there is no second basis. ``beside`` makes the columns of a
    baseline. ``learn`` fits random features that learn from labels; None if labels must not be
    used.

    Raises
    ------
    DataError
        If a fitted part was made for data of another dimension.
    ParameterError
        If random features learn from labels, and ``learn`` is not given.
    """
    with kernel_threads():
        spec = getattr(embedding, "spec_", None)
        if spec is None:
            box = source.box
            choice = ChoiceSample(source, progress=progress)
            spec = embedding.resolve(source.n_dims, box, choice)
            if spec.box == box:
                warn_of_wide_bag(source, box)
        if spec.n_dims != source.n_dims:
            raise DataError(
                f"bags have dimension {source.n_dims}, the embedding was fitted for {spec.n_dims}"
            )
        sample = cache(partial(sampled_embeddings, source, FeatureMap(spec, None)))
        columns = None if beside is None else beside(FeatureMap(spec, None), sample)
        first = FeatureMap(spec, None, columns)
        if random_features is None:
            return first
        second: FeatureSpec | None = getattr(random_features, "spec_", None)
        if second is None and (learn is None or not random_features.learns):
            second = random_features.resolve(spec.n_features, sample, spec.blocks)
    if second is None and learn is not None:  # by passes, which limit the threads themselves
        second = learn(random_features, first, sample)
    assert second is not None
    if second.n_inputs != spec.n_features:
        raise DataError(
            f"embeddings have {spec.n_features} coefficients, the random features were fitted for "
            f"{second.n_inputs}"
        )
    return replace(first, second=second)


def warn_of_scale(features: FeatureMap, mean: Floats, n: int) -> None:
    """Warn if σ is far from the distances of bags, judged by the mean of n features, (D,)."""
    if features.second is None or n < _FEW_BAGS:
        return
    if isinstance(features.second, LearnedSpec):
        return  # its σ is only where learning began, and the labels decided what is alike
    # without a bag and itself: ‖z‖ = 1, or a little less of Nyström features
    mean = mean[: features.n_penalized]
    similarity = float((n * mean @ mean - 1) / (n - 1))
    least, most = USUAL_SIMILARITY
    if not least <= similarity <= most:
        far, way = ("small", "larger") if similarity < least else ("large", "smaller")
        warn(
            f"the scale of the random features, {features.second.scale:.3g}, is {far} for these "
            f"bags (mean similarity {similarity:.3g}); try a {way} scale_multiplier, or tune"
        )


def warn_of_outside(features: FeatureMap, n_outside: int, n_points: int) -> None:
    """Warn if the box leaves out more than `MAX_OUTSIDE` of the fitted points.

    A `PointTransformer` measures the box, which leaves out a fraction of each coordinate and so, in
    many dimensions, a larger fraction of the points: there it is that fraction of every coordinate.
    """
    embedding, much = features.embedding, MAX_OUTSIDE
    if isinstance(embedding, PointTransformerSpec):
        much = 1 - (1 - MAX_OUTSIDE) ** embedding.embedding.n_dims
    if n_outside > much * n_points:
        bounds = features.embedding.box.bounds[:SHOWN_DIMS]
        warn(
            f"{100 * n_outside / n_points:.2g} % of the points lie outside the box {bounds}; give "
            "the embedding a larger box="
        )


def sampled_embeddings(source: LabelledBags, first: FeatureMap, n_rows: int) -> Floats:
    """Return embeddings of about so many bags, evenly spread runs of them, in double."""
    runs = RunSample.of_about(n_rows)
    try:
        with kernel_threads():
            rows = [first.embed(bags, np.float64)[0] for bags in source.sample(runs)]
    except BagError as error:
        raise DataError(f"{source.url or 'bags in memory'}: a bag: {error.reason}") from error
    if not rows:
        raise DataError(f"{source.url or 'bags in memory'}: no bags to choose random features from")
    return np.concatenate(rows)
