"""Zarr groups and arrays of files that others may have made: format 3, and codecs that we write.

Zarr looks up codecs by the names in a file, and numcodecs has some that run what the file holds
(`pickle`). Metadata of several arrays that are kept beside a group's own may name arrays of
format 2, whose filters are all those of numcodecs: they are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import zarr
from zarr.abc.store import Store
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    ShardingCodec,
    VLenUTF8Codec,
    ZstdCodec,
)

CODECS = (BytesCodec, VLenUTF8Codec, ZstdCodec, BloscCodec, Crc32cCodec, ShardingCodec)


def open_group(store: Store | Path | str, mode: Literal["r", "r+"] = "r") -> zarr.Group:
    """Return the group of format 3 at the root of a Zarr store.

    Raises
    ------
    Exception
        Whatever Zarr makes of damaged files.
    """
    return zarr.open_group(store, mode=mode, zarr_format=3, use_consolidated=False)


def array_of(group: zarr.Group, name: str) -> zarr.Array:
    """Return an array of a group.

    Raises
    ------
    ValueError
        It is no array, or has codecs that we do not write.
    Exception
        Whatever Zarr makes of damaged files.
    """
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise ValueError(f"{name!r} is not an array")
    return checked_array(array)


def checked_array(array: zarr.Array) -> zarr.Array:
    """Return the array; ValueError unless it has format 3 and codecs that we write."""
    metadata = array.metadata
    if metadata.zarr_format != 3:
        raise ValueError(f"{array.path!r} has Zarr's format {metadata.zarr_format}; expected 3")
    for codec in _each(metadata.codecs):
        if type(codec) not in CODECS:
            raise ValueError(f"{array.path!r} has a codec that is none of ours: {codec!r:.80}")
    return array


def _each(codecs: Iterable[Any]) -> Iterable[Any]:
    """Yield the codecs, and those within shards."""
    for codec in codecs:
        yield codec
        if isinstance(codec, ShardingCodec):
            yield from _each(codec.codecs)
            yield from _each(codec.index_codecs)
