"""Statistics of few pairs, of random features and of locations: loops, theory, stores, levels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import hadamard as hadamard_matrix

from bagbasis import BagStore, MomentsEmbedding
from bagbasis.embeddings.random_features.kernels.hadamard_kernels import walsh_hadamard_rows
from bagbasis.hypotheses import (
    BlockMMD,
    FastfoodMMD,
    FourierMMD,
    MeanEmbeddings,
    SmoothedCharacteristicFunctions,
    two_sample_test,
)
from bagbasis.hypotheses.kernels.features import Fastfood, FourierFeatures
from bagbasis.hypotheses.kernels.kernels import Kernel
from bagbasis.hypotheses.nulls.permutation import draw_orders, draw_splits, p_values
from bagbasis.hypotheses.two_samples import comparison
from tests.hypotheses.test_exact_mmd import GOLDEN
from tests.oracles.hypotheses import (
    circular_discrepancies,
    hotelling_by_loop,
    hotelling_p_value,
    hotelling_shares,
    kernel_by_formula,
    linear_by_loop,
    mmd_by_loop,
)
from tests.oracles.mean_map import check_samples
from tests.passes import pass_limits


def test_fourier_is_the_sum_of_circular_discrepancies():
    """002's Algorithm 1, one point after the other, for the samples and for every split."""
    X, Y = check_samples()
    frequencies = Kernel("laplacian", 2.0).frequencies(3, 16, 7)
    r = two_sample_test(
        X,
        Y,
        statistic=FourierMMD(n_frequencies=16),
        kernel="laplacian",
        bandwidth=2.0,
        n_permutations=5,
        seed=7,
    )
    both = np.r_[X, Y]
    splits = draw_splits(np.arange(70) < 40, 5, 7)
    expected = [circular_discrepancies(both[s], both[~s], frequencies)[1] for s in splits]
    assert r.statistic == pytest.approx(expected[0], abs=1e-6)
    np.testing.assert_allclose(r.null_distribution, np.sort(expected[1:]), atol=1e-6)
    assert r.p_value == p_values(expected[0], np.array(expected[1:]))


@pytest.mark.long
@pytest.mark.parametrize("kind", [FourierMMD, FastfoodMMD])
def test_random_features_near_the_exact_value(kind):
    """As near as the error over the frequencies says."""
    X, Y = check_samples()
    for sigma, (_, unbiased) in GOLDEN.items():
        values = [
            two_sample_test(
                X, Y, statistic=kind(n_frequencies=2048), bandwidth=sigma, n_permutations=1, seed=s
            )
            for s in range(8)
        ]
        mean = np.mean([r.statistic for r in values])
        error = np.mean([r.details["error_of_frequencies"] for r in values])
        assert mean == pytest.approx(unbiased, abs=4 * error / 8**0.5)
        assert error < 0.01


def test_fastfood_is_its_product_of_matrices():
    """V = S H G Π H B / (σ √d'), padded; rows of norms like Gaussian frequencies'."""
    rows = np.random.default_rng(0).standard_normal((4, 5))
    fast = Fastfood.draw(Kernel("gaussian", 1.7), 5, 20, 3)
    H, padded = hadamard_matrix(8), np.pad(rows, ((0, 0), (0, 3)))
    blocks = [
        padded @ (s[:, None] * H @ np.diag(g) @ np.eye(8)[o] @ H @ np.diag(b)).T
        for b, o, g, s in zip(fast.signs, fast.orders, fast.gaussians, fast.lengths, strict=True)
    ]
    np.testing.assert_allclose(fast.phases(rows), np.hstack(blocks), atol=1e-12)
    for order in (1, 2, 4, 8, 16, 64):
        values = np.random.default_rng(1).standard_normal((3, order))
        expected = values @ hadamard_matrix(order)
        walsh_hadamard_rows(0, len(values), values)
        np.testing.assert_allclose(values, expected)


@pytest.mark.long
@pytest.mark.parametrize("name", ["gaussian", "matern"])
def test_fastfood_frequencies_have_the_kernels_law(name):
    """The mean cosine of a difference is the kernel, and features have norm 1."""
    x = np.array([[0.3, -0.8, 0.5], [0.0, 0.0, 0.0]])
    kernel = Kernel(name, 1.2)
    z = FourierFeatures(kernel, 3, 40_000, 5, fast=True)(x).astype(np.float64)
    assert (z**2).sum(axis=1) == pytest.approx([1, 1], abs=1e-6)
    assert z[0] @ z[1] == pytest.approx(kernel(x[:1], x[1:])[0, 0], abs=0.015)


