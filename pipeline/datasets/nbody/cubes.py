"""A periodic box of particles cut into cubes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bags.bags import offsets_of


def cut(
    positions: NDArray[np.float64], box_size: float, n_cubes: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The particles of each of n_cubes³ cubes, with the cube as unit cube.

    Parameters
    ----------
    positions : shape (n, 3)
        In [0, box_size).

    Returns
    -------
    points : float32, shape (n, 3)
        In [0, 1]: relative to the cube's corner, in units of its side. Cube after cube, the last
        axis fastest; within a cube in the order of the positions.
    offsets : int64, shape (n_cubes³ + 1,)
        Cube i has rows ``offsets[i]:offsets[i + 1]``, perhaps none.
    """
    scaled = positions * (n_cubes / box_size)
    corners = np.minimum(scaled.astype(np.int64), n_cubes - 1)
    cube = np.ravel_multi_index(tuple(corners.T), (n_cubes,) * 3)
    order = np.argsort(cube, kind="stable")
    points = (scaled - corners)[order].astype(np.float32)
    return points, offsets_of(np.bincount(cube, minlength=n_cubes**3))
