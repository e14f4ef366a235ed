"""Aggregated dependence and fit, and the sliced distance: against loops, levels, what they find."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from bagbasis import DataError, ParameterError
from bagbasis.hypotheses import (
    HSICAggregate,
    HSICFuse,
    KSDAggregate,
    MixtureScore,
    Sliced,
    fit_test,
    independence_test,
    two_sample_test,
)
from bagbasis.hypotheses.dependence import aggregated_dependence
from bagbasis.hypotheses.dependence.aggregated_dependence import BANDWIDTH_FACTORS
from bagbasis.hypotheses.dependence.pairs import Pairs
from bagbasis.hypotheses.goodness.scores import Scored
from bagbasis.hypotheses.goodness.stein import SteinSums, stein_kernel, stein_of_waves
from bagbasis.hypotheses.goodness_of_fit import bucket_units
from bagbasis.hypotheses.nulls.orders import permuted_orders
from bagbasis.hypotheses.samples.samples import as_sample
from bagbasis.hypotheses.two_samples.fused import SHARPNESS_OF_SCORES, standard_scores
from bagbasis.hypotheses.two_samples.sliced import sliced_distances
from tests.oracles.dependence import (
    gaussian,
    hsic_of_waves,
    hsic_u,
    off_diagonal_mean,
    soft_maximum_of_scores,
    stein_gram_of_waves,
)

RNG = np.random.default_rng(0)


def test_dependence_tends_to_hsic():
    """With many frequencies the middle pair of widths has the HSIC of the two kernels."""
    x, y = RNG.standard_normal((2, 80, 1))
    y = x + 0.5 * y
    r = independence_test(
        x, y, statistic=HSICAggregate(n_frequencies=4096, exact=False), n_permutations=1
    )
    exact = independence_test(x, y, statistic="hsic_b", null="gamma").statistic
    assert r.details["pairs_of_scales"]["hsic"][12] == pytest.approx(exact, rel=0.1)


@pytest.mark.long
def test_hsic_agg_finds_a_fine_dependence():
    """A sinusoid of many periods, more often than HSIC of one width, and says at which widths;
    without dependence it rejects as often as it says."""
    rejected, result, plain = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-np.pi, np.pi, 200)
        arguments = {"n_permutations": 99, "seed": seed}
        y = rng.uniform(-np.pi, np.pi, 200)
        small = HSICAggregate(n_frequencies=32)
        rejected.append(independence_test(x, y, statistic=small, **arguments).p_value <= 0.05)
        if seed < 10:
            y = np.sin(4 * x) + 0.3 * rng.standard_normal(200)
            r = independence_test(x, y, statistic=small, **arguments)
            result.append(r.p_value <= 0.05)
            plain.append(independence_test(x, y, statistic="hsic_u", **arguments).p_value <= 0.05)
    assert np.mean(rejected) <= 0.05 + 3 * (0.05 * 0.95 / 40) ** 0.5
    assert sum(result) >= 9
    assert sum(plain) <= sum(result) - 3
    scales = r.details["pairs_of_scales"]
    best = int(np.argmin(scales["corrected"]))
    assert scales["bandwidth_of_x"][best] < 1.0


@pytest.mark.long
def test_ksd_agg():
    """Each width's statistic by all pairs; it finds two narrow peaks, and holds its level."""
    x = RNG.standard_normal((40, 1))
    score = MixtureScore([0.0])
    r = fit_test(x, score, statistic="ksd_agg", bandwidth=1.0, n_draws=99)
    scored = Scored(x, -x, np.ones(40))
    for width, value in zip(*(r.details["widths"][k] for k in ("bandwidth", "ksd2")), strict=True):
        values = stein_kernel(scored, scored, width)
        expected = (values.sum() - np.trace(values)) / (40 * 39)
        assert value == pytest.approx(expected, rel=1e-9)
    rejected = []
    for seed in range(60):
        rng = np.random.default_rng([4, seed])
        arguments = {"statistic": "ksd_agg", "n_draws": 99, "seed": seed}
        rejected.append(fit_test(rng.standard_normal(80), score, **arguments).p_value <= 0.05)
    assert np.mean(rejected) <= 0.05 + 3 * (0.05 * 0.95 / 60) ** 0.5
    peaks = np.random.default_rng(1).choice([-1.0, 1.0], 200)
    assert fit_test(peaks, score, statistic="ksd_agg", n_draws=99).p_value <= 0.02


