"""Conversion of tables with a row per point to ragged points, and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Integers, is_missing
from ...core.errors import DataError, closest, needing_extra, shown, warn
from .arrow_arrays import FOREIGN, library, plain_table
from .box import range_of
from .coordinates import Names
from .ids import BagIds, check_columns_apart, plain_id
from .packed_attributes import decoded_dataset
from .precision import check_integers_apart

if TYPE_CHECKING:
    from pandas import DataFrame
    from xarray import Dataset

Frame = Any
"""A table of another library."""

_GROUPS = (("pandas.api.typing", "DataFrameGroupBy"), ("polars.dataframe.group_by", "GroupBy"))
# what tables have
_TABLES = ("__dataframe__", "collect_schema", "scanner", "data_vars", "read_all")
MICROSECONDS_PER_DAY = 86_400_000_000.0
COUNTS = "sample_dimension"  # the attribute of CF's counts


def is_groups(data: object) -> bool:
    """Return whether data are a groupby of pandas or polars."""
    modules = ((sys.modules.get(module), name) for module, name in _GROUPS)
    return any(module and isinstance(data, getattr(module, name)) for module, name in modules)


def is_frame(data: object) -> bool:
    """Return whether data are a frame of pandas; a Series is a list of numbers."""
    return hasattr(data, "iloc") and hasattr(data, "columns")


def is_table(data: object) -> bool:
    """Return whether data are a table of some library, and not a list."""
    is_list = isinstance(data, (list, tuple, np.ndarray))
    return not is_list and any(hasattr(data, name) for name in _TABLES)


def check_no_table(data: object) -> None:
    """Raise DataError for a table instead of a list of bags: each row would be a bag."""
    if is_table(data):
        raise DataError(
            f"expected bags, got a table ({type(data).__module__}.{type(data).__qualname__}): make "
            "bags of its rows by Bags.from_frame(table, id_column=…), or a store by "
            "bagbasis.ingest.ingest_frame"
        )


def arrow_reader(frame: Frame) -> Any:  # noqa: ANN401 - no types
    """Return a table of a known library as a pyarrow.RecordBatchReader; None for other data.

    Raises
    ------
    DataError
        If an xarray data set counts its rows per bag.
    """
    pa = library()
    pandas, xarray = sys.modules.get("pandas"), sys.modules.get("xarray")
    polars, dataset = sys.modules.get("polars"), sys.modules.get("pyarrow.dataset")
    if xarray and isinstance(frame, xarray.Dataset):
        if any(COUNTS in variable.attrs for variable in frame.variables.values()):
            raise DataError("the data set has ragged arrays: make a store by BagStore.from_xarray")
        frame = decoded_dataset(frame).to_dataframe()
    if pandas and isinstance(frame, pandas.DataFrame):
        named = [
            level for level in frame.index.names if level is not None and level not in frame.columns
        ]
        if named:
            frame = frame.reset_index(level=named)
        _check_names(frame)
        _check_zones(frame, pandas)
        frame = _as_texts(frame, pandas)
        with _readable():
            return pa.Table.from_pandas(frame, preserve_index=False).to_reader()
    if polars and isinstance(frame, polars.LazyFrame):
        frame = frame.collect()
    if dataset and isinstance(frame, dataset.Dataset):
        return frame.scanner().to_reader()
    with _readable():
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(frame)
        if hasattr(frame, "__arrow_c_array__"):
            return pa.table(frame).to_reader()
    return None


def _check_names(frame: Frame) -> None:
    """Raise DataError for columns whose names would change in Arrow."""
    if frame.columns.nlevels > 1:
        raise DataError(
            f"the table has columns of {frame.columns.nlevels} levels; give each one name: "
            "frame.columns = ['_'.join(map(str, c)) for c in frame.columns]"
        )
    if not frame.columns.is_unique:
        again = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"two columns are called {again!r}; rename one")


def _check_zones(frame: Frame, pandas: Any) -> None:  # noqa: ANN401 - the module
    """Raise DataError for a column that mixes times with and without a time zone."""
    for name, dtype in frame.dtypes.items():
        if dtype.kind == "O" and pandas.api.types.infer_dtype(frame[name]) == "datetime":
            times = frame[name].dropna()
            is_naive = [time.tzinfo is None for time in times]
            if len(set(is_naive)) > 1:
                row = times.index[is_naive.index(True)]
                raise DataError(
                    f"column {name!r} has times with a zone, and times without, such as that of "
                    f"row {row!r}; give all times a zone"
                )


def _as_texts(frame: Frame, pandas: Any) -> Frame:  # noqa: ANN401 - the module
    """Return a frame with periods as texts, because Arrow has their numbers since 1970.

    Sparse columns become dense ones.
    """
    made = {}
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, pandas.PeriodDtype):
            made[name] = frame[name].astype("string")
        elif isinstance(dtype, pandas.SparseDtype):
            made[name] = frame[name].sparse.to_dense()
    if made:
        frame = frame.copy(deep=False)
        for name, column in made.items():  # names may be numbers
            frame[name] = column
    return frame


def split_groups(groups: Frame) -> tuple[Frame, list[str] | None]:
    """Return the frame and the keys of a groupby; None if keys are not names of columns."""
    if hasattr(groups, "obj"):
        frame, grouped_by = groups.obj, groups.keys
    else:
        frame, grouped_by = groups.df, list(groups.by)
    keys = [grouped_by] if isinstance(grouped_by, str) else grouped_by
    named = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
    return frame, list(keys) if named else None


def key_columns(groups: Frame) -> list[str]:
    """Return the columns of the frame that its rows are grouped by, in whatever way they are named.

    These are names, for pandas also columns that are given as a Series or a `pandas.Grouper`, and
    for polars expressions of columns; the aggregations of both libraries leave them out, too.
    """
    keys = split_groups(groups)[1]
    if keys is not None:
        return keys
    if hasattr(groups, "by"):
        return [key if isinstance(key, str) else key.meta.output_name() for key in groups.by]
    return [name for name in getattr(groups, "exclusions", ()) if isinstance(name, str)]


def names_of_table(table: object) -> list[str] | None:
    """Return the column names of a frame, an Arrow table or a DataArray; None for other data."""
    xarray = sys.modules.get("xarray")
    if xarray and isinstance(table, xarray.DataArray):
        is_named = table.ndim == 2 and table.dims[1] in table.indexes
        return names_of_columns(table.indexes[table.dims[1]].tolist()) if is_named else None
    columns = getattr(table, "column_names", None)
    columns = getattr(table, "columns", None) if columns is None else columns
    return None if columns is None or isinstance(columns, str) else names_of_columns(list(columns))


def in_dims_of_first(arrays: Sequence[Any] | NDArray[Any]) -> Sequence[Any] | NDArray[Any]:
    """Return DataArrays of xarray with their two dimensions in the order of the first DataArray."""
    xarray = sys.modules.get("xarray")
    if xarray is None or not any(isinstance(array, xarray.DataArray) for array in arrays):
        return arrays
    dims: tuple[Any, ...] = ()
    ordered = []
    for array in arrays:
        is_matrix = isinstance(array, xarray.DataArray) and array.ndim == 2
        dims = array.dims if is_matrix and not dims else dims
        is_turned = is_matrix and array.dims != dims and {*array.dims} == {*dims}
        ordered.append(array.transpose(*dims) if is_turned else array)
    return ordered


def names_of_columns(columns: Sequence[object]) -> list[str] | None:
    """Return the names of columns as texts; None if they are not texts or whole numbers.

    The numbers 0, 1, … are the defaults of a frame without names: they are not names.

    Raises
    ------
    DataError
        If these default numbers are in another order, which would be lost.
    """
    numbers = [
        int(name) for name in columns if isinstance(name, Integral) and not isinstance(name, bool)
    ]
    texts = [name for name in columns if isinstance(name, str)]
    if not columns or len(numbers) + len(texts) < len(columns):
        return None
    default = list(range(len(columns)))
    if numbers == default:
        return None
    if sorted(numbers) == default:
        raise DataError(
            f"the columns are the numbers 0 to {len(columns) - 1} in another order, "
            f"{shown(numbers)}; sort them, or give them names"
        )
    return [str(name) for name in columns]


def bags_of_frame(
    frame: Frame, id_columns: Sequence[str | int] | None, coordinates: Sequence[str | int] | None
) -> tuple[NDArray[Any], Integers, list[str], BagIds]:
    """Return the points of a table bag by bag, and the sizes, column names and ids of the bags."""
    if is_groups(frame):
        if id_columns is not None:
            raise DataError("the frame is grouped: leave id_column out")
        return _of_groups(frame, coordinates)
    with needing_extra("tables", "Bags.from_frame"):
        import pandas as pd  # noqa: F401, PLC0415 - an extra
    reader = arrow_reader(frame)
    if reader is None:
        raise DataError(f"expected a table, got {shown(frame)}")
    with _readable():
        table = reader.read_all()
        rows = plain_table(table).to_pandas()
    rows.columns = rows.columns.map(str)  # pandas restores numbers
    ids, wanted = [*map(str, id_columns or ())], [*map(str, coordinates or ())]
    for key, names in (("id_column", ids), ("coordinates", wanted)):
        if len({*names}) < len(names):
            raise DataError(f"{key} is {[*names]}; name each column once")
    if not ids:
        raise DataError(f"id_column is missing: name one of {shown(list(rows.columns))}")
    for name in [*ids, *wanted]:
        if name not in rows.columns:
            known = list(map(str, rows.columns))
            raise DataError(f"no column {name!r}{closest(name, known)}; there are {shown(known)}")
        if list(rows.columns).count(name) > 1:
            raise DataError(f"two columns are called {name!r}; rename one")
    chosen = wanted or [name for name in rows.columns if name not in ids]
    lists = [name for name in chosen if _has_lists(rows[name])]
    if lists:
        rows = _exploded(rows, lists, chosen)
    for name in ids:
        if rows[name].dtype == object:
            rows[name] = rows[name].map(plain_id)
    missing = rows[ids].isna().any(axis=1).to_numpy()
    for name in ids:
        if rows[name].dtype.kind not in "biufmM":
            is_empty = [isinstance(key, str) and not key.strip() for key in rows[name].to_list()]
            missing = missing | np.array(is_empty, dtype=bool)
    if missing.any():
        raise DataError(f"row {int(np.argmax(missing))} has no {' and '.join(ids)}")
    check_columns_apart(rows[ids])
    try:
        codes = rows.groupby(ids, observed=True, sort=True).ngroup().to_numpy()
    except (TypeError, NotImplementedError) as error:
        raise DataError(
            f"the id {' and '.join(ids)} has values that are not texts, numbers or dates ({error})"
        ) from error
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes).astype(np.int64)
    first = rows[ids].iloc[order[np.cumsum(sizes) - sizes]]
    keys = list(zip(*(first[name].tolist() for name in ids), strict=True))
    points = numbers_of_frame(rows[chosen])[order]
    if not wanted and len(sizes) > 1:
        warn_of_row_numbers(rows[chosen], "table")
    _check_apart(points, rows[chosen])
    return points, sizes, chosen, BagIds.of_keys(keys, ids)


def _of_groups(
    groups: Frame, coordinates: Sequence[str | int] | None
) -> tuple[NDArray[Any], Integers, list[str], BagIds]:
    """Return the points of groups in their order; each group's columns are its coordinates."""
    keys = split_groups(groups)[1] or []
    if getattr(groups, "maintain_order", True) is False:
        raise DataError("groups of polars have no order: group_by(…, maintain_order=True)")
    parts = _parts_of(groups, keys)
    ids = BagIds.of_keys([key for key, _ in parts], keys)
    frames = [frame for _, frame in parts]
    if not frames:
        raise DataError("no bags: there are no groups")
    if hasattr(groups, "obj"):
        sizes_by_key = groups.size()  # a frame if the groups have as_index=False
        has_columns = hasattr(sizes_by_key, "columns")
        check_columns_apart(sizes_by_key if has_columns else sizes_by_key.index.to_frame())
    else:
        check_columns_apart(groups.agg([]).to_pandas())
        frames = [frame.to_pandas() for frame in frames]
    grouped_by = key_columns(groups)
    every = [name for name in frames[0].columns if name not in grouped_by]
    chosen: list[Any] = list(coordinates or every)
    points = [numbers_of_frame(frame[chosen]) for frame in frames]
    sizes = np.array([len(bag) for bag in points], dtype=np.int64)
    whole = np.concatenate(points)
    if not coordinates and len(ids) > 1 and hasattr(groups, "obj"):
        warn_of_row_numbers(groups.obj[chosen], "groupby")
    _check_apart(whole, frames[0][chosen])
    return whole, sizes, chosen, ids


