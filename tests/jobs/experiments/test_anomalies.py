"""`anomalies` at small scale, and the bags that it plants."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.regression.anomalies import DATA, N_PICTURED, OURS, PEERS, PICTURED
from tests.jobs.experiments.contract import Contract

PLANTED = np.arange(400) < 20


class TestAnomalies(Contract):
    name = "anomalies"

    def test_scores(self, report, results):
        """Every method on every kind of bags; rings are found by our scores, not by moments."""
        found = {data: [r for r in results if r.params["data"] == data] for data in DATA}
        assert all(len(found[data]) == 2 for data in DATA)
        for r in results:
            assert set(r.values["precision"]) == {*OURS, *PEERS}
            pictured = N_PICTURED if r.params["repeat"] == 0 else 0
            assert len(r.values["strangest"]) == pictured
        means = {
            name: np.mean([r.values["precision"][name] for r in found[PICTURED]])
            for name in (*OURS, *PEERS)
        }
        assert max(means[name] for name in OURS) > means[PEERS[1]]
        assert len(report["tables"][0]["rows"]) == len(DATA) * len((*OURS, *PEERS))


@pytest.mark.parametrize("name", DATA)
def test_planted_points_are_each_ordinary(name):
    """Points of planted bags lie where those of others do; a bag per item of the mask."""
    bags = DATA[name](PLANTED, np.random.default_rng(0))
    assert len(bags) == len(PLANTED)
    planted, others = (np.concatenate([bags[i] for i in np.flatnonzero(m)])
                       for m in (PLANTED, ~PLANTED))  # fmt: skip
    assert planted.min() >= others.min() - 0.02
    assert planted.max() <= others.max() + 0.02
