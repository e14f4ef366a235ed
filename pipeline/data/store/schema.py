"""Layout of a bag store in Zarr: declarations of its arrays, and the committed metadata.

Creation, readers, writers, `verify` and the reports of damage follow from `ARRAYS`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from ...core import (
    Boolean,
    Constraint,
    Integer,
    ListOf,
    MappingOf,
    None_,
    OneOf,
    Open,
    Real,
    Text,
)
from ...core.errors import (
    BagbasisError,
    InterruptedStoreError,
    StoreError,
    refuse_exhaustion,
    shown,
)
from ...core.saved import Format, NewerError, Saved
from ..bags.box import MAX_DIMS, Box
from ..bags.packed_points import FRACTIONS, WHOLE
from ..storage.lazy_zarr import zarr, zarr_buffer, zarr_reading, zarr_sync
from ..storage.zarr_stores import exists, is_empty, zarr_store
from .checksums import checksum_of_rows, checksum_of_values

STORE_FORMAT = Format("bag store", 1, (2,))
WITH_RESPONSES = Format("bag store", 2, (1,))  # readers that do not know responses refuse it
RESPONSE_FIELDS = ("response_dims", "response_box", "n_response_points")
# keys of `StoreMeta.source`: names of the coordinates of points, and of points of responses
COORDINATES, RESPONSE_COORDINATES = "coordinates", "response_coordinates"
MEDIANS = "medians"  # attribute with the medians that replace missing cells, by coordinate
STORE_KEY = "bagbasis"  # the one attribute of the group that bagbasis writes
CHUNK_BYTES = 2**21  # points that are read, checked and decompressed at a time
CHUNKS_PER_SHARD = 16  # 32 MiB of points in one object: a billion are hundreds of objects
ROWS_PER_CHUNK = 2**16  # of the arrays with one row per bag; fewer where rows are wide
STORE_CHECKSUM = "checksum"  # attribute with the checksum of all other attributes of bagbasis
_MAX_ROWS = 2**62  # rows of an array
# by kind of dtype: missing rows never read as a value; of packed points it is the largest code
FILLS = {"f": np.nan, "i": -1, "T": ""}


@dataclass(frozen=True)
class StoreMeta(Saved):
    """The attributes of a store; writing them is the commit.

    Readers trust ``n_bags``, ``n_points`` and ``n_response_points`` and never the shapes of the
    arrays. ``max_id`` is the largest committed integer id (None without bags or with string ids).
    ``source`` describes how `generate` or `ingest` made the bags. ``response_dims`` and
    ``response_box`` are None in a store without responses. ``n_changes`` is the committed length of
    the log of changes, see `Changes`. Points and labels of the bags that its first ``n_erased``
    changes removed are deleted or being deleted. ``merged`` marks a store that was merged from
    others. Points are stored as ``fractions`` of their box, or as ``whole_numbers`` of 8 bits.
    ``checksums`` has the CRC-32 of the committed rows of each array by its name, in hexadecimal
    digits; stores of earlier versions have no checksums. If no box was given, ``ranges`` has the
    smallest and the largest coordinates of the points and of the responses, by the name of the
    array; it is an empty list before the first points. The box is then measured from these ranges,
    as for bags in memory. The dtype of an empty store is open unless it was chosen: the first
    points decide between float32 and float64.
    """

    n_dims: int
    target_names: tuple[str, ...]
    box: Box
    class_names: dict[str, list[str]] = field(default_factory=dict)
    n_bags: int = 0
    n_points: int = 0
    id_kind: str = "int64"
    max_id: int | None = None
    source: dict[str, Any] = field(default_factory=dict)
    response_dims: int | None = None
    response_box: Box | None = None
    n_response_points: int = 0
    n_changes: int = 0
    n_erased: int = 0
    merged: str | None = None
    fractions: bool = False
    whole_numbers: bool = False
    checksums: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, list[list[float]]] = field(default_factory=dict)
    is_dtype_open: bool = False
    # as in older stores; versions that do not know these fields refuse other values
    OMITTED: ClassVar = (
        "n_changes", "n_erased", "merged", "fractions", "whole_numbers", "checksums", "ranges",
        "is_dtype_open",
    )  # fmt: skip

    @property
    def is_measured(self) -> bool:
        """Whether the box of the points was not given, and follows their range."""
        return POINTS.name in self.ranges

    @property
    def measures_responses(self) -> bool:
        """Whether the box of the responses was not given, and follows their range."""
        return RESPONSE_POINTS.name in self.ranges

    def to_attributes(self) -> dict[str, Any]:
        """Return the attributes of the Zarr group in JSON types."""
        values = {**self.to_dict(), "box": self.box.bounds}
        if self.response_box is not None:
            values["response_box"] = self.response_box.bounds
            return {STORE_KEY: _with_checksum(WITH_RESPONSES.stamp(values))}
        fields = {name: values[name] for name in values if name not in RESPONSE_FIELDS}
        return {STORE_KEY: _with_checksum(STORE_FORMAT.stamp(fields))}

    @classmethod
    def from_attributes(cls, attributes: dict[str, Any], url: str) -> StoreMeta:
        """Read the metadata in the attributes of a Zarr group.

        Raises
        ------
        StoreError
            If the group is not a bag store, has another format, or has damaged attributes:
            impossible values, or values that do not match their checksum.
        InterruptedStoreError
            If the creation of the store was interrupted.
        """
        if not isinstance(attributes.get(STORE_KEY), dict):
            raise StoreError(f"{url}: a Zarr group, but not a bag store")
        values = dict(attributes[STORE_KEY])
        if not values:
            raise InterruptedStoreError(
                f"{url}: a bag store whose creation was interrupted; make it again"
            )
        version = values.get(STORE_FORMAT.key)
        checksum = values.pop(STORE_CHECKSUM, None)
        expected = checksum_of_values(values)
        values = STORE_FORMAT.strip(values, url, StoreError)
        unknown = sorted(values.keys() - {field.name for field in fields(cls)})
        if unknown:
            newer = NewerError(unknown)
            raise StoreError(f"{url}: {newer}") from newer
        try:
            if checksum not in (None, expected):
                raise ValueError(f"their checksum is {checksum}, {expected} was expected")
            for name, constraint in FIELDS.items():
                if name in values:
                    constraint.check(name, values[name])
            values["box"] = Box.of(values["box"], values["n_dims"])
            values["target_names"] = tuple(values["target_names"])
            counts = ["n_bags", "n_points"]
            if version == WITH_RESPONSES.version:
                counts.append("n_response_points")
                values["response_box"] = Box.of(
                    values["response_box"], values["response_dims"], name="response_box"
                )
            elif any(name in values for name in RESPONSE_FIELDS):
                raise ValueError(f"responses in format {version}")
            check_ranges(values.get("ranges", {}), values["n_dims"], values.get("response_dims"))
            for name in counts:
                Integer(0, _MAX_ROWS).check(name, values[name])
            meta = cls(**values)
            check_ranges(meta.ranges, meta.n_dims, meta.response_dims)
            meta._check_consistent()
            return meta
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{url}: damaged bag store attributes ({error})") from error

    def _check_consistent(self) -> None:
        """Raise ValueError for fields that contradict each other."""
        if len(set(self.target_names)) < len(self.target_names) or "" in self.target_names:
            raise ValueError(f"target_names {shown(list(self.target_names))} are not unique names")
        for name, classes in self.class_names.items():
            if name not in self.target_names or len(set(classes)) < len(classes):
                raise ValueError(f"class_names of {name!r} are not unique, or of no target")
        if self.n_bags > self.n_points:
            raise ValueError(f"{self.n_bags} bags have {self.n_points} points")
        if self.n_erased > self.n_changes:
            raise ValueError(f"n_erased {self.n_erased} is more than n_changes {self.n_changes}")
        for name, checksum in self.checksums.items():
            if not re.fullmatch("[0-9a-f]{8}", checksum):
                raise ValueError(f"the checksum of {name!r} is {shown(checksum)}")
        if self.fractions and self.whole_numbers:
            raise ValueError("points are both fractions and whole numbers")


_COUNT = Integer(0, _MAX_ROWS)
FIELDS: dict[str, Constraint[Any]] = {  # what each may be, as JSON has it
    "n_dims": Integer(1, MAX_DIMS),
    "response_dims": Integer(1, MAX_DIMS),
    "target_names": ListOf(Text),
    "class_names": MappingOf(Text, ListOf(Text)),
    "box": ListOf(ListOf(Real())),
    "response_box": ListOf(ListOf(Real())),
    "n_bags": _COUNT,
    "n_points": _COUNT,
    "n_response_points": _COUNT,
    "n_changes": _COUNT,
    "n_erased": _COUNT,
    "id_kind": OneOf("int64", "str"),
    "max_id": Integer(-(2**63), 2**63 - 1) | None_,
    "source": MappingOf(Text, Open()),
    "merged": Text | None_,
    "fractions": Boolean,
    "whole_numbers": Boolean,
    "checksums": MappingOf(Text, Text),
    "ranges": MappingOf(Text, ListOf(ListOf(Real()))),
}


def _with_checksum(values: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of ours, and behind them the checksum of them all."""
    return {**values, STORE_CHECKSUM: checksum_of_values(values)}