def test_few_pairs_by_loop():
    """Means, errors and p-values of quadruples and of blocks, in the order that the seed says."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((11, 2)), rng.standard_normal((14, 2)) + 0.5
    slow = kernel_by_formula("gaussian", 1.3)
    P, Q = (rows[next(draw_orders(len(rows), 1, 4))][:11] for rows in (X, Y))
    blocks = [mmd_by_loop(P[i : i + 5], Q[i : i + 5], slow)[1] for i in (0, 5)]
    for statistic, expected in (
        ("mmd_linear", linear_by_loop(P, Q, slow)),
        (BlockMMD(block_size=5), np.array(blocks)),
    ):
        r = two_sample_test(X, Y, statistic=statistic, bandwidth=1.3, seed=4)
        error = expected.std(ddof=1) / len(expected) ** 0.5
        assert (r.statistic, r.standard_error) == pytest.approx((expected.mean(), error))
        null = stats.t(len(expected) - 1)
        assert r.p_value == pytest.approx(null.sf(expected.mean() / error))


@pytest.mark.parametrize("groups", [False, True])
def test_locations_by_loop(groups):
    """Hotelling's T² of the features, of the samples and of every split."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((15, 2)), rng.standard_normal((12, 2)) + 0.3
    V = [[0.0, 0.5], [1.0, -1.0], [-0.4, 0.2]]
    labels = np.repeat(np.arange(27), 1)
    both, splits = np.r_[X, Y], draw_splits(np.arange(27) < 15, 30, 2)
    kernel = kernel_by_formula("gaussian", 1.1)
    z_me = np.array([[kernel(row, np.array(v)) for v in V] for row in both])
    centred = both - both.mean(axis=0)
    smooth = np.exp(-(centred**2).sum(axis=1) / (2 * (centred**2).sum(axis=1).mean()))[:, None]
    waves = centred @ np.array(V).T / 1.1
    z_scf = smooth * np.hstack([np.sin(waves), np.cos(waves)])
    for kind, z in ((MeanEmbeddings, z_me), (SmoothedCharacteristicFunctions, z_scf)):
        expected = np.array([hotelling_by_loop(z[s], z[~s]) for s in splits])
        r = two_sample_test(
            X, Y, statistic=kind(n_locations=3, locations=V), bandwidth=1.1, null="permutation",
            n_permutations=30,
            seed=2, groups=(labels[:15], labels[15:]) if groups else None,
        )  # fmt: skip
        assert r.statistic == pytest.approx(expected[0], rel=1e-5)
        np.testing.assert_allclose(r.null_distribution, np.sort(expected[1:]), rtol=1e-5)
        gaps, shares = hotelling_shares(z[splits[0]], z[~splits[0]])
        np.testing.assert_allclose(r.details["differences"], gaps)
        by_location = [shares[j::3].sum() for j in range(3)]
        np.testing.assert_allclose(r.details["contributions"], by_location, rtol=1e-5)
        assert sum(r.details["contributions"]) == pytest.approx(r.statistic)
        assert list(r.sampled_rows) == (["a", "b"] if kind is MeanEmbeddings else [])
        r = two_sample_test(
            X, Y, statistic=kind(n_locations=3, locations=V), bandwidth=1.1, null="chi_square"
        )
        assert r.p_value == pytest.approx(hotelling_p_value(z[splits[0]], z[~splits[0]]), rel=1e-4)


@pytest.mark.long
def test_groups_are_units_of_the_covariance():
    """Rows that are alike within a group: T² counts groups, and Fourier's mixture, too."""
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(40), 6)
    rejected, fast = np.zeros((3, 2)), FourierMMD(n_frequencies=16)
    for seed in range(30):
        rows = np.repeat(rng.standard_normal((40, 2)), 6, axis=0)
        rows += 0.3 * rng.standard_normal(rows.shape)
        for i, (statistic, null) in enumerate(
            (
                (MeanEmbeddings(n_locations=2), "chi_square"),
                (fast, "spectral"),
                (fast, "permutation"),
            )
        ):
            for j, groups in enumerate(((labels[:120], labels[120:]), None)):
                r = two_sample_test(
                    rows[:120], rows[120:], statistic=statistic, null=null, groups=groups,
                    seed=seed, n_permutations=99,
                )  # fmt: skip
                rejected[i, j] += r.p_value <= 0.05
    assert (rejected[:, 0] <= 6).all()  # 1.5 expected
    assert (rejected[:, 1] >= 12).all()


