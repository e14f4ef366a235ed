"""000, §6.4 at small scale: power over the bandwidth, and of bandwidths that are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.hypotheses.kernel_choice import draw


def test_data():
    """The second sample's variances."""
    rng = np.random.default_rng(0)
    for problem, expected in (("variance", [2, 1]), ("none", [1, 1])):
        X, Y = draw(rng, problem, 40_000)
        assert X.var(axis=0) == pytest.approx([1, 1], rel=0.05)
        assert Y.var(axis=0) == pytest.approx(expected, rel=0.05)
    assert draw(rng, "blobs", 7)[1].shape == (7, 2)
