"""Zarr groups and arrays of files that others may have made: format 3, and codecs that we write.

Zarr looks up codecs by the names in a file, and numcodecs has some that run what the file holds
(`pickle`). Metadata of several arrays that are kept next to a group's own may name arrays of
format 2, whose filters are all those of numcodecs: they are not looked at.

A compressed chunk says how many bytes it holds, and codecs allocate what it says. An array is read
through codecs that compare that number with the chunk's first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import zarr
from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.codec import Codec
from zarr.abc.store import ByteRequest, Store
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    ShardingCodec,
    VLenUTF8Codec,
    ZstdCodec,
)
from zarr.storage import FsspecStore, LocalStore
from zarr.types import AnyArray

from ...core.errors import StoreError
from . import zarr_loop  # noqa: F401 - registers what ends with the process
from .files import PAGE, check_regular, is_page

MAX_CHUNK_BYTES = 2**31 - 2**16  # Blosc compresses no larger buffer at once
_MAX_CHUNKS = 2**20  # chunks in one object: its index takes 16 bytes for each
_MAX_RATIO = 256  # highest compression ratio of text by LZ4: one byte stands for up to 255
CHECKED_ZSTD = (ZstdCodec(), Crc32cCodec())  # of written arrays: a flipped bit fails the checksum
BLOSC_HEADER, ZSTD_MAGIC = 16, b"\x28\xb5\x2f\xfd"


class RegularFiles(LocalStore):
    """Local files. A pipe, a device or a socket in their place is refused: a read might not end."""

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Return an object or a part of it, as `Store.get`."""
        check_regular(self.root / key)
        return await super().get(key, prototype, byte_range)


