"""Folds of few bags by their content: the order of bags does not matter, and copies share a fold.

Penalties, intervals and heads are judged by folds. Folds by position depend on the order of bags.
They also put copies of a bag into different folds, where a copy reveals the label of a bag that is
left out. With more bags or points than can be read quickly, folds are by position.
"""

from __future__ import annotations

import numpy as np

from ....data.labelled.labelled import LabelledBags
from ....data.labelled.splits import PlacedFolds
from ....data.store.plan import ranges_of
from ...outcomes.base import Outcome
from ...outcomes.classes import Classes
from ..fit_parameters import FOLDED_BAGS
from ..fold_errors import assign_folds
from .sample import MAX_LABELLED_BAGS, copies_among, labelled_places, order_by_content

MIN_PLACED = 4  # bags: folds of fewer would be of one bag
_MAX_POINTS = 2**22  # points that are read once more, in a tenth of a second


def place_folds(bags: LabelledBags, outcome: Outcome, n_folds: int) -> PlacedFolds | None:
    """Return folds of the labelled bags by content; None if folds have to be by position.

    Folds have about equal numbers of bags and, for classes, about equal fractions of the classes.
    With fewer different bags than folds, there are fewer folds.

    Raises
    ------
    DataError, BagError
        If bags or labels are refused.
    """
    if bags.n_bags > MAX_LABELLED_BAGS:
        return None
    places = labelled_places(bags)
    n_points = len(places) * bags.n_points / max(1, bags.n_bags)
    if len(places) > FOLDED_BAGS or n_points > _MAX_POINTS:
        return None
    index, sizes, means, labels = [], [], [], []
    for batch in bags.batches_of(ranges_of(places)):
        if len(batch):
            with bags.naming(batch.index):
                labels.append(np.asarray(outcome.encode(batch.labels)[0], np.float64))
            index.append(batch.index)
            sizes.append(batch.bags.sizes)
            means.append(batch.bags.means)
    n = sum(map(len, index))  # bags of weight 0 are not among them
    if n < MIN_PLACED:
        return None
    joined_means, y = np.concatenate(means), np.concatenate(labels)
    copies = copies_among(np.concatenate(sizes), joined_means, y)
    order = order_by_content(joined_means)
    of_order = assign_folds(
        n,
        y[order].argmax(axis=1) if isinstance(outcome, Classes) else None,
        None if copies is None else copies[order],
        n_folds,
    )[0]
    if not of_order.any():
        return None
    folds = np.empty(n, dtype=np.int64)
    folds[order] = of_order
    return PlacedFolds(np.concatenate(index), folds, int(folds.max()) + 1)
