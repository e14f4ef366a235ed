"""002, §4 at small scale: errors over L, spreads over σ, and tests."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.samples import ring
from bagbasis.jobs.experiments.hypotheses.fastmmd import compare_statistics


@pytest.mark.long
def test_ring_spreads_as_printed():
    """Deviations of MMD_u² at σ = 2.51 over 200 repeats of one draw, as others have measured them:
    inside three standard errors of both, with what draws differ by."""
    rng = np.random.default_rng(0)
    values = np.array([
        np.std([
            [compare_statistics(X, Y, name, 2.51, 1024, int(rng.integers(2**32))).statistic
             for name in names]
            for X, Y in (map(rng.permutation, drawn) for _ in range(12))
        ], axis=0, ddof=1)
        for drawn in (ring(rng, 200) for _ in range(5))
        for names in [("fourier", "mmd_block", "mmd_linear")]
    ])  # fmt: skip
    printed = np.array([0.0050, 0.0125, 0.0508])
    between = values.var(axis=0, ddof=1) * (1 + 1 / len(values))  # draws; one was printed
    error = (printed**2 / (2 * 199) + between) ** 0.5
    assert (abs(values.mean(axis=0) - printed) < 3 * error).all()
