"""Coefficients of bags, and their targets, kept next to their store while models are compared.

There is one Zarr group per embedding, and one for the targets, which all embeddings share. A block
of bags is one object with a checksum, replaced by one rename (or one PUT). A block is therefore
complete, or counts as missing and is computed again. After a kill or damage, no repair is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.errors import ContainsArrayError

from ...core.arrays import Integers
from ...core.errors import WriterBusyError
from ...core.saved import Format
from ...data.bags.bags import Bags
from ...data.bags.responses import Responses
from ...data.labelled.labelled import LabelledBags
from ...data.storage.files import names_in, remove, storage_errors
from ...data.storage.zarr_reading import array_of, open_group
from ...data.storage.zarr_stores import zarr_store
from ...data.store.store import BagStore
from ..fitted_model import digest_of_bags, digest_of_points
from .candidates import digest

_FORMAT = Format("coefficients", 2, key="bagbasis_coefficients")
_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}\.zarr")
_ROWS = "rows"
_MISSING = float("inf")  # stands for a missing coefficient or target


def store_identity(store: BagStore) -> str:
    """Return a hash that changes if the URL has another store, or the store another length."""
    return digest([_FORMAT.version, store.url, store.written, store.n_bags, store.n_points])


def identity_of(bags: LabelledBags) -> str:
    """Return the store's identity, or a hash of the points and labels of bags in memory."""
    if isinstance(bags.data, Bags):
        labels = [
            digest_of_points(labels) if isinstance(labels, Responses) else labels.tolist()
            for _, _, labels in bags.label_blocks()
        ]
        return digest([_FORMAT.version, digest_of_bags(bags), labels])
    return store_identity(bags.data)


@dataclass(frozen=True)
class RowCache:
    """One row per bag, finite or NaN, in tuning's order, shape (n_bags, n_columns).

    Parameters
    ----------
    url : str
    n_bags, n_columns, block_length : int
    dtype : {"float32", "float64"}
    """

    url: str
    n_bags: int
    n_columns: int
    block_length: int
    dtype: str

    def open(self) -> OpenCache:
        """Return the array, which is created if it does not exist.

        Raises
        ------
        StoreError
            If the place cannot be written, or another search is creating the array.
        """
        with _kept_errors(self.url):
            try:
                group = open_group(zarr_store(self.url), "r+")
                _FORMAT.strip(group.attrs)
                return OpenCache(self, group)
            except Exception:  # noqa: S110 - whatever it is, a new one is made
                pass  # nothing there, what a killed maker left, another version: made anew
            try:
                return OpenCache(self, self._create())
            except (ContainsArrayError, KeyError) as error:  # another process made it meanwhile
                raise WriterBusyError(
                    f"{self.url}: another tune of the same begins at the moment; wait for it"
                ) from error

    def _create(self) -> zarr.Group:
        group = zarr.open_group(zarr_store(self.url), mode="w", zarr_format=3)
        group.create_array(
            _ROWS,
            shape=(self.n_bags, self.n_columns),
            chunks=(self.block_length, self.n_columns),
            dtype=self.dtype,
            compressors=[BloscCodec(cname="lz4"), Crc32cCodec()],
            fill_value=_MISSING,
        )
        group.update_attributes(_FORMAT.stamp({}))
        return group

    def remove(self) -> None:
        """Delete the cache; a part that cannot be deleted is ignored."""
        with suppress(OSError):
            remove(self.url)


class OpenCache:
    """The array of a cache, for one task."""

    def __init__(self, cache: RowCache, group: zarr.Group) -> None:
        self._cache = cache
        self._array: Any = array_of(group, _ROWS)

    def filled(self, blocks: range, make: Callable[[Integers], NDArray[Any]]) -> NDArray[Any]:
        """Return the rows of consecutive blocks; missing or damaged blocks are computed and kept.

        ``make`` computes rows, given their places among the rows of all the blocks.
        """
        places = [self._bags(block) for block in blocks]
        start = places[0].start
        try:  # one read of many blocks takes a fraction of the time of as many reads
            rows = np.asarray(self._array[start : places[-1].stop])
        except Exception:  # a damaged one: the others are read
            blocks_read = [self.read(block) for block in blocks]
        else:
            split = [rows[at.start - start : at.stop - start] for at in places]
            blocks_read = [_unless_missing(part) for part in split]
        missing = [i for i, part in enumerate(blocks_read) if part is None]
        if missing:
            wanted = [np.arange(places[i].start, places[i].stop) - start for i in missing]
            made = make(np.concatenate(wanted))
            ends = np.cumsum([len(rows) for rows in wanted])
            for i, part in zip(missing, np.split(made, ends[:-1]), strict=True):
                blocks_read[i] = part
                self.write(blocks[i], part)
        return np.concatenate([part for part in blocks_read if part is not None])

    def read(self, block: int) -> NDArray[Any] | None:
        """Return the rows of a block; None if it is missing or damaged."""
        try:
            rows = np.asarray(self._array[self._bags(block)])
        except Exception:  # whatever a codec makes of damaged bytes
            return None
        return _unless_missing(rows)

    def write(self, block: int, rows: NDArray[Any]) -> None:
        """Keep a block; StoreError if it cannot be written."""
        with _kept_errors(self._cache.url):
            self._array[self._bags(block)] = rows

    def _bags(self, block: int) -> slice:
        length = self._cache.block_length
        return slice(block * length, min((block + 1) * length, self._cache.n_bags))


def _unless_missing(rows: NDArray[Any]) -> NDArray[Any] | None:
    """Return the rows, or None where the array's fill value says that none were written."""
    return None if np.isinf(rows).any() else rows


def discard_others(folder: str, identity: str) -> None:
    """Delete caches that were made for other data or another committed length."""
    for name in names_in(folder):
        if _NAME.fullmatch(name) and not name.startswith(identity):
            with suppress(OSError):
                remove(f"{folder}/{name}")


def _kept_errors(url: str) -> AbstractContextManager[None]:
    remedy = "make room, or choose another place with checkpoints"
    return storage_errors(url, "coefficients cannot be kept there", remedy)
