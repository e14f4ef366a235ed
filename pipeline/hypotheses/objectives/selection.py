"""`select_coordinates`: select the coordinates or embeddings that best explain a target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import Instance, Integer, OneOf, RandomSeed, checked, documented
from ...core.arrays import Floats
from ...core.errors import DataError, ParameterError
from ...data.bags.bags import as_bags
from ...data.labelled.alignment import aligned
from ...data.labelled.inputs import BagsLike
from ...data.labelled.labelled import Batch, LabelledBags
from ...data.labelled.labels import Targets
from ...data.store.sampling import MEDIAN_ROWS, RunSample
from ...data.store.store import BagStore
from ...embeddings.base import ChoiceSample, Embedding, EmbeddingSpec, MarginalSpec
from ...embeddings.composed.union import UnionSpec
from ...embeddings.projection import ProjectionEmbedding
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from ...execution.passes import Reduction, check_memory, in_place_reduction, run_pass
from ...execution.progress import Progress
from ...execution.worker_threads import kernel_threads
from ..samples.variables import as_rows, target_rows
from .criteria import SELECTION_CRITERIA
from .variable_features import Moments, VariableFeatures

N_COSINES = 5  # cosines per coordinate of bags if no embedding is given


@dataclass(frozen=True, eq=False, kw_only=True)
class Selection:
    """Result of `select_coordinates`: the selected variables and how stable they are.

    Attributes
    ----------
    names : tuple of str
        Names of the k selected variables, in the order of selection.
    indices : int64, shape (k,)
        Indices of the selected variables among ``candidates``.
    candidates : tuple of str
        Names of all J variables.
    scores : float64, shape (J,)
        Score of each variable. "mrmr": the alignment with the target, from 0 to 1. "hsic_lasso":
        the weights β at the end of the path. "permutation": the rise of the held-out squared error,
        divided by the variance.
    stability : float64, shape (J,)
        Fraction of the folds for which a variable is selected when the fold is left out.
    criterion : str
        Name of the criterion.
    n : int
        Number of rows: bags with a target, or points.

    See Also
    --------
    select_coordinates : Select informative variables.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import select_coordinates
    >>> X = rng.normal(size=(200, 6))
    >>> selection = select_coordinates(X, X[:, 2] - X[:, 4], k=2)
    >>> selection.stability.shape
    (6,)
    """

    names: tuple[str, ...]
    indices: NDArray[np.int64]
    candidates: tuple[str, ...]
    scores: Floats
    stability: Floats
    criterion: str
    n: int


@documented
@checked
def select_coordinates(
    X: BagsLike | NDArray[np.floating],
    y: ArrayLike | None = None,
    *,
    k: Annotated[int, Integer(1)] = 5,
    target: str | None = None,
    criterion: Annotated[str, OneOf(*SELECTION_CRITERIA)] = "mrmr",
    embedding: Annotated[Embedding, Instance()] | None = None,
    n_features: Annotated[int, Integer(2, 10000, even=True)] = 20,
    n_folds: Annotated[int, Integer(3, 100)] = 5,
    seed: RandomSeed = 0,
    progress: Progress | None = None,
) -> Selection:
    """Select the k variables that explain a target best, with little redundancy.

    One pass sums products of features of all variables and of the target. Every criterion is
    computed from these sums, for all rows and with each fold left out. The time is proportional to
    n (J n_features)².

    Parameters
    ----------
    X : array (n, J), Bags, list of arrays, or BagStore
        The variables: the columns of an array, or parts of the embeddings of bags. The parts are
        the members of an `EmbeddingUnion`, the coordinates (or sets of coordinates) of an embedding
        with ``marginals=``, or otherwise the columns of the embedding.
    y : shape (n,) or (n, q)
        Target: numbers, classes as strings, or times. For a store use ``target``.
    k
        Number of variables to select.
    target
        Name of a target of the store.
    criterion
        Criterion of selection. "mrmr" greedily adds the variable with the largest dependence on the
        target, less its mean dependence on the variables selected before. "hsic_lasso" takes the
        first variables of a sparse sum of Gram matrices. "permutation" takes the variables whose
        permutation raises the error of an additive model most; duplicated variables share their
        importance.
    embedding : Embedding
        Embedding of bags. Default: five cosines of each coordinate separately.
    n_features
        Number of random features of each variable.
    n_folds
        Number of folds for the stability.
    seed
        Random seed.
    progress : callable (bags done, bags in all)
        Function that is called with the progress of the pass.

    Raises
    ------
    DataError
        If there is no target, a fold has fewer than three rows, or a value cannot be used.
    ParameterError
        If k is larger than the number of variables, or the sums do not fit in memory.

    See Also
    --------
    Selection : Result of `select_coordinates`.
    independence_test : Test for independence.
    bagbasis.models.permutation_importance : Importance of each coordinate.

    Notes
    -----
    Szabó (dependence as an objective); Peng, Long and Ding 2005; Yamada et al. 2014.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> from bagbasis.hypotheses import select_coordinates
    >>> X = rng.normal(size=(200, 6))
    >>> y = X[:, 2] - X[:, 4] + 0.1 * rng.normal(size=200)
    >>> selection = select_coordinates(X, y, k=2)
    >>> sorted(selection.indices.tolist())
    [2, 4]
    """
    rows = _read(X, y, target, embedding, seed)
    names = rows.names
    if k > len(names):
        raise ParameterError(f"k is {k}, there are {len(names)} variables")
    x, t = rows.some()
    blocks, start = [], 0
    features = []
    for i, part in enumerate([*(x[:, columns] for columns in rows.columns), t]):
        variable = VariableFeatures.of(part, n_features, (seed + i) % 2**64)
        features.append(variable)
        blocks.append(slice(start, start + variable.n_features))
        start += variable.n_features
    check_memory("the sums of all pairs of variables", 24 * n_folds * start**2,
                 "take fewer variables or features")  # fmt: skip
    moments = rows.sums(JoinedFeatures(tuple(features), rows.columns, n_folds), progress)
    if moments.n.min() < 3:
        raise DataError(
            f"{int(moments.n.sum())} rows with a target are too few for {n_folds} folds"
        )
    with kernel_threads():
        find, folds = SELECTION_CRITERIA[criterion], range(n_folds)
        chosen, scores = find(moments, folds, blocks, k)
        stability = np.zeros(len(names))
        for fold in folds:
            without, _ = find(moments, [other for other in folds if other != fold], blocks, k)
            stability[without] += 1 / n_folds
    return Selection(
        names=tuple(names[j] for j in chosen),
        indices=np.array(chosen, dtype=np.int64),
        candidates=names,
        scores=scores,
        stability=stability,
        criterion=criterion,
        n=int(moments.n.sum()),
    )


@dataclass(frozen=True, eq=False)
class JoinedFeatures:
    """Features of all variables and of the target, side by side; the target is last."""

    variables: tuple[VariableFeatures, ...]
    columns: tuple[slice, ...]
    n_folds: int

    @property
    def n_features(self) -> int:
        """Numbers per row."""
        return sum(variable.n_features for variable in self.variables)

    def __call__(self, x: Floats, t: Floats) -> Floats:
        """Return the features of rows x (n, s) and targets t (n, q)."""
        parts = [x[:, columns] for columns in self.columns]
        pairs = zip(self.variables, [*parts, t], strict=True)
        return np.concatenate([features(part) for features, part in pairs], axis=1)

    @property
    def cost(self) -> Cost:
        """What a pass costs besides the embedding."""
        n = self.n_features
        return Cost(
            seconds_per_bag=2 * n**2 * SECONDS_PER_PRODUCT,
            bytes_per_bag=24 * n,
            bytes_per_task=24 * self.n_folds * n**2,
        )


@dataclass(frozen=True, eq=False)
class ArrayVariables:
    """Columns of an array and a target in memory."""

    x: Floats
    t: Floats

    @property
    def names(self) -> tuple[str, ...]:
        """One per column."""
        return tuple(f"x{j}" for j in range(self.x.shape[1]))

    @property
    def columns(self) -> tuple[slice, ...]:
        """Where each variable stands."""
        return tuple(slice(j, j + 1) for j in range(self.x.shape[1]))

    def some(self) -> tuple[Floats, Floats]:
        """Return all rows."""
        return self.x, self.t

    def sums(self, features: JoinedFeatures, progress: Progress | None) -> Moments:
        """Return the moments of all rows."""
        total = Moments.zeros(features.n_folds, features.n_features)
        with kernel_threads():
            for start in range(0, len(self.x), 4096):
                part = slice(start, start + 4096)
                index = np.arange(len(self.x), dtype=np.int64)[part]
                total.add(features(self.x[part], self.t[part]), index % features.n_folds)
                if progress is not None:
                    progress(min(len(self.x), start + 4096), len(self.x))
        return total


@dataclass(frozen=True, eq=False)
class EmbeddedVariables:
    """Parts of the embeddings of bags and their target, which a pass makes."""

    bags: LabelledBags
    spec: EmbeddingSpec
    target: str | None
    names: tuple[str, ...]
    columns: tuple[slice, ...]

    def some(self) -> tuple[Floats, Floats]:
        """Return the rows of about 1,024 evenly spread bags."""
        ranges = RunSample.of_about(MEDIAN_ROWS).ranges(self.bags.start, self.bags.end)
        pairs = [self.rows(batch) for batch in self.bags.batches_of(ranges) if len(batch)]
        if not pairs:
            raise DataError("no bag of the sample has a target")
        x, t = zip(*pairs, strict=True)
        return np.concatenate(x), np.concatenate(t)

    def rows(self, batch: Batch) -> tuple[Floats, Floats]:
        """Return the embeddings of a batch, and its targets."""
        out = np.empty((len(batch), self.spec.n_features))
        self.spec.embed(batch.bags, out)
        store = self.bags.data
        if self.target is None or not isinstance(store, BagStore):
            return out, batch.labels
        return out, target_rows(store, self.target, batch.labels)

    def sums(self, features: JoinedFeatures, progress: Progress | None) -> Moments:
        """Return the moments, in one pass."""
        zeros = partial(Moments.zeros, features.n_folds, features.n_features)
        cost = self.spec.cost + features.cost
        moments: Reduction[Moments] = in_place_reduction(
            "variables", zeros, partial(self._add_batch, features=features), cost
        )
        return run_pass(self.bags, moments, progress=progress)

    def _add_batch(self, moments: Moments, batch: Batch, features: JoinedFeatures) -> None:
        moments.add(features(*self.rows(batch)), batch.index % features.n_folds)


def _read(
    X: BagsLike | NDArray[np.floating],
    y: ArrayLike | None,
    target: str | None,
    embedding: Embedding | None,
    seed: int,
) -> ArrayVariables | EmbeddedVariables:
    if isinstance(X, BagStore):
        if y is not None:
            raise ParameterError("a BagStore carries its targets: pass target='name', not y")
        if target is None:
            raise ParameterError(f"target is missing; {X.url} has {list(X.target_names)}")
        X.target_columns([target])
        labelled = LabelledBags(X, Targets((target,)))
    else:
        if target is not None or y is None:
            raise ParameterError("give y for bags or rows in memory; target names one of a store")
        if isinstance(X, np.ndarray) and X.ndim < 3 and X.dtype != object:
            return _array_variables(X, as_rows(y, "y"), embedding)
        bags = as_bags(X)
        t = as_rows(aligned(y, bags, "y"), "y")
        if len(bags) != len(t):
            raise DataError(f"y has {len(t)} rows, there are {len(bags)} bags")
        labelled = LabelledBags(bags, Targets((), t))
    chosen = (
        ProjectionEmbedding(n_per_dim=N_COSINES, marginals=1) if embedding is None else embedding
    )
    spec = chosen.resolve(labelled.n_dims, labelled.box, ChoiceSample(labelled))
    names, columns = variables_of(spec)
    return EmbeddedVariables(labelled, spec, target, names, columns)


def _array_variables(
    X: NDArray[np.floating], t: Floats, embedding: Embedding | None
) -> ArrayVariables:
    if embedding is not None:
        raise ParameterError("embedding is of bags; the columns of an array are variables")
    x = as_rows(X, "X")
    if len(x) != len(t):
        raise DataError(f"y has {len(t)} rows, X has {len(x)}")
    return ArrayVariables(x, t)


def variables_of(spec: EmbeddingSpec) -> tuple[tuple[str, ...], tuple[slice, ...]]:
    """Return the names of an embedding's variables, and where each stands in its rows."""
    if isinstance(spec, UnionSpec):
        names, sizes = spec.names, [part.n_features for part in spec.parts]
    elif isinstance(spec, MarginalSpec) and not spec.is_joint:
        names = tuple("·".join(f"x{j}" for j in group) for group in spec.groups.tolist())
        sizes = [spec.n_features // len(names)] * len(names)
    else:
        names = tuple(spec.feature_names([f"x{j}" for j in range(spec.n_dims)]))
        sizes = [1] * len(names)
    ends = np.cumsum(sizes).tolist()
    return names, tuple(slice(end - size, end) for end, size in zip(ends, sizes, strict=True))
