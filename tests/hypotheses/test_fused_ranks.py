"""`fuse_ranks`, the default for two samples: three statistics of the same permutations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import pdist
from scipy.special import eval_legendre, logsumexp
from scipy.stats import rankdata

from bagbasis import Bags
from bagbasis.hypotheses import Fuse, FuseRanks, two_sample_test
from bagbasis.hypotheses.nulls.distributions import permutation_null
from bagbasis.hypotheses.nulls.permutation import draw_splits
from bagbasis.hypotheses.samples.samples import as_sample
from bagbasis.hypotheses.two_samples.comparison import TwoSamples
from bagbasis.hypotheses.two_samples.fused_ranks import (
    scaled_differences,
    statistics_of,
    weighted_scores,
)
from bagbasis.hypotheses.two_samples.marginals import MarginalDifferences
from tests.oracles.fused import harmonic_means_by_loops
from tests.passes import kernel_threads


def samples_of(x, y, n_permutations=59, seed=5, groups=(None, None)):
    """Return the samples as the test has them."""
    return TwoSamples(
        as_sample("a", x, "point", groups[0]), as_sample("b", y, "point", groups[1]),
        "permutation", n_permutations, seed, kernel=FuseRanks.kernels[0],
    )  # fmt: skip


def mmd_of_splits(rows, kernels, splits):
    """MMD_u² of each split and kernel by its definition, shape (n, K)."""
    out = np.empty((len(splits), len(kernels)))
    for k, kernel in enumerate(kernels):
        gram = kernel(rows, rows) - np.eye(len(rows))
        for i, first in enumerate(splits):
            m, n = first.sum(), (~first).sum()
            own = gram[np.ix_(first, first)].sum() / (m * (m - 1))
            other = gram[np.ix_(~first, ~first)].sum() / (n * (n - 1))
            out[i, k] = own + other - 2 * gram[np.ix_(first, ~first)].mean()
    return out


def differences_of_splits(rows, splits, units=None):
    """Each split's difference of mean polynomials of ranks, in deviations over all splits of the
    units, shape (n, 4 d): loops over coordinates, degrees and splits."""
    units = np.arange(len(rows)) if units is None else units
    n, columns = len(splits[0]), []
    for coordinate in rows.T:
        ranks = (rankdata(coordinate) - 0.5) / len(rows) * 2 - 1
        for degree in (1, 2, 3, 4):
            values = eval_legendre(degree, ranks)
            sums = np.bincount(units, values - values.mean())
            m = splits[0].sum()
            deviation = (sums.var(ddof=1) * m * (n - m) / n) ** 0.5
            columns.append([(sums[s].sum() - m * sums.mean()) / deviation for s in splits])
    return np.array(columns).T


def test_the_harmonic_mean_of_three_by_its_definition():
    """Every split of few points in three statistics by explicit sums; p-values joined by loops."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(9, 2)), rng.normal(size=(7, 2)) + 0.8
    samples, rows = samples_of(x, y), np.vstack([x, y])
    with kernel_threads():
        scales = FuseRanks().choose_scales(samples)
    splits = draw_splits(samples.is_first_unit, 59, 5)
    every = mmd_of_splits(rows, scales.kernels, splits)
    steps, ratios = every[:, :8], every[:, 8:]
    scores = (ratios - ratios.mean(axis=0)) / ratios.std(axis=0)
    table = np.column_stack([
        logsumexp(4 * (7 * 6) ** 0.5 * steps / np.array(scales.norms)[:8], axis=1),
        logsumexp(4 * 2**0.5 * scores, axis=1),
        np.abs(differences_of_splits(rows, splits)).max(axis=1),
    ])  # fmt: skip
    weights = (0.4, 0.4, 0.2)
    expected = harmonic_means_by_loops(table, weights)
    r = two_sample_test(x, y, statistic="fuse_ranks", n_permutations=59, seed=5, standardize=False)
    assert r.statistic == pytest.approx(-np.log(expected[0]), rel=1e-6)
    assert r.p_value == (expected <= expected[0] * (1 + 1e-9)).mean()
    ranks = np.array([(column >= column[0]).sum() for column in table.T])
    names = ["kernels by norm", "kernels by deviation", "coordinates"]
    top = names.index(r.details["best_of_three"])
    assert (ranks / weights)[top] == (ranks / weights).min()
    assert sum(r.details["scales"]["weight"]) == pytest.approx(1)
    shown = (steps if top == 0 else ratios)[0]
    np.testing.assert_allclose(r.details["scales"]["mmd2"], shown, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("is_fine", [True, False])
def test_the_kernels_of_the_larger_part_are_shown(is_fine):
    """Four of each kernel where a mixture of narrow modes differs, ten where a mean does."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100, 2))
    x, y = (np.round(x) + 0.02 * y, np.round(y) + 0.05 * x) if is_fine else (x, y + 0.8)
    r = two_sample_test(x, y, n_permutations=199)
    assert r.details["best_of_three"] == ("kernels by norm" if is_fine else "kernels by deviation")
    shown = r.details["scales"]
    assert shown["kernel"] == ["gaussian"] * 4 + ["laplacian"] * 4 if is_fine else ["gaussian"] * 10
    assert {len(column) for column in shown.values()} == {8 if is_fine else 10}
    assert r.effect > 0


def test_bandwidths_in_steps_and_in_ratios():
    """All from half the 5 % quantile of distances to twice the 95 % quantile."""
    rows = np.random.default_rng(4).normal(size=(40, 3))
    with kernel_threads():
        kernels = FuseRanks().choose_scales(samples_of(rows[:25], rows[25:])).kernels
    expected = []
    for metric, unit in (("euclidean", 1.0), ("cityblock", 0.5**0.5)):
        low, high = unit * np.quantile(pdist(rows, metric), [0.05, 0.95])
        expected += [low / 2 + i / 3 * (2 * high - low / 2) for i in range(4)]
    low, high = np.quantile(pdist(rows), [0.05, 0.95])
    expected += [low / 2 * (4 * high / low) ** (i / 9) for i in range(10)]
    np.testing.assert_allclose([kernel.bandwidth for kernel in kernels], expected)
    names = ["gaussian"] * 4 + ["laplacian"] * 4 + ["gaussian"] * 10
    assert [kernel.name for kernel in kernels] == names


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40), n_kernels=st.integers(11, 14),
       has_coordinates=st.booleans(), digits=st.sampled_from([0, 1, 12]))  # fmt: skip
def test_the_level_is_exact_for_any_values(seed, n, n_kernels, has_coordinates, digits):
    """Whatever the values and their ties: if each of n rows is the data's in turn, at most k of
    them have p ≤ k/n; and the order of the rows changes nothing."""
    rng = np.random.default_rng(seed)
    every = np.round(rng.standard_normal((n, n_kernels)), digits)
    largest = np.round(rng.standard_cauchy(n), digits) if has_coordinates else None
    norms, order = rng.uniform(0.5, 2, n_kernels), rng.permutation(n)

    def joined(rows):
        of = None if largest is None else largest[rows]
        parts = statistics_of(*scaled_differences(every[rows], norms, 3.0), of)
        return logsumexp(weighted_scores(parts), axis=1)

    scores = joined(np.arange(n))
    np.testing.assert_allclose(joined(order), scores[order], rtol=1e-9, atol=1e-9)
    p = [permutation_null(scores[i], np.delete(scores, i)).p_value for i in range(n)]
    for k in range(1, n + 1):
        assert (np.array(p) <= (k + 1e-6) / n).sum() <= k


@pytest.mark.parametrize("is_grouped", [False, True])
def test_differences_of_coordinates(is_grouped):
    """By loops, with ties, a constant coordinate, unequal sizes and groups of several points."""
    rng = np.random.default_rng(0)
    x, y = rng.poisson(2, (24, 3)).astype(float), rng.normal(size=(16, 3))
    x[:, 1], y[:, 1] = 5.0, 5.0
    labels = (np.arange(24) // 2, 12 + np.arange(16) // 4) if is_grouped else (None, None)
    samples = samples_of(x, y, 19, 1, labels)
    result = MarginalDifferences.of(samples)
    splits = draw_splits(samples.is_first_unit, 19, 1)
    units = np.concatenate(labels) if is_grouped else None
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = differences_of_splits(np.vstack([x, y]), splits, units)
    assert (result.scores[1] == 0).all()  # constant
    varying = np.delete(expected, np.s_[4:8], axis=1)
    np.testing.assert_allclose(result.scores[[0, 2]].ravel(), varying[0], atol=1e-9)
    np.testing.assert_allclose(result.largest, np.abs(varying).max(axis=1), atol=1e-9)


def test_many_points_are_joined_to_units_and_the_rest_stays():
    """A shift of one of many points against few others, and of buckets, has a small p-value."""
    rng = np.random.default_rng(2)
    for m, n in ((40, 1500), (1500, 1600)):
        x, y = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
        x[:, 1] += 4 / m**0.5
        largest = MarginalDifferences.of(samples_of(x, y, 99)).largest
        assert (largest >= largest[0]).sum() <= 3
        assert np.median(largest) < 3  # standard deviations, of eight


def test_default_and_what_takes_another():
    """A bandwidth, or a null of one kernel, takes mmd_u; series take fuse."""
    x, y = np.random.default_rng(0).normal(size=(2, 20, 2))
    assert two_sample_test(x, y, n_permutations=9).name == "fuse_ranks"
    assert two_sample_test(x, y, bandwidth=1.0, n_permutations=9).name == "mmd_u"
    assert two_sample_test(x, y, null="spectral").name == "mmd_u"
    series = {"null": "wild_bootstrap", "correlation_length": 1.0}
    assert two_sample_test(x, y, n_permutations=9, **series).name == "fuse"
    few = two_sample_test(x, y, n_permutations=9, statistic=Fuse(n_frequencies=8))
    assert few.name == "fuse(n_frequencies=8)"


def test_bags_have_no_coordinates():
    """The coordinates of embeddings are features: the better of two statistics is taken."""
    rng = np.random.default_rng(1)
    a, b = (
        Bags.from_list([rng.normal(shift, size=(9, 1)) for _ in range(14)]) for shift in (0.0, 1.0)
    )
    r = two_sample_test(a, b, n_permutations=99)
    assert r.p_value <= 0.02
    assert r.details["best_of_two"].startswith("kernels by")
    assert "largest_of_coordinates" not in r.details


@pytest.mark.long
def test_shifts_modes_and_one_coordinate_of_many_are_detected():
    """Rejections of 12 data sets each; those without a difference are few."""
    rng = np.random.default_rng(1)
    rejected = dict.fromkeys(("shift", "modes", "one of 40", "none"), 0)
    for seed in range(12):
        x, y = rng.normal(size=(2, 60, 1))
        modes = rng.choice([-0.95, 0.95], (60, 1)) + 0.3 * rng.normal(size=(60, 1))
        many, others = rng.normal(size=(2, 60, 40))
        others[:, 7] *= 3
        pairs = {"shift": (x, y + 0.7), "modes": (x, modes), "one of 40": (many, others),
                 "none": (x, y)}  # fmt: skip
        for name, (first, second) in pairs.items():
            r = two_sample_test(first, second, n_permutations=99, seed=seed)
            rejected[name] += r.p_value <= 0.05
            if name == "one of 40":
                assert r.details["largest_of_coordinates"].startswith("coordinate 7, spread")
    assert min(rejected[name] for name in ("shift", "modes", "one of 40")) >= 10
    assert rejected["none"] <= 3


def test_groups_and_samples_that_are_alike():
    """Groups are units; where samples are equal, p is in (0, 1] and all is a number."""
    x = np.random.default_rng(2).normal(size=(24, 1))
    labels = np.repeat(np.arange(12), 2), np.repeat(np.arange(12), 2) + 20
    r = two_sample_test(x, x + 3, groups=labels, n_permutations=99)
    assert r.unit == "group"
    assert r.p_value <= 0.05
    r = two_sample_test(x, x[::-1], n_permutations=19)
    assert 0 < r.p_value <= 1
    assert np.isfinite(r.statistic)


@pytest.mark.long
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.integers(0, 2, (13, 2)).astype(float),  # ties
        lambda rng: rng.standard_cauchy((13, 2)),
    ],
)
def test_level_is_exact(draw):
    """In 100 tests of 8 against 5 points without a difference, p ≤ .2 in a fifth or fewer."""
    rng = np.random.default_rng(6)
    p = []
    for seed in range(100):
        rows = draw(rng)
        p.append(two_sample_test(rows[:8], rows[8:], n_permutations=19, seed=seed).p_value)
    assert (np.array(p) <= 0.2).mean() <= 0.2 + 3 * (0.16 / 100) ** 0.5
