"""`Weights`: weights of bags in a fit and in its errors."""

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
from .columns import Column, refuse_columns_of_classes

SampleWeight = str | ArrayLike | None
"""Type of ``sample_weight=``: one number ≥ 0 per bag, or a column of a store."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of bags. A bag of weight 2 counts like two equal bags, weight 0 drops the bag.

    Attributes
    ----------
    column : Column, optional
        Weights of bags; None: all 1.
    by_class : float64, shape (k,), optional
        Factor for the weights of the bags of each class.
    limits : float64, shape (2, k), optional
        Smallest and largest allowed label of each column. Bags with labels outside are outliers and
        get weight 0.
    """

    column: Column | None = None
    by_class: Floats | None = None
    limits: Floats | None = None

    @classmethod
    def of_bags(cls, data: Bags | BagStore, weights: SampleWeight) -> Weights | None:
        """Return the weights given by ``sample_weight=``; None for None.

        Raises
        ------
        DataError
            If the store lacks the column, the column has classes, the number of weights is wrong,
            or a weight is missing.
        ParameterError
            If a column is named for bags in memory.
        """
        if weights is None:
            return None
        column = Column.of(data, "sample_weight", weights)
        if column.store is not None:
            refuse_columns_of_classes(column.store, [column.name], "sample_weight")
        return cls(column)

    def of(self, index: Integers, y: Floats) -> Floats:
        """Return the weights of bags by their positions, and by their encoded labels (n, k).

        Raises
        ------
        DataError
            If a weight is missing, negative or infinite.
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
        """Return the bags of ``start:stop`` with weight 0; None if no bag or every bag has it.

        Weights of classes are ignored.
        """
        if self.column is None:
            return None
        blocks = self.column.blocks(start, stop)
        places = [a + np.flatnonzero(values == 0) for a, _, values in blocks]
        index = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
        return ListedBags(index) if 0 < len(index) < stop - start else None

    def to_dict(self) -> dict[str, Any]:
        """Return the weights as a model of a store saves them, in JSON types."""
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
        """Return weights from the values of `to_dict`, to be `bound` to a store."""
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


_MIN_WEIGHT, MAX_WEIGHT = 1e-30, 1e30  # except weight 0: sums of float32 end at 3e38


def as_weights(name: str, values: NDArray[Any], index: Integers) -> Floats:
    """Return weights as float64; DataError for a negative, infinite or extreme weight."""
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} has dtype {values.dtype}; expected numbers ≥ 0")
    weights: Floats = values.astype(np.float64)
    bad = ~((weights >= 0) & np.isfinite(weights))
    if bad.any():
        i = int(bad.argmax())
        raise DataError(f"{name}: the weight of bag {index[i]} is {weights[i]:g}; expected ≥ 0")
    far = (weights > 0) & ~((weights >= _MIN_WEIGHT) & (weights <= MAX_WEIGHT))
    if far.any():
        i = int(far.argmax())
        raise DataError(
            f"{name}: the weight of bag {index[i]} is {weights[i]:g}; expected 0, or from "
            f"{_MIN_WEIGHT:g} to {MAX_WEIGHT:g}: divide all by their mean"
        )
    return weights
