"""Optimal-transport distances of bags by POT in kernel ridge regression, beside our estimators."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, DoubleBasisRegressor, HDDEmbedding, ProjectionEmbedding

from ..terminal import Callback
from .gmm_components import errors, mixtures
from .gmm_components_settings import BOX
from .gram_peer import GramPeer
from .methods import choose, fit_chosen
from .scaling_measures import one_core
from .timing import in_turn
from .two_sample import one_thread

OURS = ("JS embedding", "projection", "KL matrix")
PEERS = ("sliced Wasserstein", "Wasserstein (emd2)")
N_PROJECTIONS = 50  # POT's default

Floats = NDArray[np.float64]
Labelled = tuple[Bags, Floats]
Distance = Callable[[Any, Any], float]


@dataclass(frozen=True)
class Predictions:
    """Of test bags, and seconds a pair of bags; None where pairs are not compared."""

    values: Floats
    seconds_a_pair: float | None = None


def sliced_distance(seed: int) -> Distance:
    """POT's squared sliced Wasserstein distance, with the same directions for all pairs."""
    import ot

    directions = ot.sliced.get_random_projections(2, N_PROJECTIONS, seed)
    return lambda X, Y: ot.sliced_wasserstein_distance(X, Y, projections=directions) ** 2


def transport_distance() -> Distance:
    """POT's squared Wasserstein distance: an exact transport plan a pair."""
    import ot

    return lambda X, Y: ot.emd2([], [], ot.dist(X, Y))


def distance_matrix(rows: Bags, columns: Bags | None, distance: Distance) -> Floats:
    """Of all pairs, shape (n_rows, n_columns); columns None: symmetric, each pair once."""
    first = [bag.astype(np.float64) for bag in rows]
    if columns is not None:
        second = [bag.astype(np.float64) for bag in columns]
        return np.array([[distance(X, Y) for Y in second] for X in first])
    matrix = np.zeros((len(first), len(first)))
    for i, X in enumerate(first):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = distance(X, first[j])
    return matrix


def by_transport(train: Labelled, test: Bags, distance: Distance) -> Predictions:
    """Kernel ridge regression with exp(−D / 2σ²), σ and λ chosen as for the KL matrix."""
    begun = time.perf_counter()
    own = distance_matrix(train[0], None, distance)
    cross = distance_matrix(test, train[0], distance)
    n = len(train[0])
    seconds = (time.perf_counter() - begun) / (n * (n - 1) // 2 + n * len(test))
    values, _ = GramPeer().predict_from(own, cross, train[1][:, None])
    return Predictions(values[:, 0], seconds)


def by_embedding(
    train: Labelled, test: Bags, candidates: Sequence[Any], n_features: int, seed: int
) -> Predictions:
    """Double-Basis regression, the embedding, σ and λ chosen by a tenth of the training bags."""
    chosen = choose(DoubleBasisRegressor, candidates, (0.5, 1.0, 2.0, 4.0), train, n_features, seed)
    model = fit_chosen(DoubleBasisRegressor, chosen, train, n_features, seed)
    return Predictions(model.predict(test))


def by_kl(train: Labelled, test: Bags) -> Predictions:
    """Our full matrix of k-NN divergences, whose pairs are not timed alone."""
    values, _ = GramPeer().predict(train[0], train[1][:, None], test)
    return Predictions(values[:, 0])


def measure_transport(params: Any, seed: int, progress: Callback) -> dict[str, Any]:
    """Seconds of choosing, fitting and predicting on one thread, in turn, and RMSE of each."""
    n_train, n_test, D = params["n_train"], params["n_test"], params["D"]
    bags, y = mixtures(2 * seed + 1, params["n_points"], n_train + n_test)
    train, test = (bags[:n_train], y[:n_train]), bags[n_train:]
    js = [HDDEmbedding("js", bandwidth=h, box=BOX) for h in (0.03, 0.05)]
    projections = [ProjectionEmbedding(n_per_dim=k, box=BOX) for k in (6, 8, 10)]
    calls: dict[str, Callable[[], Predictions]] = {
        "JS embedding": lambda: by_embedding(train, test, js, D, seed),
        "projection": lambda: by_embedding(train, test, projections, D, seed),
        "KL matrix": lambda: by_kl(train, test),
        "sliced Wasserstein": lambda: by_transport(train, test, sliced_distance(seed)),
        "Wasserstein (emd2)": lambda: by_transport(train, test, transport_distance()),
    }
    with one_core(), one_thread():
        for name in OURS:
            calls[name]()
        progress(1, 2)
        rounds = in_turn(calls, params["n_rounds"])
    progress(2, 2)
    truth = y[n_train:]
    return {
        "methods": {
            name: {
                **errors(last.values, truth),
                "seconds_a_pair": last.seconds_a_pair,
            }
            for name, last in rounds.last.items()
        },
        "pairs": {ours: {peer: rounds.compared(ours, peer) for peer in PEERS} for ours in OURS},
        "constant": errors(np.full(n_test, train[1].mean()), truth)["rmse"],
    }
