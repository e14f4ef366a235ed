"""A warning of labels that were left among the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import warn
from ..store.sampling import RunSample
from .labelled import LabelledBags
from .labels import Targets

IN_MEMORY = RunSample(32, 32)  # bags that are compared with their labels
STORED = RunSample(4, 8)  # of a store: a few reads beside those of the fit


def warn_of_leaks(source: LabelledBags, are_classes: bool) -> None:
    """Warn of a coordinate that is constant in every bag and equals the label, or names the class.

    A sample of the bags is compared; bags of one point say nothing.
    """
    if not isinstance(source.labels, Targets):
        return
    runs = IN_MEMORY if source.in_memory else STORED
    firsts, labels, sizes = [], [], []
    constant = np.ones(source.n_dims, dtype=bool)
    for batch in source.batches_of(runs.ranges(source.start, source.end)):
        bags = batch.bags
        if not len(bags):
            continue
        first = bags.points[bags.offsets[:-1]]
        constant &= (bags.points == np.repeat(first, bags.sizes, axis=0)).all(axis=0)
        if not constant.any():
            return
        firsts.append(first)
        labels.append(batch.labels)
        sizes.append(bags.sizes)
    if not firsts or np.concatenate(sizes).min() < 2:
        return
    values, y = np.concatenate(firsts), np.concatenate(labels)
    for j in np.flatnonzero(constant).tolist():
        for k in range(y.shape[1]):
            if _is_label(values[:, j], y[:, k], are_classes):
                _warn(source, j, k, y.shape[1])
                break


def _is_label(values: NDArray[Any], y: NDArray[Any], are_classes: bool) -> bool:
    if len(np.unique(y)) < 2:
        return False
    if np.array_equal(values, y.astype(values.dtype)):
        return True
    if not are_classes:
        return False
    pairs = len(np.unique(np.column_stack([values, y]), axis=0))
    return pairs == len(np.unique(values)) == len(np.unique(y))


def _warn(source: LabelledBags, coordinate: int, column: int, n_targets: int) -> None:
    names = source.coordinate_names
    called = repr(names[coordinate]) if names else str(coordinate)
    y = "y" if n_targets == 1 else f"column {column} of y"
    y = f"the target {source.target_names[column]!r}" if source.target_names else y
    warn(
        f"coordinate {called} is constant in every bag and equals {y}: the model is told the "
        "answer; leave the coordinate out, or name a grouped frame's column by target="
    )
