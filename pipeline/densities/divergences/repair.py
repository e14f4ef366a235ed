"""`PSDRepair` and `PrecomputedNystroem`: repair or features of indefinite kernel matrices."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ...core import OneOf
from ...core.arrays import Floats
from ...core.errors import DataError
from ...core.sklearn_bases import BaseEstimator, TransformerMixin, validated
from .resources import require_memory

REPAIRS = ("clip", "flip", "shift", "square")
REMOVED_TIMES = {"clip": 1.0, "flip": 2.0}  # times the negative part
NYSTROEM_METHODS = ("standard", "flip", "clip")
_MIN_EIGENVALUE = 1e-6  # relative to the largest eigenvalue; kernels computed in float32 stay above
EIGEN_MATRICES = 5  # an overwritten copy, the vectors, two arrays of LAPACK, and a result
SYMMETRY = 1e-8  # tolerated asymmetry, relative to the largest entry
_SLACK = 10  # factor for errors of LAPACK and sums of errors of the entries


class KernelDecomposition(TransformerMixin, BaseEstimator):
    """Base class of transformers that decompose a square kernel matrix in `fit`."""

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: X is a square matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


class PSDRepair(KernelDecomposition):
    """Repair a kernel matrix that is not positive semidefinite.

    The methods are those of Chen et al. 2009 (Sutherland 2016, §2.4.1).

    ========== ================================ ====================================
    method     training matrix, K = UΛUᵀ        rows B of new bags
    ========== ================================ ====================================
    "clip"     U max(Λ, 0) Uᵀ, the nearest one  B U 1(Λ ≥ 0) Uᵀ
    "flip"     U |Λ| Uᵀ                         B U sign(Λ) Uᵀ
    "square"   K²                               B K
    "shift"    K + |λ_min| I                    B: only the new bags' diagonal changes
    ========== ================================ ====================================

    Consider a new bag that repeats a training bag, so that both have the same kernel values. With
    "clip", "flip" and "square", the new bag gets the repaired row of the training bag. With
    "shift", the row lacks |λ_min| at the training bag, because no linear map can add it.
    Eigenvalues that equal zero up to rounding are not changed. "clip" and "flip" therefore do not
    change a positive semidefinite matrix.

    If the new bags are known before training, `fit_transform` of the kernel matrix of all bags
    together is better.

    Parameters
    ----------
    method : {"clip", "flip", "shift", "square"}
        Repair method, see the table.

    Attributes
    ----------
    eigenvalues_ : shape (N,)
        Eigenvalues of the training matrix in ascending order.
    negative_vectors_ : shape (N, r)
        Eigenvectors of the r eigenvalues below zero.
    kernel_ : shape (N, N)
        The training matrix, for "square" only.

    See Also
    --------
    DivergenceKernel : Precomputed kernel from a divergence.
    PrecomputedNystroem : Nyström features of a kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.densities import PSDRepair
    >>> K = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.9], [0.1, 0.9, 1.0]])
    >>> repaired = PSDRepair('clip').fit_transform(K)
    >>> bool(np.linalg.eigvalsh(repaired).min() > -1e-12)
    True
    """

    def __init__(self, method: str = "clip") -> None:
        self.method = method

    def fit(self, X: ArrayLike, y: object = None) -> PSDRepair:
        """Decompose the training matrix X, shape (N, N)."""
        self._fit(X)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> Floats:
        """Return the repaired training matrix, shape (N, N), float64.

        The matrix is positive semidefinite up to rounding.

        Raises
        ------
        DataError
            If X is not square, not symmetric, or too large for memory.
        ParameterError
            If the method is unknown.
        """
        matrix = self._fit(X)
        if self.method == "shift":
            repaired = matrix.copy()
            repaired[np.diag_indices_from(repaired)] += max(0.0, -self._least())
            return repaired
        if self.method == "square":
            return matrix @ matrix.T
        removed = REMOVED_TIMES[self.method] * self.eigenvalues_[: self.negative_vectors_.shape[1]]
        return matrix - (self.negative_vectors_ * removed) @ self.negative_vectors_.T

    def transform(self, X: ArrayLike) -> Floats:
        """Return repaired kernel values between new and training bags, shape (n, N)."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=np.float64, reset=False)
        if self.method == "shift":
            return rows.copy()
        if self.method == "square":
            return rows @ self.kernel_
        along = rows @ self.negative_vectors_
        return rows - REMOVED_TIMES[self.method] * along @ self.negative_vectors_.T

    def _fit(self, X: ArrayLike) -> Floats:
        OneOf(*REPAIRS).check("method", self.method)
        matrix, precision = check_square(self, X, "the kernel matrix")
        self.eigenvalues_, vectors = eigendecomposition(matrix)
        n_negative = int((self.eigenvalues_ < -rounding(self.eigenvalues_, precision)).sum())
        self.negative_vectors_ = vectors[:, :n_negative].copy()
        if self.method == "square":
            self.kernel_ = matrix.copy()
        return matrix

    def _least(self) -> float:
        return float(self.eigenvalues_[0]) if self.negative_vectors_.shape[1] else 0.0


