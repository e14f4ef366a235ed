"""Warnings about labels among the coordinates, and fitted bags among those held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...core.errors import warn
from ..bags.bags import Bags
from ..store.plan import ranges_of
from ..store.sampling import RunSample
from .alignment import ids_of
from .labelled import LabelledBags
from .labels import Targets
from .splits import Membership

MEMORY_SAMPLE = RunSample(32, 32)  # bags in memory that are compared with their labels
STORE_SAMPLE = RunSample(4, 8)  # bags of a store: a few reads next to those of the fit
MAX_COMPARED = 2**21  # points that are read once more to find copies of bags
MIN_DISTINCT = 0.25  # fraction of distinct bags: with fewer, repetitions are chance
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
        constant &= (first == bags.points[bags.offsets[1:] - 1]).all(axis=0)  # most differ here
        here = bags.points[:, constant]
        constant[constant] = (here == np.repeat(first[:, constant], bags.sizes, axis=0)).all(axis=0)
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


def warn_of_copies_held_out(source: LabelledBags, held_out: Membership) -> None:
    """Warn if labelled bags that are held out have the very points of bags that are fitted.

    Errors on such bags are too small. Bags of one point, and of equal points, are ignored; so are
    data of which most bags repeat, as counts do by chance, and data of more than `MAX_COMPARED`
    points.
    """
    if source.n_points > MAX_COMPARED:
        return
    places, keys = [], []
    for batch in source.batches_of([(source.start, source.end)]):
        places.append(batch.index)
        keys.append(_ends_of(batch.bags))
    index, key = np.concatenate(places), np.concatenate(keys)
    index, key = index[np.isfinite(key)], key[np.isfinite(key)]
    _, numbers, counts = np.unique(key, return_inverse=True, return_counts=True)
    if not len(counts) or counts.max() == 1 or len(counts) < MIN_DISTINCT * len(key):
        return
    fitted: dict[bytes, int] = {}
    copies: dict[int, int] = {}  # position of a bag held out, and of its copy
    out = held_out.members(0, int(index.max()) + 1)
    alike = index[counts[numbers] > 1]
    for is_out in (False, True):
        for batch in source.batches_of(ranges_of(alike[out[alike] == is_out])):
            for place, points in zip(batch.index.tolist(), batch.bags, strict=True):
                content = np.asarray(points).tobytes()
                if not is_out:
                    fitted.setdefault(content, place)
                elif content in fitted:
                    copies[place] = fitted[content]
    if copies:
        n_out, (held, other) = int(out[index].sum()), next(iter(copies.items()))
        ids = ids_of(source.data)
        names = [other, held] if ids is None else [ids.values[i] for i in (other, held)]
        warn(
            f"{source.url or 'bags in memory'}: {len(copies)} of {n_out} bags held out have the "
            f"same points as bags that are fitted, such as {names[1]!r} and {names[0]!r}: errors "
            "on them are too small; leave copies out, or hold them out together by groups="
        )


def _ends_of(bags: Bags) -> Floats:
    """Return a number per bag, of its size and first and last points, shape (n_bags,).

    Different bags have different numbers, except by chance. NaN for bags whose first and last
    points are equal.
    """
    if not len(bags):
        return np.empty(0)
    first, last = bags.points[bags.offsets[:-1]], bags.points[bags.offsets[1:] - 1]
    factors = np.random.default_rng(0).uniform(1, 2, (2, bags.n_dims))
    keys = np.log(bags.sizes) + first @ factors[0] + last @ factors[1]
    return np.where((first == last).all(axis=1), np.nan, keys)


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
