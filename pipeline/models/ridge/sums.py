"""Sufficient statistics of ridge regression: mergeable, subtractable, of fixed size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike, NDArray
from typing_extensions import override

from ...core.arrays import Floats
from ...data.store.sampling import spread_rows
from ...embeddings.random_features.completion import Completion
from ...execution.costs import SECONDS_PER_PRODUCT, Cost
from .gram_products import GramProducts, add_upper, gram_bytes, unpack_products
from .moments import MomentsBuilder, RidgeMoments
from .summary import MeanSquaredError

BLOCK_ROWS = 8192  # rows of the block that is multiplied at once: with fewer, products are slower
_BLOCK_BYTES = 2**28  # largest size of that block
_MAX_RATIO = 1e3  # features whose root mean squares differ by less have one bound of rounding


@dataclass(frozen=True)
class RidgeStatistics(RidgeMoments):
    """`RidgeMoments` and ZᵀZ: all that a solver needs, without the rows.

    Attributes
    ----------
    gram : shape (D (D + 1) / 2,)
        The upper triangle of ZᵀZ, packed by rows.
    """

    gram: Floats

    @property
    def size(self) -> int:
        """Order of the matrix that is solved."""
        return len(self.sum_z)

    @property
    def n_bytes(self) -> int:
        """Bytes of the large arrays."""
        return self.gram.nbytes + self.cross.nbytes

    @property
    def is_finite(self) -> bool:
        """Whether all features are."""
        return bool(np.isfinite(self.sum_z).all() and np.isfinite(self.diagonal).all())

    @property
    def trace(self) -> float:
        """The trace of ZᵀZ: n for paired random features."""
        return float(self.diagonal.sum())

    @property
    def diagonal(self) -> Floats:
        """Diagonal of ZᵀZ, shape (D,)."""
        row = np.arange(self.n_features)
        return self.gram[row * self.n_features - row * (row - 1) // 2]

    def centred_gram(self, shift: float = 0.0) -> Floats:
        """ZᵀZ − n z̄z̄ᵀ + shift·I, shape (D, D); only the upper triangle is set."""
        return unpack_products(self.gram, self.sum_z, float(self.weight), float(shift))

    @override
    def completed(self, by: Completion) -> RidgeStatistics:
        if not by:
            return self
        square = unpack_products(self.gram, np.zeros(self.n_features), 1.0)
        by.complete_products(square)
        gram = np.zeros_like(self.gram)
        add_upper(gram, square)
        return replace(super().completed(by), gram=gram)

    def statistics(self) -> RidgeStatistics:
        """Return the sums of the rows."""
        return self

    def part(self, size: int) -> RidgeStatistics:
        """Return a part of order ``size``: evenly spaced rows, or features."""
        chosen = spread_rows(np.arange(self.n_features), size)
        i, j = (chosen[half] for half in np.triu_indices(len(chosen)))
        gram = self.gram[i * self.n_features - i * (i - 1) // 2 + j - i]
        sums = {"sum_z": self.sum_z[chosen], "cross": self.cross[:, chosen]}
        return replace(self, gram=gram, **sums)

    def split(self, size: int) -> tuple[RidgeStatistics, RidgeStatistics, Floats]:
        """Return the statistics of the first features, of the others, and their cross products."""
        d, row = self.n_features, np.arange(size)
        starts = (row * d - row * (row - 1) // 2).tolist()
        first = np.concatenate([self.gram[a : a + size - i] for i, a in enumerate(starts)])
        both = np.stack([self.gram[a + size - i : a + d - i] for i, a in enumerate(starts)])
        sums = [
            (self.sum_z[:size], self.cross[:, :size]),
            (self.sum_z[size:], self.cross[:, size:]),
        ]
        grams = (first, self.gram[size * d - size * (size - 1) // 2 :])
        ours, theirs = (
            replace(self, gram=gram, sum_z=sum_z, cross=cross)
            for gram, (sum_z, cross) in zip(grams, sums, strict=True)
        )
        return ours, theirs, both

    def matrix(self, shift: float = 0.0) -> Floats:
        """M + shift·I, in Fortran order, a new array; only the lower triangle is set."""
        return self.centred_gram(shift).T

    def right_side(self) -> Floats:
        """Return b, shape (size, k)."""
        return self.centred_cross()

    def rounding(self, noise: float) -> float:
        """Return the fraction of the trace below which eigenvalues of M come from rounding."""
        return noise

    def sizes(self) -> Floats:
        """Return s, shape (size,): entry (i, j) of M is rounded in proportion to s_i s_j.

        √Σz², of features about 0; 1 for features that are 0.
        """
        squares = self.diagonal
        return np.sqrt(np.where(squares > 0, squares, 1.0))

    @property
    def is_graded(self) -> bool:
        """Whether features are of so different sizes that one bound of rounding hides some."""
        return are_graded(self.diagonal)

    def significant(self, noise: float) -> tuple[Floats, Floats, float]:
        """Return eigenvalues of M, shape (r,), eigenvectors, shape (size, r), and a bound.

        Features of different sizes are brought to one size first, so that the rounding of
        large ones does not hide small ones. M ≈ RRᵀ of what is left; the singular values of
        R have the digits that those of RRᵀ lose.
        """
        matrix, sizes = self.centred_gram(), np.ones(self.size)
        bound = noise * self.trace
        if self.is_graded:
            sizes = self.sizes()
            matrix /= sizes[:, None]
            matrix /= sizes
            bound = noise * self.size
        values, vectors = scipy.linalg.eigh(
            matrix.T, lower=True, overwrite_a=True, check_finite=False, driver="evd"
        )
        # centred rows span fewer directions than there are rows, whatever their sums say
        keep = np.arange(self.size) > self.size - self.n_weighted
        if not self.is_graded:
            return np.maximum(0.0, values[keep]), vectors[:, keep], bound
        keep &= values > bound
        root = sizes[:, None] * vectors[:, keep] * np.sqrt(values[keep])
        return *squared_singular_values(root), 0.0

    def residual_squares(
        self, solution: Floats, right_side: Floats, alpha: float, df: float
    ) -> tuple[Floats, float]:
        """Return these rows' residual squares, and the fit's degrees of freedom; M alone has df."""
        explained = np.sum(solution * right_side + alpha * solution**2, axis=0)
        return np.maximum(0.0, self.centred_yy() - explained), df

    def judge(self) -> MeanSquaredError:
        """Return the function that computes the mean squared errors on these rows."""
        gram, right_side, yy = self.matrix(), self.centred_cross(), self.centred_yy()

        def mean_squared_error(coef: Floats, intercept: Floats) -> Floats:
            products = scipy.linalg.blas.dsymm(1.0, gram, coef, lower=1)
            quadratic, cross = np.sum(coef * products, axis=0), np.sum(coef * right_side, axis=0)
            bias = (self.sum_y - coef.T @ self.sum_z) / self.weight - intercept
            errors: Floats = np.maximum(0.0, yy - 2 * cross + quadratic) / self.weight + bias**2
            return errors

        return mean_squared_error


class StatisticsBuilder:
    """Collects rows in a block and adds each full block into `RidgeStatistics`.

    Blocks are multiplied in the working precision (by `GramProducts` and, with many targets, one
    GEMM) and are added into float64. Which rows form a block depends only on their position, so
    the result does not depend on how they arrive.

    Memory: the packed float64 triangle, the products of a block and one block of rows. Builders
    that take turns may share ``products``.
    """

    def __init__(
        self,
        n_features: int,
        n_targets: int,
        dtype: DTypeLike = np.float32,
        products: GramProducts | None = None,
    ) -> None:
        self._dtype = np.dtype(dtype)
        self._rows = _block_rows(n_features, self._dtype.itemsize)
        self._z = np.empty((self._rows, n_features), dtype=dtype)
        self._y = np.empty((self._rows, n_targets))
        self._weights: Floats | None = None
        self._filled = 0
        self._moments = MomentsBuilder(n_features, n_targets)
        self.products = products or GramProducts(n_features, self._rows, self._dtype)
        self._gram = np.zeros(n_features * (n_features + 1) // 2)

    def buffer(self, n_rows: int) -> NDArray[Any]:
        """Return the block's next rows, to be filled with features: up to n_rows of them."""
        return self._z[self._filled : self._filled + n_rows]

    def commit(self, y: Floats, weights: Floats | None = None) -> None:
        """Count the next rows as filled, with targets (n, k), perhaps weights (n,)."""
        stop = self._filled + len(y)
        self._y[self._filled : stop] = y
        if weights is not None:
            if self._weights is None:
                self._weights = np.empty(self._rows)
            self._weights[self._filled : stop] = weights
        self._filled = stop
        if stop == self._rows:
            self._flush()

    def add(self, z: NDArray[Any], y: Floats, weights: Floats | None = None) -> None:
        """Add existing rows: z (n, D), y (n, k), weights (n,); weights always or never."""
        done = 0
        while done < len(z):
            buffer = self.buffer(len(z) - done)
            buffer[:] = z[done : done + len(buffer)]
            rows = slice(done, done + len(buffer))
            self.commit(y[rows], None if weights is None else weights[rows])
            done += len(buffer)

    def finish(self) -> RidgeStatistics:
        """Return the statistics of all rows."""
        self._flush()
        moments = self._moments.finish()
        return RidgeStatistics(**vars(moments), gram=self._gram)

    def _flush(self) -> None:
        if self._filled == 0:
            return
        z, y = self._z[: self._filled], self._y[: self._filled]
        weights = None if self._weights is None else self._weights[: self._filled]
        self._moments.add(z, y, weights)
        if weights is not None:
            z *= np.sqrt(weights)[:, None].astype(z.dtype)
        self.products.add(self._gram, z)
        self._filled = 0