def _check_apart(points: NDArray[Any], frame: Frame) -> None:
    """Raise DataError for a column of integers that float64 would merge."""
    are_integers = [getattr(dtype, "kind", "O") in "iu" for dtype in frame.dtypes]
    if any(are_integers) and len(points):
        check_integers_apart("table", *range_of(points), are_integers, [*map(str, frame.columns)])


def _parts_of(groups: Frame, keys: Sequence[str], is_heard: bool = True) -> list[tuple[Any, Frame]]:
    """Return the keys and frames of a groupby; with ``is_heard`` warn of rows it leaves out.

    Raises
    ------
    DataError
        If the library cannot group by these values.
    """
    what = " and ".join(keys) or "the groups' key"
    with _readable(f"the table cannot be grouped by {what}"):
        parts = list(groups)
        for key, frame in parts:
            if not len(frame):
                raise DataError(
                    f"groupby: the {bag_of_key(key)} has no rows, as a category that is not used; "
                    "group with observed=True"
                )
            levels = key if isinstance(key, tuple) else (key,)
            if any(is_missing(k.strip() if isinstance(k, str) else k) for k in levels):
                raise DataError(
                    f"groupby: a group of {len(frame)} rows has no {what}, and would be one bag; "
                    "give these rows an id, or drop them before grouping"
                )
        n_rows = len(groups.obj) if hasattr(groups, "obj") else 0
        n_without = n_rows - sum(len(frame) for _, frame in parts)
        if is_heard and n_without > 0:
            row = int(np.argmin(groups.ngroup().to_numpy() >= 0))
            warn(
                f"groupby: {n_without} of {n_rows} rows have no {what} and are left out, the first "
                f"is row {row}; give these rows an id, or drop them before grouping"
            )
    return parts


