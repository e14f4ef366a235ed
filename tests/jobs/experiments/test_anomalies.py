"""`anomalies` at small scale, and the bags that it plants."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.regression.anomalies import DATA

PLANTED = np.arange(400) < 20


@pytest.mark.parametrize("name", DATA)
def test_planted_points_are_each_ordinary(name):
    """Points of planted bags lie where those of others do; a bag per item of the mask."""
    bags = DATA[name](PLANTED, np.random.default_rng(0))
    assert len(bags) == len(PLANTED)
    planted, others = (np.concatenate([bags[i] for i in np.flatnonzero(m)])
                       for m in (PLANTED, ~PLANTED))  # fmt: skip
    assert planted.min() >= others.min() - 0.02
    assert planted.max() <= others.max() + 0.02
