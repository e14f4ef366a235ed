"""Making an empty store, and never in the place of something that is not one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import DTypeLike

from ..errors import ParameterError, StoreError
from ..params import check_integer
from ..storage.files import storage_errors
from ..storage.lock import Hold
from ..storage.zarr_stores import (
    check_no_foreign_files,
    check_no_link,
    check_writable,
    is_empty,
    writer_store,
)
from .schema import ARRAYS, ATTRIBUTE, RESPONSE_ARRAYS, StoreMeta, arrays_of, read_attributes
from .writer import WRITING

NODES = "|".join(["responses", *(array.name for array in ARRAYS + RESPONSE_ARRAYS)])


def check_parameters(
    n_dims: int,
    target_names: Sequence[str],
    class_names: Mapping[str, Sequence[str]],
    dtype: DTypeLike,
    chunk_points: int | None,
    response_dims: int | None = None,
) -> None:
    """Raise ParameterError for what `BagStore.create` can not use."""
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ParameterError(f"dtype is {dtype}; points are float32 or float64")
    check_integer("n_dims", n_dims)
    check_integer("chunk_points", chunk_points, other=(None,))
    check_integer("response_dims", response_dims, other=(None,))
    if isinstance(target_names, str):
        raise ParameterError(f"target_names is {target_names!r}; expected a list of names")
    if len(set(target_names)) != len(target_names):
        raise ParameterError(f"target names are not unique: {list(target_names)}")
    for name, classes in class_names.items():
        if name not in target_names:
            raise ParameterError(f"class_names of {name!r}: no such target")
        if len(set(classes)) != len(classes):
            raise ParameterError(f"class_names of {name!r} are not unique: {list(classes)}")


def is_vacant(url: str) -> bool:
    """Return whether a store can be made at the URL without replacing anything."""
    check_writable(url)
    return is_empty(url)


def check_place(url: str, overwrite: bool) -> None:
    """Raise StoreError unless nothing is at the URL, or a bag store that may be replaced."""
    check_no_link(url)
    if is_vacant(url):
        return
    try:
        found = read_attributes(url).get(ATTRIBUTE)
    except StoreError as error:
        raise StoreError(
            f"{url}: exists and is not a bag store; remove it or choose another place"
        ) from error
    if not isinstance(found, dict):
        raise StoreError(f"{url}: a Zarr group, but not a bag store; choose another place")
    if found.get("n_bags") and not overwrite:
        raise StoreError(f"{url}: exists already; remove it or pass overwrite=True")
    check_no_foreign_files(url, NODES)


def create_store(
    hold: Hold, meta: StoreMeta, dtype: DTypeLike, chunk_points: int | None
) -> str | None:
    """Delete what is there and write an empty store; its attributes, the last, make it one.

    From the first write to the last the group says that it is no store yet. Returns the
    snapshot's id where the store has snapshots.
    """
    with storage_errors(hold.url, *WRITING):
        out = writer_store(hold.url, hold.check, None)
        group = out.new_group({ATTRIBUTE: {}})
        for array in arrays_of(meta):
            array.create(group, meta, dtype, chunk_points)
        out.sync()
        group.update_attributes(meta.to_attributes())
        return out.commit()
