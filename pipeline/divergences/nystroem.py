"""`NystroemFeatures`: features of bags from their kernel with a few anchor bags."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import DataError, ParameterError
from .neighbours import Floats
from .spectrum import check_square, eigendecomposition, rounding

METHODS = ("standard", "flip", "clip")
INDEFINITE = 1e-6  # of the largest eigenvalue; kernels computed in float32 stay above


class NystroemFeatures(TransformerMixin, BaseEstimator):
    """Features whose inner products are the Nyström approximation (000, §2.4.2).

    The kernel of m anchors is A = UΛUᵀ, that of other bags with the anchors B (in rows), and the
    features of the latter Φ = B U |Λ|^(−½); an anchor's are those of its row of A. Directions with
    an eigenvalue that rounding can not tell from zero are left out, as by a pseudoinverse. With A⁺
    that pseudoinverse, the inner products are:

    ========== ===================== ================= ===============
    method     anchors               anchors, others   others
    ========== ===================== ================= ===============
    "standard" A                     A A⁺ Bᵀ           B A⁺ Bᵀ
    "flip"     A_flip                P_flip Bᵀ         B A_flip⁺ Bᵀ
    "clip"     A_clip                P_clip Bᵀ         B A_clip⁺ Bᵀ
    ========== ===================== ================= ===============

    "standard" takes a positive semidefinite A. "flip" and "clip" are the consistent treatment of an
    indefinite one: A and B are repaired alike, as by `PSDRepair`, so that a repeated anchor is the
    anchor. All three are equal on a positive semidefinite A. (000 has sign(Λ) in the features of
    B and not in those of A; with one map for both, whole columns differ in sign from these, which
    no inner product sees.)

    Parameters
    ----------
    method : {"standard", "flip", "clip"}

    Attributes
    ----------
    eigenvalues_ : shape (m,)
        Of A, ascending.
    projection_ : shape (m, r)
        U |Λ|^(−½), r ≤ m directions, those of the largest |λ| first.

    Examples
    --------
    >>> import numpy as np
    >>> from bagbasis.divergences import DivergenceKernel, NystroemFeatures
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(50, 2)) for _ in range(100)]
    >>> kernel = DivergenceKernel("js").fit(bags[:20])
    >>> features = NystroemFeatures("flip").fit(kernel.transform(bags[:20]))
    >>> features.transform(kernel.transform(bags)).shape
    (100, 20)
    """

    def __init__(self, method: str = "flip") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None) -> NystroemFeatures:
        """Decompose the anchors' kernel X = A, shape (m, m).

        Raises
        ------
        DataError
            A is not square, not symmetric, too large for memory, or indefinite for "standard".
        ParameterError
            An unknown method.
        """
        if self.method not in METHODS:
            raise ParameterError(f"method is {self.method!r}; expected one of {METHODS}")
        matrix, precision = check_square(self, X, "the anchors' kernel")
        values, vectors = eigendecomposition(matrix)
        tolerance = rounding(values, precision)
        if self.method == "standard" and values[0] < -max(tolerance, INDEFINITE * values[-1]):
            raise DataError(
                f"the anchors' kernel has an eigenvalue {values[0]:.6g} and is indefinite; use "
                "method='flip' or 'clip'"
            )
        sizes = np.abs(values) if self.method == "flip" else values
        kept = np.argsort(-sizes)[: int((sizes > tolerance).sum())]
        self.eigenvalues_ = values
        self.projection_ = vectors[:, kept] / np.sqrt(sizes[kept])
        return self

    def transform(self, X: Any) -> Floats:
        """Features of bags from their kernel with the anchors, shape (n, m) → (n, r)."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False) @ self.projection_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags
