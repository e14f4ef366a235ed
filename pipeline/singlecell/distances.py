"""Distances of samples by five representations of their cells."""

from __future__ import annotations

import os

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.mixture import GaussianMixture

from ..arrays import Floats
from ..bags import Bags, as_bags
from ..embeddings import (
    BagsLike,
    Embedding,
    HDDEmbedding,
    MeanMapEmbedding,
    PointTransformer,
    SlicedWassersteinEmbedding,
)
from ..execution import Progress
from ..parameters import Function, Integer, None_, OneOf, Seed, Url, checked
from ..store import BagStore
from .pairs import divergence_blocks

METHODS = ("knn", "mixture", "js", "mean_map", "sliced")
MOST_COMPONENTS = 9  # of a mixture, as in GloScope
DRAWS = 10_000  # per sample, for the divergences of mixtures


@checked(
    method=OneOf(*METHODS),
    k=Integer(1),
    seed=Seed,
    checkpoint=Url | None_,
    progress=Function | None_,
)
def sample_distances(
    X: BagStore | BagsLike,
    method: str = "knn",
    *,
    k: int = 25,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Distances of all pairs of samples, ≥ 0.

    ============ ============================================================================
    "knn"        GloScope: KL(p ‖ q) + KL(q ‖ p) by k-th neighbours, exact; see `divergence_blocks`
    "mixture"    the same of Gaussian mixtures (number of components by BIC), by random draws
    "js"         of HDD embeddings, Jensen-Shannon; linear in cells
    "mean_map"   of mean maps; linear in cells
    "sliced"     of sliced Wasserstein embeddings; linear in cells
    ============ ============================================================================

    Estimates of "knn" and "mixture" below zero count as zero, as in patpy. For the last three
    the coordinates are standardised over all cells.

    Parameters
    ----------
    X : BagStore, Bags, or list of arrays (n_cells, n_dims)
    method : str
    k : int, default 25
        Of "knn".
    seed : int, default 0
        Of mixtures and their draws.
    checkpoint, progress
        Of "knn", as for `divergence_blocks`.

    Returns
    -------
    array of float64, shape (n_samples, n_samples)
        Symmetric, with a diagonal of 0.

    Raises
    ------
    BagError, DataError, ParameterError
        Samples of k cells or fewer; what the embeddings refuse.
    """
    if method == "knn":
        found = divergence_blocks(X, k=k, checkpoint=checkpoint, progress=progress)
        return np.maximum(found, 0)
    bags = X.read(0, X.n_bags) if isinstance(X, BagStore) else as_bags(X)
    if method == "mixture":
        return np.maximum(_of_mixtures(bags, seed), 0)
    rows = representation(bags, method)
    distances: Floats = squareform(pdist(rows))
    return distances


def representation(bags: Bags, method: str) -> Floats:
    """Return a vector per sample: the embedding of "js", "mean_map" or "sliced"."""
    kinds: dict[str, Embedding] = {
        "js": HDDEmbedding("js"),
        "mean_map": MeanMapEmbedding(),
        "sliced": SlicedWassersteinEmbedding(),
    }
    rows: Floats = PointTransformer(embedding=kinds[method]).fit_transform(bags)
    return rows.astype(np.float64)


def _of_mixtures(bags: Bags, seed: int) -> Floats:
    """Return KL(p ‖ q) + KL(q ‖ p) of mixtures, each by draws of its own."""
    mixtures = [_mixture(np.asarray(bag, dtype=np.float64), seed) for bag in bags]
    directed = np.empty((len(mixtures), len(mixtures)))
    for i, one in enumerate(mixtures):
        draws = one.sample(DRAWS)[0]
        own = one.score(draws)
        directed[i] = [own - other.score(draws) for other in mixtures]
    np.fill_diagonal(directed, 0)
    return directed + directed.T


def _mixture(points: Floats, seed: int) -> GaussianMixture:
    most = min(MOST_COMPONENTS, max(1, len(points) // (2 * points.shape[1])))
    fitted = [GaussianMixture(n, random_state=seed).fit(points) for n in range(1, most + 1)]
    return min(fitted, key=lambda one: float(one.bic(points)))
