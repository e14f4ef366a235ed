"""002, §4 at small scale: errors over L, spreads over σ, and tests."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.samples import blobs, histograms, ring
from bagbasis.jobs.experiments.hypotheses.fastmmd import compare


@pytest.mark.long
def test_ring_spreads_as_printed():
    """Deviations of MMD_u² at σ = 2.51 over 200 repeats of one draw, as others have measured them:
    inside three standard errors of both, with what draws differ by."""
    rng = np.random.default_rng(0)
    found = np.array([
        np.std([
            [compare(X, Y, name, 2.51, 1024, int(rng.integers(2**32))).statistic for name in names]
            for X, Y in (map(rng.permutation, drawn) for _ in range(12))
        ], axis=0, ddof=1)
        for drawn in (ring(rng, 200) for _ in range(5))
        for names in [("fourier", "mmd_block", "mmd_linear")]
    ])  # fmt: skip
    printed = np.array([0.0050, 0.0125, 0.0508])
    between = found.var(axis=0, ddof=1) * (1 + 1 / len(found))  # draws; one was printed
    error = (printed**2 / (2 * 199) + between) ** 0.5
    assert (abs(found.mean(axis=0) - printed) < 3 * error).all()


def test_data():
    """Eigenvalues of a blob have the ratio that was asked for; a ring is a ring; histograms have
    sum 1, and few large numbers."""
    rng = np.random.default_rng(4)
    points = blobs(rng, 100_000, 4.0)
    centred = points - 10 * np.round(points / 10)
    low, high = np.linalg.eigvalsh(np.cov(centred.T))
    assert high / low == pytest.approx(4.0, rel=0.05)
    inside, outside = (np.hypot(*points.T) for points in ring(rng, 500))
    assert ((inside > 1) & (inside < 4)).all()
    assert ((outside <= 1) | (outside >= 4)).all()
    for vectors, n in zip(histograms(rng, (30, 20), 2000), (30, 20), strict=True):
        assert vectors.sum(axis=1) == pytest.approx(np.ones(n))
        assert (vectors**2).sum(axis=1).mean() == pytest.approx(0.0024, rel=0.5)
