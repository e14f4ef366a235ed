"""000, §3.5 at small scale: paired features have less error than phase features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler

from bagbasis import RandomFourierFeatures
from bagbasis.jobs.experiments.kernels.rff_error import (
    FORMS,
    RADII,
    RADIUS,
    grid,
    paired_errors,
    phase_errors,
)


@pytest.mark.parametrize("form", FORMS)
def test_short_cuts_are_the_errors_of_all_pairs(form):
    """Largest errors and mean squares without an n × n matrix are those of the whole matrix."""
    points = grid().points
    if form == "paired":
        features = RandomFourierFeatures(n_features=60, scale=1.0, seed=3)
        result = paired_errors(60, 3)
    else:
        features = RBFSampler(gamma=0.5, n_components=60, random_state=3)
        result = phase_errors(60, 3)
    z = features.fit_transform(points[:, None])
    f = z @ z.T - np.exp(-0.5 * (points[:, None] - points) ** 2)
    for radius, largest in zip(RADII, result.largest, strict=True):
        inside = np.abs(points) <= radius
        assert largest == pytest.approx(np.abs(f[np.ix_(inside, inside)]).max(), abs=1e-5)
    inside = np.abs(points) <= RADIUS
    assert result.square == pytest.approx((f[np.ix_(inside, inside)] ** 2).mean(), abs=1e-6)
