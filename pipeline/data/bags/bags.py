"""`Bags`: a validated collection of bags in memory, and its base class `Ragged`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...core import Integer, ListOf, Text, TextList, checked, is_iterable
from ...core.arrays import Floats, Integers, check_dtype, refuse_annotated
from ...core.errors import BagbasisError, DataError, shown
from .alignment import has_index, ids_of_index, series_of
from .arrow_arrays import POINTS_COLUMN, arrow_lists, arrow_stream, arrow_table, split_arrow
from .awkward_arrays import join_lists, split_lists
from .box import range_of
from .checks import IdsLike, as_bag, as_offsets, as_points, check_finite
from .coordinates import Names, checked_names, order_of
from .frames import (
    bags_of_frame,
    check_no_table,
    check_same_times,
    in_dims_of_first,
    is_groups,
    names_of_columns,
    names_of_table,
    points_frame,
    ragged_dataset,
)
from .html import html_table
from .ids import BagIds, Ids, given_ids, warn_of_alike_ids
from .precision import check_integers_apart, has_integers

if TYPE_CHECKING:
    from awkward import Array
    from pandas import DataFrame
    from pyarrow import Table
    from xarray import Dataset

COLUMN = Text | Integer()  # the name of a column, or the number that pandas gives it

AnyRagged = TypeVar("AnyRagged", bound="Ragged")

OPEN_FIRST = (
    "; BagStore.open(url) opens a store, "
    "and pandas.read_csv(path).groupby(id) makes bags of a table"
)


class Ragged(Sequence[np.ndarray]):
    """A sequence of sets of points. Set i is rows ``offsets[i]:offsets[i + 1]`` of ``points``.

    The subclasses `Bags` and `Responses` document the parameters and the allowed sizes of a set.
    """

    __slots__ = ("_ids", "_names", "offsets", "points")

    OWNER: ClassVar[str] = ""
    """Prefix of a bag's name in messages, for points that are not the bag's own."""

    points: NDArray[np.floating[Any]]
    offsets: Integers
    _names: tuple[str, ...] | None
    _ids: BagIds | None

    def __init__(
        self, points: ArrayLike, offsets: ArrayLike | None = None, *, ids: IdsLike | None = None
    ) -> None:
        if offsets is None:
            name = type(self).__name__
            raise DataError(
                f"{name}(points, offsets) holds the points of all bags in one array; "
                f"as_{name.lower()} takes one array per bag"
            )
        self._keep(points, offsets)
        ids = None if ids is None else given_ids(ids, len(self))
        check_finite(self.points, self.offsets, ids, self.OWNER)
        self._ids = None if ids is None else BagIds(ids)

    def _keep(self, points: ArrayLike, offsets: ArrayLike) -> None:
        self.points = as_points(points)
        self.offsets = as_offsets(offsets, len(self.points))
        self._check_sizes()
        self._names = self._ids = None

    @classmethod
    def _of_table(
        cls, points: ArrayLike, sizes: Integers, names: Names, ids: BagIds | None = None
    ) -> Self:
        """Return checked sets from the points of a table; messages name its columns and ids."""
        made = object.__new__(cls)
        made._keep(points, offsets_of(sizes))
        of_bags = None if ids is None else ids.values
        check_finite(made.points, made.offsets, of_bags, cls.OWNER, names)
        if names is not None:
            made = made.named(names)
        if ids is None:
            return made
        warn_of_alike_ids(ids.values.tolist())
        return made.with_ids(ids)

    @classmethod
    def trusted(
        cls,
        points: NDArray[Any],
        offsets: Integers,
        *,
        names: Names = None,
        ids: BagIds | None = None,
    ) -> Self:
        """Wrap arrays that are known to be valid, without checks and without copying."""
        wrapped = object.__new__(cls)
        wrapped.points = points
        wrapped.offsets = offsets
        wrapped._names = checked_names(names, points.shape[1])
        wrapped._ids = ids
        return wrapped

    @checked
    def named(self, names: TextList | None) -> Self:
        """Return the same points with these names of the coordinates; None removes the names.

        Raises
        ------
        DataError
            If the number of names is not the number of coordinates.
        """
        names = None if names is None else tuple(names)
        if names is not None and len(names) != self.n_dims:
            raise DataError(f"{len(names)} names for {self.n_dims} coordinates: {shown(names)}")
        return self.trusted(self.points, self.offsets, names=names, ids=self.bag_ids)

    def with_ids(self, ids: BagIds | IdsLike | None) -> Self:
        """Return the same sets with other ids, or without any.

        Parameters
        ----------
        ids : sequence of int or str, shape (n_sets,), or None

        Raises
        ------
        DataError
            If the number of ids is wrong, or an id is neither a 64-bit integer nor a text.
        """
        if ids is not None and not isinstance(ids, BagIds):
            ids = BagIds(given_ids(ids, len(self)))
        return self.trusted(self.points, self.offsets, names=self.coordinate_names, ids=ids)

    @property
    def bag_ids(self) -> BagIds | None:
        """The ids of the sets; None for sets without ids."""
        return getattr(self, "_ids", None)  # bags that an earlier version pickled have none

    def in_order_of(
        self,
        names: Names,
        *,
        what: str,
        reference: str,
        error: type[BagbasisError] = DataError,
    ) -> Self:
        """Return the sets with their coordinates in the order of ``names``, see `order_of`.

        Raises
        ------
        BagbasisError
            If the coordinates have other names.
        """
        order = order_of(self.coordinate_names, names, what, reference, error)
        if order is None:
            return self
        points = np.take(self.points, order, axis=1)
        return self.trusted(points, self.offsets, names=names, ids=self.bag_ids)

    def _check_sizes(self) -> None:
        """Raise DataError for the first set whose size is not allowed."""
        raise NotImplementedError

    @property
    def n_dims(self) -> int:
        """Number of coordinates of a point."""
        return int(self.points.shape[1])

    @property
    def coordinate_names(self) -> list[str] | None:
        """Names of the coordinates, such as the columns of a frame; None without names."""
        names = getattr(self, "_names", None)  # unpickled points of earlier versions have none
        return None if names is None else list(names)

    @property
    def n_points(self) -> int:
        """Total number of points in all sets."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> Integers:
        """Number of points in each set, shape (n_sets,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """Return the number of sets, including sets without points."""
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, key: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, key: slice | NDArray[Any] | list[int]) -> Self: ...
    def __getitem__(self, key: Any) -> Any:
        """Return one set as a view for an integer, several sets for a slice, a mask or indices."""
        if isinstance(key, (int, np.integer)):
            i = range(len(self))[int(key)]
            return self.points[self.offsets[i] : self.offsets[i + 1]]
        ids = self.bag_ids
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(len(self))
            offsets = self.offsets[start : max(start, stop) + 1]
            points = self.points[offsets[0] : offsets[-1]]
            some = ids and ids.take(slice(start, max(start, stop)))
            return self.trusted(points, offsets - offsets[0], names=self.coordinate_names, ids=some)
        index = self._index_of(key)
        sizes = self.sizes[index]
        offsets = offsets_of(sizes)
        rows = np.repeat(self.offsets[:-1][index] - offsets[:-1], sizes) + np.arange(offsets[-1])
        some = ids and ids.take(index)
        return self.trusted(self.points[rows], offsets, names=self.coordinate_names, ids=some)

    def _index_of(self, key: object) -> Integers:
        """Return the positions of several sets; IndexError for an invalid index."""
        if isinstance(key, (tuple, range)):
            key = list(key)
        try:
            index: Integers = np.arange(len(self))[cast(Any, key)]  # refused below
        except (IndexError, TypeError) as error:
            raise IndexError(f"{shown(key)} is not an index of {len(self)} bags") from error
        if index.ndim != 1:
            raise IndexError(f"{shown(key)} is not an index: give integers, a mask or a slice")
        return index

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield each set as a view of shape (n_i, n_dims)."""
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.points[start:stop]

    def __add__(self, other: object) -> Self:
        """Join two collections; coordinates are put in the order of the first one."""
        if type(other) is not type(self):
            return NotImplemented
        if other.n_dims != self.n_dims:
            raise DataError(f"points of {self.n_dims} and of {other.n_dims} dimensions do not join")
        return concatenate([self, other])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return an array of sets of equal size; with ``dtype=object``, an array of objects.

        Raises
        ------
        DataError
            If the sets have different sizes.
        """
        if dtype is not None and np.dtype(dtype) == object:
            return self.to_column()[:, 0]
        if len(np.unique(self.sizes)) > 1:
            raise DataError(
                "bags of different sizes are not a matrix: scikit-learn's tools that make one of "
                "what they get take bags.to_column(); scalers of points are PointTransformer's"
            )
        shaped = self.points.reshape(len(self), -1, self.n_dims)
        return np.array(shaped, dtype=dtype, copy=copy)

    def to_column(self) -> NDArray[np.object_]:
        """Return an array of objects of shape (n_bags, 1), with a set in each row.

        Use it for scikit-learn tools that need a table, such as ``BaggingRegressor`` and
        ``permutation_importance``. The estimators of bagbasis read it as bags.
        """
        column = np.empty((len(self), 1), dtype=object)
        for i, bag in enumerate(self):
            column[i, 0] = bag
        return column

    def to_arrow(self) -> Table:
        """Return a pyarrow.Table with a row per set. Its column ``points`` is not copied.

        The metadata of this column hold the names of the coordinates, which `from_arrow` reads.

        Raises
        ------
        DataError
            If pyarrow is not installed.
        """
        lists = arrow_lists(self.points, self.offsets)
        return arrow_table({POINTS_COLUMN: lists}, self.coordinate_names)

    def to_pandas(self) -> DataFrame:
        """Return a pandas.DataFrame with a row per point.

        The column ``bag`` is the position of the bag. The coordinates have their names, or ``x0``,
        ``x1``, ….

        Raises
        ------
        DataError
            If pandas is not installed.
        """
        rows = {"bag": np.repeat(np.arange(len(self)), self.sizes)}
        return points_frame(self.points, rows, self.coordinate_names or ())

    def to_xarray(self) -> Dataset:
        """Return an xarray.Dataset in CF's contiguous ragged layout: ``points``, ``row_size``.

        Raises
        ------
        DataError
            If xarray is not installed.
        """
        return ragged_dataset(self.points, self.sizes, self.coordinate_names)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the sets to Arrow as a table with a row per set; ``points`` are not copied."""
        lists = arrow_lists(self.points, self.offsets)
        return arrow_stream({POINTS_COLUMN: lists}, requested_schema, self.coordinate_names)

    def __repr__(self) -> str:
        """Describe the counts and the precision, not the data."""
        return (
            f"{type(self).__name__}(n_bags={len(self)}, n_points={self.n_points}, "
            f"n_dims={self.n_dims}, dtype={self.points.dtype})"
        )

    def _repr_html_(self) -> str:
        """Describe the counts, sizes and ranges for a notebook."""
        rows: dict[str, object] = {"bags": len(self), "points": self.n_points}
        if self.n_points:
            sizes = self.sizes
            ends = zip(self.points.min(axis=0), self.points.max(axis=0), strict=True)
            rows["points per bag"] = f"{sizes.min():,} to {sizes.max():,}, mean {sizes.mean():.4g}"
            rows["coordinates"] = [f"{lo:.4g} to {hi:.4g}" for lo, hi in ends]
        return html_table(type(self).__name__, {**rows, "dtype": self.points.dtype})


