"""Factors of matrices of any size: BLAS crashes where it is given too many rows at once."""

import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import lapack

from bagbasis.regression import cholesky as module
from bagbasis.regression.cholesky import cholesky


def positive_definite(size):
    rows = np.random.default_rng(size).standard_normal((size + 3, size))
    return np.asfortranarray(rows.T @ rows)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 24, 61])
@pytest.mark.parametrize("most", [7, 100])
def test_factor_by_columns(size, most, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", most)
    monkeypatch.setattr(module, "COLUMNS", 4)
    matrix = positive_definite(size)
    expected = np.linalg.cholesky(matrix)
    matrix[np.triu_indices(size, 1)] = np.nan  # never read
    factor = cholesky(matrix)
    assert np.shares_memory(factor, matrix)
    np.testing.assert_allclose(factor, expected, rtol=1e-9, atol=1e-9)


def test_no_factor_of_many_rows_at_once(monkeypatch):
    """A process that asks OpenBLAS for 16,000 rows is gone, so it is not tried here."""
    monkeypatch.setattr(module, "MOST_ROWS", 20)
    monkeypatch.setattr(module, "COLUMNS", 8)
    sizes = []

    class Counted:
        @staticmethod
        def dpotrf(matrix, **given):
            sizes.append(len(matrix))
            return lapack.dpotrf(matrix, **given)

    monkeypatch.setattr(module, "lapack", Counted)
    for size in (20, 21):
        cholesky(positive_definite(size))
    assert sizes == [20, 8, 8, 5]


@pytest.mark.parametrize("most", [7, 100])
def test_not_positive_definite(most, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", most)
    monkeypatch.setattr(module, "COLUMNS", 4)
    matrix = positive_definite(10)
    matrix[9, 9] = -1.0
    with pytest.raises(scipy.linalg.LinAlgError, match="not positive definite"):
        cholesky(matrix)