def waves(pairs, i, n_frequencies):
    """e^{iωx} of the rows of a variable, shape (widths, R, n)."""
    kernel, rows = pairs.kernels[i], pairs.rows[i]
    phases = rows @ kernel.frequencies(rows.shape[1], n_frequencies, pairs.seed + i)
    return np.array([np.exp(1j * phases.T / width) for width in BANDWIDTH_FACTORS])


@pytest.mark.long
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("null", ["permutation", "shift"])
def test_many_widths_by_matrices(exact, null):
    """HSIC of each pair of widths and order, from matrices of all pairs, and their soft maximum."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((9, 2)), rng.standard_normal((9, 3))  # of four at a time by loops
    pairs = Pairs(rows, np.arange(9), "gaussian", null, 8, 5)
    statistic = HSICFuse(n_frequencies=8, exact=exact)
    orders = np.vstack([np.arange(9)[None], *pairs.orders()])
    if exact:
        grams = [
            [gaussian(z, z, width * kernel.bandwidth) for width in BANDWIDTH_FACTORS]
            for z, kernel in zip(rows, pairs.kernels, strict=True)
        ]
        every = [
            [hsic_u(K, L[np.ix_(order, order)]) for K in grams[0] for L in grams[1]]
            for order in orders
        ]
    else:
        X, Y = (waves(pairs, i, 8) for i in range(2))
        every = [[hsic_of_waves(a, b[:, order]) for a in X for b in Y] for order in orders]
    joined = soft_maximum_of_scores(np.array(every), SHARPNESS_OF_SCORES)
    r = statistic.measure(pairs)
    assert r.statistic == pytest.approx(joined[0], rel=1e-7)
    np.testing.assert_allclose(r.null.values, np.sort(joined[1:]), rtol=1e-7, atol=1e-10)
    assert sum((r.details or {})["pairs_of_scales"]["weight"]) == pytest.approx(1)
    again = HSICAggregate(n_frequencies=8, exact=exact).measure(pairs)
    np.testing.assert_allclose(
        again.details["pairs_of_scales"]["hsic"], every[0], rtol=1e-9, atol=1e-15
    )


def test_many_widths_are_exact_of_few_pairs(monkeypatch):
    """By the time that all permutations take, unless it is said."""

    def interrupt(*arguments):
        raise KeyboardInterrupt

    def is_exact(statistic, pairs):
        with monkeypatch.context() as patch:
            patch.setattr(aggregated_dependence, "products_of_widths", interrupt)
            patch.setattr(aggregated_dependence, "dependence", lambda X, Y: 1 / 0)
            with pytest.raises((KeyboardInterrupt, ZeroDivisionError)) as caught:
                statistic.measure(pairs)
        return caught.type is KeyboardInterrupt

    rows = np.random.default_rng(0).standard_normal((2, 900, 1))
    for n, n_permutations, expected in ((790, 999, True), (900, 999, False), (900, 99, True)):
        arguments = (
            (rows[0, :n], rows[1, :n]),
            np.arange(n),
            "gaussian",
            "permutation",
            n_permutations,
        )
        assert is_exact(HSICFuse(), Pairs(*arguments, 0)) == expected
        assert is_exact(HSICFuse(exact=not expected), Pairs(*arguments, 0)) != expected


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("statistic", ["agg", "fuse", "fuse_ranks", "energy", "me"])
def test_samples_whose_splits_are_all_equal_do_not_differ(statistic, seed):
    """One row of twelve is another: it falls into either sample, and no split differs from another
    by more than rounding."""
    a, b = np.zeros((2, 6, 1))
    a[5] = 1.0
    r = two_sample_test(a, b, statistic=statistic, n_permutations=199, seed=seed)
    assert r.p_value == 1.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("statistic", ["hsic_agg", "hsic_fuse", "nfsic", "dcov", "rdc"])
def test_orders_that_are_all_equal_show_no_dependence(statistic, seed):
    """One number of 40 is another, and falls into either half of y."""
    x, y = np.arange(40) == 0, np.arange(40) < 20
    r = independence_test(
        x * 1.0, y * 1.0, statistic=statistic, null="permutation", n_permutations=199, seed=seed
    )
    assert r.p_value == 1.0


def test_rows_that_are_nearly_alike_have_no_score():
    """What rounding leaves of a kernel that is constant is not standardised."""
    every = np.array([[1.0, 1e-17], [2.0, 2e-17], [6.0, 0.0]])
    scores = standard_scores(every)
    assert (scores[:, 1] == 0).all()
    np.testing.assert_allclose(scores[:, 0].std(), 1)


@pytest.mark.long
@pytest.mark.parametrize("statistic", ["hsic_fuse", "hsic_agg"])
def test_few_of_many_coordinates_are_found_as_by_one_width(statistic):
    """One of eight depends on one of eight others: narrow widths, which are noise, hide nothing."""
    by_name = {name: 0 for name in (statistic, "hsic_u")}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((2, 200, 8))
        y[:, 0] += 0.6 * x[:, 0]
        for name in by_name:
            p = independence_test(x, y, statistic=name, n_permutations=99, seed=seed).p_value
            by_name[name] += p <= 0.05
    assert by_name[statistic] >= by_name["hsic_u"] - 2 >= 6


def test_hsic_fuse_finds_a_fine_dependence():
    """A sinusoid of many periods, at a fine width of x."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-np.pi, np.pi, 200)
    y = np.sin(4 * x) + 0.3 * rng.standard_normal(200)
    r = independence_test(x, y, statistic=HSICFuse(n_frequencies=32), n_permutations=99)
    assert r.p_value <= 0.01
    scales = r.details["pairs_of_scales"]
    assert scales["bandwidth_of_x"][int(np.argmax(scales["weight"]))] < 1.0
    assert 0.05 < r.effect <= 1


