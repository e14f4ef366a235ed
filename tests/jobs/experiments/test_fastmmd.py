"""002, §4 at small scale: errors over L, spreads over σ, and tests."""

from __future__ import annotations

import pandas as pd
import pytest

from bagbasis.jobs.experiments.fastmmd import TIMED, speedup
from bagbasis.jobs.experiments.kit.frame import frame, pair
from bagbasis.jobs.experiments.kit.timing import exponent
from tests.jobs.experiments.contract import Contract


class TestFastMMD(Contract):
    name = "fastmmd"

    def test_error_falls_as_the_root_of_frequencies(self, results):
        """∝ L^(-1/2), biased and unbiased. Over seeds 0 to 2 exponents lie in −.54 … −.46, and
        the error of the biased MMD² at L = 1,024 is at most .041, at L = 256 twice that."""
        for form in ("biased", "unbiased"):
            n, errors = pair(frame(results, measure="error"), "L", form)
            assert exponent(n, errors) == pytest.approx(-0.5, abs=0.12)
        assert pair(frame(results, measure="error"), "L", "biased")[1][-1] < 0.12

    def test_less_spread_than_blocks_and_pairs(self, results):
        """At every bandwidth random features deviate least, then the B-test, then MMD-linear, and
        all means are near the exact value. Over seeds 0 to 2 the ratio of random features and
        B-test is at most .82 at σ = .1 and .51 elsewhere, that of B-test and linear .36."""
        for _, row in frame(results, measure="spread").iterrows():
            fast, blocks, pairs = (row[name] for name in ("random features", "B-test", "linear"))
            assert fast[1] < (0.95 if row["sigma"] < 0.5 else 0.7) * blocks[1]
            assert blocks[1] < 0.6 * pairs[1]
            for mean, deviation in (fast, blocks, pairs):
                error = deviation / row["n_trials"] ** 0.5
                assert mean == pytest.approx(row["exact"], abs=5 * error)

    def test_power_and_level(self, results):
        """More frequencies find more; with 256 of them the power is near the exact one and above
        that of blocks and pairs, and without a difference nothing is found. Over seeds 0 to 2
        power rises from at most .2 to at least .88, the B-test has at most .28, and levels are at
        most .07."""
        powers = frame(results, measure="power")["random features"]
        assert powers.iloc[-1] > powers.iloc[0] + 0.4
        null, other = (row for _, row in frame(results, measure="test").iterrows())
        methods = ["random features", "exact", "B-test", "linear"]
        assert null[methods].max() < 0.13
        assert other["exact"] > 0.9
        assert other["random features"] > other[["B-test", "linear"]].max() + 0.3

    def test_tables(self, report, results):
        """Times of all methods at all sizes, and the paper's ratio in words."""
        _, _, over_points, over_dims, power, _ = report["tables"]
        for table, over in ((over_points, "points"), (over_dims, "dims")):
            assert len(table["rows"]) == len(frame(results, measure="time", over=over))
            assert len(table["columns"]) == len(TIMED[over]) + 2
        assert "the paper: 2,000 at N = 100,000" in over_points["remarks"][0]
        assert "shuffles save time where the paper has 1,000" in power["remarks"][1]


def test_speedups_say_what_was_measured():
    """At the largest N the ratio is a measured one, or one extrapolated as N² and called so."""
    rows = pd.DataFrame(
        {"n_points": [10, 100], "random features": [1.0, 2.0], "exact": [3.0, 50.0]}
    ).assign(**{"exact, double": [8.0, None]})
    assert speedup(rows) == (25.0, True)
    assert speedup(rows, slow="exact, double") == (400.0, False)
