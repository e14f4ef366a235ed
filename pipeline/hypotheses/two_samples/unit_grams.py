"""Sums of kernel values between units, tile by tile of the rows: no matrix of all pairs is held.

Of many widths a pair of rows costs an exponential each. Units that permutations move are few, and
so is what is kept of them: one number per pair of units and kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.arrays import Floats, Integers
from ...execution.pool import run_parts
from ..kernels.kernels import Kernel, tiles
from ..kernels.scale_kernels import add_pairs
from ..kernels.split_kernels import mirror

TILE = 256  # rows: the distances of a pair of tiles, and a kernel of them, stay in one core's cache
_SECONDS_PER_VALUE = 3e-9  # of a kernel, and to add it to the sum of its units; on one core
_SECONDS_PER_GAP = 5e-10  # of a coordinate of the distance of two rows, of one metric


def unit_grams(rows: Floats, units: Integers, n_units: int, kernels: Sequence[Kernel]) -> Floats:
    """Return the sums of kernel values between all rows of two units, for each two units.

    Parameters
    ----------
    rows : shape (n, d)
    units : shape (n,)
        Unit of each row, from 0 to n_units − 1.

    Returns
    -------
    shape (K, n_units, n_units)
        Symmetric; a unit's sum with itself has each row with itself, too.
    """
    order = np.argsort(units, kind="stable")  # neighbours add to the same few sums
    rows, units = rows[order], units[order]
    out = np.zeros((len(kernels), n_units, n_units))
    metrics = {kernel.name: kernel for kernel in kernels}
    for i in tiles(len(rows), TILE):
        for j in tiles(i.stop, TILE):
            distances = {
                name: metric.distances(rows[i], rows[j]) for name, metric in metrics.items()
            }
            same = i == j

            def add_kernel(
                k: int, distances: dict[str, Floats] = distances, at: tuple[slice, slice] = (i, j),
                same: bool = same,
            ) -> None:  # fmt: skip
                values = kernels[k].of_distances(distances[kernels[k].name].copy())
                add_pairs(values, units[at[0]], units[at[1]], same, out[k])

            run_parts(add_kernel, len(kernels))
    run_parts(lambda k: mirror(out[k]), len(out))
    return out


def seconds_of_pairs(n_rows: int, n_dims: int, kernels: Sequence[Kernel]) -> float:
    """Return about how long `unit_grams` takes one core."""
    per_pair = len(kernels) * _SECONDS_PER_VALUE
    per_pair += len({kernel.name for kernel in kernels}) * n_dims * _SECONDS_PER_GAP
    return n_rows**2 / 2 * per_pair