@pytest.mark.long
def test_ksd_agg_of_waves_by_matrices():
    """Linear sums of points, of buckets and of groups, by the matrix that waves stand for."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((40, 2))
    edges = 0.5 + rng.random(40)  # b(x) of a density with edges
    scored = Scored(x, rng.standard_normal((40, 2)), edges)
    frequencies = rng.standard_normal((2, 7))
    units = np.arange(40) % 9
    signs = rng.choice([-1.0, 1.0], (5, 9))
    values, signed = stein_of_waves(scored, units, frequencies, signs, 3)
    for k in range(3):
        gram = stein_gram_of_waves(x, scored.slopes, edges, 2**k * frequencies)
        np.testing.assert_allclose(values[k], off_diagonal_mean(gram), rtol=1e-10)
        expected = [off_diagonal_mean(gram, sign[units]) for sign in signs]
        np.testing.assert_allclose(signed[:, k], expected, rtol=1e-10, atol=1e-12)
    many = rng.standard_normal((2, 20_000))
    gram = stein_gram_of_waves(x[:6], scored.slopes[:6], edges[:6], many)
    np.testing.assert_allclose(gram, stein_kernel(scored[:6], scored[:6], 1.0), atol=0.15)


def test_ksd_agg_in_linear_time():
    """With many points no matrix of all pairs is made; buckets of a series are neighbours."""
    rng = np.random.default_rng(7)
    score = MixtureScore([0.0], 1.09)
    peaks = rng.choice([-1.0, 1.0], 3000) + 0.3 * rng.standard_normal(3000)
    few = KSDAggregate(n_frequencies=32)
    with mock.patch.object(SteinSums, "of", side_effect=AssertionError):
        assert fit_test(peaks, score, statistic=few, n_draws=99).p_value <= 0.02
        right = fit_test(1.09**0.5 * rng.standard_normal(3000), score, statistic=few, n_draws=99)
    assert right.p_value > 0.02
    sample = as_sample("x", peaks[:, None], "point")
    units, length = bucket_units(sample, True, 0)
    assert length == 3
    np.testing.assert_array_equal(units, np.arange(3000) // 3)
    dealt, _ = bucket_units(sample, False, 0)
    assert np.bincount(dealt).tolist() == [3] * 1000
    assert len(np.unique(dealt[:3])) > 1


@pytest.mark.long
def test_within_labels():
    """Two numbers that share a site's level depend on each other, but not given the site."""
    rng = np.random.default_rng(8)
    site = rng.integers(0, 5, 200)
    x, y = site + rng.standard_normal((2, 200))
    arguments = {"n_permutations": 99}
    assert independence_test(x, y, **arguments).p_value == 0.01
    p = []
    for seed in range(40):
        x, y = site + np.random.default_rng(seed).standard_normal((2, 200))
        p.append(independence_test(x, y, within=site, seed=seed, **arguments).p_value)
    assert 0.3 < np.mean(p) < 0.7
    y = site + x + rng.standard_normal(200)
    assert independence_test(x, y, within=site, **arguments).p_value == 0.01
    # groups move as wholes, and to groups of their site
    groups = np.arange(200) // 4
    r = independence_test(x, y, within=groups % 5, groups=groups, **arguments)
    assert r.unit == "group"
    orders = np.concatenate([*permuted_orders(groups, 50, 0, groups % 5)])
    assert ((groups[orders] % 5) == (groups % 5)).all()
    assert len(np.unique(groups[orders[:, 0]])) == 10
    with pytest.raises(DataError, match="several labels of within"):
        independence_test(x, y, within=site, groups=groups, **arguments)
    with pytest.raises(ParameterError, match="take the null 'permutation'"):
        independence_test(x, y, statistic="hsic_u", within=site, null="gamma")
    with pytest.raises(DataError, match="expected a label for each of the 200 points"):
        independence_test(x, y, within=site[:-1])
    with pytest.raises(DataError, match="no two groups within one label"):
        independence_test(x[:6], y[:6], within=np.arange(6))


