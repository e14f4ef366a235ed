"""Bandwidths chosen on held-out units: near the best, and the level holds."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.errors import BagbasisError
from bagbasis.hypotheses import two_sample_test
from bagbasis.hypotheses.kernel_choice import CRITERIA, WIDTHS
from bagbasis.jobs.experiments.data.samples import blobs


@pytest.mark.parametrize("criterion", CRITERIA)
def test_no_difference_is_no_difference(criterion):
    """Rejections as often as α says, although the bandwidth was chosen."""
    rng = np.random.default_rng(1)
    p = np.array([
        two_sample_test(
            rng.standard_normal((60, 2)), rng.standard_normal((50, 2)), bandwidth=criterion,
            null="gamma", statistic="mmd_b", seed=seed,
        ).p_value
        for seed in range(40)
    ])  # fmt: skip
    assert (p <= 0.05).mean() <= 0.15
    assert 0.35 <= (p <= 0.5).mean() <= 0.7


def test_blobs_need_a_small_width():
    """Blobs that differ in shape: t and τ find a width of a blob, the median is that of the grid
    (000, §6.4.3); the split is reported."""
    rng = np.random.default_rng(2)
    X, Y = blobs(rng, 1200, 1.0), blobs(rng, 1200, 8.0)
    median = two_sample_test(X, Y, n_permutations=199)
    assert median.p_value > 0.05
    for criterion in ("t", "tau"):
        r = two_sample_test(X, Y, bandwidth=criterion, n_permutations=199)
        assert r.p_value <= 0.05
        assert r.details["tested_on"] == {"a": 600, "b": 600} == r.details["chosen_on"]
        assert len(r.details["criteria"]) == len(WIDTHS)
        best = r.details["bandwidths"][int(np.argmax(r.details["criteria"]))]
        assert best < 4
        assert f"{best:.6g}" in r.kernel


def test_groups_stay_whole():
    """The halves are of units; too few of them are refused."""
    rng = np.random.default_rng(3)
    X, labels = rng.standard_normal((40, 2)), np.repeat(np.arange(10), 4)
    r = two_sample_test(X, X + 0.1, bandwidth="t", groups=(labels, labels + 10))
    assert (r.details["chosen_on"], r.n["a"], r.n_units["a"]) == ({"a": 20, "b": 20}, 20, 5)
    with pytest.raises(BagbasisError, match="a has 7 points; to choose"):
        two_sample_test(X[:7], X, bandwidth="tau")
    with pytest.raises(BagbasisError, match="bandwidth is 'best'"):
        two_sample_test(X, X, bandwidth="best")
