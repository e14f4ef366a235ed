"""Products of matrices, cut into fixed parts: the same bits on any number of cores.

BLAS cuts a product by its number of threads, and other cuts round differently. So each part uses
one BLAS thread, and the shapes alone determine the parts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .blas import Matrix, add_gram, multiply_from_left
from .pool import run_parts
from .worker_threads import one_blas_thread

# Rows or columns of a part: with fewer BLAS copies the other factor too often to be fast.
STEP = 512
# Multiplications that are not worth a second thread: a tenth of a millisecond.
SMALL_PRODUCT = 2**22
GRAM_COLUMNS = 256  # columns of a Gram matrix at a time


def multiply(a: Matrix, b: Matrix, out: Matrix | None = None) -> Matrix:
    """Return a b, shape (m, n), of a (m, k) and b (k, n); it is written into ``out``, if given."""
    m, n = len(a), b.shape[1]
    if out is None:
        out = np.empty((m, n), np.result_type(a, b))
    longest = max(m, n)
    step = STEP if m * n * len(b) > SMALL_PRODUCT else max(1, longest)

    def multiply_part(part: int) -> None:
        cut = slice(part * step, (part + 1) * step)
        if m == longest:
            np.matmul(a[cut], b, out=out[cut])
        else:
            np.matmul(a, b[:, cut], out=out[:, cut])

    with one_blas_thread():
        run_parts(multiply_part, -(-longest // step))
    return out


def multiply_by_triangle(rows: Matrix, upper: Matrix) -> None:
    """Replace rows (m, n) by rows U, for an upper triangular U (n, n); both in C order."""

    def multiply_part(part: int) -> None:
        multiply_from_left(upper.T, rows[part * STEP : (part + 1) * STEP].T)

    with one_blas_thread():
        run_parts(multiply_part, -(-len(rows) // STEP))


def gram_matrix(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangle of rows rowsᵀ, in Fortran order; above it are zeros."""
    n = len(rows)
    out = np.zeros((n, n), order="F")
    panels = [slice(start, min(n, start + GRAM_COLUMNS)) for start in range(0, n, GRAM_COLUMNS)]
    pairs = [(i, j) for k, j in enumerate(panels) for i in panels[k:]]

    def multiply_pair(part: int) -> None:
        i, j = pairs[part]
        if i == j:
            add_gram(rows[i], out[i, j])
        else:
            np.matmul(rows[j], rows[i].T, out=out[i, j].T)

    with one_blas_thread():
        run_parts(multiply_pair, len(pairs))
    return out
