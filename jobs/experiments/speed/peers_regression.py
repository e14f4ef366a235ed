"""Regression on bags of a store as others would write it: scikit-learn, dask.array, kernels.

From the same Zarr data, float32 all through, and many bags of one size in one product.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import zarr
from distributed import Client
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KernelCenterer

from bagbasis import (
    BagStore,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    connect,
    features,
)
from bagbasis.datasets import generate, make_dataset

from ..kit import Callback, Params
from ..kit.learning import draw_from, errors
from ..timing import in_turn
from .falkon import fit_falkon

_FUNCTIONS = 10  # per dimension
_N_POINTS = 200  # per bag
N_FEW, D_FEW = 300, 256  # of fits that are not timed
_SIGMA, ALPHA_PER_BAG = 2.0, 1e-4  # best for `DoubleBasisRegressor` at N = 10,000, D = 2,048
GAMMA = 1 / (2 * _SIGMA**2)
_BAGS_PER_BLOCK = 5000  # a million points: some 100 MiB of cosines
ITERATIONS = 20  # of FALKON

_Array = NDArray[Any]
Predict = Callable[[_Array], _Array]  # of embeddings, shape (n, s)


def bag_features(points: _Array, n_per_dim: int = _FUNCTIONS) -> _Array:
    """Cosine coefficients of one bag (n, d), or of several of one size, in [0, 1]^d, in numpy."""
    k = (np.pi * np.arange(n_per_dim)).astype(points.dtype)
    scale = np.where(np.arange(n_per_dim) == 0, 1.0, np.sqrt(2.0)).astype(points.dtype)
    *first, last = (np.cos(points[..., j, None] * k) * scale for j in range(points.shape[-1]))
    products = np.ones((*points.shape[:-1], 1), points.dtype)
    for table in first:
        products = products[..., :, None] * table[..., None, :]
        products = products.reshape(*points.shape[:-1], -1)
    sums = np.swapaxes(products, -1, -2) @ last
    return sums.reshape(*points.shape[:-2], -1) / points.shape[-2]


def read_features(url: str, start: int, stop: int) -> _Array:
    """Features of bags start … stop − 1 of a store whose box is [−10, 10]², float32."""
    group: Any = zarr.open_group(url, mode="r")
    offsets = group["offsets"][start : stop + 1]
    points = (group["points"][offsets[0] : offsets[-1]] + np.float32(10)) / np.float32(20)
    sizes = np.diff(offsets)
    if (sizes == sizes[0]).all():
        return bag_features(points.reshape(len(sizes), sizes[0], -1))
    offsets = offsets - offsets[0]
    return np.stack([bag_features(points[a:b]) for a, b in itertools.pairwise(offsets)])


def read_targets(url: str, n_bags: int) -> _Array:
    group: Any = zarr.open_group(url, mode="r")
    return group["targets"][:n_bags, 0]


def fit_sklearn(url: str, n_bags: int, sampler: TransformerMixin, alpha: float) -> Pipeline:
    """Fit features, then random features (a transformer) and Ridge in memory, all in float32."""
    step, targets = _BAGS_PER_BLOCK, read_targets(url, n_bags)
    blocks = [read_features(url, a, min(n_bags, a + step)) for a in range(0, n_bags, step)]
    model = make_pipeline(sampler, Ridge(alpha=alpha))
    return model.fit(np.concatenate(blocks), targets.astype(np.float32))


@dataclass(frozen=True)
class FourierRidge:
    """What `fit_dask` finds: √(2/D) cos(aᵀω + b) of embeddings a, times coefficients."""

    frequencies: _Array
    phases: _Array
    coef: _Array
    intercept: float

    def predict(self, embeddings: _Array) -> _Array:
        return fourier(embeddings, self.frequencies, self.phases) @ self.coef + self.intercept


def fourier(embeddings: _Array, frequencies: _Array, phases: _Array) -> _Array:
    """Random Fourier features in the phase form, shape (n, D)."""
    waves: _Array = embeddings @ frequencies
    waves += phases
    np.cos(waves, out=waves)
    waves *= waves.dtype.type(np.sqrt(2 / frequencies.shape[1]))
    return waves


def fit_dask(
    client: Client, url: str, n_bags: int, n_features: int, gamma: float, alpha: float
) -> FourierRidge:
    """Fit blocks of bags: features, Z.T @ Z and Z.T @ y by dask.array, on the client's workers.

    With an intercept, as all others have it. Only the solve is in double.
    """
    rng, s, step = np.random.default_rng(0), _FUNCTIONS**2, _BAGS_PER_BLOCK // 2
    frequencies = rng.normal(scale=np.sqrt(2 * gamma), size=(s, n_features)).astype(np.float32)
    phases = rng.uniform(0, 2 * np.pi, n_features).astype(np.float32)
    blocks = []
    for a in range(0, n_bags, step):
        b = min(n_bags, a + step)
        block = dask.delayed(read_features)(url, a, b)
        blocks.append(da.from_delayed(block, shape=(b - a, s), dtype=np.float32))
    embeddings = da.concatenate(blocks)
    z = embeddings.map_blocks(
        fourier, frequencies, phases, chunks=(embeddings.chunks[0], (n_features,)), dtype=np.float32
    )
    targets = read_targets(url, n_bags)
    y = da.from_array((targets - targets.mean()).astype(np.float32), chunks=step)
    merged = client.gather(client.compute([z.T @ z, z.T @ y, z.mean(axis=0)]))
    gram, cross, mean = (np.asarray(each, dtype=np.float64) for each in merged)
    gram -= n_bags * np.outer(mean, mean)
    coef = np.linalg.solve(gram + alpha * np.eye(n_features), cross)
    return FourierRidge(frequencies, phases, coef, float(targets.mean() - mean @ coef))


def fit_ours(store: BagStore, n_features: int, alpha: float, seed: int) -> DoubleBasisRegressor:
    """Return the Double-Basis estimator with the same projection, σ and penalty."""
    second = RandomFourierFeatures(n_features=n_features, scale=_SIGMA, seed=seed)
    return DoubleBasisRegressor(ProjectionEmbedding(), second, alpha=alpha).fit(store)


def _with_sampler(kind: type[Any]) -> Callable[..., Predict]:
    def fit(store: BagStore, D: int, alpha: float, seed: int, client: None) -> Predict:
        sampler = kind(gamma=GAMMA, n_components=D, random_state=seed)
        return fit_sklearn(store.url, store.n_bags, sampler, alpha).predict

    return fit


def _with_dask(store: BagStore, D: int, alpha: float, seed: int, client: Client) -> Predict:
    return fit_dask(client, store.url, store.n_bags, D, GAMMA, alpha).predict


def _with_kernel_ridge(store: BagStore, D: int, alpha: float, seed: int, client: None) -> Predict:
    embeddings, y = _in_memory(store)
    embeddings = embeddings.astype(np.float64)
    centre = KernelCenterer()
    kernel = centre.fit_transform(rbf_kernel(embeddings, gamma=GAMMA))
    model = KernelRidge(alpha=alpha, kernel="precomputed").fit(kernel, y - y.mean())

    def predict(rows: _Array) -> _Array:
        values = centre.transform(rbf_kernel(rows, embeddings, gamma=GAMMA))
        return model.predict(values) + y.mean()

    return predict


def _with_falkon(store: BagStore, D: int, alpha: float, seed: int, client: None) -> Predict:
    embeddings, y = _in_memory(store)
    model = fit_falkon(embeddings, y, D, GAMMA, alpha, ITERATIONS, seed)
    return lambda rows: model.predict(rows.astype(np.float32))


def _in_memory(store: BagStore) -> tuple[_Array, _Array]:
    embeddings = np.asarray(features(store, ProjectionEmbedding()).compute(scheduler="threads"))
    return embeddings, read_targets(store.url, store.n_bags)


# Peers that read and project by themselves, and those that begin with our projection.
BASIS_PEERS: dict[str, Callable[..., Predict]] = {
    "RBFSampler + Ridge": _with_sampler(RBFSampler),
    "Nystroem + Ridge": _with_sampler(Nystroem),
    "dask.array": _with_dask,
}
KERNELS: dict[str, Callable[..., Predict]] = {
    "KernelRidge": _with_kernel_ridge,
    "FALKON": _with_falkon,
}


def gap_error(ours: _Array, peer: _Array, y: _Array) -> float:
    """Return standard error of the difference of both RMSE, which are of the same bags."""
    gaps = (ours - y) ** 2 - (peer - y) ** 2
    rmse = np.sqrt(np.mean((ours - y) ** 2))
    return float(gaps.std(ddof=1) / np.sqrt(len(y)) / (2 * rmse))


def measure_regression(
    params: Params, progress: Callback, seed: int, out_dir: Path
) -> dict[str, Any]:
    """Time whole fits from the store, in turn, and measure RMSE on test bags of both."""
    n_bags, D = params["n_train"], params["D"]
    dataset = make_dataset("gmm_components", seed=2 * seed, n_points=_N_POINTS)
    store = generate(dataset, out_dir / f"bags-{n_bags}.zarr", n_bags=n_bags)
    unseen = make_dataset("gmm_components", seed=2 * seed + 1, n_points=_N_POINTS)
    test, y = draw_from(unseen, params["n_test"])
    points = test.points.astype(np.float64).reshape(len(test), _N_POINTS, -1)
    rows = bag_features((points + 10) / 20)
    alpha, fit_peer = ALPHA_PER_BAG * n_bags, {**BASIS_PEERS, **KERNELS}[params["peer"]]
    workers = params["peer"] == "dask.array"
    few = generate(dataset, out_dir / "bags-few.zarr", n_bags=N_FEW)
    progress(0, 1)
    with connect("local", n_workers=2, cores_per_worker=1) if workers else nullcontext() as client:
        fit_ours(few, D_FEW, alpha, seed)
        fit_peer(few, D_FEW, alpha, seed, client)  # what is compiled or loaded is not counted
        calls = {
            "ours": lambda: fit_ours(store, D, alpha, seed),
            "peer": lambda: fit_peer(store, D, alpha, seed, client),
        }
        rounds = in_turn(calls, params["n_rounds"])
    progress(1, 1)
    ours, peer = rounds.last["ours"].predict(test), rounds.last["peer"](rows)
    return {
        **rounds.compared("ours", "peer"),
        "quality": errors(ours, y)["rmse"],
        "peer_quality": errors(peer, y)["rmse"],
        "gap_error": gap_error(ours, peer, y),
        "constant": errors(np.full(len(y), y.mean()), y)["rmse"],
    }
