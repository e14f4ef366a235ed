"""The synthetic mapping from densities on [0, 1] to numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bagbasis.datasets import SyntheticMapping
from bagbasis.datasets.synthetic_mapping import IntervalMixtures

GRID = (np.arange(20_000) + 0.5) / 20_000


def pdf(mixtures: IntervalMixtures, i: int) -> NDArray[np.float64]:
    """Return the i-th density on the grid, from scipy's truncated normal."""
    parts = []
    for mean, scale in zip(mixtures.means[i], mixtures.scales[i], strict=True):
        a, b = -mean / scale, (1 - mean) / scale
        parts.append(stats.truncnorm.pdf(GRID, a, b, mean, scale))
    return np.mean(parts, axis=0)


def test_f_equals_its_definition() -> None:
    """f(p) = Σ θ_i exp(-∫(g_i - p)²/2), the integrals taken numerically on a fine grid."""
    dataset = SyntheticMapping(n_points=1, seed=4, mapping_seed=9)
    _, targets = dataset.block(2)
    densities = dataset.densities(2)
    theta, g = dataset.mapping()
    carriers = [pdf(g, j) for j in range(len(theta))]
    for i in range(25):
        p = pdf(densities, i)
        expected = sum(
            t * np.exp(-np.mean((q - p) ** 2) / 2) for t, q in zip(theta, carriers, strict=True)
        )
        np.testing.assert_allclose(targets[i, 0], expected, rtol=1e-6, atol=1e-6)


def test_mapping_belongs_to_the_mapping_seed() -> None:
    """Training and test bags (another seed) share f; another mapping seed is another f."""
    train, test = SyntheticMapping(seed=0), SyntheticMapping(seed=1)
    other = SyntheticMapping(seed=0, mapping_seed=1)
    np.testing.assert_array_equal(train.mapping()[0], test.mapping()[0])
    np.testing.assert_array_equal(train.mapping()[1].means, test.mapping()[1].means)
    assert (train.mapping()[0] != other.mapping()[0]).all()
    assert (train.mapping()[1].means != other.mapping()[1].means).all()
    np.testing.assert_array_equal(train.block(0)[0].points, other.block(0)[0].points)


def test_mapping_has_its_own_random_stream() -> None:
    """The same number as seed and as mapping seed does not make the first bags f's carriers."""
    dataset = SyntheticMapping(seed=0, mapping_seed=0)
    theta, g = dataset.mapping()
    assert not np.isin(g.means, dataset.densities(0).means).any()
    first = np.random.Generator(np.random.Philox(np.random.SeedSequence(0, spawn_key=(0,))))
    assert not np.isin(theta, first.uniform(-5, 5, 1000)).any()


def test_parameters_have_their_ranges() -> None:
    """θ in [-5, 5], ten of them; means uniform in [0, 1]; scales uniform in [.05, .1]."""
    theta, g = SyntheticMapping(mapping_seed=3).mapping()
    assert theta.shape == (10,)
    assert np.abs(theta).max() <= 5
    assert np.ptp(theta) > 4
    assert g.means.shape == g.scales.shape == (10, 2)
    densities = [SyntheticMapping(n_points=1).densities(i) for i in range(10)]
    means = np.concatenate([d.means for d in densities]).ravel()
    scales = np.concatenate([d.scales for d in densities]).ravel()
    assert stats.kstest(means, "uniform").statistic < 0.015
    assert stats.kstest(scales, stats.uniform(0.05, 0.05).cdf).statistic < 0.015


def test_points_follow_their_density() -> None:
    """Through the distribution function of its own mixture a bag's points are uniform."""
    dataset = SyntheticMapping(n_points=20)
    x = dataset.block(0)[0].points.reshape(-1, 20, 1).astype(float)
    means, scales = (array[:, None, :] for array in dataset.densities(0))
    low, high = stats.norm.cdf((0 - means) / scales), stats.norm.cdf((1 - means) / scales)
    u = ((stats.norm.cdf((x - means) / scales) - low) / (high - low)).mean(axis=2)
    assert stats.kstest(u.ravel(), "uniform").statistic < 0.011
