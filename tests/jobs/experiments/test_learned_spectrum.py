"""`learned-spectrum` at small scale, and its synthetic kernel."""

from __future__ import annotations

import numpy as np

from bagbasis.jobs.experiments.regression.learned_spectrum import DATA, METHODS, PAPER, SYNTHETIC
from tests.jobs.experiments.contract import Contract


class TestLearnedSpectrum(Contract):
    name = "learned-spectrum"

    def test_errors(self, report, results):
        """Every method on every set, and the kernels of one beside the true one."""
        assert [r.params["data"] for r in results] == list(DATA)
        for r in results:
            assert set(r.values["error"]) == set(METHODS)
            assert ("kernel" in r.values) == (r.params["data"] == SYNTHETIC)
        for drawn in results[0].values["drawn"].values():
            assert drawn[0] == 1.0  # sines and cosines of one frequency, summed over all
            assert np.abs(drawn).max() <= 1.0
        rows = [len(table["rows"]) for table in report["tables"]]
        assert rows == [len(DATA) * len(METHODS), len(METHODS), len(PAPER)]
