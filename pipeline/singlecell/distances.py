"""Distances between samples by five representations of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import pdist, squareform
from sklearn.covariance import oas
from sklearn.mixture import GaussianMixture

from ..core import OneOf, RandomSeed, UrlOrPath, checked, documented
from ..core.arrays import Floats
from ..core.errors import DataError
from ..data.bags.bags import Bags, BagsInMemory, as_bags
from ..data.store.store import BagStore
from ..embeddings.base import Embedding
from ..embeddings.composed.point_transformer import PointTransformer
from ..embeddings.hdd import HDDEmbedding
from ..embeddings.mean_map import MeanMapEmbedding
from ..embeddings.sliced import SlicedWassersteinEmbedding
from ..execution.progress import Progress
from .pairs import N_NEIGHBOURS, Neighbours, divergence_blocks

METHODS = ("knn", "mixture", "js", "mean_map", "sliced")
"""Names of the distances between samples that `sample_distances` computes."""
Method = Annotated[str, OneOf(*METHODS)]
DEFAULT_METHOD = METHODS[0]
_MAX_COMPONENTS = 9  # components of a mixture, as in GloScope
# Samples with fewer different cells per dimension get one normal distribution with a shrunk
# covariance. For two samples from one distribution, distances of mixtures were 10⁶ with as many
# cells as dimensions, and 4 with 7 cells per dimension.
CELLS_PER_DIM = 10
_N_DRAWS = 10_000  # per sample, for the divergences of mixtures


@documented
@checked
def sample_distances(
    X: BagStore | BagsInMemory,
    method: Method = DEFAULT_METHOD,
    *,
    k: Neighbours = N_NEIGHBOURS,
    seed: RandomSeed = 0,
    checkpoints: UrlOrPath | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Return the distances between all pairs of samples.

    ============ ============================================================================
    "knn"        GloScope: KL(p ‖ q) + KL(q ‖ p) by k-th neighbours, exact; see `divergence_blocks`
    "mixture"    the same for Gaussian mixtures (number of components by BIC), by random draws
    "js"         Jensen-Shannon distance of HDD embeddings; linear in cells
    "mean_map"   distance of mean maps; linear in cells
    "sliced"     distance of sliced Wasserstein embeddings; linear in cells
    ============ ============================================================================

    For "mixture", a sample with fewer than 10 different cells per dimension is described by one
    normal distribution, whose covariance is shrunk towards the covariance within all samples.
    Negative estimates of "knn" and "mixture" are set to zero, as in patpy. For the last three
    methods the coordinates are standardised over all cells.

    Parameters
    ----------
    X : BagStore, Bags, or list of arrays (n_cells, n_dims)
        Samples, each a bag of cells.
    method
        Name of the method, see the table.
    k
        Number of neighbours for the method "knn".
    seed
        Seed for drawing mixtures and their samples.
    checkpoints, progress
        Checkpoints and progress of the method "knn", as in `divergence_blocks`.

    Returns
    -------
    array of float64, shape (n_samples, n_samples)
        Symmetric, with a diagonal of 0.

    Raises
    ------
    BagError, DataError, ParameterError
        If a sample has at most k cells for "knn", no sample has two different cells for "mixture",
        or an embedding rejects a sample.

    See Also
    --------
    divergence_blocks : Divergences of all pairs, in blocks.
    bagbasis.ingest.ingest_anndata : Read annotated cells.
    BagbasisSamples : Sample representations for patpy.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.singlecell import sample_distances
    >>> X = [rng.normal(m, 1, (60, 2)) for m in (0, 0, 3)]
    >>> D = sample_distances(X, k=10)
    >>> D.shape, bool(D[0, 2] > D[0, 1])
    ((3, 3), True)
    """
    if method == "knn":
        divergences = divergence_blocks(X, k=k, checkpoints=checkpoints, progress=progress)
        positive: Floats = np.maximum(divergences, 0)
        return positive
    bags = X.read(0, X.n_bags) if isinstance(X, BagStore) else as_bags(X)
    if method == "mixture":
        return np.maximum(_of_mixtures(bags, seed), 0)
    rows = representation(bags, method)
    distances: Floats = squareform(pdist(rows))
    return distances


