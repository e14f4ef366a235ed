"""Losses per bag on the held-out bags, and by how many standard errors they differ."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats, Integers
from ...core.held_out_choice import mean_and_error
from ...data.labelled.splits import Membership
from ...data.labelled.weights import Weights
from ...data.store.plan import Range
from ...execution.costs import Cost
from ...execution.passes import Reduction, run_pass
from ..fitting.feature_map import ROWS_PER_BLOCK, FeatureMap
from ..ridge.ridge import RidgeSolution
from .scoring import CachedBags, CachedBatch, block_ranges


@dataclass(frozen=True, eq=False)
class Losses:
    """Of a candidate on the bags held out.

    Attributes
    ----------
    index : int64, shape (n,)
        Positions of the bags, ascending.
    values, weights : float64, shape (n,)
        Squared errors as in `Score.error`, which is their weighed mean, and the bags' weights.
    """

    index: Integers
    values: Floats
    weights: Floats

    def __add__(self, other: Losses) -> Losses:
        """Return the losses of the bags of both."""
        return joined([self, other])


def joined(parts: Sequence[Losses]) -> Losses:
    """Return the losses of the bags of all parts."""
    index = np.concatenate([one.index for one in parts])
    order = np.argsort(index)
    values, weights = (
        np.concatenate([getattr(one, name) for one in parts])[order]
        for name in ("values", "weights")
    )
    return Losses(index[order], values, weights)


def difference(
    ours: Losses, theirs: Losses, groups: NDArray[Any] | None = None
) -> tuple[float, float]:
    """Return the mean loss of theirs less ours on the same bags, and its standard error.

    Bags are independent, or whole groups of them: shape (n,), equal values are one.
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
    """One pass over the bags held out: mean over the targets of squared errors in ``units``."""
    cost = source.features.cost_in("float32")
    cost += Cost(bytes_per_task=4 * source.features.n_features * ROWS_PER_BLOCK)
    rows = partial(_LossRows, source.features, validation, solution, units, weights)
    reduction = Reduction(rows, operator.add, cost, name="losses")
    ranges = block_ranges(source, blocks, cost)
    return run_pass(source, reduction, ranges=ranges)


class _LossRows:
    """The losses of the blocks of one task."""

    def __init__(
        self,
        features: FeatureMap,
        validation: Membership,
        solution: RidgeSolution,
        units: Floats,
        weights: Weights | None,
    ) -> None:
        self._features, self._validation = features, validation
        self._solution, self._units, self._weights = solution, units, weights
        self._blocks = [Losses(np.empty(0, np.int64), np.empty(0), np.empty(0))]

    def add(self, batch: CachedBatch) -> None:
        """Predict the bags of a block that are held out."""
        held = np.flatnonzero(self._validation.of(batch.index))
        for start in range(0, len(held), ROWS_PER_BLOCK):
            rows = held[start : start + ROWS_PER_BLOCK]
            y, index = batch.targets[rows], batch.index[rows]
            z = np.empty((len(rows), self._features.n_features), np.float32)
            self._features.features_of(batch.coefficients[rows], z)
            errors = z @ self._solution.coef.T + self._solution.intercept - y
            weights = np.ones(len(rows)) if self._weights is None else self._weights.of(index, y)
            losses = (errors**2 / self._units).mean(axis=1)
            self._blocks.append(Losses(index, losses, weights))

    def finish(self) -> Losses:
        """Return the losses of all blocks."""
        return joined(self._blocks)
