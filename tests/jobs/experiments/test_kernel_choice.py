"""000, §6.4 at small scale: power over the bandwidth, and of bandwidths that are chosen."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from bagbasis.jobs.experiments.hypotheses.kernel_choice import NAMES, draw
from bagbasis.jobs.experiments.kit.frame import frame
from tests.jobs.experiments.contract import Contract


class TestKernelChoice(Contract):
    name = "kernel-choice"
    sizes: ClassVar = {"n_tests": 8}

    def test_power_and_level(self, results):
        """Blobs need a width of a blob, which t̂ finds and the median misses; without a difference
        little is found."""
        widths = frame(results, measure="width", problem="blobs").set_index("bandwidth")["share"]
        assert widths[1.0] > widths[0.1] + 0.2
        chosen = frame(results, measure="criterion").set_index(["problem", "bandwidth"])
        assert chosen.loc[("blobs", "t"), "middle"] < 4 < chosen.loc[("blobs", "median"), "middle"]
        assert chosen.loc["none", "share"].max() < 0.4
        assert set(chosen.loc["none"].index) == set(NAMES)


def test_data():
    """The second sample's variances."""
    rng = np.random.default_rng(0)
    for problem, expected in (("variance", [2, 1]), ("none", [1, 1])):
        X, Y = draw(rng, problem, 40_000)
        assert X.var(axis=0) == pytest.approx([1, 1], rel=0.05)
        assert Y.var(axis=0) == pytest.approx(expected, rel=0.05)
    assert draw(rng, "blobs", 7)[1].shape == (7, 2)
