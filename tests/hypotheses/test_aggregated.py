"""Aggregated dependence and fit, and the sliced distance: against loops, levels, what they find."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from bagbasis.hypotheses import (
    HSICAggregate,
    MixtureScore,
    Sliced,
    fit_test,
    independence_test,
    two_sample_test,
)
from bagbasis.hypotheses.dependence.aggregated_dependence import dependence
from bagbasis.hypotheses.goodness.scores import Scored
from bagbasis.hypotheses.goodness.stein import stein_kernel
from bagbasis.hypotheses.two_samples.sliced import sliced_distances

RNG = np.random.default_rng(0)


def test_dependence_by_loops():
    """|mean of the products − product of the means|², frequency by frequency."""
    X, Y = np.exp(1j * RNG.standard_normal((2, 3, 20, 5)))
    expected = np.zeros((5, 5))
    for r in range(3):
        for i in range(5):
            for j in range(5):
                x, y = X[r, :, i], Y[r, :, j]
                expected[i, j] += abs((x * y).mean() - x.mean() * y.mean()) ** 2 / 3
    np.testing.assert_allclose(dependence(X, Y), expected.ravel(), atol=1e-14)


def test_dependence_tends_to_hsic():
    """Of many frequencies the middle pair of widths has the HSIC of the two kernels."""
    x, y = RNG.standard_normal((2, 80, 1))
    y = x + 0.5 * y
    r = independence_test(x, y, statistic=HSICAggregate(4096), n_permutations=1)
    exact = independence_test(x, y, statistic="hsic_b", null="gamma").statistic
    assert r.details["pairs_of_scales"]["hsic"][12] == pytest.approx(exact, rel=0.1)


@pytest.mark.long
def test_hsic_agg_finds_a_fine_dependence():
    """A sinusoid of many periods, more often than HSIC of one width, and says at which widths;
    without dependence it rejects as often as it says."""
    rejected, found, plain = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-np.pi, np.pi, 200)
        given = {"n_permutations": 99, "seed": seed}
        y = rng.uniform(-np.pi, np.pi, 200)
        small = HSICAggregate(32)
        rejected.append(independence_test(x, y, statistic=small, **given).p_value <= 0.05)
        if seed < 10:
            y = np.sin(4 * x) + 0.3 * rng.standard_normal(200)
            r = independence_test(x, y, statistic=small, **given)
            found.append(r.p_value <= 0.05)
            plain.append(independence_test(x, y, **given).p_value <= 0.05)
    assert np.mean(rejected) <= 0.05 + 3 * (0.05 * 0.95 / 60) ** 0.5
    assert sum(found) >= 9
    assert sum(plain) <= sum(found) - 3
    scales = r.details["pairs_of_scales"]
    best = int(np.argmin(scales["corrected"]))
    assert scales["bandwidth_of_x"][best] < 1.0


def test_ksd_agg():
    """Each width's statistic by all pairs; it finds two narrow peaks, and holds its level."""
    x = RNG.standard_normal((40, 1))
    law = MixtureScore([0.0])
    r = fit_test(x, law, statistic="ksd_agg", bandwidth=1.0, n_draws=99)
    scored = Scored(x, -x, np.ones(40))
    for width, value in zip(*(r.details["widths"][k] for k in ("bandwidth", "ksd2")), strict=True):
        values = stein_kernel(scored, scored, width)
        expected = (values.sum() - np.trace(values)) / (40 * 39)
        assert value == pytest.approx(expected, rel=1e-9)
    rejected = []
    for seed in range(60):
        rng = np.random.default_rng([4, seed])
        given = {"statistic": "ksd_agg", "n_draws": 99, "seed": seed}
        rejected.append(fit_test(rng.standard_normal(80), law, **given).p_value <= 0.05)
    assert np.mean(rejected) <= 0.05 + 3 * (0.05 * 0.95 / 60) ** 0.5
    peaks = np.random.default_rng(1).choice([-1.0, 1.0], 200)
    assert fit_test(peaks, law, statistic="ksd_agg", n_draws=99).p_value <= 0.02


@pytest.mark.parametrize(("n", "m"), [(6, 6), (6, 4), (3, 9)])
def test_sliced_by_quantiles(n, m):
    """W₂² by quantile functions on a fine grid that both have; W₁ by scipy bounds it from below."""
    x, y = RNG.standard_normal(n), 0.5 + RNG.standard_normal(m)
    rows, first = np.concatenate([x, y])[:, None], np.arange(n + m) < n
    found = float(sliced_distances(rows, first[None], 1, 0)[0])
    fine = np.repeat(np.sort(x), m) - np.repeat(np.sort(y), n)
    assert found == pytest.approx(float((fine**2).mean()), rel=1e-12)
    assert found >= wasserstein_distance(x, y) ** 2 - 1e-12


@pytest.mark.long
def test_sliced_level_and_power():
    p, moved = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a, b = rng.standard_normal((50, 3)), rng.standard_normal((35, 3))
        given = {"statistic": Sliced(16), "n_permutations": 99, "seed": seed}
        p.append(two_sample_test(a, b, **given).p_value)
        if seed < 10:
            moved.append(two_sample_test(a, b + 1, **given).p_value)
    for alpha in (0.05, 0.1, 0.5):
        share = (np.array(p) <= alpha).mean()
        assert abs(share - alpha) < 0.01 + 4 * (alpha * (1 - alpha) / 100) ** 0.5
    assert max(moved) <= 0.05
    labels = np.arange(50) // 5, 20 + np.arange(35) // 5
    r = two_sample_test(a, b, statistic="sliced", groups=labels, n_permutations=9)
    assert r.unit == "group"
