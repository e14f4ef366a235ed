"""Double-Basis models whose embedding, σ and λ are chosen from lists, on training bags alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    HDDEmbedding,
    HistogramEmbedding,
    MeanMapEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.core.arrays import Floats
from bagbasis.data.bags.bags import concatenate
from bagbasis.datasets import Dataset

from ...configs.config import Section

Training = tuple[Bags | BagStore, Any]
"""Bags with their targets, or a store with its own and None."""
Model = DoubleBasisRegressor | DoubleBasisClassifier

ALPHAS = tuple(10.0 ** np.arange(-6.0, 0.5, 0.5))  # per bag; float32 resolves down to 1e-6
AROUND = (0.1, 10**-0.5, 1.0, 10**0.5)  # of the penalty per bag that few bags choose, for more


@dataclass(frozen=True)
class _Choice:
    """What was chosen.

    Attributes
    ----------
    embedding : an embedding
    multiplier : float
        σ over the median distance.
    alpha_a_bag : float
        λ over the number of training bags.
    score : float
        Error over the variance of the target.
    seconds : float
        For all that was compared.
    """

    embedding: BaseEstimator
    multiplier: float
    alpha_a_bag: float
    score: float
    seconds: float

    @property
    def values(self) -> dict[str, Any]:
        """The choice in types that JSON knows."""
        return {**vars(self), "embedding": describe(self.embedding)}


@dataclass(frozen=True)
class Learner:
    """How Double-Basis models are fitted.

    Attributes
    ----------
    kind : type
        Regressor or classifier.
    seed : int
        Seed for drawing the random features.
    alpha : {"validation", "gcv"}
        How λ, embedding and σ are chosen: on a tenth of the bags that is held out (001, §5),
        or generalised cross-validation.
    precision : {"float32", "float64"}
    """

    kind: type[Model]
    seed: int
    alpha: str = "validation"
    precision: str = "float32"

    def choose(
        self,
        candidates: Sequence[BaseEstimator],
        multipliers: Sequence[float],
        few: Training,
        n_features: int,
        alphas: Sequence[float] | Floats = ALPHAS,
    ) -> _Choice:
        """Return the embedding, σ and λ of least error on few bags, compared with ``n_features``.

        Parameters
        ----------
        candidates : embeddings
        multipliers : σ over the median distance
        alphas : λ per bag
        """
        begun = time.perf_counter()
        scored = []
        for embedding, multiplier in product(candidates, multipliers):
            model = self.fit(embedding, multiplier, few, n_features, alphas)
            score = float(model.alpha_scores_.min())
            scored.append((score, embedding, multiplier, model.alpha_ / count(few[0])))
        score, embedding, multiplier, alpha = min(scored, key=lambda each: each[0])
        return _Choice(embedding, multiplier, float(alpha), score, time.perf_counter() - begun)

    def fit_choice(self, choice: _Choice, training: Training, n_features: int) -> Model:
        """Return the model of a choice; λ, which goes with bags and features, is chosen anew."""
        alphas = choice.alpha_a_bag * np.array(AROUND)
        return self.fit(choice.embedding, choice.multiplier, training, n_features, alphas)

    def fit(
        self,
        embedding: BaseEstimator,
        multiplier: float,
        training: Training,
        n_features: int,
        alphas: Sequence[float] | Floats,
    ) -> Model:
        """Return the model of an embedding and σ, λ chosen from ``alphas`` per bag."""
        bags, y = training
        second = RandomFourierFeatures(
            n_features=n_features, scale_multiplier=multiplier, seed=self.seed
        )
        return self.kind(
            embedding=clone(embedding),
            random_features=second,
            alpha=self.alpha,
            alphas=count(bags) * np.asarray(alphas),
            precision=self.precision,
        ).fit(bags, y)


def count(bags: Bags | BagStore) -> int:
    """Count bags, in memory or in a store."""
    return bags.n_bags if isinstance(bags, BagStore) else len(bags)


class Geometries(Section):
    """Candidates of the embeddings that 001, §5 compares, in a scale's YAML.

    Density bandwidths of HDDs, functions per dimension of projections, bins per dimension of
    histograms, and bandwidths of the point kernel of mean maps.
    """

    bandwidths: list[float]
    functions: list[int]
    bins: list[int]
    mean_map: list[float]

    def methods(
        self, common: Mapping[str, Any], hdd: Mapping[str, Any], tv: Mapping[str, Any], n_mmd: int
    ) -> dict[str, list[BaseEstimator]]:
        """Return the embeddings to choose from, by method.

        Parameters
        ----------
        common, hdd, tv : mapping
            Parameters of all embeddings, of JS and Hellinger, and of TV.
        n_mmd : int
            Features of the mean map, which takes all dimensions at once.
        """
        whole = {key: value for key, value in common.items() if key != "marginals"}

        def hdds(distance: str, more: Mapping[str, Any]) -> list[BaseEstimator]:
            return [HDDEmbedding(distance, bandwidth=h, **more, **common) for h in self.bandwidths]

        return {
            "JS": hdds("js", hdd),
            "Hellinger": hdds("hellinger", hdd),
            "TV": hdds("tv", tv),
            "L2": [ProjectionEmbedding(n_per_dim=k, **common) for k in self.functions],
            "MMD": [
                MeanMapEmbedding(n_features=n_mmd, bandwidth=h, **whole) for h in self.mean_map
            ],
            "Hist JS": [HistogramEmbedding(distance="js", n_bins=k, **common) for k in self.bins],
        }


def describe(embedding: BaseEstimator) -> dict[str, Any]:
    """Return an embedding's class and those of its parameters that differ from the defaults."""
    defaults = type(embedding)().get_params()
    params = {k: v for k, v in embedding.get_params().items() if v != defaults[k]}
    return {"embedding": type(embedding).__name__, **params}


def describe_all(methods: Mapping[str, Sequence[BaseEstimator]]) -> dict[str, list[dict[str, Any]]]:
    """`describe` of the candidates of each method."""
    return {name: [describe(each) for each in candidates] for name, candidates in methods.items()}


def errors(predicted: Floats, y: Floats) -> dict[str, float]:
    """Return the root mean squared error, and the standard error of that."""
    squares = (predicted - y) ** 2
    rmse = float(np.sqrt(squares.mean()))
    return {"rmse": rmse, "se": float(squares.std() / (2 * rmse * len(y) ** 0.5))}


def mean_squares(predicted: Floats, truth: Floats) -> dict[str, float]:
    """Return the mean squared error, over targets too, and its standard error over bags."""
    squares = (np.asarray(predicted) - truth) ** 2
    squares = squares.reshape(len(squares), -1).mean(axis=1)
    return {"mse": float(squares.mean()), "se": float(squares.std() / len(squares) ** 0.5)}


@lru_cache(maxsize=2)
def draw_from(dataset: Dataset, n_bags: int | None = None) -> tuple[Bags, Floats]:
    """Return the first bags of a dataset, or all, and their targets; one column as a vector."""
    n = dataset.n_bags if n_bags is None else n_bags
    assert n is not None
    blocks = [dataset.block(i) for i in range(-(-n // dataset.block_bags))]
    bags = concatenate([block for block, _ in blocks])
    y = np.concatenate([targets for _, targets in blocks])[:n]
    return bags[:n], y[:, 0] if y.shape[1] == 1 else y
