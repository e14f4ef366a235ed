"""Detection of groups of bags that a holdout of single bags would split."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..store.store import BagStore
from .holdout import Holdout

MAX_BAGS_READ = 2000  # the first bags are enough to recognise groups
MIN_GROUPS = 8  # a column with fewer values is a class rather than a day or a patient
MIN_GROUP_SIZE = 1.5  # bags per group, on average
LAST_PART = re.compile(r"[-_./:| ][^-_./:| ]*$")  # of an id


def suspect_groups(store: BagStore, learnt: Collection[str], holdout: Holdout) -> str | None:
    """Return a warning if bags seem to form groups that a holdout or a fit does not know.

    Signs of groups are another column of classes whose values recur, and ids that differ only in
    their last part.
    """
    n = min(store.n_bags, MAX_BAGS_READ)
    if not n or holdout.groups is not None or holdout.after is not None:
        return None
    for name in store.meta.class_names:
        if name not in learnt:
            values = store.targets(0, n, names=(name,))[:, 0]
            if _recur(values[~np.isnan(values)]):
                counted = f"{n:,} bags have {len(np.unique(values)):,} values of {name!r}"
                remedy = f"holdout: {{fraction: 0.2, groups: {name}}}"
                return (
                    f"{counted}: if bags of one value depend on each other, errors are told too "
                    f"small; keep them together with {remedy}"
                )
    ids: Sequence[Any] = list(store.ids(0, n))
    if not all(isinstance(bag_id, str) for bag_id in ids):
        return None
    beginnings = np.array([LAST_PART.sub("", bag_id) for bag_id in ids])
    if not _recur(beginnings):
        return None
    return (
        f"ids of {n:,} bags have {len(np.unique(beginnings)):,} beginnings, as "
        f"{str(beginnings[0])!r}: if bags of one beginning depend on each other, errors are told "
        "too small; ingest a column that tells them apart, and name it as groups of holdout"
    )


def _recur(values: NDArray[Any]) -> bool:
    """Whether there are several values, and most of them belong to several bags."""
    _, counts = np.unique(values, return_counts=True)
    several = len(counts) >= MIN_GROUPS and len(values) >= MIN_GROUP_SIZE * len(counts)
    return bool(several and 2 * counts[counts > 1].sum() > len(values))
