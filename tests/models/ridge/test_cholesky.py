"""Factors of matrices of any size, and what is computed with them."""

import numpy as np
import pytest
import scipy.linalg

from bagbasis.models.ridge import cholesky as module
from bagbasis.models.ridge.cholesky import cholesky, inverse_squares, solve_by_factor
from tests.passes import use_cores

pytestmark = pytest.mark.portable


def positive_definite(size):
    rows = np.random.default_rng(size).standard_normal((size + 3, size))
    return np.asfortranarray(rows.T @ rows)


@pytest.fixture(params=[4, 256])
def columns(request, monkeypatch):
    """Panels of so many columns, and parts of about as many rows."""
    monkeypatch.setattr(module, "PANEL_COLUMNS", request.param)
    monkeypatch.setattr(module, "PANEL_ROWS", request.param + 1)
    monkeypatch.setattr(module, "TARGETS_AT_ONCE", 2)


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 24, 61])
@pytest.mark.usefixtures("columns")
def test_factor_by_columns(size, cores):
    matrix = positive_definite(size)
    expected = np.linalg.cholesky(matrix)
    matrix[np.triu_indices(size, 1)] = np.nan  # never read
    with use_cores(cores):
        factor = cholesky(matrix)
    assert np.shares_memory(factor, matrix)
    np.testing.assert_allclose(factor, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 7, 24, 61])
@pytest.mark.usefixtures("columns")
def test_inverse_squares(size, dtype):
    """The sum that degrees of freedom are made of, in either precision."""
    factor = np.asfortranarray(np.linalg.cholesky(positive_definite(size)), dtype)
    expected = (np.linalg.inv(factor.astype(float)) ** 2).sum()
    assert inverse_squares(factor) == pytest.approx(expected, rel=1e4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("n_targets", [1, 2, 5])
@pytest.mark.usefixtures("columns")
def test_solve_by_factor(n_targets):
    """The right side is left as it was."""
    matrix = positive_definite(30)
    right_side = np.random.default_rng(1).standard_normal((30, n_targets))
    before = right_side.copy()
    solved = solve_by_factor(cholesky(matrix.copy(order="F")), right_side)
    np.testing.assert_allclose(solved, np.linalg.solve(matrix, right_side), rtol=1e-6)
    assert np.array_equal(right_side, before)


def test_threads_change_nothing():
    """Sizes that are cut into several panels: the same bits on one core as on three."""
    matrix = positive_definite(1100)
    right_side = np.random.default_rng(1).standard_normal((1100, 130))
    values = []
    for cores in (1, 3):
        with use_cores(cores):
            factor = cholesky(matrix.copy(order="F"))
            values.append((factor, inverse_squares(factor), solve_by_factor(factor, right_side)))
    for first, other in zip(*values, strict=True):
        assert np.array_equal(first, other)


@pytest.mark.usefixtures("columns")
def test_not_positive_definite():
    matrix = positive_definite(10)
    matrix[9, 9] = -1.0
    with pytest.raises(scipy.linalg.LinAlgError, match="not positive definite"):
        cholesky(matrix)
