"""`bag-densities` at the smallest sizes, and the truth that it is measured against."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from bagbasis.jobs.experiments.networks.bag_densities import METHODS, Family
from tests.jobs.experiments.contract import Contract


class TestBagDensities(Contract):
    name = "bag-densities"
    sizes: ClassVar = {"n_train": 40, "n_test": 6, "n_points": 20, "n_steps": 5, "n_hidden": 4}

    def test_methods(self, results):
        """All methods on the same bags; none is ahead of the truth by more than chance."""
        for r in results:
            assert {name: len(r.values[name]) for name in METHODS} == dict.fromkeys(METHODS, 6)
            for name in METHODS[:-1]:
                assert np.mean(r.values[name]) < np.mean(r.values["truth"]) + 0.5


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