def take_columns(groups: Frame, names: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the coordinates of groups without some columns, and these columns' value per bag.

    The values of each column are a pandas Series, in the order of the groups. Columns of the
    grouped frame that are not coordinates can be taken, too.

    Raises
    ------
    DataError
        If there is no such column, or it is not constant within a bag. The message names the bag.
    """
    keys = split_groups(groups)[1] or []
    parts = _parts_of(groups, keys, is_heard=False)
    if not parts:
        raise DataError("no bags: there are no groups")
    with needing_extra("tables", "columns of groups"):
        import pandas as pd  # noqa: PLC0415 - an extra
    grouped_by = key_columns(groups)
    columns = [name for name in parts[0][1].columns if name not in grouped_by]
    whole, order = _rows_in_order(groups, [frame for _, frame in parts])
    sizes = np.array([len(frame) for _, frame in parts], dtype=np.int64)
    ends = np.cumsum(sizes)
    taken: dict[str, Any] = {}
    for name in names:
        if name not in whole.columns:
            known = list(map(str, whole.columns))
            raise DataError(f"no column {name!r}{closest(name, known)}; there are {shown(known)}")
        values = whole[name].iloc[order]
        codes = pd.factorize(values, use_na_sentinel=False)[0]
        first = np.repeat(codes[ends - sizes], sizes)
        if (codes != first).any():
            bag = int(np.searchsorted(ends, int(np.argmax(codes != first)), side="right"))
            raise DataError(
                f"column {name!r} has several values in the {bag_of_key(parts[bag][0])}, and a bag "
                "has one label, group or weight; give one value per bag"
            )
        taken[name] = values.iloc[ends - sizes].reset_index(drop=True)
    return [name for name in columns if name not in names], taken


def bag_of_key(key: object) -> str:
    """Return the name of a group's bag in messages."""
    return f"bag with id {key[0] if isinstance(key, tuple) and len(key) == 1 else key!r}"


def _rows_in_order(groups: Frame, frames: Sequence[Frame]) -> tuple[Frame, Integers]:
    """Return a pandas frame, and the positions of its rows, group by group."""
    import pandas as pd  # noqa: PLC0415 - an extra

    if not hasattr(groups, "obj"):
        whole = pd.concat([frame.to_pandas() for frame in frames], ignore_index=True)
        return whole, np.arange(len(whole))
    codes = groups.ngroup().to_numpy()
    known = np.flatnonzero(codes >= 0)
    return groups.obj, known[np.argsort(codes[known], kind="stable")]


def numbers_of_frame(frame: Frame, name: str = "") -> NDArray[Any]:
    """Return a frame's columns as float32 or float64, with NaN for missing values.

    Numbers, decimals, booleans and categories of these become numbers. Dates and times become days
    since 1970-01-01 in UTC, as in an ingest.

    Parameters
    ----------
    frame : data frame of pandas, or of a library that has its ``to_pandas``
    name : str
        Name in messages.

    Raises
    ------
    DataError
        If a column has other values, or two columns have the same name. The message names the
        column.
    """
    place = f"{name}: " if name else ""
    if not hasattr(frame, "iloc"):
        with _readable():
            frame = frame.to_pandas()
    if not frame.columns.is_unique:
        again = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"{place}two columns are called {again!r}; rename one")
    dtypes = list(frame.dtypes)
    dtype = np.float32 if dtypes and all(own == np.float32 for own in dtypes) else np.float64
    if _are_numbers(dtypes):
        numbers: NDArray[Any] = frame.to_numpy(dtype=dtype, na_value=np.nan)
        return numbers
    columns = [_numbers_of(frame[column], f"{place}column {column!r}") for column in frame]
    return np.column_stack(columns)


