"""Centred Gram matrices of two samples of rows, compared entry by entry: whole, or in tiles.

HSIC_b, HSIC_u, distance covariance and Lancaster's statistic are all c · Σ_ij A_ij B_ij of two
matrices whose rows add up to 0. Over the orders in which B's rows may be paired with A's, mean and
variance of that sum follow from three numbers of each matrix, with no order drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...data.store.sampling import spread_rows
from ...execution.passes import check_memory
from ...execution.pool import even_edges, run_kernel
from .kernels import AnyKernel, tiles
from .pairing_kernels import permuted_products, permuted_products_of_widths

SECONDS_PER_PAIR = 1e-9  # of rows, in a product of two matrices
SECONDS_PER_WIDTHS = 8e-9  # in the products of five matrices with five others
SKEW_ROWS = 1024  # rows of a third moment: it errs by a few percent, in a tenth of a second


@dataclass(frozen=True, eq=False)
class CentredGram:
    """K̃ of some rows, made tile by tile.

    Attributes
    ----------
    kernel : callable
    rows : float64, shape (n, d)
    unbiased : bool
        False: K̃ = HKH. True: the matrix with a zero diagonal whose rows add up to 0 as well
        (U-centred), of which the unbiased HSIC is made.
    margins : float64, shape (n,)
        Means that centring subtracts from rows and columns, including half of the grand mean.
    centred : float64, shape (n, n), optional
        The matrix, kept where it is one tile.
    """

    kernel: AnyKernel
    rows: Floats
    unbiased: bool
    margins: Floats
    centred: Floats | None = None

    @classmethod
    def of(cls, kernel: AnyKernel, rows: Floats, unbiased: bool = False) -> CentredGram:
        """Measure the margins, in one pass over the tiles."""
        n, sums = len(rows), np.zeros(len(rows))
        parts = [*tiles(n)]
        values = kernel(rows, rows) if len(parts) == 1 else None
        if values is None:
            for part in parts:
                sums[part] = sum(kernel(rows[part], rows[other]).sum(axis=1) for other in parts)
        else:
            sums += values.sum(axis=1)
        if unbiased:
            sums -= kernel.at_zero
            margins = sums / (n - 2) - sums.sum() / (2 * (n - 1) * (n - 2))
        else:
            margins = sums / n - sums.sum() / (2 * n**2)
        gram = cls(kernel, rows, unbiased, margins)
        if values is None:
            return gram
        everything = slice(0, n)
        return replace(gram, centred=gram.centre(values, everything, everything))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.rows)

    @property
    def centred_trace(self) -> float:
        """The trace of HKH, whichever way this is centred."""
        n, at_zero = len(self), self.kernel.at_zero
        margins = float(self.margins.sum())
        grand = 2 * (n - 1) * margins + n * at_zero if self.unbiased else 2 * n * margins
        return n * at_zero - grand / n

    @property
    def skew(self) -> float:
        """Σλ³ / (Σλ²)^1.5 of the eigenvalues, of evenly spread rows where these are many."""
        is_whole = self.centred is not None and not self.unbiased
        few = self if is_whole else CentredGram.of(self.kernel, spread_rows(self.rows, SKEW_ROWS))
        gram = few.tile(slice(0, len(few)), slice(0, len(few)))
        square = gram @ gram.T  # of a symmetric matrix, by the product that takes half the time
        return float(np.vdot(square, gram) / np.vdot(gram, gram) ** 1.5)

    def tile(self, a: slice, b: slice) -> Floats:
        """Return the entries of rows ``a`` and columns ``b``, not to be written to.

        Both start at multiples of a tile.
        """
        if self.centred is not None:
            return self.centred[a, b]
        return self.centre(self.kernel(self.rows[a], self.rows[b]), a, b)

    def centre(self, values: Floats, a: slice, b: slice) -> Floats:
        """Centre the kernel's values of rows ``a`` and columns ``b``, in place."""
        values -= self.margins[a, None]
        values -= self.margins[b]
        if self.unbiased and a == b:
            np.fill_diagonal(values, 0.0)
        return values

    def whole(self) -> Floats:
        """Return the matrix.

        Raises
        ------
        ParameterError
            It does not fit into memory.
        """
        n = len(self)
        advice = "take null='pearson', a statistic of features, or fewer rows"
        check_memory(f"a matrix of {n:,} × {n:,} pairs", 3 * 8 * n**2, advice)
        gram = self.tile(slice(0, n), slice(0, n))
        return gram if self.centred is None else gram.copy()


