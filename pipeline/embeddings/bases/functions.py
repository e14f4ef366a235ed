"""One-dimensional orthonormal bases of L2([0, 1]), evaluated in numpy."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from ...core import Integer, OneOf, checked
from ...core.arrays import Floats, as_array
from ...core.errors import DataError

_FARTHEST = 1e6  # largest |x|; beyond, phases have no correct digits

MAX_FUNCTIONS = 200_000  # the float64 coefficients of a bag take 1.6 MB
BASIS = OneOf("cosine", "trigonometric", "legendre")
Basis = Annotated[str, BASIS]
BASES = BASIS.choices
"""Names of the orthonormal bases; the position of a name is its code in kernels."""


def check_basis(basis: str) -> int:
    """Return the code of a basis in kernels; ParameterError if the basis is unknown."""
    return BASES.index(BASIS.check("basis", basis))


@checked
def evaluate_basis(
    basis: Basis,
    n_functions: Annotated[int, Integer(1, MAX_FUNCTIONS)],
    x: ArrayLike,
) -> Floats:
    """Evaluate orthonormal basis functions on [0, 1].

    The result holds φ_0(x) … φ_{n_functions − 1}(x), shape (len(x), n_functions), for x in [0, 1].

    The functions of the cosine basis are φ_0 = 1 and φ_k = √2 cos(kπx) (Oliva 2018, eq. 2.9). The
    trigonometric basis has 1, then √2 cos(2πkx) and √2 sin(2πkx) for k = 1, 2, …. The Legendre
    basis has √(2k+1) P_k(2x − 1).

    Raises
    ------
    DataError
        If an absolute value exceeds a million, where phases have no correct digits.

    See Also
    --------
    index_set : Multi-indices of a basis.
    bagbasis.ProjectionEmbedding : Projection coefficients of a density.

    Examples
    --------
    >>> from bagbasis.embeddings import evaluate_basis
    >>> evaluate_basis('cosine', 3, [0.0, 0.5, 1.0]).round(3)
    array([[ 1.   ,  1.414,  1.414],
           [ 1.   ,  0.   , -1.414],
           [ 1.   , -1.414,  1.414]])
    """
    u = as_array("x", x, np.float64).reshape(-1, 1)
    if (np.abs(u) > _FARTHEST).any():
        raise DataError(f"x holds {np.abs(u).max():g}; expected numbers from 0 to 1")
    k = np.arange(n_functions)
    if basis == "cosine":
        values = np.cos(np.pi * u * k)
    elif basis == "trigonometric":
        angle = 2 * np.pi * u * ((k + 1) // 2)
        values = np.where(k % 2 == 1, np.cos(angle), np.where(k == 0, 1.0, np.sin(angle)))
    else:
        values = np.polynomial.legendre.legvander(2 * u[:, 0] - 1, n_functions - 1)
    return values * function_scales(basis, n_functions)


def function_scales(basis: str, n_functions: int) -> Floats:
    """Return the factors that normalise cos, sin and P_k to norm 1, shape (K,)."""
    k = np.arange(n_functions)
    if basis == "legendre":
        scales: Floats = np.sqrt(2.0 * k + 1.0)
        return scales
    return np.where(k == 0, 1.0, np.sqrt(2.0))
