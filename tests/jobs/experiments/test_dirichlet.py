"""004, §3.5.3 at small scale: 2BE against maximum likelihood and Kernel-Kernel."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from bagbasis.jobs.experiments.regression.over_sizes import fit_dirichlets, log_likelihood


@pytest.mark.parametrize("d", [2, 3, 5])
def test_largest_likelihood(d):
    """No other alpha is likelier: a general minimiser finds the same, for small and ragged bags,
    at the ends of the range of 004 too."""
    rng = np.random.default_rng(d)
    alpha = rng.uniform(0.3, 10, (6, d))
    alpha[0], alpha[1] = 0.3, 10
    sizes = [4, 5, 10, 50, 300, 20]
    points = [rng.dirichlet(a, n) for a, n in zip(alpha, sizes, strict=True)]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    result = fit_dirichlets(np.concatenate(points), offsets)
    for i, (a, b) in enumerate(pairwise(offsets)):
        logs = np.log(np.concatenate(points)[a:b]).mean(axis=0)[None]
        best = minimize(
            lambda x, logs=logs: -log_likelihood(np.exp(x)[None], logs)[0], np.zeros(d), tol=1e-12
        )
        np.testing.assert_allclose(result[i], np.exp(best.x), rtol=2e-3)
        assert log_likelihood(result[i : i + 1], logs)[0] >= -best.fun - 1e-9
