"""What a BagStore looks like in Zarr: array names, chunk shapes and the committed metadata."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from ..errors import InterruptedStoreError, StoreError
from ..storage.zarr_stores import exists, zarr_store
from .box import Box

FORMAT_VERSION = 1
RESPONSES_VERSION = 2  # of stores with responses: a reader that knows none refuses them
RESPONSE_FIELDS = ("response_dims", "response_box", "n_response_points")
ATTRIBUTE = "bagbasis"
CHUNK_BYTES = 2**21
CHUNKS_A_SHARD = 16
ROWS_A_CHUNK = 2**16  # of offsets, ids and targets


@dataclass(frozen=True)
class StoreMeta:
    """The attributes of a store; writing them is the commit.

    Readers trust ``n_bags``, ``n_points`` and ``n_response_points`` and never the shapes of the
    arrays. ``max_id`` is the largest committed integer id (None without bags or with string ids).
    ``source`` says how the bags were made, for stores that `generate` or `ingest` wrote.
    ``response_dims`` and ``response_box`` are None in a store without responses.
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

    def grown(self, **counts: Any) -> StoreMeta:
        return replace(self, **counts)

    def to_attributes(self) -> dict[str, Any]:
        values = asdict(self)
        values["box"] = self.box.bounds
        values["target_names"] = list(self.target_names)
        version = FORMAT_VERSION
        if self.response_box is None:
            values = {name: values[name] for name in values if name not in RESPONSE_FIELDS}
        else:
            version, values["response_box"] = RESPONSES_VERSION, self.response_box.bounds
        return {ATTRIBUTE: {"format_version": version, **values}}

    @classmethod
    def from_attributes(cls, attributes: dict[str, Any], url: str) -> StoreMeta:
        if not isinstance(attributes.get(ATTRIBUTE), dict):
            raise StoreError(f"{url}: a Zarr group, but not a bag store")
        values = dict(attributes[ATTRIBUTE])
        if not values:
            raise InterruptedStoreError(
                f"{url}: a bag store whose making was interrupted; make it again"
            )
        version = values.pop("format_version", None)
        if version not in (FORMAT_VERSION, RESPONSES_VERSION):
            raise StoreError(
                f"{url}: bag store of format {version}; this version reads {FORMAT_VERSION} and "
                f"{RESPONSES_VERSION}"
            )
        try:
            values["box"] = Box.of(values["box"], values["n_dims"])
            values["target_names"] = tuple(values["target_names"])
            counts = ["n_bags", "n_points"]
            if version == RESPONSES_VERSION:
                counts.append("n_response_points")
                values["response_box"] = Box.of(
                    values["response_box"], values["response_dims"], "response_box"
                )
            elif any(name in values for name in RESPONSE_FIELDS):
                raise ValueError(f"responses in format {version}")
            for name in counts:
                if not isinstance(values[name], int) or values[name] < 0:
                    raise ValueError(f"{name} is {values[name]!r}")
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{url}: damaged bag store attributes ({error})") from error


def read_attributes(url: str, snapshot: str | None = None) -> dict[str, Any]:
    """The attributes of the Zarr group at a normalized URL, read anew, or at a snapshot.

    Raises
    ------
    StoreError
        Nothing is there, or no group.
    """
    if not exists(url):
        raise StoreError(f"{url}: not found")
    try:
        group = zarr.open_group(
            zarr_store(url, read_only=True, snapshot=snapshot), mode="r", zarr_format=3
        )
    except Exception as error:
        raise StoreError(f"{url}: not a bag store ({type(error).__name__}: {error})") from error
    return dict(group.attrs)


def create_array(
    group: zarr.Group, name: str, columns: int | None, dtype: Any, chunk_rows: int, fill: Any
) -> zarr.Array:
    """An empty, growable, sharded array; ``columns`` None makes it one-dimensional.

    Every stored chunk carries a CRC-32C, so that a flipped bit is an error and not a number.
    """
    tail = () if columns is None else (columns,)
    variable = dtype is str
    return group.create_array(
        name,
        shape=(0, *tail),
        dtype=dtype,
        chunks=(chunk_rows, *tail),
        shards=(chunk_rows * CHUNKS_A_SHARD, *tail),
        compressors=[
            BloscCodec(cname="lz4", clevel=5, shuffle="noshuffle" if variable else "shuffle"),
            Crc32cCodec(),
        ],
        fill_value=fill,
        config={"write_empty_chunks": True},
        overwrite=True,
    )


def create_arrays(group: zarr.Group, meta: StoreMeta, dtype: Any, chunk_points: int | None) -> None:
    """All arrays of an empty store; missing data reads as NaN or -1, never as a value."""
    _create_ragged(group, meta.n_dims, dtype, chunk_points)
    if meta.response_dims is not None:
        responses = group.require_group("responses")
        _create_ragged(responses, meta.response_dims, dtype, chunk_points)
    create_ids(group, meta.id_kind)
    create_array(
        group, "targets", max(1, len(meta.target_names)), "float64", ROWS_A_CHUNK, float("nan")
    )


def _create_ragged(group: zarr.Group, n_dims: int, dtype: Any, chunk_points: int | None) -> None:
    """Points, and the offsets of no bags."""
    rows = chunk_points or max(1, CHUNK_BYTES // (np.dtype(dtype).itemsize * n_dims))
    create_array(group, "points", n_dims, dtype, rows, float("nan"))
    offsets = create_array(group, "offsets", None, "int64", ROWS_A_CHUNK, -1)
    offsets.resize((1,))
    offsets[0:1] = np.zeros(1, dtype=np.int64)


def create_ids(group: zarr.Group, id_kind: str) -> zarr.Array:
    """The array of bag ids, ``id_kind`` "int64" or "str"."""
    if id_kind == "str":
        return create_array(group, "ids", None, str, ROWS_A_CHUNK, "")
    return create_array(group, "ids", None, "int64", ROWS_A_CHUNK, -1)


def replace_ids(group: zarr.Group, id_kind: str) -> None:
    """Make the array of bag ids, without committed rows, one of the other kind.

    The metadata is replaced in one write, so that a killed writer leaves one array or the other.
    """
    array = create_ids(zarr.create_group(MemoryStore()), id_kind)
    sync(group.store.delete_dir("ids/c"))
    for key, value in array.metadata.to_buffer_dict(default_buffer_prototype()).items():
        sync(group.store.set(f"ids/{key}", value))