@dataclass(frozen=True, eq=False)
class GramSums:
    """What one pass over the tiles of two centred Gram matrices adds up.

    Attributes
    ----------
    products : float64, shape (n,)
        Σ_j A_ij B_ij of each row.
    squares : (float, float)
        ΣA², ΣB².
    traces : (float, float)
    diagonals : (float, float)
        Σ_i A_ii², Σ_i B_ii².
    """

    products: Floats
    squares: tuple[float, float]
    traces: tuple[float, float]
    diagonals: tuple[float, float]

    @classmethod
    def of(cls, A: CentredGram, B: CentredGram) -> GramSums:
        """Go over all pairs of tiles; memory for two."""
        n = len(A)
        products, numbers = np.zeros(n), np.zeros((3, 2))
        for rows in tiles(n):
            for columns in tiles(n):
                a, b = A.tile(rows, columns), B.tile(rows, columns)
                products[rows] += np.einsum("ij,ij->i", a, b)
                numbers[0] += np.vdot(a, a), np.vdot(b, b)
                if rows == columns:
                    of_a, of_b = a.diagonal(), b.diagonal()
                    numbers[1] += of_a.sum(), of_b.sum()
                    numbers[2] += of_a @ of_a, of_b @ of_b
        squares, traces, diagonals = ((float(x), float(y)) for x, y in numbers)
        return cls(products, squares, traces, diagonals)

    @property
    def product(self) -> float:
        """Σ_ij A_ij B_ij."""
        return float(self.products.sum())

    @property
    def standard_error(self) -> float:
        """Return the standard error of Σ_ij A_ij B_ij / n² over new pairs of rows, to first order.

        The influence of a pair of rows on ‖C‖² is 2 (Σ_j A_ij B_ij / n − ‖C‖²).
        """
        n = len(self.products)
        return float(2 * (self.products / n).std(ddof=1) / n**0.5)

    @property
    def alignment(self) -> float:
        """⟨A, B⟩ / (‖A‖ ‖B‖), at most 1: the centred alignment of the two kernels."""
        scale = (self.squares[0] * self.squares[1]) ** 0.5
        return self.product / scale if scale else 0.0

    def moments(self) -> tuple[float, float]:
        """Return mean and variance of ⟨A, B⟩ over all n! orders of B's rows, exactly.

        For matrices whose rows add up to 0 (Kazi-Aoual, Hitier, Sabatier and Lebreton 1995).
        """
        n = len(self.products)
        (t, u), (t2, u2), (s2, v2) = self.traces, self.squares, self.diagonals
        mean = t * u / (n - 1)
        first = 2 * ((n - 1) * t2 - t**2) * ((n - 1) * u2 - u**2)
        second = (n * (n + 1) * s2 - (n - 1) * (t**2 + 2 * t2)) * (
            n * (n + 1) * v2 - (n - 1) * (u**2 + 2 * u2)
        )
        variance = first / ((n - 1) ** 2 * (n + 1) * (n - 2))
        variance += second / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
        return mean, variance


def products_of_orders(A: Floats, B: Floats, orders: Iterator[NDArray[np.int64]]) -> Floats:
    """Return ⟨A, B in the order⟩ of blocks of orders, shape (n_orders,).

    Parameters
    ----------
    A, B : float64, shape (n, n)
    orders : iterator of int64, shape (m, n)
    """
    return _of_orders(permuted_products, SECONDS_PER_PAIR * A.size, A, B, orders, ())


def products_of_widths(A: Floats, B: Floats, orders: Iterator[NDArray[np.int64]]) -> Floats:
    """Return ⟨A_k, B_l in the order⟩ of blocks of orders, shape (n_orders, K · L).

    Parameters
    ----------
    A, B : float64, shape (K, n, n) and (L, n, n)
        Symmetric, with diagonals of zeros.
    orders : iterator of int64, shape (m, n)
    """
    seconds = SECONDS_PER_WIDTHS * A.shape[1] ** 2
    every = _of_orders(permuted_products_of_widths, seconds, A, B, orders, (len(A), len(B)))
    return every.reshape(len(every), -1)


def _of_orders(
    kernel: Callable[..., None],
    seconds: float,
    A: Floats,
    B: Floats,
    orders: Iterator[NDArray[np.int64]],
    shape: tuple[int, ...],
) -> Floats:
    """Return what a kernel writes for each order, which takes so many seconds."""
    values = []
    for block in orders:
        out = np.empty((len(block), *shape))
        run_kernel(kernel, even_edges(len(block), seconds), A, B, block, out)
        values.append(out)
    return np.concatenate(values)
