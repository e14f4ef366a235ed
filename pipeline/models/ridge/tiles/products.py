"""ZᵀZ of float32 features by tiles of 16-bit floats, where a machine has them.

Less their mean, features are split into two bfloat16, high and low, and the four products of these
parts are added up in float32. It takes six tenths of the time of a float32 product. The error of an
entry is 2·10⁻¹³ to 3·10⁻⁸ of the number of rows, the less the less the features vary; that of a
float32 product is 4·10⁻⁹ to 7·10⁻⁸, the more the larger their mean is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....core.arrays import Floats
from ....core.errors import BagbasisError
from ....data.store.sampling import spread_rows
from ....execution.pool import even_edges, run_kernel
from ..statistics_kernels import add_shifted_triangle
from .instructions import ROW_BYTES, has_tiles, tile_shapes
from .tile_kernels import DEPTH, PANEL, SIDE, add_products, pack_rows

LEAST_FEATURES = 1024  # with fewer a float32 product takes no time worth saving
LEAST_ROWS = 256
PASS_ROWS = 1024  # that are packed at a time: fewer write sums too often, more leave the cache
SECONDS_PER_NUMBER = 5e-10  # that is packed, or summed
CENTRE_ROWS = 64  # whose mean is the centre: it need not be exact, but the same for all


def tiles_serve(n_rows: int, n_features: int) -> bool:
    """Return whether products of so many float32 rows are made of tiles on this machine."""
    return n_features >= LEAST_FEATURES and n_rows >= LEAST_ROWS and has_tiles()


def tile_bytes(n_features: int) -> int:
    """Return the memory that `TileProducts` take, if so many features are multiplied by them."""
    if n_features < LEAST_FEATURES:
        return 0
    return 4 * 2 * PASS_ROWS * _padded(n_features, 2 * SIDE)


class TileProducts:
    """Adds ZᵀZ of blocks of rows to a packed triangle; the memory of one block serves all.

    Raises
    ------
    BagbasisError
        The machine has no tiles: `tiles_serve` tells.
    """

    def __init__(self, n_features: int) -> None:
        if not has_tiles():
            raise BagbasisError("this machine has no tiles of bfloat16, or does not lend them")
        width = _padded(n_features, 2 * SIDE)
        shape = (2, width // SIDE, PASS_ROWS // DEPTH, SIDE, SIDE)
        self._left, self._right = (_aligned(shape, np.uint32) for _ in range(2))
        self._sums = np.empty((PASS_ROWS // DEPTH, width))
        self._scratch = np.empty((PASS_ROWS // DEPTH, 2, SIDE), np.float32)
        n_panels = -(-width // (SIDE * PANEL))
        self._blocks = _aligned((n_panels, 2 * SIDE, 2 * SIDE), np.float32)
        self._pairs = list(range((n_panels + 1) // 2 + 1))  # one each
        self._shapes = tile_shapes()

    def add(self, packed: Floats, z: NDArray[np.float32], square: NDArray[np.float32]) -> None:
        """Add ZᵀZ, of z (n, D), to the upper triangle ``packed`` by rows.

        ``square`` (D, D) is scratch. As a block's rows are multiplied less their centre m, what
        is missing of ZᵀZ, m (Σz)ᵀ + (Σz) mᵀ − n m mᵀ, is added in double precision.
        """
        n, d = z.shape
        mean = spread_rows(z, CENTRE_ROWS).mean(axis=0, dtype=np.float64)
        centre = np.zeros(self._sums.shape[1], np.float32)
        centre[:d] = mean
        total = np.zeros(d)  # of z less the centre
        square[:] = 0
        tiles = self._left, self._right
        for start in range(0, n, PASS_ROWS):
            rows = z[start : start + PASS_ROWS]
            n_steps = -(-len(rows) // DEPTH)
            scratch = self._scratch, self._scratch.view(np.uint32)
            given = rows, centre, *tiles, self._sums[:n_steps], *scratch
            run_kernel(pack_rows, even_edges(n_steps, SECONDS_PER_NUMBER * DEPTH * d), *given)
            run_kernel(
                add_products, self._pairs, *tiles, n_steps, self._shapes, self._blocks, square
            )
            total += self._sums[:n_steps, :d].sum(axis=0)
        half = centre[:d].astype(np.float64)
        edges = even_edges((d + 1) // 2, SECONDS_PER_NUMBER * d)
        run_kernel(add_shifted_triangle, edges, packed, square, half, total + n * half / 2)


def _aligned(shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
    """Return an array of zeros whose address is a multiple of a tile's row."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.empty(n_bytes + ROW_BYTES, np.uint8)
    room[:] = 0
    skipped = -room.ctypes.data % ROW_BYTES
    return room[skipped : skipped + n_bytes].view(dtype).reshape(shape)


def _padded(n: int, to: int) -> int:
    return -(-n // to) * to
