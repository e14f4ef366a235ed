"""The wild bootstrap of two series: its values by loops, its level, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import chi2

from bagbasis.hypotheses import TWO_SAMPLE, FourierMMD, Fuse, two_sample_test
from bagbasis.hypotheses.kernels.kernels import Kernel
from bagbasis.hypotheses.nulls.wild_bootstrap import (
    WILD,
    centred_variance,
    wild_degrees,
    wild_factors,
    wild_waves,
)
from bagbasis.hypotheses.samples.samples import as_sample
from bagbasis.hypotheses.two_samples import comparison
from bagbasis.hypotheses.two_samples.comparison import TwoSamples
from bagbasis.hypotheses.two_samples.fused import BOTH, series_sums
from tests.oracles.fused import mmd_of_gram, mmd_of_groups, wild_mmd_by_loops
from tests.passes import kernel_threads

X, Y = np.random.default_rng(0).standard_normal((2, 24, 2))
GIVEN = {"null": "wild_bootstrap", "correlation_length": 3.0, "n_permutations": 20, "seed": 4}


def series(rng, n, coefficient=0.8):
    """A normal series of variance 1 with correlations coefficient^lag."""
    noise = rng.standard_normal(n + 50) * (1 - coefficient**2) ** 0.5
    return lfilter([1], [1, -coefficient], noise)[50:]


@pytest.mark.parametrize("grouped", [False, True])
def test_values(grouped):
    """Σ a_i a_j k(x_i, x_j) of centred waves; the unbiased one has the same p-value; random
    features come near."""
    a, b, units = X, Y[:21], np.arange(24)
    arguments = {**GIVEN, "correlation_length": 0.6, "bandwidth": 1.1}
    if grouped:
        units = np.repeat(np.arange(8), 3)
        arguments["groups"] = units, units[:21] + 8
    weights = []
    for sign, rows, seed in ((1, a, 4), (-1, b, 5)):
        of = units[: len(rows)]
        w = wild_waves(of.max() + 1, 20, 0.6, seed)[:, of]
        means = w.mean(axis=1, keepdims=True)
        weights.append(sign * (w - means) / len(rows) / (1 - (means**2).mean()) ** 0.5)
    degrees = [wild_degrees(len(np.unique(units[: len(rows)])), 0.6) for rows in (a, b)]
    joint = (1 / 24 + 1 / 21) ** 2 / (1 / 24**2 / degrees[0] + 1 / 21**2 / degrees[1])
    w = np.hstack(weights) * wild_factors(20, joint, 6)[:, None]
    both = np.concatenate([a, b])
    K = Kernel("gaussian", 1.1)(both, both)
    expected = np.sort(np.einsum("di,ij,dj->d", w, K, w))
    biased, unbiased, fast = (
        two_sample_test(a, b, statistic=s, **arguments)
        for s in ("mmd_b", "mmd_u", FourierMMD(n_frequencies=4096))
    )
    np.testing.assert_allclose(biased.null_distribution, expected)
    shift = unbiased.statistic - biased.statistic
    np.testing.assert_allclose(unbiased.null_distribution, expected + shift)
    assert biased.p_value == unbiased.p_value
    np.testing.assert_allclose(fast.null_distribution, expected + shift, atol=0.02)
    assert np.isnan(biased.standard_error)
    assert biased.null == "wild_bootstrap"


@pytest.mark.long
@pytest.mark.parametrize("grouped", [False, True])
def test_values_of_many_scales(grouped):
    """Each kernel by loops over pairs of units: terms of a unit with itself do not vary."""
    a, b, units = X, Y[:21], np.arange(45)
    arguments = {
        **GIVEN,
        "statistic": Fuse(n_frequencies=8),
        "correlation_length": 1.0,
        "standardize": False,
    }
    if grouped:
        units = np.concatenate([np.repeat(np.arange(8), 3), 8 + np.repeat(np.arange(7), 3)])
        arguments["groups"] = units[:24], units[24:]
    r = two_sample_test(a, b, **arguments)
    both, first = np.concatenate([a, b]), np.arange(45) < 24
    samples = TwoSamples(
        *(as_sample(n, x, "point", g if grouped else None)
          for n, x, g in (("a", a, units[:24]), ("b", b, units[24:]))),
        WILD, 20, 4, 1.0, BOTH,
    )  # fmt: skip
    with kernel_threads():
        scales = Fuse(n_frequencies=8).choose_scales(samples)
        features = scales(both).reshape(45, len(scales.kernels), -1).swapaxes(0, 1)
    waves, degrees = samples.wild_waves()
    np.testing.assert_allclose(
        samples.wild_weights(), waves * wild_factors(20, degrees, 6)[:, None]
    )
    grams = [z @ z.T for z in features]
    labels = units if grouped else None
    drawn, observed = np.empty((20, len(grams))), np.empty(len(grams))
    for k, gram in enumerate(grams):
        values = wild_mmd_by_loops(gram, first, units, waves)
        several = max(1.0, 2 * values.mean() ** 2 / values.var())
        chance = chi2.sf(degrees / wild_factors(20, degrees, 6) ** 2, degrees)
        values *= degrees * several / chi2.isf(chance, degrees * several)
        side = first / 24 - ~first / 21
        observed[k] = (
            mmd_of_gram(gram, first) if labels is None else mmd_of_groups(gram, first, labels)
        )
        drawn[:, k] = values + observed[k] - side @ gram @ side
    n = 7 if grouped else 21
    strength, norms = 4 * (n * (n - 1)) ** 0.5, np.array(scales.norms)
    expected = np.log(np.exp(strength * drawn / norms).mean(axis=1)) / strength
    np.testing.assert_allclose(r.null_distribution, np.sort(expected), atol=1e-10)
    assert r.statistic == pytest.approx(
        np.log(np.exp(strength * observed / norms).mean()) / strength, abs=1e-10
    )


@pytest.mark.long
def test_weights_of_neighbours_do_not_widen_narrow_kernels():
    """Under a narrow kernel nearly only a unit with itself counts, so draws vary little, too."""
    rng, n = np.random.default_rng(5), 400
    a, b = (as_sample(name, rng.standard_normal((n, 2)), "point") for name in "ab")
    samples = TwoSamples(a, b, WILD, 400, 1, 20.0, "gaussian")
    with kernel_threads():
        chosen = Fuse(n_frequencies=512).choose_scales(samples)
        scales = replace(chosen, kernels=(Kernel("gaussian", 0.05),), norms=(1.0,))
        _, drawn = series_sums(samples, scales)
        features = scales(samples.rows)
    gram = features @ features.T
    fresh = [mmd_of_gram(gram, rng.permutation(2 * n) < n) for _ in range(400)]
    assert drawn.std() == pytest.approx(np.std(fresh), rel=0.35)


@pytest.mark.long
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "statistic", ["fuse", "agg", "mmd_b", "energy", FourierMMD(n_frequencies=8)]
)
@pytest.mark.parametrize(("n", "length", "n_permutations"), [(12, 50.0, 20), (2, 3.0, 1)])
def test_few_units_for_their_correlation_length(statistic, n, length, n_permutations):
    """The mean of waves takes nearly all of their variance, of a few draws even all: weights stay
    numbers that can be squared."""
    a, b = np.random.default_rng(7).standard_normal((2, n, 2))
    arguments = {
        "statistic": statistic,
        "correlation_length": length,
        "n_permutations": n_permutations,
    }
    for seed in range(8):
        r = two_sample_test(a, b, null=WILD, seed=seed, **arguments)
        assert np.abs(r.null_distribution).max() < 1000


@pytest.mark.long
def test_variance_about_a_mean_of_waves():
    """For units of unequal sizes, as many draws have it; for one unit nothing is left."""
    sizes = np.array([3, 1, 7, 2, 2])
    for length in (0.0, 1.5, 100.0):
        waves = wild_waves(5, 100_000, length, seed=2)
        remaining = 1 - ((waves @ sizes / 15) ** 2).mean()
        assert centred_variance(sizes, length) == pytest.approx(remaining, abs=0.01)
    assert centred_variance(np.array([4]), 1.0) == 0.0


@pytest.mark.long
@pytest.mark.parametrize("statistic", ["fuse", "agg"])
def test_level_of_series_at_many_scales(statistic):
    """Neither too often nor too seldom: of 80 series at .2 within four standard errors; and a
    large difference is detected."""
    rng, values = np.random.default_rng(6), []
    kind = TWO_SAMPLE[statistic](n_frequencies=16)
    for seed in range(80):
        a, b = series(rng, 160, 0.5), series(rng, 120, 0.5)
        arguments = {"statistic": kind, "null": WILD, "correlation_length": 10.0}
        r = two_sample_test(a, b, n_permutations=19, seed=seed, **arguments)
        values.append(r.p_value)
    for alpha in (0.1, 0.2, 0.5):
        share = np.mean(np.array(values) <= alpha)
        assert abs(share - alpha) < 0.02 + 4 * (alpha * (1 - alpha) / 80) ** 0.5
    assert two_sample_test(a, b + 3, n_permutations=99, **arguments).p_value <= 0.02


@pytest.mark.long
@pytest.mark.parametrize("statistic", ["mmd_b", "energy", FourierMMD(n_frequencies=32)])
def test_level_of_series(statistic):
    """Permutations take the neighbours of two series for independent, and find what is not there;
    the wild bootstrap does not, and finds what is."""
    rng, n_permuted, n_wild = np.random.default_rng(1), 0, 0
    for seed in range(50):  # a level of 5 % has five of the first twelve once in 5,000 times
        a, b = series(rng, 240), series(rng, 200)
        options = {"statistic": statistic, "n_permutations": 19, "seed": seed}
        if seed < 12:
            n_permuted += two_sample_test(a, b, **options).p_value <= 0.05
        options |= {"null": "wild_bootstrap", "correlation_length": 20.0}
        n_wild += two_sample_test(a, b, **options).p_value <= 0.05
    assert n_permuted >= 5
    assert n_wild <= 8  # 3 expected, and that with three standard errors
    r = two_sample_test(
        a, 2 + b, statistic=statistic, null="wild_bootstrap", correlation_length=20.0
    )
    assert r.p_value <= 0.01


def test_waves_forget():
    """Correlations e^{−lag² / 2 length²}; degrees of means of as many independent numbers."""
    waves = wild_waves(60, 4000, 3.0, seed=3)
    for lag in (0, 2, 5):
        result = (waves[:, : 60 - lag] * waves[:, lag:]).mean()
        assert result == pytest.approx(np.exp(-(lag**2) / 18), abs=0.02)
    assert wild_degrees(60, 0.0) == 59
    squares = (wild_factors(100_000, 20.0, 0) ** 2).mean()
    assert squares == pytest.approx(20 / 18, rel=0.02)
    assert wild_degrees(1000, 3.0) == pytest.approx(1000 / (3 * np.pi**0.5) - 1)
    assert wild_degrees(5, 100.0) == 1


def test_variance_of_a_short_series():
    """The weights vary a difference of means as new series do, and somewhat more."""
    rng, n, coefficient = np.random.default_rng(3), 150, 0.8
    values = []
    for seed in range(60):
        a, b = (as_sample(name, series(rng, n)[:, None], "point") for name in "ab")
        samples = TwoSamples(a, b, WILD, 99, seed, 15.0)
        values.append((samples.wild_weights() @ samples.rows).var())
    lags = np.arange(1 - n, n)
    variance = 2 * ((1 - abs(lags) / n) * coefficient ** abs(lags)).sum() / n
    assert variance < np.mean(values) < 1.4 * variance


def test_buckets_are_fewer_units(monkeypatch):
    """With very many rows, neighbours are summed first; lags still count rows."""
    rng = np.random.default_rng(2)
    a, b = series(rng, 600), series(rng, 500)
    arguments = {
        **GIVEN,
        "statistic": FourierMMD(n_frequencies=64),
        "correlation_length": 40.0,
        "n_permutations": 400,
    }
    single = two_sample_test(a, b, **arguments)
    monkeypatch.setattr(comparison, "MAX_BUCKETS", 200)
    two = two_sample_test(a, b, **arguments)
    assert two.statistic == pytest.approx(single.statistic)
    means = [r.null_distribution.mean() for r in (single, two)]
    assert means[1] == pytest.approx(means[0], rel=0.2)
