"""The mixtures whose components are counted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bagbasis.datasets import GMMComponents
from bagbasis.datasets.mixtures import choose_components, truncated_gaussians


def test_number_of_components_is_uniform_and_the_target() -> None:
    """The number k is uniform on 1 … 10, and is what the block gives as its target."""
    dataset = GMMComponents(n_points=1)
    targets = np.concatenate([dataset.block(i)[1][:, 0] for i in range(10)])
    k = np.concatenate([dataset.densities(i).n_components for i in range(10)])
    np.testing.assert_array_equal(targets, k)
    counts = np.bincount(k)
    assert len(counts) == 11
    assert counts[0] == 0
    assert np.abs(counts[1:] - len(k) / 10).max() < 5 * np.sqrt(len(k) * 0.1 * 0.9)


@pytest.mark.parametrize(("variant", "mean_scale"), [("001", 5 / 2), ("004", 7 / 3)])
def test_covariances_are_those_of_the_paper(variant: str, mean_scale: float) -> None:
    """Means fill [-5, 5]^2; E Σ = E[a or a²] 2/3 I + 1/2 I; Σ is bounded by 4 A Aᵀ + I."""
    blocks = [GMMComponents(n_points=1, variant=variant).densities(i) for i in range(20)]
    covariances = np.concatenate([b.covariances for b in blocks]).reshape(-1, 2, 2)
    means = np.concatenate([b.means for b in blocks]).reshape(-1, 2)
    expected = (mean_scale * 2 / 3 + 0.5) * np.eye(2)
    error = covariances.std(axis=0) / np.sqrt(len(covariances))
    assert (np.abs(covariances.mean(axis=0) - expected) < 5 * error).all()
    assert (5 * error < 0.05).all()  # half of what the two variants differ by
    assert np.linalg.eigvalsh(covariances).min() > 0
    assert covariances[:, [0, 1], [0, 1]].max() <= 9
    assert stats.kstest(means.ravel(), stats.uniform(-5, 10).cdf).statistic < 0.01


def test_points_follow_their_density() -> None:
    """The distribution function of each bag's own mixture makes its coordinates uniform."""
    dataset = GMMComponents(n_points=30)
    bags, _ = dataset.block(0)
    densities = dataset.densities(0)
    k, means, covariances = densities.n_components, densities.means, densities.covariances
    x = bags.points.reshape(len(bags), 30, 2)
    used = np.arange(10) < k[:, None]
    for axis in (0, 1):
        scales = np.sqrt(covariances[:, :, axis, axis])
        levels = stats.norm.cdf(
            (x[:, :, None, axis] - means[:, None, :, axis]) / scales[:, None, :]
        )
        u = (levels * used[:, None, :]).sum(axis=2) / k[:, None]
        assert stats.kstest(u.ravel(), "uniform").statistic < 0.01


def test_points_of_one_component_have_its_covariance() -> None:
    """Whitened by the true mean and covariance, the points of k = 1 are standard normal in R^2."""
    dataset = GMMComponents(n_points=200)
    bags, targets = dataset.block(0)
    means, covariances = dataset.densities(0).means, dataset.densities(0).covariances
    inner = (np.abs(means[:, 0]) < 3).all(axis=1)  # where the edges cut off next to nothing
    chosen = np.flatnonzero((targets[:, 0] == 1) & inner)
    factors = np.linalg.cholesky(covariances[chosen, 0])
    x = bags.points.reshape(len(bags), 200, 2)[chosen] - means[chosen, None, 0]
    white = np.linalg.solve(factors, x.transpose(0, 2, 1)).transpose(0, 2, 1).reshape(-1, 2)
    assert len(white) > 4000
    assert np.abs(white.mean(axis=0)).max() < 5 / np.sqrt(len(white))
    assert np.abs(np.cov(white.T) - np.eye(2)).max() < 0.08


def test_truncated_coordinates_are_redrawn_not_clipped() -> None:
    """Next to an edge the points follow the truncated normal, with no atom on the edge."""
    rng = np.random.default_rng(0)
    n = 100_000
    means, scales = np.array([0.02, 0.95]), np.array([0.1, 0.06])
    component = np.repeat([0, 1], n)
    points = truncated_gaussians(
        rng, component, means[:, None], scales[:, None, None], ((0.0, 1.0),)
    )[:, 0]
    for c in (0, 1):
        a, b = (np.array([0, 1]) - means[c]) / scales[c]
        truth = stats.truncnorm(a, b, means[c], scales[c])
        assert stats.kstest(points[component == c].astype(float), truth.cdf).statistic < 0.006
    assert np.isin(points, [0.0, 1.0]).sum() < 5


def test_truncation_in_the_plane_keeps_the_correlation() -> None:
    """In two dimensions the redrawn points are those of plain rejection, cut corners and all."""
    covariance = np.array([[4.0, 3.0], [3.0, 4.0]])
    box = ((-1.0, 2.0), (-2.0, 1.0))
    points = truncated_gaussians(
        np.random.default_rng(1),
        np.zeros(100_000, dtype=np.int64),
        np.zeros((1, 2)),
        np.linalg.cholesky(covariance)[None],
        box,
    )
    plain = np.random.default_rng(2).multivariate_normal([0, 0], covariance, 400_000)
    plain = plain[((plain >= [-1, -2]) & (plain <= [2, 1])).all(axis=1)]
    np.testing.assert_allclose(points.mean(axis=0), plain.mean(axis=0), atol=0.015)
    np.testing.assert_allclose(np.cov(points.T), np.cov(plain.T), atol=0.015)


def test_components_are_chosen_equally_often() -> None:
    """Each of a bag's own components gets its share of the points, and no other bag's does."""
    n_components, sizes = np.array([1, 3, 10]), np.array([100, 30_000, 100_000])
    component = choose_components(np.random.default_rng(0), n_components, sizes, 10)
    bag = np.repeat(np.arange(3), sizes)
    np.testing.assert_array_equal(component // 10, bag)
    for i, (k, n) in enumerate(zip(n_components, sizes, strict=True)):
        counts = np.bincount(component[bag == i] - 10 * i)
        assert len(counts) == k
        assert np.abs(counts - n / k).max() <= 5 * np.sqrt(n / k)
