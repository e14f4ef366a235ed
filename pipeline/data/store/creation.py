"""Creation of an empty store, which never replaces anything that is not a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import DTypeLike

from ...core import Integer, ListOf, MappingOf, None_, Text, TextList, checked
from ...core.arrays import check_dtype
from ...core.errors import ParameterError, StoreError, shown
from ..bags.box import MAX_DIMS
from ..bags.packed_points import FRACTIONS, PACKED
from ..storage.files import check_answers, storage_errors
from ..storage.lazy_zarr import transactions, zarr_reading
from ..storage.lock import Hold
from ..storage.urls import ICECHUNK
from ..storage.zarr_stores import (
    check_no_foreign_files,
    check_no_link,
    check_writable,
    is_empty,
    writer_store,
)
from .exchange.convention import first_attributes
from .schema import (
    ARRAYS,
    CHANGES,
    POINTS,
    RESPONSE_ARRAYS,
    RESPONSE_POINTS,
    STORE_KEY,
    StoreMeta,
    arrays_of,
    read_attributes,
)
from .writer import WRITING

_NODES = "|".join(["responses", *(array.name for array in (*ARRAYS, *RESPONSE_ARRAYS, CHANGES))])


@checked
def check_creation(
    n_dims: Annotated[int, Integer(1, MAX_DIMS)],
    target_names: TextList,
    class_names: Annotated[Mapping[str, Sequence[str]], MappingOf(Text, ListOf(Text))],
    dtype: DTypeLike,
    chunk_points: int | None,
    response_dims: Annotated[int, Integer(1, MAX_DIMS)] | None = None,
) -> None:
    """Raise ParameterError for invalid parameters of `BagStore.create`."""
    itemsize = check_dtype("dtype", dtype, *PACKED).itemsize
    most_bytes = zarr_reading.MAX_CHUNK_BYTES
    most = most_bytes // (itemsize * max(n_dims, response_dims or 1))
    (Integer(1, most) | None_).check("chunk_points", chunk_points)
    if len(target_names) * 8 > most_bytes:
        raise ParameterError(
            f"{len(target_names)} target names: a bag has at most {most_bytes // 8} targets"
        )
    if "" in target_names:
        raise ParameterError(f"a target name is empty: {shown(list(target_names))}; name each")
    if len(set(target_names)) != len(target_names):
        raise ParameterError(f"target names are not unique: {shown(list(target_names))}")
    for name, classes in class_names.items():
        if name not in target_names:
            raise ParameterError(f"class_names of {name!r}: no such target")
        if len(set(classes)) != len(classes):
            raise ParameterError(f"class_names of {name!r} are not unique: {shown(list(classes))}")


def measured_arrays(
    dtype: DTypeLike, box: object, response_dims: int | None, response_box: object
) -> dict[str, list[list[float]]]:
    """Return the empty ranges of the arrays of a new store whose box is measured while writing.

    Raises
    ------
    ParameterError
        If no box is given for dtype uint16, whose values are fractions of the box.
    """
    boxes = {POINTS.name: box}
    if response_dims is not None:
        boxes[RESPONSE_POINTS.name] = response_box
    if box is None and np.dtype(dtype) == FRACTIONS:
        raise ParameterError("box is None; dtype uint16 holds fractions of a box: give box=")
    missing = [name for name, bounds in boxes.items() if bounds is None]
    return {} if np.dtype(dtype) in PACKED else {name: [] for name in missing}


def is_vacant(url: str) -> bool:
    """Return whether a store can be made at the URL without replacing anything."""
    check_writable(url)
    return is_empty(url)


def check_place(url: str, overwrite: bool) -> None:
    """Raise StoreError unless the URL is vacant or has a bag store that may be replaced."""
    check_no_link(url)
    if is_vacant(url):
        return
    try:
        attributes = read_attributes(url).get(STORE_KEY)
    except StoreError as error:
        check_answers(url.removeprefix(ICECHUNK))
        raise StoreError(f"{url}: {transactions.NO_STORE}") from error
    if not isinstance(attributes, dict):
        raise StoreError(f"{url}: a Zarr group, but not a bag store; choose another place")
    if attributes.get("n_bags") and not overwrite:
        raise StoreError(
            f"{url}: exists already; remove it, replace it with overwrite=True, "
            "or add to it: BagStore.open(url).append, or mode='append' of ingestion"
        )
    check_no_foreign_files(url, _NODES)


def create_store(
    hold: Hold, meta: StoreMeta, dtype: DTypeLike, chunk_points: int | None, overwrite: bool
) -> str | None:
    """Delete the existing store, if any, and write an empty store.

    Until the last write, the group's attributes state that it is not a store yet. The last write
    replaces these attributes. Returns the id of the snapshot if the store has snapshots.

    Raises
    ------
    StoreError
        As `check_place`, when the writing session has begun. Data that appear later make the commit
        fail.
    """
    with storage_errors(hold.url, *WRITING):
        out = writer_store(hold.url, hold.check, None)
        check_place(hold.url, overwrite)
        group = out.new_group({STORE_KEY: {}})
        for array in arrays_of(meta):
            array.create(group, meta, dtype, chunk_points)
        out.sync()
        group.update_attributes(first_attributes(meta))
        return out.commit()
