"""The four scores of sample representations in SPARE, computed from distances of samples.

SPARE is the benchmark of patpy (Shitov et al., LMRL workshop at ICLR 2025).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.stats import rankdata

from ..core import Integer, OneOf, checked, documented
from ..core.arrays import Floats, as_array
from ..core.errors import DataError

TASKS = ("classification", "regression", "ranking")
_EXPECTED = (
    "expected a mapping from names to (values, task), such as {'batch': (batches, "
    "'classification')}"
)
_N_COMPONENTS = 10  # components of a diffusion map, as is usual for pseudotime


@documented
@checked
def information_retention(
    distances: ArrayLike,
    target: ArrayLike,
    *,
    task: Annotated[str, OneOf(*TASKS)] = "classification",
    n_neighbors: Annotated[int, Integer(1)] = 3,
) -> float:
    """Score how well nearest samples predict a covariate; 0 is chance, 1 is perfect.

    Each sample is predicted from its ``n_neighbors`` nearest other samples, weighted by
    1 / distance. For L classes the score is (F1 − 1/L) · L / (L − 1) with the macro F1. For numbers
    it is the absolute Spearman correlation. Negative scores are set to 0. Samples without a label
    are left out.

    Parameters
    ----------
    distances : shape (n, n)
        Distances between samples, ≥ 0.
    target : shape (n,)
        Labels or numbers; NaN or None marks unknown values.
    task : {"classification", "regression", "ranking"}
        Kind of the target.
    n_neighbors
        Number of nearest samples.

    Raises
    ------
    DataError
        If the distances do not form a square matrix of numbers ≥ 0, fewer samples than neighbours
        have a known value, or classes are numbers that are not whole, as measurements are.

    See Also
    --------
    batch_score : Absence of batch effects.
    replicate_robustness : Closeness of replicates.
    trajectory_score : Agreement with a known order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.array([0.0, 0.1, 0.2, 3.0, 3.1, 3.2])
    >>> distances = abs(x[:, np.newaxis] - x)
    >>> from bagbasis.singlecell import information_retention
    >>> information_retention(distances, ['a', 'a', 'a', 'b', 'b', 'b'], n_neighbors=2)
    1.0
    """
    known, predicted = predict_from_neighbors(distances, target, task, n_neighbors)
    values = np.asarray(target, dtype=object)[known]
    if task == "classification":
        return _class_score(values.astype(str), predicted)
    return abs(max(0.0, _spearman(values.astype(np.float64), predicted)))


def predict_from_neighbors(
    distances: ArrayLike, target: ArrayLike, task: str, n_neighbors: int
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Predict each sample's label from its nearest other samples, weighted by 1 / distance.

    Returns
    -------
    known : bool, shape (n,)
        Which samples have a label.
    predicted : shape (number of known samples,)
        Classes as strings for task="classification", else float64.
    """
    matrix = _as_distances(distances)
    values = np.asarray(target, dtype=object)
    if values.shape != (len(matrix),):
        raise DataError(f"target has shape {values.shape}, there are {len(matrix)} samples")
    known = ~pd.isna(values)
    matrix, values = matrix[np.ix_(known, known)], values[known]
    if len(matrix) <= n_neighbors:
        raise DataError(
            f"{len(matrix)} samples have a label; {n_neighbors} neighbours need one more or more"
        )
    np.fill_diagonal(matrix, np.inf)
    order = np.argsort(matrix, axis=1, kind="stable")[:, :n_neighbors]
    weights = _weights(np.take_along_axis(matrix, order, axis=1))
    if task == "classification":
        _refuse_measurements(values)
        classes, codes = np.unique(values.astype(str), return_inverse=True)
        votes = np.zeros((len(values), len(classes)))
        for column in range(order.shape[1]):
            np.add.at(votes, (np.arange(len(values)), codes[order[:, column]]), weights[:, column])
        return known, classes[votes.argmax(axis=1)]
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"target: labels are not numbers ({error}); choose task='classification'"
        ) from error
    return known, (weights * numbers[order]).sum(axis=1) / weights.sum(axis=1)


