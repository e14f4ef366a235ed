"""Alignment of values that have ids with bags that have ids."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import DataError, warn
from .frames import is_table
from .ids import BagIds, check_columns_apart, plain_id

if TYPE_CHECKING:
    from pandas import Index

BY_PLACE = "give its to_numpy() for values in the order of the bags"


def has_index(values: object) -> bool:
    """Return whether values are a Series or a DataFrame of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, (pandas.Series, pandas.DataFrame))


def series_of(values: Any) -> Any:  # noqa: ANN401 - as given
    """Return a mapping from ids to values as a Series; any other value as `indexed` does."""
    values = indexed(values)
    if not isinstance(values, Mapping) or is_table(values):
        return values
    import pandas as pd  # noqa: PLC0415 - most values are not mappings

    return pd.Series(list(values.values()), list(values))


def indexed(values: Any) -> Any:  # noqa: ANN401 - as given
    """Return values of other libraries that have an index as a Series or DataFrame with it.

    These are arrays of xarray with one or two dimensions, the first of which has an index, and
    data frames and columns of Dask, which are computed. Any other value is returned unchanged.
    """
    xarray, dask = sys.modules.get("xarray"), sys.modules.get("dask.dataframe")
    if xarray and isinstance(values, xarray.DataArray) and values.ndim in (1, 2):
        return values.to_pandas() if values.dims[0] in values.indexes else values
    if dask and isinstance(values, (dask.Series, dask.DataFrame)):
        return values.compute()
    return values


def with_id_columns_as_index(values: Any, ids: BagIds) -> Any:  # noqa: ANN401 - of pandas
    """Return a table with the id columns of the bags as a DataFrame with these as its index.

    Tables of polars and Arrow become DataFrames. Any other value is returned unchanged.
    """
    columns = getattr(values, "column_names", getattr(values, "columns", ()))
    if not ids.columns or isinstance(columns, str) or not set(ids.columns) <= set(columns):
        return values
    frame = values if has_index(values) else values.to_pandas()
    return frame.set_index(list(ids.columns))


def ids_of_index(index: Index[Any]) -> BagIds | None:
    """Return the labels of an index as ids of bags; None if a label is missing or repeated."""
    levels = index.set_names(list(range(index.nlevels))).to_frame()
    if not index.is_unique or levels.isna().to_numpy().any():
        return None
    check_columns_apart(levels)
    names = [name for name in index.names if isinstance(name, str)]
    return BagIds.of_keys(index.tolist(), names if len(names) == index.nlevels else ())


def in_order_of(values: Any, ids: BagIds, what: str) -> Any:  # noqa: ANN401 - of pandas
    """Return a Series or DataFrame with its rows in the order of ids.

    ``what`` is the name of the values in messages.

    Raises
    ------
    DataError
        If the index repeats an id or has other ids than the bags. The default index 0, 1, … n − 1
        does not name bags with other ids: values with it are taken in their order, with a warning.
        The same holds for bags from a Series with the default index.
    """
    wanted, levels = _index_of(ids), _levels_in_order(values.index, ids)
    if "bytes" in (levels.inferred_type, *(level.inferred_type for level in _levels(levels))):
        levels = levels.map(plain_id)
    if len(levels) == len(wanted) and levels.equals(wanted):
        return values
    is_plain = _is_plain(levels, len(wanted))
    twice = levels.duplicated()
    if twice.any():
        again = _of_python(levels[int(np.argmax(twice))])
        raise DataError(
            f"{what}: its index has {again!r} twice, and a bag has one value; give one row per "
            f"bag, or {BY_PLACE}"
        )
    places = levels.get_indexer(wanted)
    without = np.flatnonzero(places < 0)
    if len(levels) == len(wanted) and not len(without):
        return values.iloc[places]
    if is_plain or (counts_bags(ids) and len(levels) == len(wanted)):
        index = f"0 to {len(levels) - 1}" if is_plain else f"{_of_python(levels[0])!r}, …"
        warn(
            f"{what} has the index {index}, and the bags have the ids "
            f"{_of_python(wanted[0])!r}, …: its values are taken in the order of the bags; give it "
            f"the ids as its index, or {BY_PLACE}"
        )
        return values
    unknown = np.flatnonzero(wanted.get_indexer_for(levels) < 0)
    parts = [f"the bag with id {_of_python(wanted[i])!r} has no row" for i in without[:1].tolist()]
    parts += [f"no bag has the id {_of_python(levels[i])!r}" for i in unknown[:1].tolist()]
    raise DataError(
        f"{what}: its index and the ids of the bags differ: {', and '.join(parts)} "
        f"({len(levels)} rows, {len(wanted)} bags); take the rows of these bags, or {BY_PLACE}"
    )


