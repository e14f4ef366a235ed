"""Which bags of a store have labels, without a look at their points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..bags import BagStore
from ..bags.plan import Range
from ..bags.splits import Split

STEP = 2**18

Names = tuple[str, ...] | None  # of targets; None: the labels are responses


def n_labelled(store: BagStore, names: Names, bags: Range) -> int:
    """How many of the bags have all these targets, or a response."""
    return sum(int(_labelled(store, names, a, b).sum()) for a, b in _blocks(bags))


def label_blocks(store: BagStore, names: Names, bags: Range) -> Iterator[NDArray[np.float64]]:
    """The targets of these bags, block by block; nothing where the labels are responses."""
    return (store.targets(a, b, names) for a, b in _blocks(bags) if names is not None)


def newest_held_out(
    store: BagStore, names: Names, bags: Range, holdout: Split, n: int
) -> NDArray[np.int64]:
    """The last ``n`` bags with a label that the split holds out, ascending."""
    found: list[NDArray[np.int64]] = []
    for a, b in reversed(list(_blocks(bags))):
        chosen = holdout.members(a, b) & _labelled(store, names, a, b)
        found.insert(0, a + np.flatnonzero(chosen))
        if sum(map(len, found)) >= n:
            break
    return np.concatenate([np.empty(0, dtype=np.int64), *found])[-n:]


def _labelled(store: BagStore, names: Names, start: int, stop: int) -> NDArray[np.bool_]:
    if names is None:
        return np.asarray(np.diff(store.response_offsets(start, stop)) > 0)
    return np.asarray(~np.isnan(store.targets(start, stop, names)).any(axis=1))


def _blocks(bags: Range) -> Iterator[Range]:
    start, stop = bags
    return ((a, min(stop, a + STEP)) for a in range(start, stop, STEP))
