"""`goodness-of-fit` at small scale, and the data that it draws."""

from __future__ import annotations

import numpy as np

from bagbasis.jobs.experiments.hypotheses.goodness_of_fit import (
    DIMS,
    laplace,
    mixture,
    right,
    variance,
)


def test_data_of_fit():
    """Moments: all have means of 0; three have the covariance I."""
    rng = np.random.default_rng(0)
    for draw, first in ((right, 1.0), (laplace, 1.0), (mixture, 1.0), (variance, 1.3)):
        points = draw(rng, 50_000)
        expected = np.diag([first, *[1.0] * (DIMS - 1)])
        np.testing.assert_allclose(np.cov(points.T), expected, atol=0.04)
        np.testing.assert_allclose(points.mean(axis=0), 0, atol=0.03)
