"""The direct form of HDD embeddings: density sums, integration points, and the library's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import qmc

from bagbasis import Bags, HDDEmbedding
from bagbasis.embeddings.hdd_measures import DISTANCES
from tests.oracles.hdd import midpoints
from tests.oracles.hdd_direct import embed_at

GRID = {1: 200, 2: 40, 3: 16}


def bags_of(n_dims, sizes=(1, 7, 120), seed=0):
    rng = np.random.default_rng(seed)
    return Bags.from_list([rng.beta(2, 3, (size, n_dims)) for size in sizes])


def fast_spec(distance, n_dims):
    """With coefficients until nothing is left of them."""
    embedding = HDDEmbedding(
        distance, n_per_dim=4, bandwidth=0.12, floor=1e-2, grid=GRID[n_dims]
    ).fit(bags_of(n_dims))
    spec = embedding.spec_
    return spec if spec.is_linear else replace(spec, n_coefficients=20)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_integration_points_converge(distance, n_dims):
    """With more and more integration points the direct method becomes the fast one."""
    bags, spec = bags_of(n_dims), fast_spec(distance, n_dims)
    fast, direct = (np.empty((3, spec.n_features)) for _ in range(2))
    spec.embed(bags, fast)
    errors = []
    for n in (50, 10_000):
        at = qmc.Halton(n_dims, seed=np.random.default_rng(0)).random(n)
        embed_at(spec, bags, at, direct)
        errors.append(np.abs(direct - fast).max())
    assert errors[1] < 0.02
    assert errors[1] < 0.1 * errors[0]


@pytest.mark.parametrize("marginals", [1, 2])
@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_marginals_and_points_outside(marginals, mode):
    """Both methods confine points alike, one marginal at a time, and count the same."""
    rng = np.random.default_rng(1)
    bags = Bags.from_list([rng.uniform(-1.3, 1.2, (size, 4)) for size in (60, 200)])
    parameters = {"n_per_dim": 4, "bandwidth": 0.12, "marginals": marginals, "out_of_box": mode}
    fast = HDDEmbedding(box=[(-1, 1)] * 4, grid=40, **parameters).fit(bags).spec_
    points = midpoints(40, marginals)
    a, b = (np.empty((2, fast.n_features)) for _ in range(2))
    assert fast.embed(bags, a) == embed_at(fast, bags, points, b) > 0
    np.testing.assert_allclose(b, a, atol=2e-3)
