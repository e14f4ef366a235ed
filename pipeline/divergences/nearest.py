"""The exact distance to the k-th neighbour in many dimensions, by products of matrices."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..execution import one_blas_thread
from .nearest_kernels import kth_distances

MANY_DIMS = 10  # from which trees of some thousand points visit most of them
ROWS_AT_ONCE = 512  # queries whose products, in single precision, lie in the cache
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
        """Return the distance of each query to the k-th point, shape (n_queries,)."""
        out = np.empty(len(queries))
        d = queries.shape[1]
        for start in range(0, len(queries), ROWS_AT_ONCE):
            rows = np.ascontiguousarray(queries[start : start + ROWS_AT_ONCE])
            moved = rows - self._centre
            reach = np.sqrt(np.einsum("ij,ij->i", moved, moved)) + self._farthest
            # each of d products, their sum, and both roundings to single: generous by a factor
            slack = (2 * (d + 8) * np.finfo(np.float32).eps * reach**2).astype(np.float32)
            with one_blas_thread():
                products = moved.astype(np.float32) @ self._single
            kth_distances(
                products, self._halves, slack, rows, self._points, k, out[start : start + len(rows)]
            )
        return out