@pytest.mark.parametrize(("n", "m"), [(6, 6), (6, 4), (3, 9)])
def test_sliced_by_quantiles(n, m):
    """W₂² by quantile functions on a fine grid that both have; W₁ by scipy bounds it from below."""
    x, y = RNG.standard_normal(n), 0.5 + RNG.standard_normal(m)
    rows, first = np.concatenate([x, y])[:, None], np.arange(n + m) < n
    result = float(sliced_distances(rows, first[None], 1, 0)[0])
    fine = np.repeat(np.sort(x), m) - np.repeat(np.sort(y), n)
    assert result == pytest.approx(float((fine**2).mean()), rel=1e-12)
    assert result >= wasserstein_distance(x, y) ** 2 - 1e-12


@pytest.mark.long
def test_sliced_level_and_power():
    p, moved = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a, b = rng.standard_normal((50, 3)), rng.standard_normal((35, 3))
        arguments = {"statistic": Sliced(n_directions=16), "n_permutations": 99, "seed": seed}
        p.append(two_sample_test(a, b, **arguments).p_value)
        if seed < 10:
            moved.append(two_sample_test(a, b + 1, **arguments).p_value)
    for alpha in (0.05, 0.1, 0.5):
        share = (np.array(p) <= alpha).mean()
        assert abs(share - alpha) < 0.01 + 4 * (alpha * (1 - alpha) / 100) ** 0.5
    assert max(moved) <= 0.05
    labels = np.arange(50) // 5, 20 + np.arange(35) // 5
    r = two_sample_test(a, b, statistic="sliced", groups=labels, n_permutations=9)
    assert r.unit == "group"