def representation(bags: Bags, method: str) -> Floats:
    """Return one vector per sample: the embedding of "js", "mean_map" or "sliced"."""
    kinds: dict[str, Embedding] = {
        "js": HDDEmbedding("js"),
        "mean_map": MeanMapEmbedding(),
        "sliced": SlicedWassersteinEmbedding(),
    }
    rows: Floats = PointTransformer(embedding=kinds[method]).fit_transform(bags)
    return rows.astype(np.float64)


def _of_mixtures(bags: Bags, seed: int) -> Floats:
    """Return KL(p ‖ q) + KL(q ‖ p) of mixtures, each term by its own draws."""
    cells = [np.asarray(bag, dtype=np.float64) for bag in bags]
    few = [len(np.unique(points, axis=0)) < CELLS_PER_DIM * bags.n_dims for points in cells]
    pooled = _Pooled.of(cells) if any(few) else None
    mixtures = [
        _mixture(points, seed) if pooled is None or not is_few else pooled.normal(points, seed)
        for points, is_few in zip(cells, few, strict=True)
    ]
    directed = np.empty((len(mixtures), len(mixtures)))
    for i, mixture in enumerate(mixtures):
        draws = mixture.sample(_N_DRAWS)[0]
        own = mixture.score(draws)
        directed[i] = [own - other.score(draws) for other in mixtures]
    np.fill_diagonal(directed, 0)
    return directed + directed.T


def _mixture(points: Floats, seed: int) -> GaussianMixture:
    most = min(_MAX_COMPONENTS, max(1, len(points) // (2 * points.shape[1])))
    fitted = [GaussianMixture(n, random_state=seed).fit(points) for n in range(1, most + 1)]
    return min(fitted, key=lambda model: float(model.bic(points)))


@dataclass(frozen=True, eq=False)
class _Pooled:
    """The covariance of cells within samples, towards which samples of few cells are shrunk.

    Attributes
    ----------
    varies : bool, shape (d,)
        Coordinates that are not constant within every sample.
    root : float64, shape (v, v)
        A matrix L of these coordinates with L Lᵀ the covariance.
    """

    varies: NDArray[np.bool_]
    root: Floats

    @classmethod
    def of(cls, cells: Sequence[Floats]) -> Self:
        """Return the covariance of all samples together.

        Raises
        ------
        DataError
            If no sample has two different cells.
        """
        gaps = np.concatenate([points - points.mean(axis=0) for points in cells])
        n = max(1, len(gaps) - len(cells))
        spread = np.sqrt((gaps**2).sum(axis=0) / n)
        varies = spread > 0
        if not varies.any():
            raise DataError(
                "no sample has two different cells; mixtures need some: take method='mean_map'"
            )
        covariance, _ = oas(gaps[:, varies] / spread[varies], assume_centered=True)
        return cls(varies, spread[varies, None] * cholesky(covariance * len(gaps) / n, lower=True))

    def normal(self, points: Floats, seed: int) -> GaussianMixture:
        """Return a normal distribution with the mean of a few cells, and a shrunk covariance.

        In units of the pooled covariance, the covariance of the cells is shrunk towards a multiple
        of the identity by oracle-approximating shrinkage (Chen et al. 2010). The multiple counts
        one pooled cell in addition to the cells of the sample.
        """
        mean = points.mean(axis=0)
        rows = solve_triangular(self.root, (points - mean)[:, self.varies].T, lower=True).T
        n_different = len(np.unique(points, axis=0))
        covariance = np.eye(rows.shape[1])
        if n_different > 1:
            shrinkage = oas(np.unique(rows, axis=0))[1]
            own = rows.T @ rows / len(rows) * n_different / (n_different - 1)
            scale = ((n_different - 1) * np.trace(own) / len(own) + 1) / n_different
            covariance = (1 - shrinkage) * own + shrinkage * scale * covariance
        made = GaussianMixture(1, random_state=seed)
        whole = np.diag(np.where(self.varies, 0.0, made.reg_covar))  # of constants, as in mixtures
        whole[np.ix_(self.varies, self.varies)] = self.root @ covariance @ self.root.T
        made.weights_, made.means_, made.covariances_ = np.ones(1), mean[None], whole[None]
        lower = cholesky(whole, lower=True)
        made.precisions_cholesky_ = solve_triangular(lower, np.eye(len(lower)), lower=True).T[None]
        return made
