"""`peers` besides regression, on one thread: finufft's coefficients, hyppo's MMD², POT's plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from bagbasis import Bags, DoubleBasisRegressor, HDDEmbedding, ProjectionEmbedding
from bagbasis.core.arrays import Floats
from bagbasis.datasets import GMMComponents

from ..data.samples import blobs
from ..hypotheses.fastmmd import compare_statistics
from ..kit import Callback, Params, counted
from ..kit.learning import Learner, draw_from, errors, predict_by_distances, predict_by_kl
from ..regression.gmm_components import DATASET_BOX
from ..timing import in_turn, one_thread, timed_in_turn
from .peers_regression import bag_features

SETTINGS = {"upsampfac 2": (2.0, 1e-6), "upsampfac 1.25": (1.25, 1e-4)}
"""Factors of finufft, and the least tolerance that each has in float32 without a warning."""
DIRECT_ROWS = 2048  # points at a time of sums in double: some MiB of cosines
DIRECT_BAGS = 2  # that errors are measured on: sums in double take long
_SIGMA, _RATIO = 1.0, 4.0  # of the kernel, and of the second set's blobs
_OURS = ("JS embedding", "projection", "KL matrix")
_PEERS = ("sliced Wasserstein", "Wasserstein (emd2)")
N_PROJECTIONS = 50  # POT's default
_MULTIPLIERS = (0.5, 1.0, 2.0, 4.0)  # σ over the median distance, of embeddings

_Array = NDArray[Any]
_Labelled = tuple[Bags, Floats]
_Distance = Callable[[Any, Any], float]


def finufft_coefficients(bags: Bags, n_per_dim: int, setting: str) -> _Array:
    """Cosine coefficients of bags in [0, 1]^d, shape (n_bags, n_per_dim^d), float32.

    One type-1 transform per bag, planned once for all: Σ_j exp(i k πx_j) for |k| < n_per_dim in
    each dimension. A product of cosines is the mean of real parts over the signs of k.
    """
    finufft: Any = import_module("finufft")  # an extra, as hyppo and POT are
    factor, tolerance = SETTINGS[setting]
    modes = (2 * n_per_dim - 1,) * bags.n_dims
    plan = finufft.Plan(
        1, modes, eps=tolerance, isign=1, dtype="complex64", nthreads=1, upsampfac=factor
    )
    angles = np.ascontiguousarray((bags.points * np.float32(np.pi)).T)
    strengths = np.ones(int(bags.sizes.max()), np.complex64)
    spectra = np.empty((len(bags), *modes), np.complex64)
    for i, (start, stop) in enumerate(zip(bags.offsets[:-1], bags.offsets[1:], strict=True)):
        plan.setpts(*angles[:, start:stop])
        plan.execute(strengths[: stop - start], out=spectra[i])
    folded = fold(spectra, n_per_dim)
    folded /= bags.sizes[:, None]
    return folded


def fold(spectra: _Array, n_per_dim: int) -> _Array:
    """Return sums of orthonormal cosines' products, (n_bags, n_per_dim^d), from Fourier sums.

    Wave numbers are from 1 − n_per_dim in each dimension.
    """
    values = spectra.real
    middle = n_per_dim - 1
    scale = np.where(np.arange(n_per_dim) == 0, 0.5, np.sqrt(0.5)).astype(np.float32)
    for axis in range(1, spectra.ndim):
        values = np.moveaxis(values, axis, -1)
        values = (values[..., middle:] + values[..., middle::-1]) * scale
        values = np.moveaxis(values, -1, axis)
    return values.reshape(len(spectra), -1)


def direct_coefficients(points: _Array, n_per_dim: int) -> _Array:
    """Return cosine coefficients of one bag in double precision, by numpy."""
    sums = np.zeros(n_per_dim ** points.shape[1])
    for start in range(0, len(points), DIRECT_ROWS):
        part = points[start : start + DIRECT_ROWS].astype(np.float64)
        sums += len(part) * bag_features(part, n_per_dim)
    return sums / len(points)


def measure_projection(params: Params, progress: Callback, seed: int) -> dict[str, Any]:
    """Time projections on one thread, in turn, and measure the largest errors."""
    n, d, n_bags = params["n_points"], params["d"], params["n_bags"]
    points = np.random.default_rng([seed, n, d]).random((n * n_bags, d), dtype=np.float32)
    bags = Bags(points, n * np.arange(n_bags + 1))
    sizes = []
    with one_thread():
        for n_per_dim in counted(params["n_per_dim"], progress):
            sizes.append(_size(bags, n_per_dim, params["n_rounds"]))
    return {"sizes": sizes}


def _size(bags: Bags, n_per_dim: int, n_rounds: int) -> dict[str, Any]:
    embedding = ProjectionEmbedding(n_per_dim=n_per_dim, box=[(0, 1)] * bags.n_dims).fit(bags)
    setting = _quicker(bags, n_per_dim)
    calls: dict[str, Callable[[], _Array]] = {
        "ours": lambda: embedding.transform(bags),
        "peer": lambda: finufft_coefficients(bags, n_per_dim, setting),
    }
    calls["ours"]()
    rounds = in_turn(calls, n_rounds)
    seconds = rounds.compared("ours", "peer")
    n_direct = min(DIRECT_BAGS, len(bags))
    truth = np.stack([direct_coefficients(bags[i], n_per_dim) for i in range(n_direct)])
    return {
        **seconds,
        "ours": seconds["ours"] / len(bags),
        "peer": seconds["peer"] / len(bags),
        "s": n_per_dim**bags.n_dims,
        "setting": setting,
        "quality": np.abs(rounds.last["ours"][:n_direct] - truth).max(),
        "peer_quality": np.abs(rounds.last["peer"][:n_direct] - truth).max(),
    }


def _quicker(bags: Bags, n_per_dim: int) -> str:
    """Return finufft's better setting for these bags, which it does not always choose by itself."""
    calls = {each: partial(finufft_coefficients, bags, n_per_dim, each) for each in SETTINGS}
    seconds = timed_in_turn(calls, 1)
    return min(seconds, key=seconds.__getitem__)


