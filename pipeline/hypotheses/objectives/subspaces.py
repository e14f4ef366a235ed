"""`IndependentSubspaces`: separate mixtures into independent groups of sources."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import svdvals
from scipy.spatial.distance import squareform
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from ...core import Integer, ListOf, Seed, check_parameters, component
from ...core.arrays import Floats, Integers
from ...core.errors import DataError, ParameterError
from ...core.sklearn_bases import BaseEstimator, TransformerMixin, UnfittedError
from ...data.bags.coordinates import Names
from ...data.bags.point_rows import known_points, new_points
from ...execution.worker_threads import kernel_threads
from .variable_features import Moments, VariableFeatures, alignments

MAX_ITERATIONS = 1000  # iterations of FastICA
# Relative to the largest: smaller ones belong to coordinates that others determine.
_MIN_SINGULAR_VALUE = 1e-10
MIN_ALIGNMENT = 4.0  # times the alignment that independent components have by chance


@component
class IndependentSubspaces(TransformerMixin, BaseEstimator):
    """Independent subspace analysis: sources in groups that are independent of each other.

    The data are mixtures x = A s of sources s with unknown A. FastICA estimates components.
    Components that still depend on each other, by HSIC of random features, form a group. This is
    the separation principle of independent subspace analysis (Szabó; Cardoso 1998, Szabó et al.
    2012).

    Parameters
    ----------
    dims
        Sizes of the groups: one number for groups of equal size, or one number per group. None:
        components that depend on each other more than by chance form a group.
    n_features
        Number of random features of each component.
    seed
        Random seed.

    Attributes
    ----------
    subspaces_ : tuple of int64 arrays
        Columns of the result of `transform` that belong to each group: consecutive, larger groups
        first.
    unmixing_ : float64, shape (d, d)
        Unmixing matrix W, with rows in the order of the groups: s = W (x − mean).
    mean_ : float64, shape (d,)
        Mean of the points.
    dependence_ : float64, shape (d, d)
        Dependence between the components, from 0 to 1, in the same order.
    n_features_in_ : int
        Number of coordinates of a point.

    See Also
    --------
    independence_test : Test for independence.
    HSICu : Unbiased HSIC.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import IndependentSubspaces
    >>> sources = rng.uniform(-1, 1, (400, 2))
    >>> mixed = sources @ np.array([[1.0, 0.5], [0.3, 1.0]])
    >>> model = IndependentSubspaces(dims=1).fit(mixed)
    >>> model.transform(mixed).shape
    (400, 2)
    """

    dims: Annotated[int | Sequence[int], Integer(1) | ListOf(Integer(1), 1)] | None = field(
        default=None, kw_only=False
    )
    n_features: Annotated[int, Integer(2, 10_000, even=True)] = 30
    seed: Annotated[int, Seed] = 0

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the subspaces of points.

        Parameters
        ----------
        X : array_like, shape (n, d)
            Independent observations of the mixtures.
        y : object
            Ignored; present for compatibility with scikit-learn.

        Raises
        ------
        DataError
            If there are too few points, or some coordinates determine others.
        ParameterError
            If ``dims`` does not add up to d.
        """
        parameters = check_parameters(self)
        x, names = new_points(self, X, ensure_min_samples=2)
        n, d = x.shape
        sizes = _sizes(parameters["dims"], d)
        if n <= 2 * d:
            raise DataError(f"{n} points are too few for {d} components")
        with kernel_threads():
            unmixing, self.mean_ = _components(x, parameters["seed"])
            components = (x - self.mean_) @ unmixing.T
            aligned = _dependence(components, parameters["n_features"])
        if sizes is None:
            groups = _linked(aligned, MIN_ALIGNMENT * _by_chance(n))
        else:
            groups = _grouped(aligned, sizes)
        order = np.concatenate(groups)
        ends = np.cumsum([len(group) for group in groups])
        self.subspaces_ = tuple(
            np.arange(end - len(group), end) for group, end in zip(groups, ends, strict=True)
        )
        self.unmixing_ = unmixing[order]
        self.dependence_ = aligned[np.ix_(order, order)]
        self._names: Names = names
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the sources of points, shape (n, d), groups side by side.

        Raises
        ------
        DataError
            If the estimator is not fitted, or the points have another dimension.
        """
        if not hasattr(self, "unmixing_"):
            raise UnfittedError("the subspaces are not fitted: call fit first")
        x, _ = known_points(self, X, self._names, "the subspaces were fitted on")
        with kernel_threads():
            return (x - self.mean_) @ self.unmixing_.T


def _sizes(dims: int | list[int] | None, d: int) -> list[int] | None:
    if dims is None:
        return None
    sizes = [dims] * (d // dims) if isinstance(dims, int) else list(dims)
    if sum(sizes) != d:
        raise ParameterError(f"dims {dims} do not add up to the {d} coordinates of the points")
    return sorted(sizes, reverse=True)


def _components(x: Floats, seed: int) -> tuple[Floats, Floats]:
    values = svdvals(x - x.mean(axis=0))
    if values[-1] <= _MIN_SINGULAR_VALUE * values[0]:
        raise DataError("coordinates of X determine each other: leave one out")
    with warnings.catch_warnings():
        # within a subspace FastICA may not converge; any rotation of the components will do
        warnings.simplefilter("ignore", ConvergenceWarning)
        ica = FastICA(
            whiten="unit-variance", max_iter=MAX_ITERATIONS, random_state=seed % 2**32
        ).fit(x)
    return ica.components_, ica.mean_


def _dependence(components: Floats, n_features: int) -> Floats:
    features = [
        VariableFeatures.of(components[:, [j]], n_features, j) for j in range(components.shape[1])
    ]
    width = features[0].n_features
    rows = np.concatenate(
        [feature(components[:, [j]]) for j, feature in enumerate(features)], axis=1
    )
    moments = Moments.zeros(1, rows.shape[1])
    moments.add(rows, np.zeros(len(rows), dtype=np.int64))
    _, covariance, n = moments.centred([0])
    blocks = [slice(j * width, (j + 1) * width) for j in range(len(features))]
    return alignments(covariance, blocks, n)


def _by_chance(n: int) -> float:
    """Return the order of the alignment of n independent pairs; a few standard deviations of it."""
    return 3.0 / n


def _linked(aligned: Floats, least: float) -> list[Integers]:
    """Return groups of components that are linked by dependence of at least ``least``."""
    if len(aligned) == 1:
        return [np.array([0])]
    distance = np.where(aligned >= least, 0.0, 1.0)
    np.fill_diagonal(distance, 0)
    labels = fcluster(linkage(squareform(distance), "single"), 0.5, "distance")
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _grouped(aligned: Floats, sizes: Sequence[int]) -> list[Integers]:
    """Return groups of given sizes with the most dependence inside, by exchanges of components.

    It begins with groups that grow greedily, and exchanges pairs until none is better.
    """
    remaining, groups = list(range(len(aligned))), []
    for size in sizes:
        first = max(remaining, key=lambda i: sum(sorted(aligned[i, remaining])[-size - 1 : -1]))
        group = [first]
        remaining.remove(first)
        while len(group) < size:
            best = max(remaining, key=lambda i: aligned[i, group].sum())
            group.append(best)
            remaining.remove(best)
        groups.append(group)
    better = True
    while better:
        better = False
        for a, group_a in enumerate(groups):
            for other in groups[:a]:
                better |= _exchange(aligned, group_a, other)
    return [np.array(sorted(group)) for group in groups]


def _exchange(aligned: Floats, group: list[int], other: list[int]) -> bool:
    """Exchange the first pair of two groups that raises their dependence, in place."""
    for p, i in enumerate(group):
        for q, j in enumerate(other):
            without_i, without_j = group[:p] + group[p + 1 :], other[:q] + other[q + 1 :]
            gain = aligned[j, without_i].sum() + aligned[i, without_j].sum()
            gain -= aligned[i, without_i].sum() + aligned[j, without_j].sum()
            if gain > 1e-12:
                group[p], other[q] = j, i
                return True
    return False
