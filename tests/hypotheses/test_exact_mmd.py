"""MMD² and energy distance of all pairs: golden values, loops, theory, levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import energy_distance

from bagbasis.hypotheses import two_sample_test
from bagbasis.hypotheses.kernels import kernels
from bagbasis.hypotheses.nulls.permutation import draw_splits, p_values
from bagbasis.hypotheses.two_samples import exact_mmd
from tests.oracles.hypotheses import kernel_by_formula, mmd_by_loop
from tests.oracles.mean_map import check_samples

GOLDEN = {0.5: (0.1763539318, 0.1261937895), 1.0: (0.0530276874, 0.0134723850)}
EXACT = ("mmd_b", "mmd_u", "energy")


@pytest.mark.parametrize("tile", [7, 1024])
@pytest.mark.parametrize("sigma", GOLDEN)
def test_golden_values(monkeypatch, sigma, tile):
    """The values printed in ERRATA, to all their digits, in tiles of any size."""
    monkeypatch.setattr(exact_mmd, "tiles", lambda n: kernels.tiles(n, tile))
    X, Y = check_samples()
    values = [
        two_sample_test(X, Y, statistic=s, bandwidth=sigma, n_permutations=9).statistic
        for s in ("mmd_b", "mmd_u")
    ]
    assert values == pytest.approx(GOLDEN[sigma], abs=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "matern"])
def test_permuted_statistics_by_loop(monkeypatch, kernel):
    """Every split's MMD², those of unequal groups among them, is that of its rows."""
    monkeypatch.setattr(exact_mmd, "tiles", lambda n: kernels.tiles(n, 4))
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((7, 2)), rng.standard_normal((6, 2)) + 1
    slow = kernel_by_formula(kernel, 1.3)
    both, labels = np.r_[X, Y], np.array([*"aabbbcc", *"ddeeee"])
    for groups, units in (
        (None, np.arange(13)),
        ((labels[:7], labels[7:]), np.unique(labels, return_inverse=True)[1]),
    ):
        first = np.arange(units.max() + 1) <= units[6]
        splits = draw_splits(first, 20, 5)[:, units]
        for i, statistic in enumerate(("mmd_b", "mmd_u")):
            expected = np.array([mmd_by_loop(both[s], both[~s], slow)[i] for s in splits])
            r = two_sample_test(
                X, Y, statistic=statistic, kernel=kernel, bandwidth=1.3, n_permutations=20,
                groups=groups, seed=5,
            )  # fmt: skip
            assert r.statistic == pytest.approx(expected[0], abs=1e-12)
            np.testing.assert_allclose(r.null_distribution, np.sort(expected[1:]), atol=1e-12)
            assert r.p_value == p_values(expected[0], expected[1:])
            assert r.unit == ("point" if groups is None else "group")


def test_energy_distance():
    """scipy's in one dimension, squared, for unequal sizes; in the plane that of a loop."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal(30), 2 * rng.standard_normal(21) + 1
    result = two_sample_test(X, Y, statistic="energy", n_permutations=9)
    assert result.statistic == pytest.approx(energy_distance(X, Y) ** 2, abs=1e-12)
    X, Y = rng.standard_normal((9, 2)), rng.standard_normal((8, 2))
    expected, _ = mmd_by_loop(X, Y, lambda a, b: -math.dist(a, b))
    result = two_sample_test(X, Y, statistic="energy", n_permutations=9, standardize=False)
    assert result.statistic == pytest.approx(expected, abs=1e-12)


def closed_form(mean: float, deviation: float) -> float:
    """MMD² of N(0, 1) and N(mean, deviation²) under the Gaussian kernel of width 1."""

    def expected(gap: float, variance: float) -> float:
        return math.exp(-(gap**2) / (2 * (1 + variance))) / (1 + variance) ** 0.5

    return expected(0, 2) + expected(0, 2 * deviation**2) - 2 * expected(mean, 1 + deviation**2)


@pytest.mark.long
@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (0.8, 1.5), (0.2, 1.0)])
def test_means_and_standard_errors(mean, deviation):
    """Over 250 data sets: unbiased, and the standard error is the statistic's own spread."""
    rng = np.random.default_rng(1)
    values = np.array([
        (r.statistic, r.standard_error)
        for r in (
            two_sample_test(
                rng.standard_normal(40), mean + deviation * rng.standard_normal(60),
                bandwidth=1.0, null="gamma",
            )
            for _ in range(250)
        )
    ])  # fmt: skip
    spread = values[:, 0].std(ddof=1)
    assert values[:, 0].mean() == pytest.approx(
        closed_form(mean, deviation), abs=3 * spread / 250**0.5
    )
    # 250 repeats know a deviation to 5 %; without a difference the estimate has a floor
    error = np.sqrt((values[:, 1] ** 2).mean())
    assert 0.85 < error / spread < (1.15 if mean > 0.5 else 1.4)


@pytest.mark.long
@pytest.mark.parametrize("statistic", EXACT)
@pytest.mark.parametrize("null", ["permutation", "spectral", "gamma", "pearson"])
def test_levels(statistic, null):
    """Without a difference every null rejects about as often as α says; with one, always."""
    rng = np.random.default_rng(2)

    def p(shift: float) -> float:
        X, Y = rng.standard_normal((40, 2)), shift + rng.standard_normal((30, 2))
        return two_sample_test(X, Y, statistic=statistic, null=null, n_permutations=99).p_value

    values = np.array([p(0.0) for _ in range(120)])
    for alpha in (0.05, 0.1, 0.5):
        share = (values <= alpha).mean()
        # four standard errors, and .01 for the limits at so few rows
        assert abs(share - alpha) < 0.01 + 4 * (alpha * (1 - alpha) / len(values)) ** 0.5
    assert max(p(2.0) for _ in range(5)) <= 0.01


def test_effect_is_free_of_size():
    """The squared distance of the means over the variance within, whatever the size."""
    rng = np.random.default_rng(3)
    effects = [
        two_sample_test(
            rng.standard_normal(n), 1.0 + rng.standard_normal(n), bandwidth=1.0, null="gamma"
        ).effect
        for n in (200, 1500)
    ]
    within = 1 - 1 / 3**0.5
    assert effects == pytest.approx([closed_form(1.0, 1.0) / within] * 2, rel=0.3)


@pytest.mark.long
def test_bags_are_units():
    """Bags that differ from each other do not pass for a difference of the samples."""
    rng = np.random.default_rng(4)

    def bags(n: int) -> list[np.ndarray]:
        sizes = rng.integers(8, 15, n)
        return [rng.standard_normal(2) + rng.standard_normal((size, 2)) for size in sizes]

    rejected = np.zeros(2)
    for seed in range(40):
        a, b = bags(20), bags(15)
        for i, unit in enumerate((None, "point")):
            r = two_sample_test(a, b, null="gamma", unit=unit, thin=8, seed=seed)
            rejected[i] += r.p_value <= 0.05
    assert rejected[0] <= 7 < 25 < rejected[1]  # 2 expected, and most of 40
    assert two_sample_test(a, b, thin=12).details["bags_left_out_of_a"] > 0


X, Y = np.random.default_rng(0).random((2, 5, 2))