def hyppo_statistic(X: Floats, Y: Floats) -> float:
    """`hyppo.ksample.MMD`, biased, of the kernel exp(−‖x − y‖² / 2σ²), without permutations."""
    ksample: Any = import_module("hyppo.ksample")
    return float(ksample.MMD("gaussian", bias=True, gamma=1 / (2 * _SIGMA**2)).statistic(X, Y))


def mmd_of_statistic(statistic: float, X: Floats, Y: Floats) -> float:
    """Return the biased MMD² in a value of `hyppo_statistic`.

    That is 2n²m²/N⁴ √ρ, N = n + m, with the correlation of centred kernel and labels
    ρ = (nm/N) MMD² / ‖HKH‖: hyppo multiplies it by the factor by which the covariance, which it
    does not give, would have to be divided.
    """
    n, m = len(X), len(Y)
    N = n + m
    points = np.concatenate([X, Y])
    kernel = rbf_kernel(points, gamma=1 / (2 * _SIGMA**2))
    means = kernel.mean(axis=0)
    kernel -= means
    kernel -= means[:, None] - means.mean()
    correlation = (statistic * N**4 / (2 * n**2 * m**2)) ** 2
    return float(correlation * np.linalg.norm(kernel) * N / (n * m))


def measure_mmd(params: Params, progress: Callback, seed: int) -> dict[str, Any]:
    """Time MMD² on one thread, in turn, and compare with MMD² in double precision."""
    n = params["n_points"]
    rng = np.random.default_rng([seed, n])
    X, Y = blobs(rng, n, 1.0), blobs(rng, n, _RATIO)
    fourier = X, Y, "fourier", _SIGMA, params["L"], seed
    calls: dict[str, Callable[[], float]] = {
        "all pairs": lambda: compare_statistics(X, Y, "mmd_b", _SIGMA).statistic,
        "random features": lambda: compare_statistics(*fourier).details["biased"],
        "hyppo": lambda: hyppo_statistic(X, Y),
    }
    with one_thread():
        for call in calls.values():
            call()
        progress(1, 2)
        rounds = in_turn(calls, params["n_rounds"])
        truth = rounds.last["all pairs"]
        theirs = mmd_of_statistic(rounds.last["hyppo"], X, Y)
    progress(2, 2)
    compared = {"mmd": truth, "statistic": rounds.last["hyppo"]}
    for name in ("all pairs", "random features"):
        compared[name] = {
            **rounds.compared(name, "hyppo"),
            "quality": abs(rounds.last[name] - truth) / truth,
            "peer_quality": abs(theirs - truth) / truth,
        }
    return compared


