"""Values per bag with an index of pandas, in the order of the bags that they are given with."""

from __future__ import annotations

from typing import TypeVar

from ..bags.alignment import has_index, in_order_of
from ..bags.bags import Bags
from ..bags.ids import BagIds
from ..store.store import BagStore

Values = TypeVar("Values")


def aligned(values: Values, data: Bags | BagStore, what: str) -> Values:
    """Return values per bag in the order of the bags, by the index of a pandas Series or frame.

    Anything else, and anything beside bags without ids, is returned as it is.

    Parameters
    ----------
    values : Series, DataFrame, or anything else
    data : Bags or BagStore
    what : str
        What messages call the values, as "y".

    Raises
    ------
    DataError
        An index that has other ids than the bags, see `in_order_of`.
    """
    if not has_index(values):
        return values
    ids = ids_of(data)
    if ids is None:
        return values
    ordered: Values = in_order_of(values, ids, what)
    return ordered


def ids_of(data: Bags | BagStore) -> BagIds | None:
    """Return the ids of bags; None where they have none. Those of a store are read."""
    if isinstance(data, Bags):
        return data.bag_ids
    ids = data.ids()
    return BagIds(ids if ids.dtype.kind == "i" else ids.astype(object))