def medians_of(meta: StoreMeta, url: str) -> dict[str, float]:
    """Return the medians that replace missing cells, by coordinate; see `TableIngest`.

    Raises
    ------
    StoreError
        If the medians are not finite numbers.
    """
    medians = meta.source.get(MEDIANS, {})
    try:
        checked: dict[str, float] = MappingOf(Text, Real()).check(MEDIANS, medians)
        return checked
    except BagbasisError as error:
        raise StoreError(f"{url}: its source is damaged: {error}") from None


def check_ranges(ranges: Any, n_dims: int, response_dims: int | None) -> None:  # noqa: ANN401
    """Raise ValueError unless these are ranges as `StoreMeta` has them."""
    dims = {"points": n_dims, "responses/points": response_dims}
    for name, ends in ranges.items():
        bounds = np.array(ends, dtype=np.float64)
        if name not in dims or (len(bounds) and bounds.shape != (2, dims[name])):
            raise ValueError(f"the range of {name!r} is {ends}")
        if not np.isfinite(bounds).all() or (len(bounds) and (bounds[0] > bounds[1]).any()):
            raise ValueError(f"the range of {name!r} is {ends}")


def read_attributes(url: str, snapshot: str | None = None) -> dict[str, Any]:
    """Read the attributes of the Zarr group at a normalized URL, as they are or at a snapshot.

    Raises
    ------
    StoreError
        If there is no group at the URL, or it cannot be read.
    """
    if not exists(url):
        raise StoreError(f"{url}: not found")
    try:
        group = zarr_reading.open_group(zarr_store(url, read_only=True, snapshot=snapshot))
    except StoreError:
        raise
    except Exception as error:  # Zarr and its codecs raise anything for what they cannot parse
        refuse_exhaustion(url, error)
        if is_empty(url):
            raise InterruptedStoreError(
                f"{url}: no bag store yet, or one whose creation was interrupted; make it again"
            ) from error
        is_other = isinstance(error, (FileNotFoundError, zarr.errors.ContainsArrayError))
        reason = "" if is_other else f" ({type(error).__name__}: {error})"
        advice = "; bags ingest makes a store of tables and files" if os.path.isfile(url) else ""
        raise StoreError(f"{url}: not a bag store{reason}{advice}") from error
    return dict(group.attrs)


