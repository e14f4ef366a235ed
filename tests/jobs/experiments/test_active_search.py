"""`active-search` at small scale, its fields, and level sets by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from bagbasis.jobs.experiments.search.active_search import BETA, PROBLEMS, LevelSets, Pattern
from bagbasis.search import Field


@pytest.mark.long
@pytest.mark.parametrize("problem", PROBLEMS)
def test_scalars_of_level_sets(problem):
    """Mean and variance are those of draws: of f, or of its curl by differences."""
    pattern = PROBLEMS[problem](8, 5, 3, 60, np.random.default_rng(0))
    field = pattern.field.observe(20, pattern.truth[20])
    draws = field.draw(4000)
    if problem == "vortices":
        flows = draws.reshape(-1, 8, 8, 2)
        curl = np.gradient(flows[..., 1], axis=1) - np.gradient(flows[..., 0], axis=2)
        draws = curl.reshape(-1, 64, 1)
    mean, variance = pattern.scalar(field)
    scale = np.sqrt(variance.max())
    np.testing.assert_allclose(draws[..., 0].mean(axis=0), mean, atol=0.08 * scale)
    np.testing.assert_allclose(draws[..., 0].var(axis=0), variance, atol=0.12 * scale**2)


def test_level_sets_ask_where_the_side_is_least_certain():
    """By the definition, intervals of earlier queries kept; no place twice;
    certain everywhere, the variance."""
    field = Field([[0.0], [1.0], [9.0]], RBF(1.0))
    pattern = Pattern(
        field, np.zeros((3, 1)), None, lambda f: (f.mean[:, 0], f.variance), (0.5,), True
    )
    score = LevelSets(pattern)
    np.testing.assert_allclose(score(field), BETA**0.5 - 0.5)
    field = field.observe(0, 3.0)
    after = score(field)
    reach = (BETA * field.variance) ** 0.5
    high = np.minimum(field.mean[:, 0] + reach, BETA**0.5)
    low = np.maximum(field.mean[:, 0] - reach, -(BETA**0.5))
    np.testing.assert_allclose(after[1:], np.minimum(high - 0.5, 0.5 - low)[1:])
    assert after.argmax() == 2
    assert after[0] == -np.inf  # observed
    known = Field([[0.0], [9.0]], lambda a, b: 1e-4 * np.eye(2), noise=1e-4).observe(0, 0.0)
    np.testing.assert_array_equal(LevelSets(pattern)(known), [-np.inf, known.variance[1]])
