"""Stores whose points are 16-bit fractions of the box: half the bytes of float32.

A coordinate is off by up to 1 / 131,068 of its side of the box, 7.6e-6 of it. The kernels'
module, and Numba with it, is imported when such a store is read or written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import DataError
from .bags import IdsLike, bag_name
from .box import Box

FRACTIONS = np.dtype(np.uint16)
ROWS_TOGETHER = 128  # that are decoded in one loop
GIVE_BOX = "give the box of points and of responses, before any is written"


def points_dtype(stored: DTypeLike) -> np.dtype[Any]:
    """Return the dtype that points are read as, of that they are stored as."""
    dtype = np.dtype(stored)
    return np.dtype(np.float32) if dtype == FRACTIONS else dtype


def encode(
    points: NDArray[Any],
    box: Box,
    offsets: NDArray[np.int64],
    ids: IdsLike | None,
    owner: str = "",
) -> NDArray[np.uint16]:
    """Return points as fractions of the box.

    Raises
    ------
    DataError
        A point outside, which no fraction stands for; names bag and row.
    """
    from .fraction_kernels import encode_fractions  # noqa: PLC0415 - others need no Numba

    codes = np.empty(points.shape, FRACTIONS)
    row = encode_fractions(points, *_sides(box), codes)
    if row >= 0:
        bag = int(np.searchsorted(offsets, row, side="right") - 1)
        raise DataError(
            f"{owner}{bag_name(bag, ids)}, row {row - offsets[bag]}: {points[row].tolist()} is "
            f"outside the box {box.bounds}, and dtype uint16 holds fractions of it: give a larger "
            "box, remove the point, or store float32"
        )
    return codes


def decode(codes: NDArray[np.uint16], box: Box) -> NDArray[np.float32]:
    """Return the points that fractions stand for; NaN where they are missing."""
    from .fraction_kernels import LAST, decode_fractions  # noqa: PLC0415

    points = np.empty(codes.shape, np.float32)
    lo, width = (np.tile(side, ROWS_TOGETHER) for side in _sides(box))
    decode_fractions(codes.reshape(-1), lo, width / LAST, points.reshape(-1))
    return points


def _sides(box: Box) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    lo = np.array(box.lo)
    return lo, np.array(box.hi) - lo
