"""`traps` at small scale: who falls into them."""

from __future__ import annotations

from typing import ClassVar

from bagbasis.jobs.experiments.kit.frame import frame
from tests.jobs.experiments.contract import Contract


class TestTraps(Contract):
    name = "traps"
    sizes: ClassVar = {"n_tests": 36}  # of 12, a rate of .6 may be .25

    def test_bags_are_the_unit(self, results):
        """Pooling rejects samples of one law; embeddings of bags do not, and see what differs
        between bags; a much larger size passes for a difference, unless bags are thinned."""
        share = frame(results).set_index("trap")["share"]
        assert share["ME, points pooled"] > share["ME, embeddings of bags"] + 0.2
        assert share["one pooled law, embeddings of bags"] > 0.6
        assert share["one pooled law, mean embeddings"] < 0.4
        assert share["20 and 200 points, not thinned"] > share["20 and 200 points, thinned"] + 0.3