def refuse_other_order(values: object, ids: BagIds | None, what: str) -> None:
    """Raise DataError for values of pandas whose index has the ids of bags in another order.

    This is for callers that hand the values on unchanged, such as a step of a pipeline. An index
    that does not have the ids is refused, or warned of, as by `in_order_of`.
    """
    if ids is None or not has_index(values):
        return
    if in_order_of(values, ids, what) is not values:
        raise DataError(
            f"{what}: its index has the ids of the bags in another order, in which the next step "
            f"would pair it with the bags; put it in their order: {what}.reindex(as_bags(X).ids)"
        )


def in_order_of_rows(values: Any, first: Any, what: str, reference: str) -> Any:  # noqa: ANN401
    """Return rows of pandas in the order of other rows of pandas that have the same index.

    Any other value is returned unchanged, and so are rows with an index that has no label in common
    with the index of the other rows.

    Parameters
    ----------
    values, first : Series, DataFrame, or anything else
    what, reference : str
        Names of ``values`` and ``first`` in messages.

    Raises
    ------
    DataError
        If the indices share labels, but are not the same labels, each once. A default index 0, 1, …
        n − 1 does not name rows: with it, rows are paired by position, with a warning.
    """
    if not has_index(values) or not has_index(first) or len(values) != len(first):
        return values
    ours, theirs = first.index, values.index
    if theirs.equals(ours) or ours.nlevels != theirs.nlevels or not theirs.isin(ours).any():
        return values
    if ours.is_unique and theirs.is_unique:
        places = theirs.get_indexer(ours)
        if (places >= 0).all():
            return values.iloc[places]
    labels = f"the index {_of_python(theirs[0])!r}, …, and {reference} {_of_python(ours[0])!r}, …"
    advice = f"give both the same index, or {what}.to_numpy() for rows in the order of {reference}"
    if _is_plain(ours, len(ours)) or _is_plain(theirs, len(theirs)):
        warn(f"{what} has {labels}: rows are paired in their order; {advice}")
        return values
    raise DataError(f"{what} has {labels}: some labels are in both, others are not; {advice}")


def responses_in_order(responses: Any, ids: BagIds | None) -> Any:  # noqa: ANN401 - as given
    """Return responses that are bags with ids in the order of the bags' ids.

    Any other value, and any value for bags without ids, is returned unchanged.

    Raises
    ------
    DataError
        If the responses have other ids than the bags. The ids 0, 1, … n − 1 do not name bags with
        other ids: responses with them are taken in their order, with a warning.
    """
    own: BagIds | None = getattr(responses, "bag_ids", None)
    if ids is None or own is None or len(own) != len(ids):
        return responses  # the caller refuses a wrong number of responses
    wanted, theirs = ids.values.tolist(), own.values.tolist()
    if wanted == theirs:
        return responses
    places = {key: i for i, key in enumerate(theirs)}
    without = [key for key in wanted if key not in places]
    if not without:
        return responses[np.array([places[key] for key in wanted])]
    if theirs == list(range(len(theirs))):
        warn(
            f"responses have the ids 0 to {len(theirs) - 1}, and the bags have the ids "
            f"{_of_python(wanted[0])!r}, …: responses are taken in the order of the bags; give "
            "them the ids of the bags, or a list of arrays"
        )
        return responses
    raise DataError(
        f"responses: their ids and the ids of the bags differ: the bag with id "
        f"{_of_python(without[0])!r} has no response; give the responses of these bags, or a list "
        "of arrays in the order of the bags"
    )


def _index_of(ids: BagIds) -> Index[Any]:
    import pandas as pd  # noqa: PLC0415 - the caller has values of it

    if len(ids) and isinstance(ids.values[0], tuple):
        return pd.MultiIndex.from_tuples(ids.values.tolist())
    index: Index[Any] = pd.Index(ids.values.tolist())
    return index


def _levels_in_order(index: Any, ids: BagIds) -> Any:  # noqa: ANN401 - a MultiIndex or not
    """Return a multi-level index with its levels in the order of the id columns, by name."""
    names = list(index.names)
    if index.nlevels == len(ids.columns) > 1 and set(names) == set(ids.columns):
        return index.reorder_levels([names.index(name) for name in ids.columns])
    return index


def _levels(index: Index[Any]) -> list[Index[Any]]:
    return list(getattr(index, "levels", ()))


def counts_bags(ids: BagIds) -> bool:
    """Return whether ids without columns only count the bags, like a Series' default index."""
    return not ids.columns and ids.values.tolist() == list(range(len(ids)))


def _is_plain(index: Index[Any], n_bags: int) -> bool:
    """Return whether an index only counts the rows, like pandas' default index."""
    values = index.to_numpy()
    return values.dtype.kind == "i" and np.array_equal(values, np.arange(n_bags))


def _of_python(key: Any) -> Any:  # noqa: ANN401
    """Return an id as messages show it: with numbers of Python, not of numpy."""
    if isinstance(key, tuple):
        return tuple(map(_of_python, key))
    return key.item() if isinstance(key, np.generic) else key