class Bags(Ragged):
    """Bags in memory: the points of all bags in one array, and the start of each bag.

    Bag i is rows ``offsets[i]:offsets[i + 1]`` of ``points``.

    Parameters
    ----------
    points : array_like, shape (n_points, n_dims)
        Finite coordinates, in the units of the data. float32 and float64 are kept; any other real
        dtype becomes float64.
    offsets : array_like of int, shape (n_bags + 1,)
        Start of each bag, then n_points. Offsets increase strictly from 0, because a bag has at
        least one point.
    ids : sequence of int or str, optional
        Names of the bags, which messages use and to which labels, groups and weights with a pandas
        index are aligned. Default: no ids; messages give positions.

    Raises
    ------
    DataError
        If shapes are wrong, a bag is empty, or a coordinate is NaN or infinite. The message names
        the bag and the row within it.

    See Also
    --------
    BagStore : Bags on disk, which need not fit in memory.
    as_bags : Makes bags of lists of arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import Bags
    >>> bags = Bags(np.arange(10.0).reshape(5, 2), offsets=[0, 2, 5], ids=['a', 'b'])
    >>> bags.sizes
    array([2, 3])
    >>> bags[1]
    array([[4., 5.],
           [6., 7.],
           [8., 9.]])
    """

    __slots__ = ()

    @property
    def ids(self) -> Ids | None:
        """The id of each bag, shape (n_bags,); None for bags without ids."""
        return None if self.bag_ids is None else self.bag_ids.values

    @property
    def means(self) -> Floats:
        """The mean of each bag, shape (n_bags, n_dims)."""
        sums = np.add.reduceat(self.points, self.offsets[:-1], axis=0, dtype=np.float64)
        return sums / self.sizes[:, None]

    @classmethod
    def from_list(
        cls, arrays: Sequence[ArrayLike] | NDArray[Any], dtype: DTypeLike | None = None
    ) -> Bags:
        """Make Bags from a list of arrays of shape ``(n_i, n_dims)``, one per bag.

        One-dimensional arrays are bags in one dimension. Frames are put in the column order of the
        first frame, and DataArrays in the order of the dimensions of the first one.

        Raises
        ------
        DataError
            If there are no bags, a bag is empty, dimensions or columns differ, or a value is not a
            finite number.
        """
        refuse_annotated("the list of bags", arrays)
        if not hasattr(arrays, "__len__") and is_iterable(arrays):
            arrays = list(arrays)  # an iterator is read once
        check_no_table(arrays)
        if isinstance(arrays, Stored):
            raise DataError(
                f"expected bags in memory, got {shown(arrays)}; read some by its read()"
            )
        if isinstance(arrays, (str, bytes, Mapping)) or not is_iterable(arrays):
            a_store = OPEN_FIRST if isinstance(arrays, (str, os.PathLike)) else ""
            raise DataError(f"expected a list with one array per bag, got {shown(arrays)}{a_store}")
        dtype = None if dtype is None else check_dtype("dtype", dtype)
        arrays = in_dims_of_first(arrays)
        parts = [as_bag(array, f"bag {i}") for i, array in enumerate(arrays)]
        names: Names = None
        if not all(type(array) is np.ndarray for array in arrays):  # some may have columns
            of_each = [names_of_table(array) for array in arrays]
            parts, names = in_one_order(parts, of_each, lambda i: f"bag {i}")
            check_same_times(arrays)
        if not parts:
            raise DataError("no bags: the list is empty, so the dimension is not known")
        n_dims = parts[0].shape[1]
        for i, part in enumerate(parts):
            if part.shape[1] != n_dims:
                raise DataError(
                    f"bag {i} has dimension {part.shape[1]}, bag 0 has {n_dims}; all bags need the "
                    "same number of columns"
                )
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        points = np.concatenate(parts)
        if any(map(has_integers, arrays)):
            check_integers_apart("bags", *range_of(points), [True] * n_dims, names or ())
        if dtype is not None:
            with np.errstate(over="ignore"):  # an overflow is infinite, and refused as such
                points = points.astype(dtype)
        return cls._of_table(points, sizes, names)

    @classmethod
    def from_awkward(cls, array: Array) -> Bags:
        """Make Bags from an awkward array with a list of points per bag.

        Points are lists of numbers of equal length, or records of numbers whose fields are the
        coordinates. Contiguous lists of float32 or float64 are not copied.

        Raises
        ------
        DataError
            If the argument is not such an array, a bag is empty, or a value is not a finite number.
        """
        points, sizes, names = split_lists(array)
        return cls._of_table(points, sizes, names)

    def to_awkward(self) -> Array:
        """Return an awkward array of type n_bags * var * n_dims that shares the points.

        Raises
        ------
        DataError
            If awkward is not installed.
        """
        return join_lists(self.points, self.sizes)

    @classmethod
    @checked
    def from_arrow(cls, data: object, column: str | None = None) -> Bags:
        """Make Bags from a table with a row per bag and a column of lists of points.

        Points are lists of numbers of equal length, records of numbers, or numbers.

        Parameters
        ----------
        data : table
            Table of pyarrow, polars or DuckDB, Bags, or any object with Arrow's
            ``__arrow_c_stream__``.
        column : str, optional
            Name of the column of points. Default: the only column of lists.

        Raises
        ------
        DataError
            If there is no such table or column, a bag is empty, or a value is missing or not
            finite. Also if pyarrow is not installed.
        """
        points, sizes, fields = split_arrow(data, column)
        return cls._of_table(points, sizes, fields)

    @classmethod
    @checked
    def from_frame(
        cls,
        frame: object,
        id_column: Annotated[str | int | Sequence[str | int], COLUMN | ListOf(COLUMN, 1)]
        | None = None,
        *,
        coordinates: Annotated[Sequence[str | int], ListOf(COLUMN, 1)] | None = None,
    ) -> Bags:
        """Make Bags from a table with a row per point.

        Bags are in the order of their ids, as in ``frame.groupby(id_column)`` of pandas. The bags
        keep their ids; labels, groups and weights with an index are aligned with them. For
        tables larger than memory use `bagbasis.ingest.ingest_frame`, which also stores targets.

        Parameters
        ----------
        frame : table
            Table of pandas (the id may be in the index), polars (also lazy), Arrow or
            ``pyarrow.dataset``, or an xarray.Dataset. For a groupby, each group is a bag.
        id_column : str or list of str, optional
            Columns of the bag's id, by their names; integers for columns that pandas numbers. Rows
            with equal ids form a bag. None is allowed only for a groupby.
        coordinates : list of str, optional
            Numeric columns, named likewise. Default: all columns except the columns of the id.

        Raises
        ------
        DataError
            If ``frame`` is not a table, a column or an id is missing, or a value is not finite.
        """
        names = [id_column] if isinstance(id_column, (str, int)) else id_column
        points, sizes, columns, ids = bags_of_frame(frame, names, coordinates)
        return cls._of_table(points, sizes, names_of_columns(columns), ids)

    def _check_sizes(self) -> None:
        empty = np.flatnonzero(self.sizes <= 0)
        if len(empty):
            raise DataError(
                f"bag {empty[0]} is empty; a bag needs at least one point, so leave it out"
            )


