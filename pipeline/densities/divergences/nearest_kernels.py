# mypy: disallow-untyped-defs=False, warn-return-any=False
"""Kernels of the exact k-th neighbour by all distances: many dimensions leave trees no branch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.compiling import kernel

_PRODUCTS_AT_ONCE = 32  # products that are compared at a time
HALVINGS = 20  # halvings of the range of a bound: a millionth of it remains
# Blocks beyond k that a bound may let through: visiting them is cheaper than another halving.
EXTRA_BLOCKS = 3
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@kernel(fastmath=_FAST)
def least_of_blocks(
    products: NDArray[np.float32], halves: NDArray[np.float32], least: NDArray[np.float32]
) -> None:
    """Write the least ½‖p‖² − q·p of every `_PRODUCTS_AT_ONCE` points p."""
    n = len(halves)
    whole = n // _PRODUCTS_AT_ONCE
    for block in range(whole):  # of constant length: instructions take several products each
        start = block * _PRODUCTS_AT_ONCE
        smallest = np.float32(np.inf)
        for j in range(_PRODUCTS_AT_ONCE):
            smallest = min(smallest, halves[start + j] - products[start + j])
        least[block] = smallest
    if whole < len(least):
        smallest = np.float32(np.inf)
        for j in range(whole * _PRODUCTS_AT_ONCE, n):
            smallest = min(smallest, halves[j] - products[j])
        least[whole] = smallest


@kernel(fastmath=_FAST)
def extremes(values: NDArray[np.float32]) -> tuple[np.float32, np.float32]:
    """Return the least and the greatest value."""
    least = greatest = values[0]
    for value in values:
        least = min(least, value)
        greatest = max(greatest, value)
    return least, greatest


@kernel(fastmath=_FAST)
def count_up_to(values: NDArray[np.float32], bound: np.float32) -> int:
    """Return how many values are at most ``bound``."""
    n = 0
    for value in values:
        n += value <= bound
    return n


@kernel()
def bound_of_kth(values: NDArray[np.float32], k: int, guess: np.float32) -> np.float32:
    """Return a bound that at least k values, but few more, do not exceed; search from a guess.

    Bisection has no unpredictable branches, which take most of the time of sorting.
    """
    if len(values) <= k + EXTRA_BLOCKS:
        return np.float32(np.inf)
    low, high = extremes(values)
    middle = min(max(guess, low), high)
    for _ in range(HALVINGS):
        n = count_up_to(values, middle)
        if n < k:
            low = middle
        else:
            high = middle
            if n <= k + EXTRA_BLOCKS:
                break
        middle = (low + high) / np.float32(2)
    return high


@kernel()
def insert(ordered: NDArray[np.floating], value: float) -> None:
    """Put a value below the last one into its place; the last one is dropped."""
    i = len(ordered) - 1
    while i > 0 and ordered[i - 1] > value:
        ordered[i] = ordered[i - 1]
        i -= 1
    ordered[i] = value


@kernel()
def kth_smallest(values: NDArray[np.float32], k: int, scratch: NDArray[np.float32]) -> np.float32:
    """Return the k-th smallest of k values or more; ``scratch``, as long, is overwritten."""
    n_larger = len(values) - k + 1
    if k <= n_larger:
        some = scratch[:k]
        some[:] = np.inf
        for value in values:
            if value < some[-1]:
                insert(some, value)
        return some[-1]
    some = scratch[:n_larger]  # there are fewer larger values to keep in order
    some[:] = np.inf
    for value in values:
        if -value < some[-1]:
            insert(some, -value)
    return -some[-1]


@kernel()
def kth_distances(
    products: NDArray[np.float32], halves: NDArray[np.float32], slack: NDArray[np.float32],
    queries: NDArray[np.float64], points: NDArray[np.float64], k: int, out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write the distance of each query to its k-th nearest point.

    ``halves`` (n,) less ``products`` (rows, n) is half the squared distance up to a constant, in
    single precision with an error of at most half of ``slack`` (rows,). A point nearer than the
    k-th by more than the slack is certainly among the k nearest; a point farther by more is not.
    For the remaining points, usually one, distances are computed in double precision.
    """
    n, d = points.shape
    least = np.empty((n + _PRODUCTS_AT_ONCE - 1) // _PRODUCTS_AT_ONCE, dtype=np.float32)
    # one element more than needed, because rejected candidates are written too, and overwritten
    blocks = np.empty(len(least) + 1, dtype=np.int64)
    near = np.empty(n + 1, dtype=np.int64)
    nearness = np.empty(n + 1, dtype=np.float32)
    scratch = np.empty(n, dtype=np.float32)
    squares = np.empty(n, dtype=np.float64)
    guess = np.float32(0)
    for i in range(len(queries)):
        least_of_blocks(products[i], halves, least)
        # k blocks have a point this near, so that farther points are not among the k nearest
        guess = bound_of_kth(least, k, guess)
        bound = guess + slack[i]
        n_blocks = n_near = 0
        for block in range(len(least)):
            blocks[n_blocks] = block
            n_blocks += least[block] <= bound
        for block in blocks[:n_blocks]:
            for j in range(block * _PRODUCTS_AT_ONCE, min((block + 1) * _PRODUCTS_AT_ONCE, n)):
                value = halves[j] - products[i, j]
                near[n_near] = j
                nearness[n_near] = value
                n_near += value <= bound
        kth = kth_smallest(nearness[:n_near], k, scratch)
        low, high = kth - slack[i], kth + slack[i]
        n_nearer = n_left = 0
        for c in range(n_near):
            if nearness[c] < low:
                n_nearer += 1
            elif nearness[c] <= high:
                square = 0.0
                for axis in range(d):
                    gap = queries[i, axis] - points[near[c], axis]
                    square += gap * gap
                squares[n_left] = square
                n_left += 1
        candidates = squares[:n_left]
        if n_left > 1:
            candidates.sort()
        out[i] = np.sqrt(candidates[k - n_nearer - 1])
