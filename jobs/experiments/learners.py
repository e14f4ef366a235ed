"""The Double-Basis and the Kernel-Kernel estimator on the same bags: tuned alike, timed in turn.

Both are tuned by training bags alone: the first ones choose the first basis and the kernel width
of the one, by generalised cross-validation, and the bandwidth of the density estimates of the
other, by leave-one-out error; all of them the penalty and the smoothing bandwidth, likewise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import (
    Bags,
    BagStore,
    DoubleBasisRegressor,
    KernelSmoother,
    ProjectionEmbedding,
    RandomFourierFeatures,
)
from bagbasis.execution import lane
from bagbasis.regression.smoother_sums import KeptRows

from .kernel_density_embedding import KernelDensityEmbedding
from .timing import timed_in_turn

QUERIES_A_CALL = 256  # of the smoother: its exponents stay in the cache
N_ROUNDS = 15

Floats = NDArray[np.float64]
Training = tuple[Bags | BagStore, Floats | None]
"""Bags with targets of shape (n_bags,) or (n_bags, n_targets), or a store with its own."""


@dataclass(frozen=True)
class Candidates:
    """What both estimators may choose from.

    Attributes
    ----------
    n_per_dim : tuple of int
        Functions a dimension of the 2BE's first basis.
    multipliers : tuple of float
        σ over the median distance.
    alphas_a_bag : (lo, hi)
        Decimal exponents of λ / N; half decades between them.
    bandwidths : tuple of float
        Of kernel density estimates, as shares of the box's side.
    n_features : int
        D of the 2BE.
    n_choose, choose_features : int
        Bags, and D, that the bases are chosen with.
    precision : {"float32", "float64"}
        Of the 2BE. Where labels have next to no noise the best λ lies below what the products of
        float32 resolve.
    """

    n_per_dim: tuple[int, ...]
    multipliers: tuple[float, ...]
    alphas_a_bag: tuple[float, float]
    bandwidths: tuple[float, ...]
    n_features: int
    n_choose: int
    choose_features: int = 512
    precision: str = "float32"

    @property
    def params(self) -> dict[str, Any]:
        """In types JSON knows."""
        return asdict(self)


@dataclass(frozen=True)
class Fitted:
    """A model, what was chosen for it, and the seconds of choosing and fitting."""

    model: Any
    choice: dict[str, Any]


def fit_double_basis(training: Training, few: Training, c: Candidates, seed: int) -> Fitted:
    """The 2BE of the best first basis, kernel width and penalty."""
    begun = time.perf_counter()
    found = []
    for n_per_dim, multiplier in product(c.n_per_dim, c.multipliers):
        model = _double_basis(few, n_per_dim, multiplier, c.choose_features, c, seed)
        found.append((float(model.alpha_scores_.min()), n_per_dim, multiplier))
    _, n_per_dim, multiplier = min(found)
    model = _double_basis(training, n_per_dim, multiplier, c.n_features, c, seed)
    choice = {
        "n_per_dim": n_per_dim,
        "multiplier": multiplier,
        "alpha_a_bag": model.alpha_ / model.report_["n_bags_fitted"],
        "seconds": time.perf_counter() - begun,
    }
    return Fitted(model, choice)


def _double_basis(
    training: Training, n_per_dim: int, multiplier: float, n_features: int, c: Candidates, seed: int
) -> DoubleBasisRegressor:
    bags, y = training
    n_bags = bags.n_bags if isinstance(bags, BagStore) else len(bags)
    lo, hi = c.alphas_a_bag
    return DoubleBasisRegressor(
        embedding=ProjectionEmbedding(n_per_dim=n_per_dim),
        random_features=RandomFourierFeatures(n_features, scale_multiplier=multiplier, seed=seed),
        alpha="gcv",
        alphas=n_bags * 10.0 ** np.arange(lo, hi + 0.25, 0.5),
        precision=c.precision,
    ).fit(bags, y)


def fit_kernel_kernel(training: Training, few: Training, c: Candidates) -> Fitted:
    """The Kernel-Kernel estimator of the best bandwidths; embeddings are kept in memory."""
    begun = time.perf_counter()
    found = []
    for bandwidth in c.bandwidths:
        smoother = KernelSmoother(KernelDensityEmbedding(bandwidth)).fit(*few)
        found.append((float(smoother.bandwidth_scores_.min()), bandwidth))
    bandwidth = min(found)[1]
    smoother = KernelSmoother(KernelDensityEmbedding(bandwidth), in_memory=True).fit(*training)
    choice = {
        "density_bandwidth": bandwidth,
        "bandwidth": smoother.bandwidth_,
        "n_coefficients": smoother.features_.n_features,
        "seconds": time.perf_counter() - begun,
    }
    return Fitted(smoother, choice)


def smoothed(smoother: KernelSmoother, bags: Bags) -> Floats:
    """`KernelSmoother.predict`, by batches that suit the cache."""
    parts = range(0, len(bags), QUERIES_A_CALL)
    return np.concatenate([smoother.predict(bags[i : i + QUERIES_A_CALL]) for i in parts])


def smoothed_one(smoother: KernelSmoother, bag: Bags) -> Floats:
    """The prediction for one bag as lean as numpy has it, of a smoother that keeps its rows.

    One product of all rows with the query, the exponential, one product with all targets: no
    blocks, which `KernelSmoother` needs for many queries.
    """
    kept = smoother.training_
    assert isinstance(kept, KeptRows)
    with lane():
        query = smoother.features_.embed(bag, smoother.precision)[0][0] - smoother.centre_
        exponents = kept.embeddings @ query
        exponents -= kept.halves
        exponents *= exponents.dtype.type(smoother.bandwidth_**-2)
        exponents -= exponents.max()
        np.exp(exponents, out=exponents)
        answer: Floats = (exponents @ kept.targets) / exponents.sum()
    return answer


def times(
    model: DoubleBasisRegressor, smoother: KernelSmoother, test: Bags, n_queries: int
) -> dict[str, Any]:
    """Seconds a query from points to targets, in memory: many bags a call, and one."""
    batch, one = test[:n_queries], test[:1]
    calls: dict[str, Callable[[], Any]] = {
        "2be_batch": lambda: model.predict(batch),
        "kk_batch": lambda: smoothed(smoother, batch),
        "2be_single": lambda: model.predict(one),
        "kk_single": lambda: smoothed_one(smoother, one),
    }
    seconds = quickest(calls)
    n_batch = len(batch)
    per_query = {k: t / (n_batch if k.endswith("batch") else 1) for k, t in seconds.items()}
    return {"n_queries": n_batch, **per_query}


def quickest(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """The least of N_ROUNDS times of each call, in turn.

    And not the median: calls of microseconds on all cores take many times as long where others
    want these, for each waits for the thread that comes last.
    """
    rounds = [timed_in_turn(calls, 1) for _ in range(N_ROUNDS)]
    return {name: min(each[name] for each in rounds) for name in calls}


def mean_squares(predicted: Floats, truth: Floats) -> dict[str, float]:
    """Mean squared error, over targets if there are several, and its standard error over bags."""
    squares = (np.asarray(predicted) - truth) ** 2
    squares = squares.reshape(len(squares), -1).mean(axis=1)
    return {"mse": float(squares.mean()), "se": float(squares.std() / len(squares) ** 0.5)}
