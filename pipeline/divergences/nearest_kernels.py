"""Kernels of the exact k-th neighbour by all distances: many dimensions leave trees no branch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiling import kernel

LANES = 32  # products that are compared at a time


@kernel(fastmath={"nnan", "ninf", "nsz", "reassoc", "contract"})
def least_of_blocks(
    products: NDArray[np.float32], halves: NDArray[np.float32], least: NDArray[np.float32]
) -> None:
    """Write the least ½‖p‖² − q·p of every `LANES` points p."""
    n = len(halves)
    for block in range(len(least)):
        smallest = np.float32(np.inf)
        for j in range(block * LANES, min((block + 1) * LANES, n)):
            smallest = min(smallest, halves[j] - products[j])
        least[block] = smallest


@kernel()
def insert(ordered: NDArray[np.floating], value: float) -> None:
    """Put a value below the last one into its place; the last one is dropped."""
    i = len(ordered) - 1
    while i > 0 and ordered[i - 1] > value:
        ordered[i] = ordered[i - 1]
        i -= 1
    ordered[i] = value


@kernel()
def kth_distances(
    products: NDArray[np.float32], halves: NDArray[np.float32], slack: NDArray[np.float32],
    queries: NDArray[np.float64], points: NDArray[np.float64], k: int, out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write the distance of each query to its k-th nearest point.

    ``products`` (rows, n) and ``halves`` (n,) in single precision say which points come into
    question: those within ``slack`` (rows,) of the k-th. Their distances are computed in double.
    """
    n, d = points.shape
    least = np.empty((n + LANES - 1) // LANES, dtype=np.float32)
    first = np.empty(k, dtype=np.float32)
    exact = np.empty(k, dtype=np.float64)
    near = np.empty(n, dtype=np.int64)
    for i in range(len(queries)):
        least_of_blocks(products[i], halves, least)
        # k blocks have a point this near: points beyond the k-th of these are not looked at
        first[:] = np.inf
        for value in least:
            if value < first[k - 1]:
                insert(first, value)
        first[:] = first[k - 1]
        n_near = 0
        for block in range(len(least)):
            if least[block] <= first[k - 1] + slack[i]:
                for j in range(block * LANES, min((block + 1) * LANES, n)):
                    nearness = halves[j] - products[i, j]
                    if nearness <= first[k - 1] + slack[i]:
                        near[n_near] = j
                        n_near += 1
                        if nearness < first[k - 1]:
                            insert(first, nearness)
        limit = first[k - 1] + slack[i]
        exact[:] = np.inf
        for j in near[:n_near]:
            if halves[j] - products[i, j] <= limit:
                square = 0.0
                for c in range(d):
                    gap = queries[i, c] - points[j, c]
                    square += gap * gap
                if square < exact[k - 1]:
                    insert(exact, square)
        out[i] = np.sqrt(exact[k - 1])