MIN_NUMBERED_ROWS = 8  # fewer rows may be 1, 2, 3 by chance


def warn_of_row_numbers(data: object, name: str) -> None:
    """Warn of each column of a pandas frame that numbers the rows, as an index or an id does."""
    frame: Frame = data
    if not is_frame(frame) or len(frame) < MIN_NUMBERED_ROWS:
        return
    for place, (column, kind) in enumerate(frame.dtypes.items()):
        if kind.kind in "iu" and (frame.iloc[:, place].diff().iloc[1:] == 1).all():
            warn(
                f"{name}: column {str(column)!r} numbers the rows, as an index or an id does; "
                "leave it out, unless it is a measurement"
            )


def _numbers_of(column: Any, what: str) -> NDArray[Any]:  # noqa: ANN401 - of pandas
    """Return a column's values as float64."""
    import pandas as pd  # noqa: PLC0415 - an extra; the column is of it

    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype if column.notna().all() else object)
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        numbers: NDArray[Any] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers
    values = column.dropna()
    try:
        if _are_times(values):
            instants = pd.to_datetime(values, utc=True).dt.tz_localize(None)
            moments = instants.to_numpy().astype("M8[us]")
            known = moments.astype(np.int64) / MICROSECONDS_PER_DAY
        elif kind == "O" and all(isinstance(value, (Real, Decimal)) for value in values):
            known = np.array([float(value) for value in values], dtype=np.float64)
        else:
            raise TypeError
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{what} has {column.dtype}, not numbers; name the numeric columns with "
            "coordinates=[...] or groupby(...)[[...]], or encode it (pandas.get_dummies)"
        ) from error
    numbers = np.full(len(column), np.nan)
    numbers[column.notna().to_numpy()] = known
    return numbers


