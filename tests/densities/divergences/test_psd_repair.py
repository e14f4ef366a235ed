"""`PSDRepair`: positive semidefinite, by its formulas, and the same for a bag seen twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bagbasis import DataError
from bagbasis.densities import PSDRepair
from tests.oracles.divergences import indefinite, linear_transform, repaired

METHODS = ("clip", "flip", "shift", "square")
eigenvalues = st.lists(st.floats(-3, 3).map(lambda value: round(value, 2)), min_size=1, max_size=12)


@pytest.mark.parametrize("method", METHODS)
class TestTrainingMatrix:
    @pytest.mark.long
    @given(values=eigenvalues, seed=st.integers(0, 99))
    def test_positive_semidefinite_by_its_formula(self, method, values, seed):
        """The spectrum is the method's, no eigenvalue is below zero but for rounding, and the
        training matrix is left alone."""
        K = indefinite(np.random.default_rng(seed), values)
        before = K.copy()
        result = PSDRepair(method).fit_transform(K)
        scale = max(1.0, np.abs(values).max() ** 2)
        np.testing.assert_allclose(result, repaired(K, method), atol=1e-13 * scale)
        assert np.linalg.eigvalsh(result).min() > -1e-13 * scale
        np.testing.assert_array_equal(K, before)

    def test_float32(self, method):
        """A float32 kernel is repaired in double precision."""
        K = indefinite(np.random.default_rng(0), [-1, -0.5, 0.3, 2, 3]).astype(np.float32)
        result = PSDRepair(method).fit_transform(K)
        assert result.dtype == np.float64
        assert np.linalg.eigvalsh(result).min() > -1e-6


@pytest.mark.long
@pytest.mark.parametrize("method", ["clip", "flip", "shift"])
@given(values=st.lists(st.integers(0, 5), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_nothing_to_repair(method, values, seed):
    """A positive semidefinite matrix, singular or not, and rows of new bags come back bit by
    bit."""
    rng = np.random.default_rng(seed)
    K, rows = indefinite(rng, values), rng.standard_normal((3, len(values)))
    repair = PSDRepair(method)
    np.testing.assert_array_equal(repair.fit_transform(K), K)
    np.testing.assert_array_equal(repair.transform(rows), rows)


@pytest.mark.parametrize("method", ["clip", "flip", "square"])
class TestRows:
    def test_linear_transform(self, method):
        """Rows of new bags are multiplied by the P of 000, eq. 2.4."""
        rng = np.random.default_rng(0)
        K, rows = indefinite(rng, [-3, -1, -0.2, 0.5, 2, 4]), rng.standard_normal((7, 6))
        result = PSDRepair(method).fit(K).transform(rows)
        np.testing.assert_allclose(result, rows @ linear_transform(K, method).T, atol=1e-13)

    @pytest.mark.long
    @given(values=eigenvalues, seed=st.integers(0, 99))
    def test_repeated_training_bag(self, method, values, seed):
        """A new bag with the kernel row of a training bag gets that bag's repaired row."""
        K = indefinite(np.random.default_rng(seed), values)
        repair = PSDRepair(method)
        trained = repair.fit_transform(K)
        scale = max(1.0, np.abs(values).max() ** 2)
        np.testing.assert_allclose(repair.transform(K), trained, atol=1e-13 * scale)
        np.testing.assert_allclose(repair.transform(K[-1:]), trained[-1:], atol=1e-13 * scale)


def test_shift_changes_the_diagonal_alone():
    """Off the diagonal, and in rows of new bags, nothing changes."""
    K = indefinite(np.random.default_rng(0), [-2, 1, 3])
    repair = PSDRepair("shift")
    np.testing.assert_allclose(repair.fit_transform(K) - K, 2 * np.eye(3), atol=1e-14)
    rows = repair.transform(K)
    np.testing.assert_array_equal(rows, K)
    assert not np.shares_memory(rows, K)


def test_clip_is_the_nearest():
    """No other positive semidefinite matrix nearby is nearer in Frobenius norm."""
    rng = np.random.default_rng(0)
    K = indefinite(rng, [-2, -1, 1, 3])
    clipped = PSDRepair("clip").fit_transform(K)
    best = np.linalg.norm(K - clipped)
    for _ in range(200):
        root = np.linalg.cholesky(clipped + 1e-9 * np.eye(4)) + 0.1 * rng.standard_normal((4, 4))
        assert np.linalg.norm(K - root @ root.T) > best - 1e-8


def test_attributes():
    """How indefinite the matrix was can be read off."""
    repair = PSDRepair().fit(indefinite(np.random.default_rng(0), [-2, -1, 0, 3]))
    np.testing.assert_allclose(repair.eigenvalues_, [-2, -1, 0, 3], atol=1e-14)
    assert repair.negative_vectors_.shape == (4, 2)
    assert repair.n_features_in_ == 4


def test_refused():
    """A rectangle, and a matrix that is not symmetric."""
    with pytest.raises(DataError, match=r"shape \(2, 3\)"):
        PSDRepair().fit(np.ones((2, 3)))
    with pytest.raises(DataError, match=r"0.5 at \(0, 1\) and 0.25 at \(1, 0\); average both"):
        PSDRepair().fit([[1, 0.5], [0.25, 1]])
