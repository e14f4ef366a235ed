"""`bag-densities` at the smallest sizes, and the truth that it is measured against."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.networks.bag_densities import Family


@pytest.mark.parametrize("d", [1, 2])
def test_truth_integrates_to_one(d):
    """By midpoints, and its points are where it is large."""
    rng = np.random.default_rng(0)
    family = Family(d, 2, rng)
    axis = (np.arange(400) + 0.5) / 400 * 10 - 5
    grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    total = np.exp(family.log_density(1, grid)).sum() * (10 / 400) ** d
    assert total == pytest.approx(1, abs=1e-3)
    entropy = -(np.exp(family.log_density(1, grid)) * family.log_density(1, grid)).sum()
    drawn = family.log_density(1, family.draw(1, 4000, rng)).mean()
    assert drawn == pytest.approx(-entropy * (10 / 400) ** d, abs=0.1)
