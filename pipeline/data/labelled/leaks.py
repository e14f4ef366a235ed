"""A warning about labels that were left among the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import warn
from ..store.sampling import RunSample
from .labelled import LabelledBags
from .labels import Targets

MEMORY_SAMPLE = RunSample(32, 32)  # bags in memory that are compared with their labels
STORE_SAMPLE = RunSample(4, 8)  # bags of a store: a few reads next to those of the fit
_MIN_LABELS = 5  # fewer distinct labels may lie on a line by chance: they are counts or classes
LEAK_CORRELATION = 1 - 1e-8  # correlation of a float32 coordinate with a linear function of it


def warn_of_leaks(source: LabelledBags, are_classes: bool) -> None:
    """Warn about a coordinate that is constant in every bag and determines the label.

    Such a coordinate equals the label, is a linear function of it, or has one value for each class.
    A sample of the bags is compared; bags of one point are ignored.
    """
    if not isinstance(source.labels, Targets):
        return
    runs = MEMORY_SAMPLE if source.in_memory else STORE_SAMPLE
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
            link = _link(values[:, j], y[:, k], are_classes)
            if link is not None:
                _warn(source, j, k, y.shape[1], link)
                break


def _link(values: NDArray[Any], y: NDArray[Any], are_classes: bool) -> str | None:
    """Return the relation of values and labels, such as "equals"; None if there is none."""
    values, y = values[np.isfinite(y)], y[np.isfinite(y)]
    if len(np.unique(y)) < 2 or np.ptp(values) == 0:
        return None
    if np.array_equal(values, y.astype(values.dtype)):
        return "equals"
    if are_classes:
        n_pairs = len(np.unique(np.column_stack([values, y]), axis=0))
        is_named = n_pairs == len(np.unique(values)) == len(np.unique(y))
        return "has one value per class of" if is_named else None
    if len(np.unique(y)) > _MIN_LABELS and abs(np.corrcoef(values, y)[0, 1]) > LEAK_CORRELATION:
        return "is a linear function of"
    return None


def _warn(source: LabelledBags, coordinate: int, column: int, n_targets: int, link: str) -> None:
    names = source.coordinate_names
    called = repr(names[coordinate]) if names else str(coordinate)
    y = "y" if n_targets == 1 else f"column {column} of y"
    y = f"the target {source.target_names[column]!r}" if source.target_names else y
    warn(
        f"coordinate {called} is constant in every bag and {link} {y}: the model is told the "
        "answer; leave the coordinate out, or name a grouped frame's column by target="
    )