def _are_numbers(dtypes: Iterable[object]) -> bool:
    """Return whether columns of these types hold only numbers or booleans."""
    return all(getattr(own, "kind", "O") in "biuf" for own in dtypes)


def _are_times(values: Any) -> bool:  # noqa: ANN401 - of pandas
    """Return whether values of a column, none of them missing, are dates or times."""
    kind = getattr(values.dtype, "kind", "O")
    return kind == "M" or (
        kind == "O" and len(values) > 0 and all(isinstance(value, date) for value in values)
    )


def check_same_times(tables: Iterable[object]) -> None:
    """Raise DataError for a column with times in one bag's table and numbers in another's.

    Times become days, and would be mixed with numbers of any other unit. Only first rows are read.
    """
    first: tuple[int, set[object]] | None = None
    for i, table in enumerate(tables):
        if not hasattr(table, "columns") or not len(table):  # type: ignore[arg-type]  # has rows
            continue
        times = _columns_of_times(table)
        if first is None:
            first = i, times
        elif times != first[1]:
            column = min(map(str, times ^ first[1]))
            bags = (i, first[0]) if times - first[1] else (first[0], i)
            raise DataError(
                f"column {column!r} has times in bag {bags[0]} and numbers in bag {bags[1]}; give "
                "all bags times, or all numbers"
            )


