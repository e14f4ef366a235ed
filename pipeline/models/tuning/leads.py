"""Losses per bag on held-out bags, and the standard errors of their differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core.arrays import Floats, Integers
from ...core.held_out_choice import mean_and_error
from ...core.sums import Sums
from ...data.labelled.splits import Membership
from ...data.labelled.weights import Weights
from ...data.store.plan import Range
from ...execution.costs import Cost
from ...execution.passes import rows_of, run_pass
from ..fitting.feature_map import MAPPED_ROWS, FeatureMap
from ..ridge.ridge import RidgeSolution
from .scoring import CachedBags, CachedBatch, block_ranges


@dataclass(frozen=True, eq=False)
class Losses(Sums):
    """Losses of a candidate on the held-out bags.

    Attributes
    ----------
    index : int64, shape (n,)
        Positions of the bags, ascending.
    values, weights : float64, shape (n,)
        Squared errors of the bags, whose weighted mean is `Score.error`, and weights of the bags.
    """

    index: Integers
    values: Floats
    weights: Floats

    ROWS: ClassVar[tuple[str, ...]] = ("index", "values", "weights")

    @override
    def combined(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        return super().combined(other, combine).in_order()

    def in_order(self) -> Self:
        """Return the losses sorted by position."""
        order = np.argsort(self.index)
        return type(self)(self.index[order], self.values[order], self.weights[order])


def difference(
    ours: Losses, theirs: Losses, groups: NDArray[Any] | None = None
) -> tuple[float, float]:
    """Return the mean of ``theirs`` minus ``ours`` on the same bags, and its standard error.

    Bags are independent. With ``groups``, shape (n,), bags with equal values are not independent.
    """
    gaps = (theirs.values - ours.values)[None]
    means, errors, _ = mean_and_error(gaps, ours.weights, groups)
    return float(means[0]), float(errors[0])


def held_out_losses(
    source: CachedBags,
    validation: Membership,
    solution: RidgeSolution,
    units: Floats,
    blocks: Range,
    weights: Weights | None,
) -> Losses:
    """Return losses from one pass over the held-out bags: mean squared errors in ``units``."""
    cost = source.features.cost_in("float32")
    cost += Cost(bytes_per_task=4 * source.features.n_features * MAPPED_ROWS)
    of_batch = partial(_losses_of, source.features, validation, solution, units, weights)
    losses = rows_of("losses", of_batch, cost)
    index, values, weighed = run_pass(source, losses, ranges=block_ranges(source, blocks, cost)).T
    return Losses(index.astype(np.int64), values, weighed).in_order()


def _losses_of(
    features: FeatureMap,
    validation: Membership,
    solution: RidgeSolution,
    units: Floats,
    weights: Weights | None,
    batch: CachedBatch,
) -> Floats:
    """Return a row per held-out bag: its position, loss and weight."""
    held = np.flatnonzero(validation.of(batch.index))
    y, index = batch.targets[held], batch.index[held]
    losses = np.empty(len(held))
    for start in range(0, len(held), MAPPED_ROWS):
        rows = slice(start, start + MAPPED_ROWS)
        z = np.empty((len(held[rows]), features.n_features), np.float32)
        features.features_of(batch.coefficients[held[rows]], z)
        errors = z @ solution.coef.T + solution.intercept - y[rows]
        losses[rows] = (errors**2 / units).mean(axis=1)
    weighed = np.ones(len(held)) if weights is None else weights.of(index, y)
    return np.column_stack([index, losses, weighed])
