"""`goodness-of-fit` at small scale, and the data that it draws."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bagbasis.jobs.experiments.hypotheses.goodness_of_fit import (
    DIMS,
    laplace,
    mixture,
    right,
    variance,
)
from bagbasis.jobs.experiments.kit.frame import frame
from tests.jobs.experiments.contract import Contract


class TestGoodnessOfFit(Contract):
    name = "goodness-of-fit"
    sizes: ClassVar = {"n_tests": 6}

    def test_power_grows(self, results):
        """With more points KSD finds more, and of the law itself little."""
        rows = frame(results).set_index(["problem", "n"])
        for problem in ("other variance", "Laplace"):
            assert rows.loc[(problem, 400), "KSD"] >= rows.loc[(problem, 100), "KSD"]
        assert rows.loc[("Laplace", 400), "KSD"] > 0.6
        assert rows.loc["the law itself"][["KSD", "FSSD"]].max().max() < 0.3


def test_data_of_fit():
    """Moments: all have means of 0; three have the covariance I."""
    rng = np.random.default_rng(0)
    for draw, first in ((right, 1.0), (laplace, 1.0), (mixture, 1.0), (variance, 1.3)):
        points = draw(rng, 50_000)
        expected = np.diag([first, *[1.0] * (DIMS - 1)])
        np.testing.assert_allclose(np.cov(points.T), expected, atol=0.04)
        np.testing.assert_allclose(points.mean(axis=0), 0, atol=0.03)
