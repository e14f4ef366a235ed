"""Square kernel matrices on their way into an eigendecomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils.validation import validate_data

from ..errors import DataError
from .memory import require_memory
from .neighbours import Floats

EIGEN_MATRICES = 5  # the copy that is overwritten, the vectors, LAPACK's two, and a result
SYMMETRY = 1e-8  # of the largest entry
SLACK = 10  # errors of the entries add up; those of LAPACK have a constant too


def check_square(estimator: Any, K: Any, what: str) -> tuple[Floats, float]:
    """K in float64, and the relative precision of its entries.

    Raises
    ------
    DataError
        K is not square or not symmetric, or its eigendecomposition does not fit in memory.
    """
    K = validate_data(estimator, K, dtype=[np.float64, np.float32])
    n = len(K)
    if K.shape != (n, n):
        raise DataError(f"{what} has shape {K.shape}; expected a square matrix, bags by bags")
    precision = float(np.finfo(K.dtype).eps)
    matrix = K.astype(np.float64, copy=False)
    advice = "use NystroemFeatures on fewer anchors, or an embedding"
    n_bytes = EIGEN_MATRICES * matrix.itemsize * n * n
    require_memory(f"the eigendecomposition of {what} of {n:,} bags", n_bytes, advice)
    gap = np.abs(matrix - matrix.T)
    if gap.max() > SYMMETRY * np.abs(matrix).max():
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise DataError(
            f"{what} is not symmetric: {matrix[i, j]:.6g} at ({i}, {j}) and {matrix[j, i]:.6g} at "
            f"({j}, {i}); average both directions of the divergence first"
        )
    return matrix, precision


def eigendecomposition(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and eigenvectors in columns."""
    values, vectors = scipy.linalg.eigh(matrix, check_finite=False)
    return values, vectors


def rounding(values: Floats, precision: float) -> float:
    """Size up to which an eigenvalue can not be told from zero."""
    return float(SLACK * len(values) * precision * np.abs(values).max())
