"""`score-matching` at small scale: features are as good as the closed form."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.densities.score_matching import closed_form_score, two_modes
from tests.oracles.score_matching import KernelScore


@pytest.mark.parametrize("d", [1, 3])
def test_closed_form(d):
    """The peer of the experiment is the oracle's, in other units."""
    rng = np.random.default_rng(0)
    x = two_modes(40, d, rng) * (1 + np.arange(d))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    covariance = np.cov(z.T, bias=True).reshape(d, d)
    exact = KernelScore(z, z.mean(axis=0), covariance, 0.8, 0.05)
    result = closed_form_score(x, 0.8, 0.05)(x[:7])
    np.testing.assert_allclose(result, exact(z[:7]) / x.std(axis=0), rtol=1e-9, atol=1e-10)
