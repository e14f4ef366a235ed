"""`PSDRepair`: indefinite kernel matrices made positive semidefinite, test rows alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import ParameterError
from .neighbours import Floats
from .spectrum import check_square, eigendecomposition, rounding

METHODS = ("clip", "flip", "shift", "square")
REMOVED = {"clip": 1.0, "flip": 2.0}  # times the negative part


class PSDRepair(TransformerMixin, BaseEstimator):
    """Makes a kernel matrix positive semidefinite (Chen et al. 2009; 000, §2.4.1).

    ========== ================================ ====================================
    method     training matrix, K = UΛUᵀ        rows B of new bags
    ========== ================================ ====================================
    "clip"     U max(Λ, 0) Uᵀ, the nearest one  B U 1(Λ ≥ 0) Uᵀ
    "flip"     U |Λ| Uᵀ                         B U sign(Λ) Uᵀ
    "square"   K²                               B K
    "shift"    K + |λ_min| I                    B: only the new bags' diagonal changes
    ========== ================================ ====================================

    By the first three a new bag whose row of kernel values is that of a training bag (its repeat)
    gets that bag's repaired row. By "shift" it gets the row without |λ_min| at the bag itself:
    there is no linear map for it. Eigenvalues that rounding can not tell from zero are
    kept as they are, so that "clip" and "flip" do not touch a positive semidefinite matrix.

    Where the new bags are known in time, `fit_transform` of the kernel of training and new bags
    together is better still.

    Parameters
    ----------
    method : {"clip", "flip", "shift", "square"}

    Attributes
    ----------
    eigenvalues_ : shape (N,)
        Of the training matrix, ascending: how indefinite it is.
    negative_vectors_ : shape (N, r)
        Eigenvectors of the r eigenvalues below zero.
    kernel_ : shape (N, N)
        The training matrix, for "square" only.
    """

    def __init__(self, method: str = "clip") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None) -> PSDRepair:
        """Decompose the training matrix X, shape (N, N)."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """The repaired training matrix, shape (N, N), float64, positive semidefinite but for
        rounding.

        Raises
        ------
        DataError
            X is not square, not symmetric, or too large for memory.
        ParameterError
            An unknown method.
        """
        matrix = self._fit(X)
        if self.method == "shift":
            repaired = matrix.copy()
            repaired[np.diag_indices_from(repaired)] += max(0.0, -self._least())
            return repaired
        if self.method == "square":
            return matrix @ matrix.T
        removed = REMOVED[self.method] * self.eigenvalues_[: self.negative_vectors_.shape[1]]
        return matrix - (self.negative_vectors_ * removed) @ self.negative_vectors_.T

    def transform(self, X: Any) -> Floats:
        """Repaired rows of new bags from their kernel with the training bags, shape (n, N)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        if self.method == "shift":
            return rows.copy()
        if self.method == "square":
            return rows @ self.kernel_
        along = rows @ self.negative_vectors_
        return rows - REMOVED[self.method] * along @ self.negative_vectors_.T

    def _fit(self, X: Any) -> Floats:
        if self.method not in METHODS:
            raise ParameterError(f"method is {self.method!r}; expected one of {METHODS}")
        matrix, precision = check_square(self, X, "the kernel matrix")
        self.eigenvalues_, vectors = eigendecomposition(matrix)
        n_negative = int((self.eigenvalues_ < -rounding(self.eigenvalues_, precision)).sum())
        self.negative_vectors_ = vectors[:, :n_negative].copy()
        if self.method == "square":
            self.kernel_ = matrix.copy()
        return matrix

    def _least(self) -> float:
        return float(self.eigenvalues_[0]) if self.negative_vectors_.shape[1] else 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags
