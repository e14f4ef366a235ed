"""`Trees`: an ensemble of scikit-learn's trees as arrays, and `TreeInputs`, its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core.arrays import Floats, Integers
from ...core.errors import ParameterError
from ...core.versions import version
from ...data.bags.bags import Bags
from ...execution.costs import Cost
from ...execution.pool import even_edges, run_kernel
from ..bag_summaries import MomentsAndExtremes
from ..fitting.feature_map import FeatureMap
from ..model_state import OptionalPart
from .tree_kernels import add_trees

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

SECONDS_PER_TREE = 2e-7  # of a row: some ten comparisons far apart in memory
_LARGEST = float(np.finfo(np.float32).max)
LEAF = -1.0
HEADS_HELD = 5  # predictions of ridge, trees and the linear head, and what joins them
MAX_EMBEDDED = 256  # columns of an embedding next to those of moments


@dataclass(frozen=True)
class TreeInputs:
    """Features of a bag for trees: moments, extremes and size, and a short embedding.

    Trees split single columns. A single column of a long embedding, such as random frequencies, has
    little information, and many such columns would hide the moments.
    """

    features: FeatureMap

    @property
    def n_features(self) -> int:
        """Number of columns of `of`."""
        return self.n_embedded + self._summary.n_features

    @property
    def n_embedded(self) -> int:
        """Number of columns of the embedding that the trees see: all columns, or none."""
        s = self.features.embedding.n_features
        return s if s <= MAX_EMBEDDED else 0

    def summaries(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the columns of rows that are no embedding: the n_dims means are first."""
        return rows[:, self.n_embedded :]

    @property
    def cost(self) -> Cost:
        """Cost of computing the features."""
        own = Cost(bytes_per_bag=12 * self.n_features)
        return self.features.embedding.cost + self._summary.cost + own

    def of(self, bags: Bags) -> NDArray[np.float32]:
        """Return the features of bags, float32, shape (n_bags, n_features), clipped if large."""
        out = np.zeros((len(bags), self.n_features), np.float32)
        if len(bags):
            s = self.n_embedded
            if s:
                out[:, :s] = self.features.embed(bags, np.float32)[0][:, :s]
            with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are cut below
                summary = np.nan_to_num(self._summary.of(bags), nan=0.0)
            out[:, s:] = np.clip(summary, -_LARGEST, _LARGEST)
        return out

    @property
    def _summary(self) -> MomentsAndExtremes:
        return MomentsAndExtremes(self.features.n_dims)