def statistics_cost(n_features: int, n_targets: int, precision: str, n_parts: int = 1) -> Cost:
    """Return the cost of `StatisticsBuilder` for given rows.

    ``n_parts`` builders share the memory of products. While tasks merge, a worker holds the two
    partial results and their sum. The products and blocks are freed before.
    """
    itemsize, d = np.dtype(precision).itemsize, n_features
    packed = 8 * (d * (d + 1) // 2 + n_targets * (d + 2) + d)
    block = _block_rows(d, itemsize) * (itemsize * d + 8 * n_targets)
    building = gram_bytes(d, precision) + n_parts * (packed + block)
    return Cost(
        seconds_per_bag=d * d * SECONDS_PER_PRODUCT,
        bytes_per_bag=8 * n_targets,
        bytes_per_task=max(building, 3 * n_parts * packed),
    )


def squared_singular_values(root: Floats, full: bool = False) -> tuple[Floats, Floats]:
    """Return σ² and left singular vectors of R; σ that cannot be told from rounding are 0."""
    if not root.size:
        return np.zeros(0), np.zeros((len(root), 0))
    full = full and len(root) > root.shape[1]  # else the right vectors, which nobody reads, grow
    vectors, sigma, _ = scipy.linalg.svd(root, full_matrices=full, check_finite=False)
    sigma[sigma <= np.finfo(np.float64).eps * max(root.shape) * sigma.max()] = 0.0
    values = np.zeros(vectors.shape[1])
    values[: len(sigma)] = sigma**2
    return values, vectors


def are_graded(squares: Floats) -> bool:
    """Whether sums of squares of features differ by more than those `_MAX_RATIO`."""
    positive = squares[squares > 0]
    return bool(len(positive) and positive.max() > _MAX_RATIO**2 * positive.min())


def _block_rows(n_features: int, itemsize: int) -> int:
    return int(np.clip(_BLOCK_BYTES // (itemsize * n_features), 64, BLOCK_ROWS))
