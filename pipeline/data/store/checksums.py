"""Checksums of a store's attributes and of the committed rows of its arrays.

Every stored chunk has a checksum of its own, which finds damage within it. The checksums here stand
in the attributes. One covers the attributes themselves. The others tell whether an array holds the
rows that were committed, and not those of another store.

An append extends the checksum of each array by the new rows. Rows that `compact` deletes count as
fill values from the moment at which the deletion is committed, wherever it stopped.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0xEDB88320  # of CRC-32, as zlib computes it


def checksum_of_values(values: Mapping[str, Any]) -> str:
    """Return the checksum of JSON values, independent of their order."""
    plain = json.loads(json.dumps(values))
    return as_text(zlib.crc32(json.dumps(plain, sort_keys=True).encode()))


def checksum_of_rows(rows: NDArray[Any], before: int = 0) -> int:
    """Return the checksum of rows that follow rows with the checksum ``before``."""
    return zlib.crc32(row_bytes(rows), before)


def row_bytes(rows: NDArray[Any]) -> bytes | memoryview:
    """Return the bytes of rows in C order, numbers as little-endian; texts with their lengths."""
    if rows.dtype.kind not in "iuf":
        texts = [text.encode() for text in rows.ravel().tolist()]
        return b"".join(b"%d:%b" % (len(text), text) for text in texts)
    if sys.byteorder == "big":
        rows = rows.astype(rows.dtype.newbyteorder("<"))
    return np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data


def replaced(checksum: int, old: NDArray[Any], new: NDArray[Any], n_after: int) -> int:
    """Return the checksum of an array in which some rows were replaced.

    Parameters
    ----------
    checksum : int
        Checksum of all rows before the replacement.
    old, new : arrays of one shape and dtype
        The rows before and after.
    n_after : int
        Number of bytes of the rows behind the replaced rows.
    """
    # a CRC is linear: the checksums of two texts of one length differ by that of their difference
    difference = checksum_of_rows(old) ^ checksum_of_rows(new)
    return checksum ^ _followed_by_zeros(difference, n_after)


def as_text(checksum: int) -> str:
    """Return a checksum as the attributes hold it."""
    return f"{checksum:08x}"


def _followed_by_zeros(remainder: int, n_bytes: int) -> int:
    """Return the remainder of a polynomial times x to the power of 8 n_bytes."""
    power, factor = 8 * n_bytes, 1 << 30  # x, bits reversed
    while power:
        if power & 1:
            remainder = _product(remainder, factor)
        factor = _product(factor, factor)
        power >>= 1
    return remainder


def _product(a: int, b: int) -> int:
    """Return the product of two polynomials modulo that of CRC-32, bits reversed."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (POLYNOMIAL if b & 1 else 0)
    return product