class Stored:
    """Base of bags on a disk, which refuse to be converted to an array."""

    def __array__(self, dtype: object = None, copy: object = None) -> None:
        """Raise DataError: numpy would read every bag."""
        raise DataError(
            f"expected an array, got {shown(self)}; read some of its bags by its read()"
        )


BagsInMemory = Bags | Sequence[ArrayLike] | NDArray[Any]
"""`Bags`, or a list of arrays of shape (n_i, d)."""


def as_bags(data: BagsInMemory) -> Bags:
    """Make `Bags` from a list of arrays; `Bags` are returned unchanged.

    The keys of a mapping are the ids of the bags. So is the index of a Series if it names each bag.

    See Also
    --------
    Bags : Bags in memory.
    BagStore : Bags on disk or in object storage.
    as_responses : Check and align response bags.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis import as_bags
    >>> len(as_bags([np.zeros((3, 2)), np.zeros((5, 2))]))
    2
    """
    if isinstance(data, Bags):
        return data
    if is_groups(data):
        return Bags.from_frame(data)
    if hasattr(data, "toarray") and hasattr(data, "nnz"):
        raise DataError("expected bags, got a sparse matrix; pass a list of arrays (.toarray())")
    if isinstance(data, np.ndarray) and data.dtype == object and data.shape[1:] == (1,):
        data = data[:, 0]  # the column made by `Ragged.to_column`
    series: Any = series_of(data)
    if has_index(series) and series.ndim == 1:
        return Bags.from_list(series.tolist()).with_ids(ids_of_index(series.index))
    if _is_one_array(data):
        shape = getattr(data, "shape", ())
        raise DataError(
            f"expected bags, got one array of shape {tuple(shape)}; pass a list with one "
            "(n_points, n_dims) array per bag, or Bags; for a single bag pass [bag]"
        )
    return Bags.from_list(data)