class PrecomputedNystroem(KernelDecomposition):
    """Nyström features of a precomputed kernel matrix.

    The inner products of the features are the Nyström approximation (Sutherland 2016, §2.4.2).

    The kernel matrix of m anchors is A = UΛUᵀ. The rows of B hold kernel values between other bags
    and the anchors. The features of other bags are Φ = B U |Λ|^(−½); the features of the anchors
    are A U |Λ|^(−½). Directions whose eigenvalue is zero up to rounding are left out, as in a
    pseudoinverse. With the pseudoinverse A⁺, the inner products are:

    ========== ===================== ================= ===============
    method     anchors               anchors, others   others
    ========== ===================== ================= ===============
    "standard" A                     A A⁺ Bᵀ           B A⁺ Bᵀ
    "flip"     A_flip                P_flip Bᵀ         B A_flip⁺ Bᵀ
    "clip"     A_clip                P_clip Bᵀ         B A_clip⁺ Bᵀ
    ========== ===================== ================= ===============

    "standard" needs a positive semidefinite A. "flip" and "clip" also accept an indefinite A. They
    repair A and B in the same way, as `PSDRepair` does, so that a repeated anchor has the features
    of the anchor. All three methods are equal for a positive semidefinite A. (Sutherland 2016 has
    sign(Λ) in the features of B only. With one map for A and B, whole columns change their sign,
    which does not change inner products.)

    Parameters
    ----------
    method : {"standard", "flip", "clip"}
        Treatment of negative eigenvalues, see the table.

    Attributes
    ----------
    eigenvalues_ : shape (m,)
        Eigenvalues of A in ascending order.
    projection_ : shape (m, r)
        Matrix U |Λ|^(−½) of r ≤ m directions, in descending order of |λ|.

    See Also
    --------
    bagbasis.NystroemFeatures : Kernel features from landmark bags.
    DivergenceKernel : Precomputed kernel from a divergence.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.densities import DivergenceKernel, PrecomputedNystroem
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(50, 2)) for _ in range(100)]
    >>> kernel = DivergenceKernel("js").fit(bags[:20])
    >>> features = PrecomputedNystroem("flip").fit(kernel.transform(bags[:20]))
    >>> features.transform(kernel.transform(bags)).shape
    (100, 20)
    """

    def __init__(self, method: str = "flip") -> None:
        self.method = method

    def fit(self, X: ArrayLike, y: object = None) -> PrecomputedNystroem:
        """Decompose the kernel matrix of the anchors X = A, shape (m, m).

        Raises
        ------
        DataError
            If A is not square, not symmetric, too large for memory, or indefinite for "standard".
        ParameterError
            If the method is unknown.
        """
        OneOf(*NYSTROEM_METHODS).check("method", self.method)
        matrix, precision = check_square(self, X, "the anchors' kernel")
        values, vectors = eigendecomposition(matrix)
        tolerance = rounding(values, precision)
        if self.method == "standard" and values[0] < -max(tolerance, _MIN_EIGENVALUE * values[-1]):
            raise DataError(
                f"the anchors' kernel has an eigenvalue {values[0]:.6g} and is indefinite; use "
                "method='flip' or 'clip'"
            )
        sizes = np.abs(values) if self.method == "flip" else values
        largest = np.argsort(-sizes)[: int((sizes > tolerance).sum())]
        self.eigenvalues_ = values
        self.projection_ = vectors[:, largest] / np.sqrt(sizes[largest])
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return features (n, r) of bags from kernel values (n, m) with the anchors."""
        check_is_fitted(self)
        return validated(self, X, dtype=np.float64, reset=False) @ self.projection_


def check_square(estimator: BaseEstimator, kernel: ArrayLike, what: str) -> tuple[Floats, float]:
    """Return the kernel in float64, and the relative precision of its entries.

    Raises
    ------
    DataError
        If the matrix is not square or not symmetric, or its eigendecomposition does not fit in
        memory.
    """
    checked = validated(estimator, kernel, dtype=[np.float64, np.float32])
    n = len(checked)
    if checked.shape != (n, n):
        raise DataError(f"{what} has shape {checked.shape}; expected a square matrix, bags by bags")
    precision = float(np.finfo(checked.dtype).eps)
    matrix = checked.astype(np.float64, copy=False)
    advice = "use PrecomputedNystroem on fewer anchors, or an embedding"
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
    """Size up to which an eigenvalue cannot be told from zero."""
    return float(_SLACK * len(values) * precision * np.abs(values).max())
