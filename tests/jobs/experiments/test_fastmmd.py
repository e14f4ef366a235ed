"""002, §4 at small scale: errors over L, spreads over σ, and tests."""

from __future__ import annotations

import pytest

from bagbasis.jobs.experiments.experiment import Point, Result
from bagbasis.jobs.experiments.fastmmd_tables import (
    TIMED,
    error_exponent,
    of_kind,
    speedup,
    values_over,
)
from tests.jobs.experiments.running import results_of, small_run
from tests.jobs.running import assert_picture


@pytest.fixture(scope="module")
def out_dir(tmp_path_factory):
    """What the command leaves behind at small scale."""
    return small_run("fastmmd", tmp_path_factory.mktemp("fastmmd"))


@pytest.fixture(scope="module")
def results(out_dir):
    """Its points."""
    return results_of(out_dir)[1]


def test_error_falls_as_the_root_of_frequencies(results):
    """∝ L^(-1/2), biased and unbiased. Over seeds 0 to 2 exponents lie in −.54 … −.46, and the
    error of the biased MMD² at L = 1,024 is at most .041."""
    for form in ("biased", "unbiased"):
        assert error_exponent(results, form) == pytest.approx(-0.5, abs=0.12)
    _, errors = values_over(of_kind(results, measure="error"), "L", "biased")
    assert errors[-1] < 0.06


def test_less_spread_than_blocks_and_pairs(results):
    """At every bandwidth random features deviate least, then the B-test, then MMD-linear, and all
    means are near the exact value. Over seeds 0 to 2 the ratio of random features and B-test is at
    most .82 at σ = .1 and .51 elsewhere, that of B-test and linear .36."""
    for point in of_kind(results, measure="spread"):
        fast, blocks, pairs = (
            point.values[name] for name in ("random features", "B-test", "linear")
        )
        limit = 0.95 if point.point.params["sigma"] < 0.5 else 0.7
        assert fast[1] < limit * blocks[1]
        assert blocks[1] < 0.6 * pairs[1]
        exact, n = point.values["exact"], point.point.params["n_trials"]
        for mean, deviation in (fast, blocks, pairs):
            assert mean == pytest.approx(exact, abs=5 * deviation / n**0.5)


def test_power_and_level(results):
    """More frequencies find more; with 256 of them the power is near the exact one and above that
    of blocks and pairs, and without a difference nothing is found. Over seeds 0 to 2 power rises
    from at most .2 to at least .88, the B-test has at most .28, and levels are at most .07."""
    _, powers = values_over(of_kind(results, measure="power"), "L", "random features")
    assert powers[-1] > powers[0] + 0.4
    null, other = of_kind(results, measure="test")
    assert max(null.values.values()) < 0.13
    found = other.values
    assert found["exact"] > 0.9
    assert found["random features"] > max(found["B-test"], found["linear"]) + 0.3


def test_speedups_say_what_was_measured():
    """At the largest N the ratio is a measured one, or one extrapolated as N² and called so."""

    def point(n, **seconds):
        return Result(Point("", {"measure": "time", "over": "points", "n_points": n}), seconds, 0)

    measured = point(10, **{"random features": 1.0, "exact": 3.0, "exact, double": 8.0})
    largest = point(100, **{"random features": 2.0, "exact": 50.0})
    assert speedup([measured, largest]) == (25.0, True)
    assert speedup([measured, largest], slow="exact, double") == (400.0, False)


def test_tables_and_pictures(out_dir, results):
    """Times of all methods at all sizes, the paper's ratio in words, and every picture."""
    report, _ = results_of(out_dir)
    errors, spreads, over_points, over_dims, power, ratios = report["tables"]
    assert [len(t["rows"]) for t in (errors, spreads, power, ratios)] == [4, 3, 2, 2]
    for table, over in ((over_points, "points"), (over_dims, "dims")):
        assert len(table["rows"]) == len(of_kind(results, measure="time", over=over))
        assert len(table["columns"]) == len(TIMED[over]) + 2
    assert "the paper: 2,000 at N = 100,000" in over_points["remarks"][0]
    assert "extrapolated as N² and not measured there" in over_points["remarks"][0]
    assert "shuffles save time where the paper has 1,000" in power["remarks"][1]
    assert report["pictures"] == ["errors.png", "spreads.png", "times.png", "tests.png"]
    for name in report["pictures"]:
        assert_picture(out_dir / name)
