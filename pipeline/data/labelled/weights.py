"""`Weights`: how much each bag counts in a fit and in its errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from ..bags.bags import Bags
from ..store.changes import ListedBags
from ..store.store import BagStore
from .columns import Column

SampleWeight = str | ArrayLike | None
"""What ``sample_weight=`` takes: one number ≥ 0 per bag, or a column of a store."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of bags: a bag of weight 2 counts as two equal bags, one of weight 0 as none.

    Attributes
    ----------
    column : Column, optional
        Weights of bags; None: all 1.
    by_class : float64, shape (k,), optional
        Factor of the weights of bags of each class.
    limits : float64, shape (2, k), optional
        Least and largest label of each column that counts: others are outliers, and their bags
        have the weight 0.
    """

    column: Column | None = None
    by_class: Floats | None = None
    limits: Floats | None = None

    @classmethod
    def of_bags(cls, data: Bags | BagStore, weights: SampleWeight) -> Weights | None:
        """Return the weights that ``sample_weight=`` gives; None for None.

        Raises
        ------
        DataError
            A store without the column, another number of weights than bags, or one missing.
        ParameterError
            A column's name for bags in memory.
        """
        return None if weights is None else cls(Column.of(data, "sample_weight", weights))

    def of(self, index: Integers, y: Floats) -> Floats:
        """Return the weights of bags by their positions, and by their encoded labels (n, k).

        Raises
        ------
        DataError
            A weight that is missing, negative or infinite.
        """
        weights: Floats = np.ones(len(index))
        if self.column is not None:
            weights = as_weights(self.column.name, self.column.at(index), index)
        if self.by_class is not None:
            weights = weights * (y @ self.by_class)
        if self.limits is not None:
            low, high = self.limits
            weights = weights * ((y >= low) & (y <= high)).all(axis=1)
        return weights

    def without_weight(self, start: int, stop: int) -> ListedBags | None:
        """Return the bags of ``start:stop`` whose weight is 0; None for none, or for all of them.

        Weights of classes do not count.
        """
        if self.column is None:
            return None
        blocks = self.column.blocks(start, stop)
        places = [a + np.flatnonzero(values == 0) for a, _, values in blocks]
        index = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
        return ListedBags(index) if 0 < len(index) < stop - start else None

    def to_dict(self) -> dict[str, Any]:
        """Return what a model of a store keeps, in types JSON knows."""
        values: dict[str, Any] = {
            "column": None if self.column is None else self.column.name,
            "by_class": None if self.by_class is None else self.by_class.tolist(),
        }
        if self.limits is not None:  # JSON has no infinity
            rows = self.limits.tolist()
            values["limits"] = [[x if math.isfinite(x) else None for x in row] for row in rows]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what `to_dict` described, to be `bound` to a store."""
        name, by_class, limits = values["column"], values["by_class"], values.get("limits")
        if limits is not None:
            limits = np.array(limits, float)  # None is NaN
            limits = np.where(np.isnan(limits), [[-np.inf], [np.inf]], limits)
        classes = None if by_class is None else np.array(by_class, float)
        return cls(name and Column(name), classes, limits)

    def bound(self, data: Bags | BagStore) -> Weights:
        """Return the weights with the column of a store."""
        if self.column is None:
            return self
        return replace(self, column=Column.of(data, "sample_weight", self.column.name))


MIN_WEIGHT, MAX_WEIGHT = 1e-30, 1e30  # of weights that are not 0: float32 has sums of up to 3e38


def as_weights(name: str, values: NDArray[Any], index: Integers) -> Floats:
    """Return weights as float64; DataError for one that is negative, infinite or far from 1."""
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} has dtype {values.dtype}; expected numbers ≥ 0")
    weights: Floats = values.astype(np.float64)
    bad = ~((weights >= 0) & np.isfinite(weights))
    if bad.any():
        i = int(bad.argmax())
        raise DataError(f"{name}: the weight of bag {index[i]} is {weights[i]:g}; expected ≥ 0")
    far = (weights > 0) & ~((weights >= MIN_WEIGHT) & (weights <= MAX_WEIGHT))
    if far.any():
        i = int(far.argmax())
        raise DataError(
            f"{name}: the weight of bag {index[i]} is {weights[i]:g}; expected 0, or from "
            f"{MIN_WEIGHT:g} to {MAX_WEIGHT:g}: divide all by their mean"
        )
    return weights