class _Predictions(NamedTuple):
    """Predictions for test bags, and seconds per pair, if pairs are timed alone."""

    values: Floats
    seconds_a_pair: float | None = None


def sliced_distance(seed: int) -> _Distance:
    """POT's squared sliced Wasserstein distance, with the same directions for all pairs."""
    ot: Any = import_module("ot")
    directions = ot.sliced.get_random_projections(2, N_PROJECTIONS, seed)
    return lambda X, Y: ot.sliced_wasserstein_distance(X, Y, projections=directions) ** 2


def transport_distance() -> _Distance:
    """POT's squared Wasserstein distance: an exact transport plan per pair."""
    ot: Any = import_module("ot")
    return lambda X, Y: ot.emd2([], [], ot.dist(X, Y))


def distance_matrix(rows: Bags, columns: Bags | None, distance: _Distance) -> Floats:
    """Compute distances, shape (n_rows, n_columns); without columns each pair of rows once."""
    first = [bag.astype(np.float64) for bag in rows]
    if columns is not None:
        second = [bag.astype(np.float64) for bag in columns]
        return np.array([[distance(X, Y) for Y in second] for X in first])
    matrix = np.zeros((len(first), len(first)))
    for i, X in enumerate(first):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = distance(X, first[j])
    return matrix


def by_transport(train: _Labelled, test: Bags, distance: _Distance) -> _Predictions:
    """Kernel ridge regression with exp(−D / 2σ²), σ and λ chosen as for the KL matrix."""
    begun = time.perf_counter()
    own = distance_matrix(train[0], None, distance)
    cross = distance_matrix(test, train[0], distance)
    n = len(train[0])
    seconds = (time.perf_counter() - begun) / (n * (n - 1) // 2 + n * len(test))
    values, _ = predict_by_distances(own, cross, train[1][:, None])
    return _Predictions(values[:, 0], seconds)


def by_embedding(
    train: _Labelled, test: Bags, candidates: Sequence[Any], n_features: int, seed: int
) -> _Predictions:
    """Double-Basis regression, the embedding, σ and λ chosen by a tenth of the training bags."""
    learner = Learner(DoubleBasisRegressor, seed)
    chosen = learner.choose(candidates, _MULTIPLIERS, train, n_features)
    model = learner.fit_choice(chosen, train, n_features)
    return _Predictions(model.predict(test))


def measure_transport(params: Params, progress: Callback, seed: int) -> dict[str, Any]:
    """Time choosing, fitting and predicting on one thread, in turn, and measure RMSE."""
    n_train, n_test, D = params["n_train"], params["n_test"], params["D"]
    dataset = GMMComponents(n_points=params["n_points"], seed=2 * seed + 1)
    bags, y = draw_from(dataset, n_train + n_test)
    train, test = (bags[:n_train], y[:n_train]), bags[n_train:]
    columns = train[0], train[1][:, None]
    js = [HDDEmbedding("js", bandwidth=h, box=DATASET_BOX) for h in (0.03, 0.05)]
    projections = [ProjectionEmbedding(n_per_dim=k, box=DATASET_BOX) for k in (6, 8, 10)]
    calls: dict[str, Callable[[], _Predictions]] = {
        "JS embedding": lambda: by_embedding(train, test, js, D, seed),
        "projection": lambda: by_embedding(train, test, projections, D, seed),
        "KL matrix": lambda: _Predictions(predict_by_kl(*columns, test)[0][:, 0]),
        "sliced Wasserstein": lambda: by_transport(train, test, sliced_distance(seed)),
        "Wasserstein (emd2)": lambda: by_transport(train, test, transport_distance()),
    }
    with one_thread():
        for name in _OURS:
            calls[name]()
        progress(1, 2)
        rounds = in_turn(calls, params["n_rounds"])
    progress(2, 2)
    truth = y[n_train:]
    return {
        "methods": {
            name: {**errors(last.values, truth), "seconds_a_pair": last.seconds_a_pair}
            for name, last in rounds.last.items()
        },
        "pairs": {ours: {peer: rounds.compared(ours, peer) for peer in _PEERS} for ours in _OURS},
        "constant": errors(np.full(n_test, train[1].mean()), truth)["rmse"],
    }
