"""Stores whose points take fewer bytes than float32 but are read as float32.

uint16 holds fractions of the box: a coordinate is off by at most 1 / 131,068 (7.6e-6) of the box's
side. uint8 holds whole numbers from 0 to 255, such as pixels and small counts, exactly. The
kernels' module, and Numba with it, is imported only when fractions are read or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.arrays import Floats, Integers
from ...core.errors import DataError
from .box import Box
from .checks import IdsLike, bag_name

FRACTIONS = np.dtype(np.uint16)
WHOLE = np.dtype(np.uint8)
PACKED = (FRACTIONS, WHOLE)
_LARGEST = 255  # whole number of 8 bits
_ROWS_AT_ONCE = 128  # rows decoded in one loop
GIVE_BOX = "give the box of points and of responses, before any is written"


def points_dtype(stored: DTypeLike) -> np.dtype[Any]:
    """Return the dtype that points are read as, given the dtype they are stored as."""
    dtype = np.dtype(stored)
    return np.dtype(np.float32) if dtype in PACKED else dtype


def box_of(
    box: Box | Sequence[Sequence[float]] | None, n_dims: int, stored: DTypeLike, name: str = "box"
) -> Box:
    """Return `Box.of`; without a box, whole numbers get a box from 0 to 255."""
    if box is None and np.dtype(stored) == WHOLE:
        box = [(0.0, float(_LARGEST))] * n_dims
    return Box.of(box, n_dims, name=name)


def encode(
    points: NDArray[Any],
    stored: np.dtype[Any],
    box: Box,
    offsets: Integers,
    ids: IdsLike | None,
    owner: str = "",
) -> NDArray[Any]:
    """Encode finite points for a dtype of `PACKED`.

    Raises
    ------
    DataError
        If a point lies outside the box, or is not made of whole numbers. The message names the bag
        and the row.
    """
    if stored == WHOLE:
        with np.errstate(invalid="ignore"):  # what does not fit differs afterwards
            codes = points.astype(WHOLE)
        wrong = (codes != points).any(axis=1)
        row = int(np.argmax(wrong)) if wrong.any() else -1
        reason = f"no point of whole numbers from 0 to {_LARGEST}, which dtype uint8 holds"
    else:
        from .fraction_kernels import encode_fractions  # noqa: PLC0415 - others need no Numba

        codes = np.empty(points.shape, FRACTIONS)
        row = encode_fractions(points, *_sides(box), codes)
        reason = (
            f"outside the box {box.bounds}, and dtype uint16 holds fractions of it: give a larger "
            "box, remove the point"
        )
    if row >= 0:
        bag = int(np.searchsorted(offsets, row, side="right") - 1)
        raise DataError(
            f"{owner}{bag_name(bag, ids)}, row {row - offsets[bag]}: {points[row].tolist()} is "
            f"{reason}, or store float32"
        )
    return codes


def decode(codes: NDArray[Any], box: Box) -> NDArray[np.float32]:
    """Decode points from codes; missing fractions are NaN."""
    if codes.dtype == WHOLE:
        return codes.astype(np.float32)
    from .fraction_kernels import LAST, decode_fractions  # noqa: PLC0415

    points = np.empty(codes.shape, np.float32)
    lo, width = (np.tile(side, _ROWS_AT_ONCE) for side in _sides(box))
    decode_fractions(codes.reshape(-1), lo, width / LAST, points.reshape(-1))
    return points


def _sides(box: Box) -> tuple[Floats, Floats]:
    lo = np.array(box.lo)
    return lo, np.array(box.hi) - lo