@documented
def batch_score(
    distances: ArrayLike,
    technical: Mapping[str, tuple[ArrayLike, str]],
    *,
    n_neighbors: int = 3,
) -> float:
    """Score how little the nearest samples reveal about technical covariates, from 0 to 1 (best).

    Parameters
    ----------
    distances : shape (n, n)
        Distances between samples, ≥ 0.
    technical : mapping from name to (values, task)
        Technical covariates; values and task are as ``target`` and ``task`` of
        `information_retention`.
    n_neighbors
        Number of nearest samples.

    Raises
    ------
    DataError
        If ``technical`` is not such a mapping or is empty, or in the cases of
        `information_retention`.

    See Also
    --------
    information_retention : Covariate information in a representation.
    replicate_robustness : Closeness of replicates.
    trajectory_score : Agreement with a known order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.array([0.0, 0.1, 0.2, 3.0, 3.1, 3.2])
    >>> distances = abs(x[:, np.newaxis] - x)
    >>> from bagbasis.singlecell import batch_score
    >>> batches = {'batch': (['1', '2', '1', '2', '1', '2'], 'classification')}
    >>> 0 <= batch_score(distances, batches, n_neighbors=2) <= 1
    True
    """
    if not isinstance(technical, Mapping):
        raise DataError(f"technical is a {type(technical).__name__}; {_EXPECTED}")
    if not technical:
        raise DataError("technical is empty; name one covariate or more")
    for name, pair in technical.items():
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[1], str)):
            raise DataError(f"technical[{name!r}] is not a pair (values, task); {_EXPECTED}")
    scores = [
        information_retention(distances, values, task=task, n_neighbors=n_neighbors)
        for values, task in technical.values()
    ]
    return 1 - float(np.mean(scores))


@documented
@checked
def trajectory_score(
    distances: ArrayLike,
    order: ArrayLike,
    *,
    root: Annotated[int, Integer(0)],
    n_neighbors: Annotated[int, Integer(1)] = 15,
) -> float:
    """Absolute rank correlation of diffusion pseudotime with a known ordering of the samples.

    Pseudotime is the distance from the root in a diffusion map (Haghverdi et al., 2016). The map
    has the eigenvectors of the transition matrix of a Gaussian kernel on the graph of nearest
    neighbours, weighted by λ / (1 − λ). Samples that are not connected to the root count as the
    farthest.

    Parameters
    ----------
    distances : shape (n, n)
        Distances between samples, ≥ 0.
    order : shape (n,)
        Known position of each sample, such as a grade of severity. Samples with NaN are left out of
        the correlation.
    root
        Index of the sample where the trajectory begins.
    n_neighbors
        Number of neighbours in the graph; at most n − 1 are used.

    Raises
    ------
    DataError
        If the distances do not form a square matrix, ``order`` has another length, or the root does
        not exist.

    See Also
    --------
    batch_score : Absence of batch effects.
    information_retention : Covariate information in a representation.
    replicate_robustness : Closeness of replicates.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.singlecell import trajectory_score
    >>> x = np.linspace(0, 1, 30)
    >>> round(trajectory_score(abs(x[:, np.newaxis] - x), x, root=0, n_neighbors=5), 2)
    1.0
    """
    matrix = _as_distances(distances)
    ranks = as_array("order", order, np.float64)
    if ranks.shape != (len(matrix),) or root >= len(matrix):
        raise DataError(f"order has shape {ranks.shape}, root is {root}: of {len(matrix)} samples")
    time = _pseudotime(matrix, root, min(n_neighbors, len(matrix) - 1))
    known = np.isfinite(ranks)
    return abs(_spearman(ranks[known], time[known]))


