"""The first basis of the Kernel-Kernel estimator."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, KernelSmoother
from bagbasis.bags import Box
from bagbasis.densities import kde_at
from bagbasis.jobs.experiments.kernel_density_embedding import KernelDensityEmbedding

MIDPOINTS = (np.arange(60) + 0.5) / 60


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
    found = np.linalg.norm(rows[:, None] - rows, axis=2)
    at = np.stack(np.meshgrid(*[MIDPOINTS] * n_dims, indexing="ij"), axis=-1).reshape(-1, n_dims)
    values = kde_at(bags, at, bandwidth)
    squares = ((values[:, None] - values) ** 2).mean(axis=2)
    np.testing.assert_allclose(found, np.sqrt(squares), rtol=0.01)


def test_smoother_takes_it():
    """A wider kernel leaves fewer coefficients, and the smoother has as many a bag."""
    bags = [np.random.default_rng(i).random((10, 1)) for i in range(20)]
    y = np.arange(20.0)
    narrow, wide = (
        KernelSmoother(KernelDensityEmbedding(h), bandwidth=0.1).fit(bags, y) for h in (0.05, 0.2)
    )
    assert narrow.features_.n_features > 3 * wide.features_.n_features > 3
    assert wide.training_.embeddings.shape == (20, wide.features_.n_features)
