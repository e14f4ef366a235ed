"""001, §5.1 and Appendix A: kernels of embeddings against those of the true densities."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.samples import truncated_mixtures
from bagbasis.jobs.experiments.kernels.js_gram import true_distances
from tests.oracles.hdd import kappa


@pytest.mark.parametrize("distance", ["js", "hellinger", "tv", "chi2"])
def test_true_distances_are_those_of_the_definition(distance):
    """The truth is the integral of κ, written independently."""
    _, densities = truncated_mixtures(3, n_mixtures=4, n_points=1)
    expected = np.array([kappa(distance, p, densities).mean(axis=1) for p in densities])
    np.testing.assert_allclose(true_distances(distance, densities), expected, atol=1e-12)
