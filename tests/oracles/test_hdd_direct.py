"""The direct form of HDD embeddings: density sums, integration points, and the library's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import qmc

from bagbasis import Bags, HDDEmbedding
from bagbasis.embeddings.hdd_measures import DISTANCES
from tests.oracles.hdd import midpoints, reflected_density
from tests.oracles.hdd_direct import REACH, embed_at
from tests.oracles.hdd_direct_kernels import reflected_densities

DTYPES = (np.float32, np.float64)
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


@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_density_sums(n_dims, bandwidth, dtype):
    """Sums over points and mirror images, at points on the edges too; points that do not count
    are left out, and a bag without one is NaN."""
    rng = np.random.default_rng(0)
    unit, at = rng.random((90, n_dims)), rng.random((60, n_dims))
    unit[0], unit[1], at[0], at[1] = 0, 1, 0, 1
    saved = np.ones(90, dtype=bool)
    saved[40:50] = saved[85:] = False
    out = np.empty((4, 60), dtype)
    reflected_densities(
        0,
        4,
        unit.astype(dtype),
        saved,
        np.array([0, 1, 30, 85, 90]),
        np.ascontiguousarray(at.T.astype(dtype)),
        dtype(bandwidth),
        dtype(REACH[out.itemsize] * bandwidth),
        out,
    )
    bags = unit[:1], unit[1:30], np.concatenate([unit[30:40], unit[50:85]])
    atol = 1e-5 if dtype == np.float32 else 1e-13
    for row, bag in zip(out, bags, strict=False):
        direct = reflected_density(bag, bandwidth, at)
        np.testing.assert_allclose(row, direct, atol=atol * direct.max())
    assert np.isnan(out[3]).all()


@pytest.mark.long
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("n_dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_two_methods_agree_at_the_same_points(distance, n_dims, dtype):
    """At the fast path's midpoints direct integration is the fast path."""
    bags, spec = bags_of(n_dims), fast_spec(distance, n_dims)
    fast, direct = (np.empty((3, spec.n_features), dtype) for _ in range(2))
    spec.embed(bags, fast)
    assert embed_at(spec, bags, midpoints(spec.grid, n_dims), direct) == 0
    np.testing.assert_allclose(direct, fast, atol=3e-5 if dtype == np.float32 else 1e-9)


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


def test_blocks_do_not_show():
    """Many bags, in several blocks, are embedded as each alone."""
    bags = bags_of(2, (3, 5, 1) * 10)
    spec = HDDEmbedding(bandwidth=0.1, n_per_dim=2).fit(bags).spec_
    at = np.random.default_rng(0).random((60_000, 2))
    together, alone = (np.empty((n, spec.n_features), np.float32) for n in (30, 1))
    embed_at(spec, bags, at, together)
    for i in (0, 7, 29):
        embed_at(spec, bags[i : i + 1], at, alone)
        np.testing.assert_allclose(together[i], alone[0], atol=1e-6)
