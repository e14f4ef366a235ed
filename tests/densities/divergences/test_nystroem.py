"""`PrecomputedNystroem`: the block formulas, exact at low rank, and consistent for anchors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bagbasis import DataError
from bagbasis.densities import DivergenceKernel, PrecomputedNystroem, PSDRepair
from tests.oracles.divergences import indefinite, nystroem_blocks

METHODS = ("standard", "flip", "clip")
POSITIVE, MIXED = [0.3, 0.5, 1, 2, 4], [-3, -0.5, 0.4, 2, 4]


def anchors_and_others(rng, values, n=7):
    return indefinite(rng, values), rng.standard_normal((len(values), n))


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("standard", POSITIVE),
        ("flip", POSITIVE),
        ("clip", POSITIVE),
        ("flip", MIXED),
        ("clip", MIXED),
    ],
)
@given(seed=st.integers(0, 999))
def test_block_formulas(method, values, seed):
    """Inner products of the features of anchors and others are the approximation's blocks."""
    A, B = anchors_and_others(np.random.default_rng(seed), values)
    features = PrecomputedNystroem(method).fit(A).transform(np.vstack([A, B.T]))
    np.testing.assert_allclose(
        features @ features.T, nystroem_blocks(A, B, method), rtol=1e-9, atol=1e-9
    )


@pytest.mark.long
@given(seed=st.integers(0, 999))
def test_singular_anchors(seed):
    """A singular A: its pseudoinverse, with as many features as its rank."""
    rng = np.random.default_rng(seed)
    A, B = anchors_and_others(rng, [0, 0, 1, 2, 4])
    for method in METHODS:
        features = PrecomputedNystroem(method).fit(A).transform(np.vstack([A, B.T]))
        assert features.shape == (12, 3)
        truth = nystroem_blocks(A, B, "standard")
        np.testing.assert_allclose(features @ features.T, truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_exact_at_low_rank(method):
    """A positive semidefinite kernel of rank ≤ m is recovered from m anchors."""
    rng = np.random.default_rng(0)
    for rank in (1, 3, 5):
        points = rng.standard_normal((40, rank))
        K = points @ points.T
        features = PrecomputedNystroem(method).fit(K[:5, :5]).transform(K[:, :5])
        assert features.shape == (40, rank)
        np.testing.assert_allclose(features @ features.T, K, atol=1e-10)


@pytest.mark.parametrize("method", ["flip", "clip"])
class TestIndefinite:
    @pytest.mark.long
    @given(seed=st.integers(0, 999))
    def test_repeated_anchor(self, method, seed):
        """An anchor among the others has the anchor's features, and so its kernel with all."""
        A, B = anchors_and_others(np.random.default_rng(seed), MIXED)
        nystroem = PrecomputedNystroem(method).fit(A)
        anchors = nystroem.transform(A)
        others = nystroem.transform(np.vstack([B.T, A[2:3]]))
        np.testing.assert_allclose(others[-1], anchors[2], atol=1e-12)
        truth = nystroem_blocks(A, np.hstack([B, A[:, 2:3]]), method)
        np.testing.assert_allclose(truth[-1], truth[2], atol=1e-9)

    def test_agrees_with_the_repair(self, method):
        """With every bag an anchor the inner products are the repaired kernel."""
        A, _ = anchors_and_others(np.random.default_rng(0), MIXED)
        features = PrecomputedNystroem(method).fit_transform(A)
        repaired = PSDRepair(method).fit_transform(A)
        np.testing.assert_allclose(features @ features.T, repaired, atol=1e-12)
        assert features.shape == (5, 5 if method == "flip" else 3)


def test_standard_refuses_an_indefinite_kernel():
    """With the eigenvalue and what to use; noise of float32 passes."""
    A = indefinite(np.random.default_rng(0), MIXED)
    with pytest.raises(DataError, match="eigenvalue -3 and is indefinite; use method='flip'"):
        PrecomputedNystroem("standard").fit(A)
    PrecomputedNystroem("standard").fit(indefinite(np.random.default_rng(0), [-1e-7, 1, 3]))


def test_float32_rank():
    """Directions within float32's rounding of zero are left out of a float32 kernel."""
    points = np.random.default_rng(0).standard_normal((30, 3)).astype(np.float32)
    nystroem = PrecomputedNystroem("flip").fit(points @ points.T)
    assert nystroem.projection_.shape == (30, 3)


@pytest.mark.long
def test_bags():
    """Features of many bags from few anchors: the anchors' kernel is repaired and kept, and the
    kernel of the others is near the full one."""
    rng = np.random.default_rng(0)
    bags = [rng.normal(scale=rng.uniform(0.5, 2), size=(100, 1)) for _ in range(60)]
    kernel = DivergenceKernel("mmd", bandwidth=1.0).fit(bags[:25])
    A = kernel.transform(bags[:25])
    features = PrecomputedNystroem("clip").fit(A).transform(kernel.transform(bags))
    approximation = features @ features.T
    np.testing.assert_allclose(
        approximation[:25, :25], PSDRepair("clip").fit_transform(A), atol=1e-9
    )
    full = PSDRepair("clip").fit_transform(
        DivergenceKernel("mmd", bandwidth=1.0).fit_transform(bags)
    )
    assert np.corrcoef(approximation.ravel(), full.ravel())[0, 1] > 0.98


def test_refused():
    """A rectangle, and a matrix that is not symmetric."""
    with pytest.raises(DataError, match=r"anchors' kernel has shape \(2, 3\)"):
        PrecomputedNystroem().fit(np.ones((2, 3)))
    with pytest.raises(DataError, match="not symmetric"):
        PrecomputedNystroem().fit([[1, 0.5], [0.25, 1]])
