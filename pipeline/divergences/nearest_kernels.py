"""Kernels of the exact k-th neighbour by all distances: many dimensions leave trees no branch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiling import kernel

LANES = 64  # products that are compared at a time


@kernel(fastmath={"nnan", "ninf", "nsz", "reassoc", "contract"})
def nearness_of_row(
    products: NDArray[np.float32], halves: NDArray[np.float32], out: NDArray[np.float32],
    least: NDArray[np.float32],
) -> None:  # fmt: skip
    """Write ½‖p‖² − q·p of each point p, and the least of every `LANES` of them."""
    n = len(halves)
    for block in range(len(least)):
        start, stop = block * LANES, min((block + 1) * LANES, n)
        smallest = np.float32(np.inf)
        for j in range(start, stop):
            value = halves[j] - products[j]
            out[j] = value
            smallest = min(smallest, value)
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
    nearness = np.empty(n, dtype=np.float32)
    least = np.empty((n + LANES - 1) // LANES, dtype=np.float32)
    first = np.empty(k, dtype=np.float32)
    exact = np.empty(k, dtype=np.float64)
    for i in range(len(queries)):
        nearness_of_row(products[i], halves, nearness, least)
        first[:] = np.inf
        for block in range(len(least)):
            if least[block] < first[k - 1]:
                for j in range(block * LANES, min((block + 1) * LANES, n)):
                    if nearness[j] < first[k - 1]:
                        insert(first, nearness[j])
        limit = first[k - 1] + slack[i]
        exact[:] = np.inf
        for block in range(len(least)):
            if least[block] <= limit:
                for j in range(block * LANES, min((block + 1) * LANES, n)):
                    if nearness[j] <= limit:
                        square = 0.0
                        for c in range(d):
                            gap = queries[i, c] - points[j, c]
                            square += gap * gap
                        if square < exact[k - 1]:
                            insert(exact, square)
        out[i] = np.sqrt(exact[k - 1])
