"""`two-samples-at-many-scales` at small scale, and the data that it draws."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.data.fine_differences import (
    mixtures,
    perturbed_density,
    perturbed_uniforms,
    published_perturbed_uniforms,
)


def test_mixtures():
    """One component of the second sample is wider; all are at their places."""
    X, Y = mixtures(np.random.default_rng(0), 40_000, 1.3)
    for points, own in ((X, 1.0), (Y, 1.3)):
        for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            part = points[(np.sign(points) == signs).all(axis=1)]
            assert len(part) == pytest.approx(10_000, rel=0.05)
            assert part.mean(axis=0) == pytest.approx(20.0 * np.array(signs), abs=0.05)
            expected = own if signs == (-1, -1) else 1.0
            assert part.std(axis=0) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("n_dims", "scale"), [(1, 0.2), (2, 0.4)])
def test_perturbed_density(n_dims, scale):
    """It is at least 0, at most 1 + scale, of integral 1, and the one that is printed."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], 2**n_dims)
    axis = (np.arange(400) + 0.5) / 400
    grid = np.stack(np.meshgrid(*[axis] * n_dims, indexing="ij"), axis=-1).reshape(-1, n_dims)
    values = perturbed_density(grid, signs, scale)
    assert values.mean() == pytest.approx(1, abs=1e-6)
    assert values.min() >= 1 - scale - 1e-12
    assert values.max() == pytest.approx(1 + scale, rel=1e-3)

    def bump(x):
        if -1 < x < -0.5:
            return np.exp(-1 / (1 - (4 * x + 3) ** 2))
        return -np.exp(-1 / (1 - (4 * x + 1) ** 2)) if -0.5 < x < 0 else 0.0

    for point, value in zip(grid[::997], values[::997], strict=True):
        places = np.ndindex(*[2] * n_dims)
        total = sum(
            sign * np.prod([bump(2 * x - (j + 1)) for x, j in zip(point, place, strict=True)])
            for sign, place in zip(signs, places, strict=True)
        )
        assert value == pytest.approx(1 + scale * np.e**n_dims * total, abs=1e-12)


def test_perturbed_points_follow_their_density():
    """Counts on a grid are those of the density, within their errors; the other sample is even."""
    signs = np.random.default_rng(3).choice([-1.0, 1.0], 2)  # the first that is drawn
    X, Y = perturbed_uniforms(np.random.default_rng(3), 60_000, 1, 0.2)
    middles = (np.arange(1000) + 0.5)[:, None] / 1000
    density = perturbed_density(middles, signs, 0.2).reshape(20, 50).mean(axis=1)
    for points, expected in ((X, np.ones(20)), (Y, density)):
        counts, _ = np.histogram(points, bins=20, range=(0, 1))
        assert np.abs(counts - 3000 * expected).max() < 4 * 3000**0.5
    assert np.abs(density - 1).max() > 0.1


@pytest.mark.parametrize(("i", "n", "n_dims", "scale"), [(0, 500, 1, 0.2), (199, 1000, 2, 0.4)])
def test_published_data_sets(i, n, n_dims, scale):
    """The same numbers as of the authors' procedure: a seed for each data set, one after another
    over sizes, and one point and its height at a time from numpy's legacy generator."""
    seed = 42 + i + 200 * [500, 1000].index(n)
    signs = np.random.RandomState(seed + 1).choice([-1, 1], 2**n_dims)
    generator, kept = np.random.RandomState(seed + 2), []
    while len(kept) < n:
        point = generator.uniform(0, 1, n_dims)
        height = generator.uniform(0, 1 + scale)
        if height <= perturbed_density(point[None], signs, scale)[0]:
            kept.append(point)
    perturbed, even = published_perturbed_uniforms(i, n, n_dims, scale)
    assert (perturbed == np.array(kept)).all()
    assert (even == np.random.RandomState(seed).uniform(0, 1, (n, n_dims))).all()
