"""Cholesky factors of matrices of any size."""

from __future__ import annotations

import scipy.linalg
from scipy.linalg import blas, lapack

from .summary import Floats

# OpenBLAS up to 0.3.31 at least crashes the process in a dpotrf of more than some 15,000 rows on
# several threads: larger matrices are factored by so many columns at a time, at a tenth more time.
MOST_ROWS = 12_288
COLUMNS = 1024


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
        The matrix is not positive definite.
    """
    size = len(matrix)
    columns = size if size <= MOST_ROWS else COLUMNS
    for start in range(0, size, columns):
        stop = min(size, start + columns)
        panel = matrix[start:, start:stop]
        if start:
            panel -= matrix[start:, :start] @ matrix[start:stop, :start].T
            matrix[:start, start:stop] = 0.0
        corner, failed = lapack.dpotrf(panel[: stop - start], lower=1, overwrite_a=1)
        if failed:
            raise scipy.linalg.LinAlgError("the matrix is not positive definite")
        panel[: stop - start] = corner  # of a panel of all rows these are the same memory
        if stop < size:
            given = {"side": 1, "lower": 1, "trans_a": 1, "overwrite_b": 1}
            panel[stop - start :] = blas.dtrsm(1.0, corner, panel[stop - start :], **given)
    return matrix