def _columns_of_times(table: Any) -> set[object]:  # noqa: ANN401 - of any library
    if hasattr(table, "iloc") and _are_numbers(table.dtypes):
        return set()
    with _readable():
        row = table.iloc[:1] if hasattr(table, "iloc") else table[:1].to_pandas()
    return {name for name in row.columns if _are_times(row[name].dropna())}


def _has_lists(column: Any) -> bool:  # noqa: ANN401 - of pandas
    """Return whether the first value of a column is a list."""
    if getattr(column.dtype, "kind", "O") != "O":
        return False
    first = next((value for value in column if value is not None), None)
    return isinstance(first, (list, np.ndarray))


def _exploded(rows: Frame, lists: list[str], chosen: list[str]) -> Frame:
    """Return a frame with one row per item of the lists in a row."""
    other = next((name for name in chosen if name not in lists), None)
    if other is not None:
        raise DataError(
            f"column {lists[0]!r} has lists, {other!r} has none; give all coordinates as lists, a "
            "row per bag, or as numbers, a row per point"
        )
    sizes = [[-1 if cell is None else len(cell) for cell in rows[name]] for name in lists]
    for row, of_row in enumerate(zip(*sizes, strict=True)):
        if len({*of_row}) > 1:
            raise DataError(f"row {row}: lists of coordinates differ in length: {list(of_row)}")
        if of_row[0] < 1:
            raise DataError(f"row {row}: the list of {lists[0]!r} is empty or missing")
    with _readable():
        return rows.explode(lists, ignore_index=True).infer_objects()


@contextmanager
def _readable(problem: str = "the table cannot be read") -> Iterator[None]:
    """Re-raise errors of other libraries about tables that they cannot convert."""
    try:
        yield
    except DataError:
        raise
    except (library().ArrowException, *FOREIGN) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{problem} ({reason})") from error


def points_frame(
    points: NDArray[Any], columns: Mapping[str, Any], names: Sequence[str] = ()
) -> DataFrame:
    """Return a pandas frame with a row per point: the given columns, then the coordinates."""
    with needing_extra("tables", "to_pandas"):
        import pandas as pd  # noqa: PLC0415 - an extra
    called = names or [f"x{j}" for j in range(points.shape[1])]
    return pd.DataFrame({**columns, **{name: points[:, j] for j, name in enumerate(called)}})


def ragged_dataset(points: NDArray[Any], sizes: Integers, names: Names = None) -> Dataset:
    """Return an xarray data set of points and their counts, CF conventions, §9.3.3."""
    with needing_extra("xarray", "to_xarray"):
        from xarray import Dataset  # noqa: PLC0415 - an extra
    counts = {COUNTS: "point", "long_name": "number of points"}
    variables: dict[str, Any] = {
        "points": (("point", "coordinate"), points, {"long_name": "points of the bags"}),
        "row_size": ("bag", sizes, counts),
    }
    # of the kinds that CF has, a profile is nearest: points of one instance in no order of time
    attributes = {"Conventions": "CF-1.11", "featureType": "profile"}
    return with_names(Dataset(variables, attrs=attributes), "coordinate", names)


def with_names(dataset: Dataset, dimension: str, names: Names) -> Dataset:
    """Return a data set with the names along a dimension, as a coordinate ``<dimension>_name``."""
    if names is None:
        return dataset
    texts = np.array(list(names), dtype=object)
    named = (dimension, texts, {"long_name": f"name of the {dimension.replace('_', ' ')}"})
    return dataset.assign_coords({f"{dimension}_name": named})
