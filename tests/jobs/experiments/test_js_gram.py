"""001, §5.1 and Appendix A: kernels of embeddings against those of the true densities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from bagbasis import HDDEmbedding
from bagbasis.embeddings import hdd
from bagbasis.jobs.experiments.data.samples import truncated_mixtures
from bagbasis.jobs.experiments.kernels.js_gram import agreement, true_distances
from tests.oracles.hdd import kappa


@pytest.mark.long
def test_printed_measure_is_told_apart(monkeypatch):
    """With the measure that the paper prints for JS, 1 + λ² for 1 + 4λ², the same figure falls
    far below the bound: .26 to .37 with three seeds, where ours is .98."""
    grid = np.linspace(0, 12, 200_001)
    density = 1 / (np.cosh(np.pi * grid) * (1 + grid**2))
    distribution = np.cumsum(density) * (grid[1] - grid[0])
    shares = (np.arange(5) + 0.5) / 5
    nodes = np.interp(shares, distribution / distribution[-1], grid)
    weights = np.full(5, distribution[-1] / 5)
    printed = (tuple(nodes.tolist()), tuple(weights.tolist()))
    bags, densities = truncated_mixtures(0, 30, 2500)
    true = true_distances("js", densities)[np.triu_indices(30, 1)]
    variance = np.median(true)
    found = []
    for nodes in (hdd.lambda_nodes, lambda *args: printed):
        monkeypatch.setattr(hdd, "lambda_nodes", nodes)
        squares = pdist(HDDEmbedding("js").fit_transform(bags), "sqeuclidean")
        kernels = (np.exp(-each / (2 * variance)) for each in (true, squares))
        found.append(agreement(*kernels)["determination"])
    assert found[0] > 0.955
    assert found[1] < 0.6


@pytest.mark.parametrize("distance", ["js", "hellinger", "tv", "chi2"])
def test_true_distances_are_those_of_the_definition(distance):
    """The truth is the integral of κ, written independently."""
    _, densities = truncated_mixtures(3, n_mixtures=4, n_points=1)
    expected = np.array([kappa(distance, p, densities).mean(axis=1) for p in densities])
    np.testing.assert_allclose(true_distances(distance, densities), expected, atol=1e-12)


def test_known_densities_are_those_of_the_points():
    """Each density integrates to one, and a bag's points lie where its own density says."""
    bags, densities = truncated_mixtures(1, n_mixtures=3, n_points=20_000)
    np.testing.assert_allclose(densities.mean(axis=1), 1, rtol=1e-3)
    for bag, density in zip(bags, densities, strict=True):
        counts = np.histogram2d(*bag.T, bins=10, range=[(0, 1)] * 2)[0] / len(bag)
        expected = density.reshape(10, 10, 10, 10).mean(axis=(1, 3)) / 100
        np.testing.assert_allclose(counts, expected, atol=0.006)