@dataclass(frozen=True, eq=False, kw_only=True)
class StoreArray:
    """One array of a store.

    Attributes
    ----------
    name : str
        Path of the array in the store's Zarr group.
    count : callable
        Function that returns the committed length from the metadata, in bags or points.
    columns : callable, optional
        Function that returns the number of values in a row from the metadata. None: a
        one-dimensional array.
    dtype : str
        Dtype of the array. "points" stands for the dtype of the store, "ids" for the dtype of its
        ids.
    leading : int
        Number of rows before the row of the first bag; they hold 0.
    dimensions : tuple of str
        Names of the axes, for other readers of Zarr. Stores of earlier versions have no such names.
    """

    name: str
    dimensions: tuple[str, ...]
    count: Callable[[StoreMeta], int]
    columns: Callable[[StoreMeta], int | None] = lambda meta: None
    dtype: str
    leading: int = 0

    def rows(self, meta: StoreMeta) -> int:
        """Return the number of committed rows."""
        return self.leading + self.count(meta)

    def row_shape(self, meta: StoreMeta) -> tuple[int, ...]:
        """Return the shape of one row: () for one value, else (columns,)."""
        columns = self.columns(meta)
        return () if columns is None else (columns,)

    def create(
        self,
        group: zarr.Group,
        meta: StoreMeta,
        dtype: DTypeLike | None,
        chunk_points: int | None = None,
    ) -> None:
        """Create the array, growable and sharded, with nothing but its leading rows.

        Every stored chunk carries a CRC-32C, so that a flipped bit is an error and not a number.

        Parameters
        ----------
        dtype : dtype
            Dtype of the points; None will do for other arrays.
        chunk_points : int, optional
            Points in a chunk; default `CHUNK_BYTES` of them.
        """
        shape = self.row_shape(meta)
        kind = self._dtype(meta, dtype)
        chunk_rows = max(1, CHUNK_BYTES // (kind.itemsize * math.prod(shape)))
        if isinstance(self, PointArray):
            chunk_rows = chunk_points or chunk_rows
        else:
            chunk_rows = min(ROWS_PER_CHUNK, chunk_rows)
        text = kind.kind == "T"
        array = group.create_array(
            self.name,
            shape=(0, *shape),
            dtype=str if text else kind,
            chunks=(chunk_rows, *shape),
            shards=(chunk_rows * CHUNKS_PER_SHARD, *shape),
            compressors=[
                zarr.codecs.BloscCodec(
                    cname="lz4", clevel=5, shuffle="noshuffle" if text else "shuffle"
                ),
                zarr.codecs.Crc32cCodec(),
            ],
            fill_value=fill_of(kind),
            dimension_names=self.dimensions,
            config={"write_empty_chunks": True},
        )
        if self.leading:
            array.resize((self.leading, *shape))
            array[: self.leading] = np.zeros(self.leading, dtype=kind)

    def checksum(self, meta: StoreMeta) -> int | None:
        """Return the checksum of the committed rows; None in a store that has none."""
        text = meta.checksums.get(self.name)
        if text is not None:
            return int(text, 16)
        if self.rows(meta) > self.leading:
            return None
        return checksum_of_rows(np.zeros(self.leading, dtype=np.int64))

    def accepts(self, meta: StoreMeta, dtype: np.dtype[Any]) -> bool:
        """Return whether the committed rows may have a dtype."""
        if self.dtype != "points":
            return dtype == self._dtype(meta, None) or not self.count(meta)
        packed = FRACTIONS if meta.fractions else WHOLE if meta.whole_numbers else None
        return dtype == packed if packed is not None else dtype in (np.float32, np.float64)

    def _dtype(self, meta: StoreMeta, points: DTypeLike | None) -> np.dtype[Any]:
        if self.dtype == "points":
            return np.dtype(points)
        if self.dtype == "ids":
            return ID_DTYPES[meta.id_kind]
        return np.dtype(self.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class PointArray(StoreArray):
    """The array of the points of all bags, or of all responses, in order.

    Attributes
    ----------
    offsets : StoreArray
        Array of the first row of each bag, and the end of the last bag.
    fewest : int
        Smallest number of points of a bag.
    box_of : callable
        Function that returns the box of the points from the metadata.
    """

    dtype: str = "points"
    offsets: StoreArray
    fewest: int
    box_of: Callable[[StoreMeta], Box | None]

    def box(self, meta: StoreMeta) -> Box:
        """Return the box that the points are scaled by."""
        box = self.box_of(meta)
        assert box is not None, "a store with an array has its box"
        return box


ID_DTYPES: dict[str, np.dtype[Any]] = {
    "int64": np.dtype(np.int64),
    "str": np.dtypes.StringDType(),
}

OFFSETS = StoreArray(
    name="offsets",
    dimensions=("bag_edge",),
    count=lambda meta: meta.n_bags,
    dtype="int64",
    leading=1,
)
IDS = StoreArray(name="ids", dimensions=("bag",), count=lambda meta: meta.n_bags, dtype="ids")
TARGETS = StoreArray(
    name="targets",
    dimensions=("bag", "target"),
    count=lambda meta: meta.n_bags,
    columns=lambda meta: max(1, len(meta.target_names)),  # Zarr has no chunks without columns
    dtype="float64",
)
POINTS = PointArray(
    name="points",
    dimensions=("point", "coordinate"),
    count=lambda meta: meta.n_points,
    columns=lambda meta: meta.n_dims,
    offsets=OFFSETS,
    fewest=1,
    box_of=lambda meta: meta.box,
)
RESPONSE_OFFSETS = StoreArray(
    name="responses/offsets",
    dimensions=("bag_edge",),
    count=lambda meta: meta.n_bags,
    dtype="int64",
    leading=1,
)
RESPONSE_POINTS = PointArray(
    name="responses/points",
    dimensions=("response_point", "response_coordinate"),
    count=lambda meta: meta.n_response_points,
    columns=lambda meta: meta.response_dims,
    offsets=RESPONSE_OFFSETS,
    fewest=0,
    box_of=lambda meta: meta.response_box,
)
# of every change the bag, the target's column or -1 for a removal, and the new value
CHANGES = StoreArray(
    name="changes",
    dimensions=("change", "field"),
    count=lambda meta: meta.n_changes,
    columns=lambda meta: 3,
    dtype="float64",
)

ARRAYS = (OFFSETS, IDS, TARGETS, POINTS)
RESPONSE_ARRAYS = (RESPONSE_OFFSETS, RESPONSE_POINTS)


def fill_of(dtype: np.dtype[Any]) -> Any:  # noqa: ANN401 - a number or a text
    """Return the value of rows that were never written or were deleted."""
    return np.iinfo(dtype).max if dtype.kind == "u" else FILLS[dtype.kind]


def arrays_of(meta: StoreMeta) -> tuple[StoreArray, ...]:
    """Return all arrays of a store."""
    responses = () if meta.response_dims is None else RESPONSE_ARRAYS
    return ARRAYS + responses + ((CHANGES,) if meta.n_changes else ())


def points_of(meta: StoreMeta) -> list[PointArray]:
    """Return the arrays of points: one for the bags, and one for responses if there are any."""
    return [array for array in arrays_of(meta) if isinstance(array, PointArray)]


def replace_points(group: zarr.Group, meta: StoreMeta, dtype: DTypeLike) -> None:
    """Replace the arrays of points, which have no committed rows, by those of another dtype."""
    for array in points_of(meta):
        old = group[array.name]
        assert isinstance(old, zarr.Array)
        rows, columns = old.chunks[0], max(1, array.columns(meta) or 1)
        is_default = rows == max(1, CHUNK_BYTES // (old.dtype.itemsize * columns))
        replace_array(group, array, meta, dtype, None if is_default else rows)


def replace_array(
    group: zarr.Group,
    of: StoreArray,
    meta: StoreMeta,
    dtype: DTypeLike | None = None,
    chunk_points: int | None = None,
) -> None:
    """Replace an array without committed rows by a new one.

    The metadata is replaced in one write, so that a killed writer leaves one array or the other.
    Zarr's ``overwrite`` deletes first; hence the calls of its asynchronous store, which have no
    public synchronous form.
    """
    in_memory = zarr.create_group(zarr.storage.MemoryStore())
    of.create(in_memory, meta, dtype, chunk_points)
    array = in_memory[of.name]
    zarr_sync.sync(group.store.delete_dir(f"{of.name}/c"))
    for key, value in array.metadata.to_buffer_dict(zarr_buffer.default_buffer_prototype()).items():
        zarr_sync.sync(group.store.set(f"{of.name}/{key}", value))