class RemoteObjects(FsspecStore):
    """Objects of a remote storage. A page of HTML instead of one is refused."""

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Return an object or a part of it, as `Store.get`."""
        content = await super().get(key, prototype, byte_range)
        if content is not None and is_page(content[:64].to_bytes()):
            raise StoreError(f"{self.fs.unstrip_protocol(self.path)}/{key}: {PAGE}")
        return content


class CheckedBlosc(BloscCodec):
    """Blosc, for chunks that hold as many bytes as they should."""

    async def decode(self, chunks_and_specs: Iterable[tuple[Any, Any]]) -> Iterable[Any]:
        """Decode chunks, as `Codec.decode`; ValueError for one that states another size."""
        chunks = list(chunks_and_specs)
        for chunk, spec in chunks:
            if chunk is not None:
                head = chunk[:BLOSC_HEADER].to_bytes()
                stated = int.from_bytes(head[4:8], "little") if len(head) == BLOSC_HEADER else None
                _check_stated(stated, spec, _MAX_RATIO * len(chunk))
        return await super().decode(chunks)


class CheckedZstd(ZstdCodec):
    """Zstandard, for chunks that hold as many bytes as they should."""

    async def decode(self, chunks_and_specs: Iterable[tuple[Any, Any]]) -> Iterable[Any]:
        """Decode chunks, as `Codec.decode`; ValueError for one that states another size."""
        chunks = list(chunks_and_specs)
        for chunk, spec in chunks:
            if chunk is not None:
                _check_stated(_zstd_size(chunk[:18].to_bytes()), spec)
        return await super().decode(chunks)


CODECS = (
    BytesCodec,
    VLenUTF8Codec,
    ZstdCodec,
    BloscCodec,
    Crc32cCodec,
    ShardingCodec,
    CheckedBlosc,
    CheckedZstd,
)
COMPRESSORS = (ZstdCodec, BloscCodec)


def open_group(store: Store | Path | str, mode: Literal["r", "r+"] = "r") -> zarr.Group:
    """Return the group of format 3 at the root of a Zarr store.

    Raises
    ------
    Exception
        Whatever Zarr makes of damaged files.
    """
    return zarr.open_group(store, mode=mode, zarr_format=3, use_consolidated=False)


def array_of(group: zarr.Group, name: str) -> AnyArray:
    """Return an array of a group.

    Raises
    ------
    ValueError
        It is not an array, or has codecs that we do not write, or chunks that no memory holds.
    Exception
        Whatever Zarr makes of damaged files.
    """
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise ValueError(f"{name!r} is not an array")
    return checked_array(array)


def checked_array(array: AnyArray) -> AnyArray:
    """Return the array with codecs that check sizes.

    Raises
    ------
    ValueError
        It has another format than 3, codecs that we do not write, or chunks of an impossible size.
    """
    metadata = array.metadata
    if metadata.zarr_format != 3:
        raise ValueError(f"{array.path!r} has Zarr's format {metadata.zarr_format}; expected 3")
    for codec in _each(metadata.codecs):
        if type(codec) not in CODECS:
            raise ValueError(f"{array.path!r} has a codec that is not from bagbasis: {codec!r:.80}")
    _check_order(metadata.codecs, array.path)
    _check_chunks(array)
    checked = replace(metadata, codecs=tuple(map(_checked_codec, metadata.codecs)))
    return zarr.Array(zarr.AsyncArray(checked, array.store_path, array.async_array.config))


def _check_order(codecs: Sequence[Any], path: str, within_shard: bool = False) -> None:
    """Raise ValueError for shards within shards, and for chunks that are compressed twice."""
    if sum(isinstance(codec, COMPRESSORS) for codec in codecs) > 1:
        raise ValueError(f"{path!r} is compressed twice")
    for codec in codecs:
        if isinstance(codec, ShardingCodec):
            if within_shard:
                raise ValueError(f"{path!r} has shards within shards")
            _check_order(codec.codecs, path, within_shard=True)
            if any(
                isinstance(inner, (*COMPRESSORS, ShardingCodec)) for inner in codec.index_codecs
            ):
                raise ValueError(f"{path!r} has shards with a compressed index")


def _check_chunks(array: AnyArray) -> None:
    """Raise ValueError for chunks without rows, or of more bytes than codecs take."""
    chunks, shards = array.chunks, array.shards or array.chunks
    fits = min(chunks, default=1) > 0 and not any(
        shard % chunk for shard, chunk in zip(shards, chunks, strict=True)
    )
    if not fits or math.prod(chunks) * array.dtype.itemsize > MAX_CHUNK_BYTES:
        raise ValueError(f"{array.path!r} has chunks of shape {chunks}, not from bagbasis")
    if math.prod(shards) // max(1, math.prod(chunks)) > _MAX_CHUNKS:
        raise ValueError(f"{array.path!r} has {shards} rows in an object of chunks {chunks}")


def _checked_codec(codec: Codec) -> Codec:
    if isinstance(codec, ShardingCodec):
        return replace(codec, codecs=tuple(map(_checked_codec, codec.codecs)))
    if type(codec) is BloscCodec:
        return CheckedBlosc.from_dict(codec.to_dict())
    return CheckedZstd.from_dict(codec.to_dict()) if type(codec) is ZstdCodec else codec


def _check_stated(stated: int | None, spec: Any, most: int = MAX_CHUNK_BYTES) -> None:  # noqa: ANN401 - zarr's ArraySpec is private
    """Raise ValueError for a compressed chunk that states another size than that of its chunk.

    ``most`` are the bytes that a chunk of texts may state, in addition to those of their lengths.
    """
    itemsize = getattr(spec.dtype, "item_size", None)
    if stated is None:
        raise ValueError("the compressed chunk does not state its size")
    expected = None if itemsize is None else math.prod(spec.shape) * itemsize
    if expected is not None and stated != expected:
        raise ValueError(f"the compressed chunk states {stated} bytes; its chunk has {expected}")
    most = min(MAX_CHUNK_BYTES, most + 4 * math.prod(spec.shape) + 4)
    if expected is None and stated > most:
        raise ValueError(f"the compressed chunk states {stated} bytes of text; at most {most} fit")


def _zstd_size(head: bytes) -> int | None:
    """Return the size that a frame of Zstandard (RFC 8878) states of its content."""
    if len(head) < 6 or not head.startswith(ZSTD_MAGIC):
        return None
    descriptor = head[4]
    width, single = (0, 2, 4, 8)[descriptor >> 6], descriptor >> 5 & 1
    if not width and not single:
        return None
    width = width or 1
    at = 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(head[at : at + width], "little")
    return size + 256 if width == 2 else size


def _each(codecs: Iterable[Any]) -> Iterable[Any]:
    """Yield the codecs, and those within shards."""
    for codec in codecs:
        yield codec
        if isinstance(codec, ShardingCodec):
            yield from _each(codec.codecs)
            yield from _each(codec.index_codecs)
