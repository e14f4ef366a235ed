"""Alignment of pandas variables and labels with the bags, or rows, that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data.bags.alignment import has_index, in_order_of, in_order_of_rows, series_of
from ...data.bags.bags import Bags, as_bags
from ...data.bags.frames import is_groups
from ...data.bags.ids import BagIds
from ...data.labelled.alignment import ids_of
from ...data.store.store import BagStore
from .samples import is_bags


def matched(data: Mapping[str, Any], labels: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return variables and labels in the order of the first variable, by ids and indices.

    If bags have ids, pandas indices and the ids of other bags must be the same ids. Pandas rows
    with the same unique index in another order are reordered. Pandas rows whose indices have no
    label in common are paired by position.

    Parameters
    ----------
    data : mapping of str to variable
        Groupbys, and mappings from ids to bags, become Bags; mappings from ids to values Series.
    labels : mapping of str to labels or None

    Raises
    ------
    DataError
        If ids or an index differ from the ids of the bags, or two indices share some labels only;
        see `in_order_of` and `in_order_of_rows`.
    """
    made = {name: _with_ids(values) for name, values in data.items()}
    labels = {name: series_of(values) for name, values in labels.items()}
    others = [*made.values(), *labels.values()]
    if not any(has_index(values) or isinstance(values, Bags) for values in others):
        return made, dict(labels)  # ids of a store are read only where something has others
    ids = next((of_one for of_one in map(_ids, made.values()) if of_one is not None), None)
    if ids is None:
        first = next(((name, values) for name, values in made.items() if has_index(values)), None)
        if first is None:
            return made, dict(labels)
        return tuple(
            {
                name: in_order_of_rows(values, first[1], name, first[0])
                for name, values in some.items()
            }
            for some in (made, labels)
        )
    return tuple(
        {name: _in_order(values, ids, name) for name, values in some.items()}
        for some in (made, labels)
    )


def _with_ids(values: Any) -> Any:  # noqa: ANN401 - as given
    if is_groups(values) or (isinstance(values, Mapping) and is_bags(values)):
        return as_bags(values)
    return series_of(values)


def _ids(data: object) -> BagIds | None:
    if isinstance(data, (Bags, BagStore)):
        return ids_of(data)
    if isinstance(data, tuple) and len(data) == 3 and isinstance(data[0], BagStore):
        ids = ids_of(data[0])
        return ids and ids.take(slice(data[1], data[2]))
    return None


def _in_order(values: Any, ids: BagIds, name: str) -> Any:  # noqa: ANN401
    if has_index(values):
        return in_order_of(values, ids, name)
    own = values.bag_ids if isinstance(values, Bags) else None
    if own is None or own is ids or np.array_equal(own.values, ids.values):
        return values
    import pandas as pd  # noqa: PLC0415 - ids in memory come from tables

    places = pd.Series(np.arange(len(own)), _labels_of(own))
    return values[in_order_of(places, ids, name).to_numpy()]


def _labels_of(ids: BagIds) -> Any:  # noqa: ANN401
    import pandas as pd  # noqa: PLC0415

    return pd.Index(ids.values.tolist())