def replicate_robustness(distances: ArrayLike, samples: Sequence[Any]) -> float:
    """Return how close replicates are; 1 if each sample's nearest sample is a replicate.

    The score is 1 − the mean fraction of other samples that are nearer than the nearest replicate.
    For random distances it is about 0.5.

    Parameters
    ----------
    distances : shape (n, n)
        Distances between rows, ≥ 0.
    samples : sequence, length n
        Sample of each row. Rows of the same sample are replicates; each sample needs two rows or
        more.

    Raises
    ------
    DataError
        If the distances do not form a square matrix, or a sample has no replicate.

    See Also
    --------
    batch_score : Absence of batch effects.
    information_retention : Covariate information in a representation.
    trajectory_score : Agreement with a known order.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.array([0.0, 0.1, 0.2, 3.0, 3.1, 3.2])
    >>> distances = abs(x[:, np.newaxis] - x)
    >>> from bagbasis.singlecell import replicate_robustness
    >>> round(replicate_robustness(distances, ['a', 'a', 'b', 'b', 'c', 'c']), 2)
    0.83
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


def _refuse_measurements(values: NDArray[Any]) -> None:
    """Refuse numbers that are not whole as classes: of as many classes as samples none is told."""
    if not all(isinstance(value, Real) for value in values):
        return
    numbers = values.astype(np.float64)
    if (numbers != np.rint(numbers)).any():
        raise DataError(
            f"target has {len(np.unique(numbers))} distinct values that are not all whole, as "
            "measurements have, and task='classification'; choose task='regression' or 'ranking'"
        )


def _as_distances(distances: ArrayLike) -> Floats:
    matrix = np.array(as_array("distances", distances, np.float64))
    is_square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not is_square or not np.isfinite(matrix).all() or (matrix < 0).any():
        raise DataError(f"distances have shape {matrix.shape}; expected (n, n), finite and ≥ 0")
    return matrix


def _weights(near: Floats) -> Floats:
    """Return 1 / distance; if some distances are zero, equal weights for these samples alone."""
    zero = near == 0
    with np.errstate(divide="ignore"):
        return np.where(zero.any(axis=1, keepdims=True), zero.astype(float), 1 / near)


def _class_score(values: NDArray[Any], predicted: NDArray[Any]) -> float:
    classes = np.unique(values)
    if len(classes) == 1:
        return 0.0
    of_classes = []
    for name in classes:
        hits = ((predicted == name) & (values == name)).sum()
        of_classes.append(2 * hits / ((predicted == name).sum() + (values == name).sum()))
    share = 1 / len(classes)
    return max(0.0, (float(np.mean(of_classes)) - share) / (1 - share))


def _spearman(a: Floats, b: Floats) -> float:
    """Return the correlation of ranks; 0 if one variable is constant."""
    x, y = rankdata(a) - (len(a) + 1) / 2, rankdata(b) - (len(b) + 1) / 2
    scale = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if scale > 0 else 0.0


def _pseudotime(matrix: Floats, root: int, k: int) -> Floats:
    ordered = np.sort(matrix, axis=1)
    width = np.maximum(ordered[:, k], np.finfo(np.float64).tiny)  # the first is the sample itself
    near = matrix <= width[:, None]
    kernel = np.exp(-(matrix**2) / (width[:, None] * width[None, :])) * (near | near.T)
    kernel /= np.outer(kernel.sum(axis=1), kernel.sum(axis=1))  # divides the sampling density out
    degree = np.sqrt(kernel.sum(axis=1))
    values, vectors = np.linalg.eigh(kernel / np.outer(degree, degree))
    values, vectors = (
        values[::-1][1 : _N_COMPONENTS + 1],
        vectors[:, ::-1][:, 1 : _N_COMPONENTS + 1],
    )
    positive = (values < 1 - 1e-9) & (values > 0)
    coordinates = (
        vectors[:, positive] * (values[positive] / (1 - values[positive])) / degree[:, None]
    )
    time: Floats = np.linalg.norm(coordinates - coordinates[root], axis=1)
    joined = np.isfinite(shortest_path(near | near.T, directed=False, indices=root))
    time[~joined] = time[joined].max() + 1
    return time
