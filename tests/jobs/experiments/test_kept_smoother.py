"""The lean smoother that is timed predicts what `KernelSmoother` predicts."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.experiments.kept_smoother import ROWS_A_BLOCK, KeptSmoother
from pipeline import Bags, KernelSmoother, ProjectionEmbedding


@pytest.mark.parametrize("n", [5, ROWS_A_BLOCK + 300])
@pytest.mark.parametrize("bandwidth", [1e-3, 0.1, 3.0])
def test_same_predictions(n, bandwidth):
    """For one block of training bags and for more, and where all weights but one underflow."""
    rng = np.random.default_rng(0)

    def bags(count):
        return [rng.beta(*rng.uniform(0.5, 3.0, 2), size=(20, 2)) for _ in range(count)]

    smoother = KernelSmoother(ProjectionEmbedding(n_per_dim=3), bandwidth=bandwidth)
    smoother.response_embedding = ProjectionEmbedding(n_per_dim=4)
    training, answers = bags(n), bags(n)
    smoother.fit(training, responses=answers)
    kept, queries = KeptSmoother.of(smoother), Bags.from_list(bags(7))
    expected = smoother.coefficients(queries)
    assert np.ptp(expected, axis=0).max() > (0.1 if bandwidth < 1 else 1e-3)
    np.testing.assert_allclose(kept.coefficients(queries), expected, atol=1e-4)
    np.testing.assert_allclose(kept.coefficients(queries[:1]), expected[:1], atol=1e-4)
    smoother.fit(training[:4], responses=answers[:4])
    first = KeptSmoother.of(smoother, 3)
    smoother.fit(training[:3], responses=answers[:3])
    expected = smoother.coefficients(queries)
    np.testing.assert_allclose(first.coefficients(queries), expected, atol=1e-4)
