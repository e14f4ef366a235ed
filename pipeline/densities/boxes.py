"""Points and a box: which are inside, where they are in the unit cube."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bags import Box


def box_volume(box: Box) -> float:
    """In the units of the data."""
    return float(np.prod(np.array(box.hi) - np.array(box.lo)))


def box_contains(box: Box, points: NDArray[Any]) -> NDArray[np.bool_]:
    """Which points are inside, shape (n,), the walls as the points' own precision holds them: a
    float32 point on a wall is inside."""
    lo, hi = (np.array(wall, dtype=points.dtype) for wall in (box.lo, box.hi))
    return np.logical_and.reduce((points >= lo) & (points <= hi), axis=1)


def in_unit_cube(box: Box, points: NDArray[Any]) -> NDArray[np.float64]:
    """The box scaled to [0, 1]^d, points outside of it clipped to its walls; float64."""
    return np.clip(box.to_unit(points.astype(np.float64)), 0.0, 1.0)
