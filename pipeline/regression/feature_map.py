"""Bags to regression features: the first and the second basis composed, block by block."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..bags import Bags
from ..bags.labelled import LabelledBags, naming
from ..bags.sampling import CHOICE_SAMPLE, RunSample
from ..embeddings import Embedding, EmbeddingSpec, spec_from_dict, spec_to_dict
from ..errors import BagError, DataError
from ..execution.costs import Cost
from ..random_features import DEFAULT_FEATURES, RANDOM_FEATURES, FeatureSpec, RandomFeatures
from ..random_features.base import Arrays

logger = logging.getLogger(__name__)

# The mean of exp(−d²/2σ²) over pairs of bags is .6 where σ is their median distance, .995 where it
# is ten times that: bags hardly differ in their features; below .01 each is like itself alone.
USUAL_SIMILARITY = (0.01, 0.995)
SECOND_BASIS = "random_features"  # in descriptions
FEW_BAGS = 20  # of fewer the mean similarity says little
ROWS_PER_BLOCK = 1024  # bags whose features are in memory at a time: 16 MiB of 4,096 in float32


@dataclass(frozen=True)
class FeatureMap:
    """z(A(X)): an embedding and, unless None, random features of it."""

    embedding: EmbeddingSpec
    second: FeatureSpec | None

    @property
    def n_dims(self) -> int:
        """Coordinates of a point."""
        return self.embedding.n_dims

    @property
    def n_features(self) -> int:
        """Features of a bag, D; s without random features."""
        return self.second.n_features if self.second else self.embedding.n_features

    @property
    def cost(self) -> Cost:
        """What features of bags take in double; see `cost_in`."""
        return self.cost_in("float64")

    def cost_in(self, precision: str) -> Cost:
        """Return what features of bags take; the block of features itself is the caller's."""
        s = self.embedding.n_features
        second = Cost(bytes_per_bag=8 * s)  # the embeddings in another precision
        if self.second is not None:
            second += self.second.cost_in(precision)
        return self.embedding.cost + second

    def embed(self, bags: Bags, dtype: DTypeLike) -> tuple[NDArray[Any], int]:
        """Embed bags: A, shape (n_bags, s), and the number of points outside the box.

        Raises
        ------
        BagError
            A bag that can not be embedded, or whose embedding is not finite.
        """
        embeddings = np.empty((len(bags), self.embedding.n_features), dtype=dtype)
        n_outside = self.embedding.embed(bags, embeddings)
        if not np.isfinite(np.add.reduce(embeddings.ravel())):
            bad = np.flatnonzero(~np.isfinite(embeddings).all(axis=1))
            if len(bad):
                raise BagError(int(bad[0]), "its embedding is not finite; verify the store")
        return embeddings, n_outside

    def features_of(self, embeddings: NDArray[Any], out: NDArray[Any]) -> None:
        """Write z of each embedding into ``out``, shape (n, D)."""
        if self.second is None:
            out[:] = embeddings
        else:
            self.second.transform(embeddings, out)

    def blocks(self, bags: Bags, dtype: DTypeLike) -> Iterator[tuple[int, NDArray[Any], int]]:
        """(first bag, features, points outside) of consecutive blocks; the array is reused."""
        buffer = np.empty((min(ROWS_PER_BLOCK, len(bags)), self.n_features), dtype=dtype)
        for start in range(0, len(bags), ROWS_PER_BLOCK):
            block = bags[start : start + ROWS_PER_BLOCK]
            with naming(None, range(start, len(bags))):
                embeddings, n_outside = self.embed(block, dtype)
            features = buffer[: len(block)]
            self.features_of(embeddings, features)
            yield start, features, n_outside

    def to_dict(self) -> dict[str, Any]:
        """Describe both bases in types that JSON knows."""
        second = None if self.second is None else self.second.to_dict()
        return {"embedding": spec_to_dict(self.embedding), SECOND_BASIS: second}

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return what a saved model keeps beside the description."""
        return {} if self.second is None else self.second.arrays()

    @staticmethod
    def array_names(values: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of the `arrays` of a map that `to_dict` described."""
        second = values[SECOND_BASIS]
        return () if second is None else _spec_kind(second).array_names()

    @classmethod
    def from_dict(cls, values: dict[str, Any], arrays: Arrays) -> FeatureMap:
        """Make the map that `to_dict` and `arrays` described."""
        first, second = spec_from_dict(values["embedding"]), values[SECOND_BASIS]
        return cls(first, second and _spec_kind(second).from_dict(second, arrays))


def _spec_kind(values: dict[str, Any]) -> type[FeatureSpec]:
    return RANDOM_FEATURES[values.get("name", DEFAULT_FEATURES)].spec_kind


def resolve_features(
    source: LabelledBags, embedding: Embedding, random_features: RandomFeatures | None
) -> FeatureMap:
    """Decide both bases from samples of the data; fitted parts stay as they are.

    ``random_features`` None leaves the embedding alone.

    Raises
    ------
    DataError
        A fitted part that was made for data of another dimension.
    """
    spec = getattr(embedding, "spec_", None) or embedding.resolve(
        source.n_dims, source.box, lambda: source.sample(CHOICE_SAMPLE)
    )
    if spec.n_dims != source.n_dims:
        raise DataError(
            f"bags have dimension {source.n_dims}, the embedding was fitted for {spec.n_dims}"
        )
    first = FeatureMap(spec, None)
    if random_features is None:
        return first
    second = getattr(random_features, "spec_", None)
    if second is None:
        sample = partial(sampled_embeddings, source, first)
        second = random_features.resolve(spec.n_features, sample, spec.blocks)
    if second.n_inputs != spec.n_features:
        raise DataError(
            f"embeddings have {spec.n_features} coefficients, the random features were fitted for "
            f"{second.n_inputs}"
        )
    return FeatureMap(spec, second)


def warn_of_scale(features: FeatureMap, mean: NDArray[np.float64], n: int) -> None:
    """Warn of a σ far from the distances of bags, by the mean of n features, shape (D,)."""
    if features.second is None or n < FEW_BAGS:
        return
    # without a bag and itself: ‖z‖ = 1, or a little less of Nyström features
    similarity = float((n * mean @ mean - 1) / (n - 1))
    least, most = USUAL_SIMILARITY
    if not least <= similarity <= most:
        far, way = ("small", "larger") if similarity < least else ("large", "smaller")
        logger.warning(
            "the scale of the random features, %g, is %s for these bags (mean similarity of two "
            "%.3g): a %s one may be better; bags tune searches it",
            *(features.second.scale, far, similarity, way),
        )


def sampled_embeddings(source: LabelledBags, first: FeatureMap, n_rows: int) -> NDArray[np.float64]:
    """Return embeddings of about so many bags, evenly spread runs of them, in double."""
    runs = RunSample.of_about(n_rows)
    try:
        rows = [first.embed(bags, np.float64)[0] for bags in source.sample(runs)]
    except BagError as error:
        raise DataError(f"{source.url or 'bags in memory'}: a bag: {error.reason}") from error
    if not rows:
        raise DataError(f"{source.url or 'bags in memory'}: no bags to choose random features from")
    return np.concatenate(rows)
