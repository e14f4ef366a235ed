"""Kinds of labels: reading them for a range of bags, and finding the labelled bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...core.errors import warn
from ..bags.bags import take_rows
from ..bags.responses import Responses
from ..store.plan import Range
from ..store.reading import pair_partitions, partitions
from ..store.store import BagStore

_FEW_BAGS = 3  # a fit with fewer labelled bags issues a warning
_MIN_RELATIVE_VARIANCE = (
    1e-12  # squared spread of labels relative to their mean: sums of squares lose a smaller one
)

LabelBlock = TypeVar("LabelBlock")
"""The labels of a range of bags: an array, or `Responses`."""


class Labels(Protocol[LabelBlock]):
    """Base of the kinds of labels.

    A block of labels is what `read` returns: an array, or `Responses`.
    """

    def read(self, store: BagStore, start: int, stop: int) -> LabelBlock:
        """Return the labels of bags ``start:stop`` of a store."""
        ...

    def in_memory(self) -> LabelBlock:
        """Return the labels of all bags in memory."""
        ...

    def known(self, block: LabelBlock) -> NDArray[np.bool_]:
        """Which bags of a block have a label."""
        ...

    def known_in(self, store: BagStore, start: int, stop: int) -> NDArray[np.bool_]:
        """Which bags of a store have a label; no points of responses are read."""
        ...

    def take(self, block: LabelBlock, rows: NDArray[np.int64]) -> LabelBlock:
        """Return the labels of ascending rows of a block, as a block."""
        ...

    def partitions(self, store: BagStore, start: int, stop: int, max_bytes: int) -> list[Range]:
        """Ranges whose bags and labels are read at a time."""
        ...


@dataclass(frozen=True, eq=False)
class Targets:
    """Numbers, shape (n, k); NaN is not a label.

    Attributes
    ----------
    names : tuple of str
        Names of a store's columns; empty for bags in memory.
    values : shape (n_bags, k), optional
        Labels of bags in memory, or labels that replace a store's columns.
    class_names : tuple of str
        Classes of the single target, which include all classes of the store. Labels are positions
        among them. Empty: labels are the store's own numbers.
    """

    names: tuple[str, ...] = ()
    values: NDArray[Any] | None = None
    class_names: tuple[str, ...] = ()

    def read(self, store: BagStore, start: int, stop: int) -> NDArray[Any]:
        """Return the labels of bags ``start:stop`` of a store."""
        if self.values is not None:
            values = self.values[start:stop].astype(np.float64)
            values[~store.present(start, stop)] = np.nan
            return values
        values = store.targets(start, stop, names=self.names)
        if self.class_names:
            theirs = store.meta.class_names[self.names[0]]
            positions = np.array([self.class_names.index(name) for name in theirs], dtype=float)
            known = ~np.isnan(values)
            values[known] = positions[values[known].astype(np.int64)]
        return values

    def in_memory(self) -> NDArray[Any]:
        """Return the labels of all bags in memory."""
        assert self.values is not None
        return self.values

    def known(self, block: NDArray[Any]) -> NDArray[np.bool_]:
        """Which bags of a block have a label."""
        return np.asarray(~np.isnan(block).any(axis=1))

    def known_in(self, store: BagStore, start: int, stop: int) -> NDArray[np.bool_]:
        """Which bags of a store have a label; no points of responses are read."""
        return self.known(self.read(store, start, stop))

    def take(self, block: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the labels of ascending rows of a block, as a block."""
        return block[rows]

    def partitions(self, store: BagStore, start: int, stop: int, max_bytes: int) -> list[Range]:
        """Ranges whose bags and labels are read at a time."""
        return partitions(store, start, stop, max_bytes)


@dataclass(frozen=True, eq=False)
class ResponseBags:
    """One response bag per bag; ``values`` holds the responses of bags in memory."""

    values: Responses | None = None

    def read(self, store: BagStore, start: int, stop: int) -> Responses:
        """Return the labels of bags ``start:stop`` of a store."""
        return store.responses(start, stop)

    def in_memory(self) -> Responses:
        """Return the labels of all bags in memory."""
        assert self.values is not None
        return self.values

    def known(self, block: Responses) -> NDArray[np.bool_]:
        """Which bags of a block have a label."""
        return np.asarray(block.sizes > 0)

    def known_in(self, store: BagStore, start: int, stop: int) -> NDArray[np.bool_]:
        """Which bags of a store have a label; no points of responses are read."""
        has_response = np.diff(store.response_offsets(start, stop)) > 0
        return np.asarray(has_response & store.present(start, stop))

    def take(self, block: Responses, rows: NDArray[np.int64]) -> Responses:
        """Return the labels of ascending rows of a block, as a block."""
        return take_rows(block, rows)

    def partitions(self, store: BagStore, start: int, stop: int, max_bytes: int) -> list[Range]:
        """Ranges whose bags and labels are read at a time."""
        return pair_partitions(store, start, stop, max_bytes)


def warn_of_few(n_bags: int, url: str | None) -> bool:
    """Warn about a fit to one or two labelled bags; return whether there are so few."""
    if n_bags >= _FEW_BAGS:
        return False
    bags = "1 labelled bag" if n_bags == 1 else f"{n_bags} labelled bags"
    warn(
        f"{url or 'fit'}: the model is fitted to {bags}, from which nothing can be learnt about "
        "others; give more bags, or check the labels and weights"
    )
    return True


def warn_of_alike(n_bags: int, variance: Floats, mean: Floats, names: Sequence[str]) -> None:
    """Warn about targets, shape (k,), whose labels are equal, or nearly so, in all fitted bags."""
    alike = np.flatnonzero(variance <= _MIN_RELATIVE_VARIANCE * mean**2)
    if not len(alike):
        return
    what = "y" if len(variance) == 1 else f"column {alike[0]} of y"
    what = repr(names[alike[0]]) if names else what
    warn(
        f"all labels of {what} are alike in the {n_bags} bags fitted, or differ by less than a "
        "millionth of their mean, which sums of squares lose to rounding; check the labels, and "
        "subtract a constant such as their mean if the differences matter"
    )
