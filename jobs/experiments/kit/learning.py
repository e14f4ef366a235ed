"""Models whose embedding, σ and λ are chosen from lists, on training bags alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_ridge import KernelRidge

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
from bagbasis.densities import PSDRepair, divergence_matrix, kernel_matrix, median_scale

from ..timing import timed

Training = tuple[Bags | BagStore, Any]
"""Bags with their targets, or a store with its own and None."""
Model = DoubleBasisRegressor | DoubleBasisClassifier

N_NEIGHBOURS = 4  # of distances for KL
GRAM_MULTIPLIERS, GRAM_ALPHAS = (0.06, 0.125, 0.25, 0.5, 1.0, 2.0), (1e-3, 1e-2, 1e-1, 1.0, 10.0)
ALPHAS = tuple(10.0 ** np.arange(-6.0, 0.5, 0.5))  # per bag; float32 resolves down to 1e-6
AROUND = (0.1, 10**-0.5, 1.0, 10**0.5)  # of the penalty per bag that few bags choose, for more


@dataclass(frozen=True)
class _Choice:
    """The embedding, σ over the median distance, λ over the number of bags, error and seconds."""

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

    λ, embedding and σ are chosen by ``alpha``: "validation" on a tenth of the bags that is held out
    (001, §5), or "gcv".
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
        """Return the embedding, σ and λ per bag of least error on few bags, with ``n_features``."""
        begun = time.perf_counter()
        scored = []
        for embedding, multiplier in product(candidates, multipliers):
            model = self.fit(embedding, multiplier, few, n_features, alphas)
            score = float(model.alpha_scores_.min())
            scored.append((score, embedding, multiplier, model.alpha_ / count(few[0])))
        score, embedding, multiplier, alpha = min(scored, key=lambda each: each[0])
        return _Choice(embedding, multiplier, float(alpha), score, time.perf_counter() - begun)

    def fit_choice(self, choice: _Choice, training: Training, n_features: int) -> Model:
        alphas = choice.alpha_a_bag * np.array(AROUND)
        return self.fit(choice.embedding, choice.multiplier, training, n_features, alphas)

    def timed(
        self, choice: _Choice, training: Training, n_features: int, test: Bags
    ) -> tuple[NDArray[Any], float]:
        """Return predictions of the model of a choice, and seconds of fit and predictions."""
        return timed(lambda: self.fit_choice(choice, training, n_features).predict(test))

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
        options: dict[str, Any] = {"alpha": self.alpha, "precision": self.precision}
        options["alphas"] = count(bags) * np.asarray(alphas)
        return self.kind(clone(embedding), second, **options).fit(bags, y)


def count(bags: Bags | BagStore) -> int:
    return bags.n_bags if isinstance(bags, BagStore) else len(bags)


def geometries(
    values: Mapping[str, Sequence[Any]],
    common: Mapping[str, Any],
    hdd: Mapping[str, Any],
    tv: Mapping[str, Any],
    n_mmd: int,
) -> dict[str, list[BaseEstimator]]:
    """Return the embeddings that 001, §5 compares, candidates by method.

    ``values`` are a scale's; ``common``, ``hdd`` and ``tv`` are parameters of all embeddings, of JS
    and Hellinger, and of TV. The mean map, of ``n_mmd`` features, takes all dimensions at once.
    """
    whole = {key: value for key, value in common.items() if key != "marginals"}

    def hdds(distance: str, more: Mapping[str, Any]) -> list[BaseEstimator]:
        return [HDDEmbedding(distance, bandwidth=h, **more, **common) for h in values["bandwidths"]]

    return {
        "JS": hdds("js", hdd),
        "Hellinger": hdds("hellinger", hdd),
        "TV": hdds("tv", tv),
        "L2": [ProjectionEmbedding(n_per_dim=k, **common) for k in values["functions"]],
        "MMD": [
            MeanMapEmbedding(n_features=n_mmd, bandwidth=h, **whole) for h in values["mean_map"]
        ],
        "Hist JS": [HistogramEmbedding(distance="js", n_bins=k, **common) for k in values["bins"]],
    }


def describe(embedding: BaseEstimator) -> dict[str, Any]:
    """Return an embedding's class and those of its parameters that differ from the defaults."""
    defaults = type(embedding)().get_params()
    params = {k: v for k, v in embedding.get_params().items() if v != defaults[k]}
    return {"embedding": type(embedding).__name__, **params}


def describe_all(methods: Mapping[str, Sequence[BaseEstimator]]) -> list[tuple[str, list[Any]]]:
    """Return methods with `describe` of their candidates: an axis of "method candidates"."""
    return [(name, [describe(each) for each in of]) for name, of in methods.items()]


def constant_of(y: NDArray[Any], is_class: bool) -> Any:  # noqa: ANN401 - a label
    """Return the best constant prediction: the most frequent class, or the mean."""
    if not is_class:
        return y.mean()
    values, counts = np.unique(y, return_counts=True)
    return values[counts.argmax()]


def random_feature_rows(model: Model, bags: Bags) -> Floats:
    """Return what a model is linear in, (n_bags, D) in double precision."""
    return np.concatenate([z.copy() for _, z, _ in model.features_.blocks(bags, "float64")])


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


def predict_by_kl(training: Bags, targets: Floats, test: Bags) -> tuple[Floats, dict[str, Any]]:
    """Predict by kernel ridge regression with exp(−KL / 2σ²), and say what was chosen.

    001, §5 ("KL"), symmetrised, from distances to the fourth neighbour. Targets have columns, which
    are centred; a tenth of the training bags chooses σ over the median, and λ.
    """
    own = divergence_matrix(training, divergence="symmetric_kl", k=N_NEIGHBOURS)
    cross = divergence_matrix(test, training, divergence="symmetric_kl", k=N_NEIGHBOURS)
    return predict_by_distances(own, cross, targets)


def predict_by_distances(
    own: Floats, cross: Floats, targets: Floats
) -> tuple[Floats, dict[str, Any]]:
    """Predict from squared distances of any kind, (N, N) and (n_test, N), as `predict_by_kl`.

    Indefinite matrices are projected to the cone of positive semidefinite ones.
    """
    median, n_fit = median_scale(own), len(targets) - len(targets) // 10
    few, held_out = slice(None, n_fit), slice(n_fit, None)

    def error(choice: tuple[float, float]) -> float:
        scale, known = choice[0] * median, (own[few, few], own[held_out, few], targets[few])
        return float(((_predictions(*known, scale, choice[1]) - targets[held_out]) ** 2).mean())

    multiplier, alpha = min(product(GRAM_MULTIPLIERS, GRAM_ALPHAS), key=error)
    predictions = _predictions(own, cross, targets, multiplier * median, alpha)
    return predictions, {"multiplier": multiplier, "alpha": alpha}


def _predictions(own: Floats, cross: Floats, targets: Floats, scale: float, alpha: float) -> Floats:
    repair = PSDRepair("clip")
    kernel = repair.fit_transform(kernel_matrix(own, scale))
    rows = repair.transform(kernel_matrix(cross, scale))
    mean = targets.mean(axis=0)
    model = KernelRidge(alpha=alpha, kernel="precomputed").fit(kernel, targets - mean)
    return model.predict(rows) + mean