@dataclass(frozen=True, eq=False)
class Trees(OptionalPart):
    """The trees of a model, and their weight in its predictions.

    A prediction is ``base`` plus the sum over the trees, divided by ``divisor``, in units 2^e of
    the labels. It has the same bits as the prediction of scikit-learn's estimator.

    Attributes
    ----------
    nodes, values, starts, columns : float64
        See `add_trees`.
    base : float64, shape (k,)
    divisor : float
        Number of trees of a forest; 1 for boosted trees.
    n_inputs : int
        Number of columns that the trees see, see `TreeInputs`.
    weight : float
        Weight of the trees in predictions; the ridge has the rest.
    """

    nodes: Floats
    values: Floats
    starts: Floats
    columns: Floats
    base: Floats
    divisor: float
    n_inputs: int
    weight: float = 1.0

    key: ClassVar[str] = "trees"
    arrays: ClassVar[tuple[str, ...]] = ("nodes", "values", "starts", "columns", "base")

    @classmethod
    def of_forest(
        cls, forest: ExtraTreesRegressor, exponents: Integers, origin: Floats | float = 0.0
    ) -> Self:
        """Return the trees of a fitted forest, of labels less ``origin`` in units 2^e (k,)."""
        nodes, values, starts, at, n_values = [], [], [], 0, 0
        for fitted in forest.estimators_:
            tree, k = fitted.tree_, len(exponents)
            inner = tree.children_left >= 0
            leaf_of = np.cumsum(~inner) - 1
            left_child = np.where(inner, at + tree.children_left, n_values + k * leaf_of)
            feature = np.where(inner, tree.feature, LEAF)
            nodes.append(
                np.column_stack([feature, tree.threshold, left_child, at + tree.children_right])
            )
            values.append(np.ldexp(tree.value[~inner, :, 0], exponents).ravel())
            starts.append(at)
            at, n_values = at + len(inner), n_values + len(values[-1])
        columns = np.full(len(starts), -1.0)
        made = _joined(nodes, values, starts, columns)
        n_trees = float(len(starts))
        base = np.zeros(len(exponents)) + n_trees * origin
        return cls(*made, base, n_trees, int(forest.n_features_in_))

    @classmethod
    def of_boosted(
        cls,
        boosted: Sequence[HistGradientBoostingRegressor],
        exponents: Integers,
        origin: Floats | float = 0.0,
    ) -> Self:
        """Return the trees of regressors, one per column of labels less ``origin`` in units 2^e.

        Raises
        ------
        ParameterError
            If the trees of the installed scikit-learn have another form.
        """
        try:
            return cls._of_boosted(boosted, exponents, origin)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ParameterError(
                f"boosted trees of scikit-learn {version('scikit-learn')} have a form that is not "
                f"known here ({type(error).__name__}: {error}): take head='ridge', or another "
                "version of scikit-learn"
            ) from error

    @classmethod
    def _of_boosted(
        cls,
        boosted: Sequence[HistGradientBoostingRegressor],
        exponents: Integers,
        origin: Floats | float,
    ) -> Self:
        nodes, values, starts, columns, base, at, n_values = [], [], [], [], [], 0, 0
        for column, (model, e) in enumerate(zip(boosted, exponents.tolist(), strict=True)):
            # scikit-learn shows the nodes of these trees nowhere else
            base.append(np.ldexp(model._baseline_prediction.item(), e))  # noqa: SLF001
            for (predictor,) in model._predictors:  # noqa: SLF001
                tree = predictor.nodes
                leaf = tree["is_leaf"].astype(bool)
                left = np.where(
                    leaf, n_values + np.cumsum(leaf) - 1, at + tree["left"].astype(np.int64)
                )
                feature = np.where(leaf, LEAF, tree["feature_idx"])
                right = at + tree["right"].astype(np.int64)
                nodes.append(np.column_stack([feature, tree["num_threshold"], left, right]))
                values.append(np.ldexp(tree["value"][leaf], e))
                starts.append(at)
                columns.append(float(column))
                at, n_values = at + len(tree), n_values + len(values[-1])
        made = _joined(nodes, values, starts, np.array(columns))
        return cls(*made, np.array(base, dtype=float) + origin, 1.0, int(boosted[0].n_features_in_))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.starts)

    @property
    def cost(self) -> Cost:
        """Cost of `predict` besides the rows, including the predictions of all heads of a stack."""
        return Cost(0.0, SECONDS_PER_TREE * self.n_trees, HEADS_HELD * 8 * len(self.base))

    def predict(self, rows: NDArray[np.float32]) -> Floats:
        """Return the trees' predictions for rows (n, n_inputs), shape (n, k)."""
        out = np.tile(self.base, (len(rows), 1))
        edges = even_edges(len(rows), SECONDS_PER_TREE * self.n_trees)
        run_kernel(add_trees, edges, rows, self.nodes, self.values, self.starts, self.columns, out)
        out /= self.divisor
        return out

    @override
    def check(self, n_targets: int, n_features: int) -> None:
        # also that every walk ends in a leaf with its values
        shapes = self.nodes.shape[1:], self.starts.shape, self.base.shape
        if shapes != ((4,), self.columns.shape, (n_targets,)) or not len(self.starts):
            raise ValueError(f"trees have arrays of shapes {shapes}")
        feature, _, left, right = self.nodes.T
        places, inner = np.arange(len(feature)), feature >= 0
        ahead = (left > places) & (right > places) & (np.maximum(left, right) < len(feature))
        width = n_targets if (self.columns < 0).any() else 1
        ends = (left >= 0) & (left + width <= len(self.values))
        if not np.where(inner, ahead & (feature < self.n_inputs), ends).all():
            raise ValueError("the nodes of its trees do not fit together")
        roots = (self.starts >= 0) & (self.starts < len(feature)) & (self.columns < n_targets)
        if not (roots.all() and self.divisor > 0 and 0 <= self.weight <= 1):
            raise ValueError("the roots of its trees do not fit together")


def _joined(
    nodes: list[NDArray[Any]], values: list[Floats], starts: list[int], columns: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the arrays of all trees in double."""
    every = np.ascontiguousarray(np.concatenate(nodes), dtype=np.float64)
    return every, np.concatenate(values), np.array(starts, dtype=np.float64), columns
