"""Alignment of per-bag values with the bags, by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ...core.errors import DataError
from ..bags.alignment import has_index, in_order_of, series_of, with_id_columns_as_index
from ..bags.bags import Bags
from ..bags.frames import is_table
from ..bags.ids import BagIds, comparable
from ..store.store import BagStore

Values = TypeVar("Values")


def aligned(values: Values, data: Bags | BagStore, what: str) -> Values:
    """Return values per bag in the order of the bags, by their ids.

    The ids of the values are the index of a Series or DataFrame of pandas or Dask, or of an xarray
    DataArray, the columns of a table (pandas, polars or Arrow) with the names of the bags' id
    columns, or the keys of a mapping. Any other value, and any value for bags without ids, is
    returned unchanged.

    Parameters
    ----------
    values : Series, table, mapping, or anything else
    data : Bags or BagStore
    what : str
        Name of the values in messages, such as "y".

    Raises
    ------
    DataError
        If the values have other ids than the bags, see `in_order_of`, or are a mapping and the bags
        have no ids.
    """
    in_memory = data.bag_ids if isinstance(data, Bags) else None
    is_mapping = isinstance(values, Mapping) and not is_table(values)
    if is_mapping and in_memory is None and isinstance(data, Bags):
        raise DataError(
            f"{what}: the keys of a mapping are ids of bags, and these bags have none; give values "
            "in the order of the bags, or the bags as a mapping from ids, too"
        )
    values = series_of(values)
    if in_memory is not None:
        table = with_id_columns_as_index(values, in_memory)
        is_one_column = table is not values and table.ndim == 2 and table.shape[1] == 1
        values = table.iloc[:, 0] if is_one_column else table
    if not has_index(values):
        return values
    ids = ids_of(data)
    if ids is None:
        return values
    ordered: Values = in_order_of(values, ids, what)
    return ordered


def ids_of(data: Bags | BagStore) -> BagIds | None:
    """Return the ids of bags; None for bags without ids. The ids of a store are read."""
    if isinstance(data, Bags):
        return data.bag_ids
    return BagIds(comparable(data.ids()))