@pytest.mark.long
def test_stores_are_summed_in_passes(tmp_path, monkeypatch):
    """No row is kept: the same as of bags in memory, in tasks of any length, and in buckets."""
    rng = np.random.default_rng(1)
    a, b = (
        [shift + rng.standard_normal((rng.integers(5, 9), 2), np.float32) for _ in range(n)]
        for n, shift in ((61, 0.0), (47, 0.4))
    )
    stores = [
        BagStore.create(tmp_path / f"{name}.zarr", 2).append(bags)
        for name, bags in (("a", a), ("b", b))
    ]
    embedding = MomentsEmbedding(box=[(-4, 4)] * 2)
    for limit in (4096, 20):
        monkeypatch.setattr(comparison, "MAX_BUCKETS", limit)
        for statistic in ("fourier", "me"):
            arguments = {"statistic": statistic, "embedding": embedding, "thin": 6, "seed": 3}
            single = two_sample_test(a, b, bandwidth=0.2, **arguments)
            with pass_limits(rows_per_block=7, small_task_seconds=1e-5):
                two = two_sample_test(*stores, bandwidth=0.2, **arguments)
            assert two.statistic == pytest.approx(single.statistic, rel=1e-4)
            assert (two.p_value, two.n, two.n_units) == (
                pytest.approx(single.p_value),
                single.n,
                single.n_units,
            )
            assert single.details["bags_left_out_of_a"] == two.details["bags_left_out_of_a"] > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("statistic", "nulls"),
    [
        ("mmd_linear", ["normal"]),
        ("mmd_block", ["normal"]),
        (FourierMMD(n_frequencies=32), ["permutation", "spectral", "gamma", "pearson"]),
        (FastfoodMMD(n_frequencies=32), ["spectral"]),
        (MeanEmbeddings(n_locations=3), ["chi_square", "permutation"]),
        (SmoothedCharacteristicFunctions(n_locations=2), ["chi_square", "permutation"]),
    ],
)
def test_levels(statistic, nulls):
    """Without a difference each rejects about as often as α says; with a large one, always."""
    rng = np.random.default_rng(2)
    for null in nulls:

        def p(shift: float, n_permutations: int = 99, null: str = null) -> float:
            X, Y = rng.standard_normal((150, 2)), shift + rng.standard_normal((100, 2))
            return two_sample_test(
                X, Y, statistic=statistic, null=null, n_permutations=n_permutations,
                seed=int(rng.integers(2**32)),
            ).p_value  # fmt: skip

        values = np.array([p(0.0, 19) for _ in range(100)])
        for alpha in (0.05, 0.1, 0.5):
            share = (values <= alpha).mean()
            assert abs(share - alpha) < 0.02 + 4 * (alpha * (1 - alpha) / len(values)) ** 0.5
        assert max(p(2.0) for _ in range(3)) <= 0.01


@pytest.mark.long
def test_standard_errors():
    """The estimate is the statistic's own spread over data sets, where there is a difference."""
    rng = np.random.default_rng(3)
    for statistic in (
        "mmd_linear",
        "mmd_block",
        "fourier",
        MeanEmbeddings(n_locations=2, locations=[[0.0], [1.0]]),
    ):
        values = np.array([
            (r.statistic, r.standard_error)
            for r in (
                two_sample_test(
                    rng.standard_normal(100), 0.6 + rng.standard_normal(80), bandwidth=1.0,
                    statistic=statistic, seed=1, n_permutations=99,
                )
                for _ in range(120)
            )
        ])  # fmt: skip
        error = np.sqrt((values[:, 1] ** 2).mean())
        assert error == pytest.approx(values[:, 0].std(ddof=1), rel=0.2), statistic


X, Y = np.random.default_rng(0).random((2, 9, 2))


@pytest.mark.long
@pytest.mark.parametrize(("L", "ratio", "missed"), [(256, 2.4, 0.22), (8, 4.0, 0.62)])
def test_power_of_blobs(L, ratio, missed):
    """5 × 5 blobs at distance 5, round against variances (ε, 1) along the diagonals, 1,000 points
    each (002, §4.1): errors of the second kind within three standard errors of 50 tests each of
    those that an independent rerun has."""
    turn, misses = np.array([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5, []
    for seed in range(50):
        rng = np.random.default_rng([5, seed])
        X, Y = (
            5.0 * rng.integers(0, 5, (1000, 2)) + rng.standard_normal((1000, 2)) * side @ turn.T
            for side in ([1.0, 1.0], [ratio**0.5, 1.0])
        )
        r = two_sample_test(
            X,
            Y,
            statistic=FourierMMD(n_frequencies=L),
            bandwidth=1.0,
            n_permutations=199,
            seed=seed,
        )
        misses.append(r.p_value > 0.05)
    assert np.mean(misses) == pytest.approx(missed, abs=3 * (2 * missed * (1 - missed) / 50) ** 0.5)


@pytest.mark.parametrize("statistic", ["mmd_u", "fourier", "fastfood", "energy"])
@pytest.mark.parametrize(
    "arguments", [{"a": 0 * X, "b": 0 * Y + 1}, {"a": X, "b": Y, "bandwidth": 1e20}]
)
def test_no_spread_within(statistic, arguments):
    """Samples whose rows do not differ, or look alike to the kernel: there is no effect to say."""
    if statistic == "energy":
        arguments = {"a": 0 * X, "b": 0 * Y + 1}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        r = two_sample_test(**arguments, statistic=statistic, n_permutations=19)
    message = any("without a spread within them" in str(line.message) for line in heard)
    assert message == ("bandwidth" not in arguments)  # constants; others differ within
    assert np.isnan(r.effect)
    assert r.p_value == (1.0 if "bandwidth" in arguments else 0.05)
