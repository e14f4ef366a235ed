"""Which bags of a store have labels, without a look at their points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..bags import BagStore
from ..bags.labelled import LabelledBags
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


def newest_held_out(labelled: LabelledBags, held_out: Split, n: int) -> LabelledBags | None:
    """The last ``n`` bags with a label that the split holds out; None where there is none."""
    store, found = labelled.data, 0
    assert isinstance(store, BagStore)
    assert labelled.labels is not None
    first = None
    for a, b in reversed(list(_blocks((labelled.start, labelled.end)))):
        chosen = a + np.flatnonzero(held_out.members(a, b) & labelled.labels.known_in(store, a, b))
        found += len(chosen)
        if len(chosen):
            first = int(chosen[max(0, found - n)])
        if found >= n:
            break
    return None if first is None else replace(labelled, start=first, only=held_out)


def _labelled(store: BagStore, names: Names, start: int, stop: int) -> NDArray[np.bool_]:
    if names is None:
        return np.asarray(np.diff(store.response_offsets(start, stop)) > 0)
    return np.asarray(~np.isnan(store.targets(start, stop, names)).any(axis=1))


def _blocks(bags: Range) -> Iterator[Range]:
    start, stop = bags
    return ((a, min(stop, a + STEP)) for a in range(start, stop, STEP))
