"""`dependence-objectives` at small scale: planted truths are found."""

from __future__ import annotations

import numpy as np

from bagbasis.jobs.experiments.data.planted import planted_rows
from tests.jobs.experiments.contract import Contract


class TestDependenceObjectives(Contract):
    name = "dependence-objectives"

    def test_found(self, report, results):
        """At the larger sizes: all coordinates of most draws, subspaces, motions with outliers."""
        selected = [r for r in results if r.params["measure"] == "selection"][-2:]
        assert all(r.values["share"]["mrmr"] >= 0.75 for r in selected)
        [*_, mixed] = [r for r in results if r.params["measure"] == "subspaces"]
        assert np.median(mixed.values["amari"]) < 0.08
        for r in results:
            if r.params["measure"] == "registration":
                assert (np.array(r.values["errors"])[:, :2] < 0.5).all()
        assert len(report["tables"]) == 3


def test_copies_tell_less():
    """A copy is as like its original as said, and the target does not depend on it otherwise."""
    x, y, planted = planted_rows(20_000, 6, seed=0, copies=True)
    correlation = np.abs(np.corrcoef(x.T))
    others = [j for j in range(6) if j not in planted]
    np.testing.assert_allclose(correlation[np.ix_(planted, others)].max(axis=1), 0.894, atol=0.01)
    a, b, c = planted
    rest = y - np.sin(2 * x[:, a]) - 0.7 * (x[:, b] ** 2 - 1) - np.sign(x[:, c])
    assert rest.std() < 0.31
