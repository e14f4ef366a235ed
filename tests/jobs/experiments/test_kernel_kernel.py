"""What 2BE and the Kernel-Kernel estimator are compared by."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, Box, KernelSmoother
from bagbasis.densities import kde_at
from bagbasis.jobs.experiments.kit import kernel_kernel
from bagbasis.jobs.experiments.kit.kernel_kernel import (
    QUERIES_PER_CALL,
    KernelDensityEmbedding,
    LeanSmoother,
    smooth,
)

MIDPOINTS = (np.arange(60) + 0.5) / 60


@pytest.fixture(scope="module")
def labelled():
    """Bags in the unit interval, and the spread of the densities that they come from."""
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.02, 0.3, 700)
    points = [np.clip(rng.normal(0.5, s, (40, 1)), 0, 1) for s in spread]
    return Bags.from_list(points), np.log(spread)


@pytest.mark.parametrize("bandwidth", [1e-3, 0.3, 5.0])
def test_lean_smoother_predicts_the_same(labelled, bandwidth, monkeypatch):
    """One bag per call and batches agree with `KernelSmoother`, even where weights underflow; rows
    are read in parts."""
    monkeypatch.setattr(kernel_kernel, "BAGS_AT_ONCE", 150)
    bags, y = labelled
    training = bags[:400], np.column_stack([y, y**2])[:400]
    smoother = KernelSmoother(KernelDensityEmbedding(0.1), bandwidth=bandwidth).fit(*training)
    expected = smoother.predict(bags[400:])
    assert np.ptp(expected[:, 0]) > (0.1 if bandwidth < 1 else 1e-3)
    assert len(expected) > QUERIES_PER_CALL
    np.testing.assert_allclose(smooth(smoother, bags[400:]), expected, rtol=1e-3)
    lean = LeanSmoother(smoother, training)
    for i in (0, 7):
        single = lean.predict(bags[400 + i : 401 + i])
        np.testing.assert_allclose(single, expected[i], rtol=1e-3)


@pytest.mark.parametrize("n_dims", [1, 2])
@pytest.mark.parametrize("bandwidth", [0.05, 0.2])
def test_distance_is_that_of_kernel_density_estimates(n_dims, bandwidth):
    """Euclidean distances of embeddings are L2 distances of the exact estimates, to the functions
    that are left out."""
    rng = np.random.default_rng(0)
    bags = Bags.from_list([rng.beta(a, 2, size=(30, n_dims)) for a in (0.5, 1.0, 3.0, 6.0)])
    spec = KernelDensityEmbedding(bandwidth).resolve(n_dims, Box.unit(n_dims), None)
    rows = np.empty((len(bags), spec.n_features))
    assert spec.embed(bags, rows) == 0
    result = np.linalg.norm(rows[:, None] - rows, axis=2)
    at = np.stack(np.meshgrid(*[MIDPOINTS] * n_dims, indexing="ij"), axis=-1).reshape(-1, n_dims)
    values = kde_at(bags, at, bandwidth=bandwidth)
    squares = ((values[:, None] - values) ** 2).mean(axis=2)
    np.testing.assert_allclose(result, np.sqrt(squares), rtol=0.01)
