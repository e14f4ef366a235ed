"""The exact distance to the k-th neighbour in many dimensions, by products of matrices."""

from __future__ import annotations

import numpy as np

from ...core.arrays import Floats
from ...execution.worker_threads import one_blas_thread
from .nearest_kernels import kth_distances

MANY_DIMS = 10  # from here on, trees of some thousand points visit most of them
PRODUCTS_AT_ONCE = 3 << 17  # single-precision products: about what one core's cache holds
_QUERY_PANEL = 16  # queries at a time, and multiples: BLAS is no faster with fewer
LARGEST = 1e15  # squares of coordinates beyond do not fit in single precision with their products


class AllDistances:
    """Points that are asked for neighbours, with what all queries share.

    Products in single precision find the points that come into question, with a bound of their
    rounding; the distances of these are computed in double. So results are those of a search in
    double, whatever BLAS there is.
    """

    def __init__(self, points: Floats) -> None:
        self._points = np.ascontiguousarray(points)
        self._centre = points.mean(axis=0)
        moved = points - self._centre
        self._single = np.ascontiguousarray(moved.T, dtype=np.float32)
        squares = np.einsum("ij,ij->i", moved, moved)
        self._halves = (squares / 2).astype(np.float32)
        self._farthest = float(np.sqrt(squares.max()))

    @property
    def is_safe(self) -> bool:
        """Whether single precision holds the products of these points."""
        return self._farthest < LARGEST

    def distances(self, queries: Floats, k: int) -> Floats:
        """Return the distance of each query to the k-th of as many points or more, (n_queries,)."""
        out = np.empty(len(queries))
        d = queries.shape[1]
        n_rows = max(
            _QUERY_PANEL, PRODUCTS_AT_ONCE // len(self._points) // _QUERY_PANEL * _QUERY_PANEL
        )
        n_rows = min(n_rows, len(queries))
        single = np.finfo(np.float32)
        # reused: a new array of this size would be new pages of memory each time
        products = np.empty((n_rows, len(self._points)), np.float32)
        with one_blas_thread():
            for start in range(0, len(queries), n_rows):
                rows = np.ascontiguousarray(queries[start : start + n_rows])
                moved = rows - self._centre
                reach = np.sqrt(np.einsum("ij,ij->i", moved, moved)) + self._farthest
                # Each of d products, their sum, and both roundings to single: an eighth would do.
                # What is too small for single precision may be lost in each of them.
                slack = 2 * (d + 8) * (single.eps * reach**2 + 2 * single.tiny)
                some = products[: len(rows)]
                np.matmul(moved.astype(np.float32), self._single, out=some)
                kth_distances(
                    some,
                    self._halves,
                    slack.astype(np.float32),
                    rows,
                    self._points,
                    k,
                    out[start : start + n_rows],
                )
        return out
