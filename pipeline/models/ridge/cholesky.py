"""Cholesky factors of matrices of any size, and their inverses, on all cores.

Work is cut into blocks of columns and rows, each on one thread of BLAS, so that the bits do not
depend on the number of cores. OpenBLAS up to 0.3.31 at least also crashes the process in a dpotrf
of more than some 15,000 rows on several threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ...core.arrays import Floats
from ...execution.blas import add_gram, add_product, factorise, solve_from_left, solve_from_right
from ...execution.pool import run_parts
from ...execution.worker_threads import one_blas_thread

# Columns factored at a time: the longer this takes, the longer other cores wait.
PANEL_COLUMNS = 256
# Rows of a part of the remaining matrix, from which the columns are then subtracted.
PANEL_ROWS = 512
TARGETS_AT_ONCE = 64  # columns of a right-hand side that are solved for at a time


def cholesky(matrix: Floats) -> Floats:
    """Return the lower factor of a matrix, in its memory.

    Parameters
    ----------
    matrix : float64, shape (size, size), in Fortran order
        Positive definite; the lower triangle is read, and overwritten.

    Returns
    -------
    float64, shape (size, size)
        Zero above the diagonal.

    Raises
    ------
    scipy.linalg.LinAlgError
        If the matrix is not positive definite.
    """
    size = len(matrix)
    with one_blas_thread():
        for start in range(0, size, PANEL_COLUMNS):
            stop = min(size, start + PANEL_COLUMNS)
            corner = matrix[start:stop, start:stop]
            if not factorise(corner):
                raise scipy.linalg.LinAlgError("the matrix is not positive definite")
            corner[np.triu_indices(stop - start, 1)] = 0.0
            matrix[:start, start:stop] = 0.0
            _take_out(matrix, start, stop)
    return matrix


def _take_out(matrix: Floats, start: int, stop: int) -> None:
    """Finish a panel of columns whose corner is a factor, and take it out of those after it."""
    corner = matrix[start:stop, start:stop]
    below = list(_cut(stop, len(matrix), PANEL_ROWS))
    pairs = [(i, j) for k, j in enumerate(below) for i in below[k:]]

    def finish_rows(part: int) -> None:
        solve_from_right(corner, matrix[below[part], start:stop])

    def take_out(part: int) -> None:
        i, j = pairs[part]
        rows = matrix[i, start:stop]
        if i == j:
            add_gram(rows, matrix[i, i], -1.0, 1.0)
        else:
            add_product(rows, matrix[j, start:stop].T, matrix[i, j], -1.0, 1.0)

    run_parts(finish_rows, len(below))
    run_parts(take_out, len(pairs))


def solve_by_factor(factor: Floats, right_side: Floats) -> Floats:
    """Return (L Lᵀ)⁻¹ b of a lower factor L in Fortran order, and b (size, k)."""
    solved = np.array(right_side, order="F")
    panels = list(_cut(0, solved.shape[1], TARGETS_AT_ONCE))

    def solve(part: int) -> None:
        columns = solved[:, panels[part]]
        solve_from_left(factor, columns)
        solve_from_left(factor, columns, b"T")

    with one_blas_thread():
        run_parts(solve, len(panels))
    return solved


def inverse_squares(factor: NDArray[Any]) -> float:
    """Return the sum of the squares of L⁻¹, for a lower factor L in Fortran order.

    It is computed in the factor's precision and summed in double; L⁻¹ is never there as a whole.
    """
    size = len(factor)
    panels = list(_cut(0, size, PANEL_COLUMNS))
    squares = np.empty(len(panels))

    def invert(part: int) -> None:
        start = panels[part].start
        columns = np.zeros((size - start, panels[part].stop - start), factor.dtype, order="F")
        columns[np.diag_indices(columns.shape[1])] = 1.0
        solve_from_left(factor[start:, start:], columns)
        squares[part] = np.einsum("ij,ij->", columns.T, columns.T, dtype=np.float64)

    with one_blas_thread():
        run_parts(invert, len(panels))
    return float(squares.sum())


def _cut(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(stop, first + step))
