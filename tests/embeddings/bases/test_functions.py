"""The one-dimensional bases are orthonormal, and so are their products."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.embeddings import BASES, evaluate_basis, index_set

NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)  # exact to degree 159
X, W = (NODES + 1) / 2, WEIGHTS / 2


@pytest.mark.parametrize("basis", BASES)
def test_functions_are_orthonormal(basis):
    """∫ φ_j φ_k = 1 for j = k (the norm the papers leave out) and 0 otherwise."""
    values = evaluate_basis(basis, 20, X)
    np.testing.assert_allclose(values.T @ (W[:, None] * values), np.eye(20), atol=1e-12)


@pytest.mark.parametrize("basis", BASES)
def test_first_function_is_one(basis):
    """φ_0 = 1, so that the first coefficient of a density is its mass."""
    np.testing.assert_array_equal(evaluate_basis(basis, 1, [0.0, 0.3, 1.0]), np.ones((3, 1)))


@pytest.mark.parametrize("basis", BASES)
def test_series_of_products_is_orthonormal(basis):
    """Parseval in two dimensions: the squared L2 norm of a series is that of its coefficients."""
    indices = index_set(2, None, max_norm=3.0, basis=basis)
    grid = np.stack(np.meshgrid(X, X, indexing="ij"), axis=-1).reshape(-1, 2)
    coefficients = np.random.default_rng(0).standard_normal((2, len(indices)))
    of_one = [evaluate_basis(basis, 12, x)[:, k] for x, k in zip(grid.T, indices.T, strict=True)]
    values = coefficients @ np.prod(of_one, axis=0).T
    assert values.shape == (2, len(grid))
    inner = values * np.outer(W, W).ravel() @ values.T
    np.testing.assert_allclose(inner, coefficients @ coefficients.T, rtol=1e-10)
