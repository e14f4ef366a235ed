"""`two-samples-at-many-scales` at small scale, and the data that it draws."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.jobs.experiments.hypotheses.two_samples_at_many_scales import (
    perturbed_density,
    published_perturbed_uniforms,
)


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


@pytest.mark.parametrize(("i", "n", "n_dims", "scale"), [(0, 500, 1, 0.2), (199, 1000, 2, 0.4)])
def test_published_data_sets(i, n, n_dims, scale):
    """The same numbers as of the authors' procedure: a seed for each data set, one after another
    over sizes, and one point and its height at a time from numpy's legacy generator."""
    seed = 42 + i + 200 * [500, 1000].index(n)
    signs = np.random.RandomState(seed + 1).choice([-1, 1], 2**n_dims)
    generator, selected = np.random.RandomState(seed + 2), []
    while len(selected) < n:
        point = generator.uniform(0, 1, n_dims)
        height = generator.uniform(0, 1 + scale)
        if height <= perturbed_density(point[None], signs, scale)[0]:
            selected.append(point)
    perturbed, even = published_perturbed_uniforms(i, n, n_dims, scale)
    assert (perturbed == np.array(selected)).all()
    assert (even == np.random.RandomState(seed).uniform(0, 1, (n, n_dims))).all()
