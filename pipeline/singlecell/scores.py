"""The four scores of sample representations that SPARE compares, from distances of samples.

SPARE is the benchmark of patpy (Shitov et al., LMRL workshop at ICLR 2025).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.stats import rankdata

from ..core import Integer, OneOf, checked
from ..core.arrays import Floats
from ..core.errors import DataError
from ..core.params import as_array

TASKS = ("classification", "regression", "ranking")
N_COMPONENTS = 10  # of a diffusion map, as is usual for pseudotime


@checked(task=OneOf(*TASKS), n_neighbors=Integer(1))
def information_retention(
    distances: ArrayLike, target: ArrayLike, task: str = "classification", n_neighbors: int = 3
) -> float:
    """How well the nearest samples predict a covariate: 0 is chance, 1 is perfect.

    Each sample is predicted from its ``n_neighbors`` nearest others, weighted by 1 / distance. Of
    L classes the score is (F1 − 1/L) · L / (L − 1) with the macro F1, of numbers the absolute
    Spearman correlation; below 0 it counts as 0. Samples without a label are left out.

    Parameters
    ----------
    distances : shape (n, n)
        Distances of samples from each other, ≥ 0.
    target : shape (n,)
        Labels, or numbers; NaN or None is unknown.
    task : {"classification", "regression", "ranking"}
    n_neighbors : int, default 3

    Raises
    ------
    DataError
        Distances that are no square matrix of numbers ≥ 0, or fewer known samples than neighbours.
    """
    matrix = _as_distances(distances)
    values = np.asarray(target, dtype=object)
    if values.shape != (len(matrix),):
        raise DataError(f"target has shape {values.shape}, there are {len(matrix)} samples")
    known = np.array([value is not None and value == value for value in values])
    matrix, values = matrix[np.ix_(known, known)], values[known]
    if len(matrix) <= n_neighbors:
        raise DataError(
            f"{len(matrix)} samples have a label; {n_neighbors} neighbours need one more or more"
        )
    np.fill_diagonal(matrix, np.inf)
    order = np.argsort(matrix, axis=1, kind="stable")[:, :n_neighbors]
    weights = _weights(np.take_along_axis(matrix, order, axis=1))
    if task == "classification":
        return _class_score(values, order, weights)
    numbers = values.astype(np.float64)
    predicted = (weights * numbers[order]).sum(axis=1) / weights.sum(axis=1)
    return abs(max(0.0, _spearman(numbers, predicted)))


def batch_score(
    distances: ArrayLike,
    technical: Mapping[str, tuple[ArrayLike, str]],
    n_neighbors: int = 3,
) -> float:
    """How little the nearest samples reveal of technical covariates: 1 is nothing at all.

    Parameters
    ----------
    distances : shape (n, n)
    technical : mapping from name to (values, task)
        As ``target`` and ``task`` of `information_retention`.
    n_neighbors : int, default 3

    Raises
    ------
    DataError
        As `information_retention`; no covariate at all.
    """
    if not technical:
        raise DataError("technical is empty; name one covariate or more")
    told = [
        information_retention(distances, values, task, n_neighbors)
        for values, task in technical.values()
    ]
    return 1 - float(np.mean(told))


@checked(root=Integer(0), n_neighbors=Integer(1))
def trajectory_score(
    distances: ArrayLike, order: ArrayLike, root: int, n_neighbors: int = 15
) -> float:
    """How well diffusion pseudotime from a root follows a known order: |Spearman|, in [0, 1].

    Pseudotime is the distance in a diffusion map (Haghverdi et al., 2016): eigenvectors of the
    transition matrix of a Gaussian kernel on the graph of nearest neighbours, weighted by
    λ / (1 − λ). Samples that the graph does not join to the root count as the farthest.

    Parameters
    ----------
    distances : shape (n, n)
    order : shape (n,)
        Numbers, such as grades of severity; NaN is left out of the correlation.
    root : int
        The sample where the trajectory begins.
    n_neighbors : int, default 15
        Number of neighbours in the graph; at most n − 1 are used.

    Raises
    ------
    DataError
        Distances that are no square matrix, an order of another length, or no such root.
    """
    matrix = _as_distances(distances)
    ranks = as_array("order", order, np.float64)
    if ranks.shape != (len(matrix),) or root >= len(matrix):
        raise DataError(f"order has shape {ranks.shape}, root is {root}: of {len(matrix)} samples")
    time = _pseudotime(matrix, root, min(n_neighbors, len(matrix) - 1))
    known = np.isfinite(ranks)
    return abs(_spearman(ranks[known], time[known]))


def replicate_robustness(distances: ArrayLike, samples: Sequence[Any]) -> float:
    """How near replicates of a sample are: 1 if each one's nearest sample is its replicate.

    It is 1 − the mean share of the other samples that are nearer than the nearest replicate, so
    about .5 at random.

    Parameters
    ----------
    distances : shape (n, n)
    samples : sequence, length n
        Which sample each row is a replicate of; every one needs two rows or more.

    Raises
    ------
    DataError
        Distances that are no square matrix, or a sample without a replicate.
    """
    matrix = _as_distances(distances)
    names = np.asarray(samples)
    if names.shape != (len(matrix),):
        raise DataError(f"samples have shape {names.shape}, there are {len(matrix)} rows")
    shares = []
    for i, row in enumerate(matrix):
        others = np.arange(len(matrix)) != i
        same = others & (names == names[i])
        if not same.any():
            raise DataError(f"sample {names[i].item()!r} has one row; a replicate needs another")
        nearer = (row[others & ~same] < row[same].min()).sum()
        shares.append(nearer / max(1, (others & ~same).sum()))
    return 1 - float(np.mean(shares))


def _as_distances(distances: ArrayLike) -> Floats:
    matrix = np.array(as_array("distances", distances, np.float64))
    is_square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not is_square or not np.isfinite(matrix).all() or (matrix < 0).any():
        raise DataError(f"distances have shape {matrix.shape}; expected (n, n), finite and ≥ 0")
    return matrix


def _weights(near: Floats) -> Floats:
    """Return 1 / distance; where some are zero, these alone."""
    zero = near == 0
    with np.errstate(divide="ignore"):
        return np.where(zero.any(axis=1, keepdims=True), zero.astype(float), 1 / near)


def _class_score(values: NDArray[Any], order: NDArray[np.int64], weights: Floats) -> float:
    classes, codes = np.unique(values.astype(str), return_inverse=True)
    if len(classes) == 1:
        return 0.0
    votes = np.zeros((len(values), len(classes)))
    for column in range(order.shape[1]):
        np.add.at(votes, (np.arange(len(values)), codes[order[:, column]]), weights[:, column])
    predicted = votes.argmax(axis=1)
    of_classes = []
    for c in range(len(classes)):
        hits = ((predicted == c) & (codes == c)).sum()
        of_classes.append(2 * hits / ((predicted == c).sum() + (codes == c).sum()))
    share = 1 / len(classes)
    return max(0.0, (float(np.mean(of_classes)) - share) / (1 - share))


def _spearman(a: Floats, b: Floats) -> float:
    """Return the correlation of ranks; 0 where one of them is constant."""
    x, y = rankdata(a) - (len(a) + 1) / 2, rankdata(b) - (len(b) + 1) / 2
    scale = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if scale > 0 else 0.0


def _pseudotime(matrix: Floats, root: int, k: int) -> Floats:
    ordered = np.sort(matrix, axis=1)
    width = np.maximum(ordered[:, k], np.finfo(np.float64).tiny)  # the first is the sample itself
    near = matrix <= width[:, None]
    kernel = np.exp(-(matrix**2) / (width[:, None] * width[None, :])) * (near | near.T)
    kernel /= np.outer(kernel.sum(axis=1), kernel.sum(axis=1))  # the density's share is taken out
    degree = np.sqrt(kernel.sum(axis=1))
    values, vectors = np.linalg.eigh(kernel / np.outer(degree, degree))
    values, vectors = values[::-1][1 : N_COMPONENTS + 1], vectors[:, ::-1][:, 1 : N_COMPONENTS + 1]
    kept = (values < 1 - 1e-9) & (values > 0)
    coordinates = vectors[:, kept] * (values[kept] / (1 - values[kept])) / degree[:, None]
    time: Floats = np.linalg.norm(coordinates - coordinates[root], axis=1)
    joined = np.isfinite(shortest_path(near | near.T, directed=False, indices=root))
    time[~joined] = time[joined].max() + 1
    return time
