"""Sufficient statistics of ridge regression: mergeable, subtractable, of fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..execution.costs import SECONDS_PER_PRODUCT, Cost
from .statistics_kernels import add_sums, add_triangle, gram_float32, gram_float64, unpack_centred

BLOCK_ROWS = 8192  # of the block that goes through one SYRK: fewer and the products are slower
BLOCK_BYTES = 2**28  # of it, at most
MANY_TARGETS = 32  # from here on a matrix product beats exact sums target by target


@dataclass(frozen=True)
class RidgeStatistics:
    """n, Σz, ZᵀZ, Σy, ZᵀY and Σy² of rows (z, y); all sums in float64.

    Attributes
    ----------
    n : int
    sum_z : shape (D,)
    gram : shape (D (D + 1) / 2,)
        The upper triangle of ZᵀZ, packed by rows.
    sum_y : shape (k,)
    cross : shape (k, D)
        YᵀZ.
    sum_yy : shape (k,)
    """

    n: int
    sum_z: NDArray[np.float64]
    gram: NDArray[np.float64]
    sum_y: NDArray[np.float64]
    cross: NDArray[np.float64]
    sum_yy: NDArray[np.float64]

    @property
    def n_features(self) -> int:
        """Features of a row, D."""
        return len(self.sum_z)

    @property
    def n_targets(self) -> int:
        """Targets of a row, k."""
        return len(self.sum_y)

    def __add__(self, other: RidgeStatistics) -> RidgeStatistics:
        """Return the statistics of both sets of rows."""
        return RidgeStatistics(*(a + b for a, b in _pairs(self, other)))

    def __sub__(self, other: RidgeStatistics) -> RidgeStatistics:
        """Return the statistics without rows that were counted before."""
        return RidgeStatistics(*(a - b for a, b in _pairs(self, other)))

    @property
    def trace(self) -> float:
        """The trace of ZᵀZ: n for paired random features."""
        return float(self.diagonal.sum())

    @property
    def diagonal(self) -> NDArray[np.float64]:
        """Of ZᵀZ, shape (D,)."""
        row = np.arange(self.n_features)
        return self.gram[row * self.n_features - row * (row - 1) // 2]

    def centred_gram(self, shift: float = 0.0) -> NDArray[np.float64]:
        """ZᵀZ − n z̄z̄ᵀ + shift·I, shape (D, D); only the upper triangle is set."""
        square = np.empty((self.n_features, self.n_features))
        unpack_centred(self.gram, self.sum_z, float(self.n), float(shift), square)
        return square

    def centred_cross(self) -> NDArray[np.float64]:
        """ZᵀY − n z̄ȳᵀ, shape (D, k)."""
        return (self.cross - np.outer(self.sum_y, self.sum_z) / self.n).T

    def centred_yy(self) -> NDArray[np.float64]:
        """Σ (y − ȳ)², shape (k,)."""
        return np.maximum(0.0, self.sum_yy - self.sum_y**2 / self.n)


class StatisticsBuilder:
    """Collects rows in a block and adds each full block into `RidgeStatistics`.

    Blocks go through one SYRK (and, with many targets, one GEMM) in the working precision and
    are added into float64. What a row is added with depends on its position among the rows
    alone, so the result does not depend on how they arrive.

    Memory: the packed float64 triangle, one D × D square and one block of rows.
    """

    def __init__(
        self,
        n_features: int,
        n_targets: int,
        dtype: DTypeLike = np.float32,
        scratch: NDArray[Any] | None = None,
    ) -> None:
        self._dtype = np.dtype(dtype)
        self._rows = _block_rows(n_features, self._dtype.itemsize)
        self._z = np.empty((self._rows, n_features), dtype=dtype)
        self._y = np.empty((self._rows, n_targets))
        self._filled = 0
        self._n = 0
        self.square = np.empty((n_features, n_features), dtype) if scratch is None else scratch
        self._gram = np.zeros(n_features * (n_features + 1) // 2)
        self._sum_z = np.zeros(n_features)
        self._sum_y = np.zeros(n_targets)
        self._cross = np.zeros((n_targets, n_features))
        self._sum_yy = np.zeros(n_targets)

    def room(self, n_rows: int) -> NDArray[Any]:
        """Return the block's next rows, to be filled with features: up to n_rows of them."""
        return self._z[self._filled : self._filled + n_rows]

    def commit(self, y: NDArray[np.float64]) -> None:
        """Count the next ``len(y)`` rows of the room as filled, with these targets (n, k)."""
        stop = self._filled + len(y)
        self._y[self._filled : stop] = y
        self._filled = stop
        if stop == self._rows:
            self._flush()

    def add(self, z: NDArray[Any], y: NDArray[np.float64]) -> None:
        """Add rows that are at hand: z (n, D), y (n, k)."""
        done = 0
        while done < len(z):
            room = self.room(len(z) - done)
            room[:] = z[done : done + len(room)]
            self.commit(y[done : done + len(room)])
            done += len(room)

    def finish(self) -> RidgeStatistics:
        """Return the statistics of all rows."""
        self._flush()
        return RidgeStatistics(
            self._n, self._sum_z, self._gram, self._sum_y, self._cross, self._sum_yy
        )

    def _flush(self) -> None:
        if self._filled == 0:
            return
        z, y = self._z[: self._filled], self._y[: self._filled]
        (gram_float32 if self._dtype == np.float32 else gram_float64)(z, self.square)
        add_triangle(self._gram, self.square)
        self._add_cross(z, y)
        self._sum_y += y.sum(axis=0)
        self._sum_yy += (y**2).sum(axis=0)
        self._n += self._filled
        self._filled = 0

    def _add_cross(self, z: NDArray[Any], y: NDArray[np.float64]) -> None:
        if y.shape[1] < MANY_TARGETS:
            add_sums(z, y, self._sum_z, self._cross)
            return
        sums = np.zeros_like(self._sum_z)
        add_sums(z, y[:, :0], sums, self._cross[:0])
        # centred, so that the working precision goes to what varies within the block
        mean = y.mean(axis=0)
        self._cross += (y - mean).astype(self._dtype).T @ z
        self._cross += np.outer(mean, sums)
        self._sum_z += sums


def statistics_cost(n_features: int, n_targets: int, precision: str, n_parts: int = 1) -> Cost:
    """Return what `StatisticsBuilder` takes for rows that are at hand.

    ``n_parts`` builders share one square. While tasks merge, a worker holds the two partial
    results and their sum; the square and the blocks are gone then.
    """
    itemsize, d = np.dtype(precision).itemsize, n_features
    packed = 8 * (d * (d + 1) // 2 + n_targets * (d + 2) + d)
    block = _block_rows(d, itemsize) * (itemsize * d + 8 * n_targets)
    building = itemsize * d * d + n_parts * (packed + block)
    return Cost(
        seconds_per_bag=d * d * SECONDS_PER_PRODUCT,
        bytes_per_bag=8 * n_targets,
        bytes_per_task=max(building, 3 * n_parts * packed),
    )


def _block_rows(n_features: int, itemsize: int) -> int:
    return int(np.clip(BLOCK_BYTES // (itemsize * n_features), 64, BLOCK_ROWS))


def _pairs(a: RidgeStatistics, b: RidgeStatistics) -> Iterator[tuple[Any, Any]]:
    return ((getattr(a, f.name), getattr(b, f.name)) for f in fields(RidgeStatistics))
