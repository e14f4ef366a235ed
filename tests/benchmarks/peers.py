"""What a competent user would write today, from the same Zarr data."""

from __future__ import annotations

import itertools

import dask
import dask.array as da
import numpy as np
import zarr
from distributed import Client
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge

FUNCTIONS = 10


def bag_features(points: NDArray) -> NDArray:
    """Cosine coefficients of one bag in [0, 1]², 10 × 10 functions, in numpy."""
    k = np.pi * np.arange(FUNCTIONS)
    scale = np.where(np.arange(FUNCTIONS) == 0, 1.0, np.sqrt(2.0))
    u = np.cos(points[:, :1] * k) * scale
    v = np.cos(points[:, 1:] * k) * scale
    return (u.T @ v).ravel() / len(points)


def read_features(url: str, start: int, stop: int) -> NDArray:
    """Features of bags start … stop − 1 of a store whose box is [−10, 10]²."""
    group = zarr.open_group(url, mode="r")
    offsets = group["offsets"][start : stop + 1]
    points = (group["points"][offsets[0] : offsets[-1]].astype(np.float64) + 10) / 20
    offsets = offsets - offsets[0]
    return np.stack([bag_features(points[a:b]) for a, b in itertools.pairwise(offsets)])


def fit_sklearn(url: str, n_bags: int, n_features: int, gamma: float, alpha: float) -> Ridge:
    """Features bag by bag, then RBFSampler and Ridge in memory."""
    targets = zarr.open_group(url, mode="r")["targets"][:n_bags, 0]
    embeddings = np.concatenate(
        [read_features(url, a, min(n_bags, a + 5000)) for a in range(0, n_bags, 5000)]
    )
    features = RBFSampler(gamma=gamma, n_components=n_features, random_state=0).fit_transform(
        embeddings
    )
    return Ridge(alpha=alpha).fit(features, targets)


def fit_dask(
    client: Client, url: str, n_bags: int, n_features: int, gamma: float, alpha: float
) -> NDArray:
    """Blocks of bags to features, Z.T @ Z and Z.T @ y by dask.array, on the client's workers."""
    rng = np.random.default_rng(0)
    frequencies = rng.normal(scale=np.sqrt(2 * gamma), size=(FUNCTIONS**2, n_features))
    phases = rng.uniform(0, 2 * np.pi, n_features)
    step = 2500
    blocks = [
        da.from_delayed(
            dask.delayed(read_features)(url, a, min(n_bags, a + step)),
            shape=(min(n_bags, a + step) - a, FUNCTIONS**2),
            dtype=np.float64,
        )
        for a in range(0, n_bags, step)
    ]
    embeddings = da.concatenate(blocks)
    z = embeddings.map_blocks(
        lambda a, w, b: np.sqrt(2 / w.shape[1]) * np.cos(a @ w + b),
        frequencies,
        phases,
        chunks=(embeddings.chunks[0], (n_features,)),
        dtype=np.float64,
    )
    y = da.from_array(zarr.open_group(url, mode="r")["targets"][:n_bags, 0], chunks=step)
    gram, cross = client.gather(client.compute([z.T @ z, z.T @ y]))
    return np.linalg.solve(gram + alpha * np.eye(n_features), cross)