def _is_one_array(data: Any) -> bool:  # noqa: ANN401 - anything
    """Return whether data are an array of numbers, of any library, and no stack of bags."""
    if not hasattr(data, "dtype") or getattr(data.dtype, "kind", "f") == "O":
        return False
    n_axes = getattr(data, "ndim", None)
    return n_axes == 2 or (isinstance(data, np.ndarray) and n_axes != 3)


def take_rows(bags: AnyRagged, rows: NDArray[np.int64]) -> AnyRagged:
    """Return the bags of ascending ``rows``, as a view when they are consecutive."""
    if len(rows) == 0:
        return bags[:0]
    first, last = int(rows[0]), int(rows[-1])
    return bags[first : last + 1] if last - first + 1 == len(rows) else bags[rows]


def concatenate(parts: Sequence[AnyRagged]) -> AnyRagged:
    """Concatenate bags or responses, with the coordinates in the order of the first part."""
    of_each = [part.coordinate_names for part in parts]
    points, names = in_one_order(
        [part.points for part in parts], of_each, lambda i: f"part {i} of {len(parts)}"
    )
    sizes = np.concatenate([part.sizes for part in parts])
    ids = parts[0].bag_ids
    for part in parts[1:]:
        ids = ids and ids.joined(part.bag_ids)
    return type(parts[0]).trusted(np.concatenate(points), offsets_of(sizes), names=names, ids=ids)


def in_one_order(
    parts: Sequence[NDArray[Any]], names: Sequence[Names], what: Callable[[int], str]
) -> tuple[list[NDArray[Any]], Names]:
    """Return the parts with their coordinates in the order of the first part that has names.

    Raises
    ------
    DataError
        If the parts have different names; ``what`` is the name of a part in messages.
    """
    first = next((i for i, own in enumerate(names) if own is not None), None)
    if first is None:
        return list(parts), None
    expected, ordered = names[first], list(parts)
    for i, own in enumerate(names):
        if own is not None and own != expected:
            order = order_of(own, expected, what(i), f"those of {what(first)} are")
            ordered[i] = ordered[i] if order is None else np.take(ordered[i], order, axis=1)
    return ordered, expected


def offsets_of(sizes: Integers) -> Integers:
    """Return the offsets, shape (n_bags + 1,), of bags of the given sizes."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
