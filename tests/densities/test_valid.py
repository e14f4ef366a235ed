"""The nearest valid density: a projection, exact, never farther from any true density."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from bagbasis import Box
from bagbasis.densities import Densities
from bagbasis.densities.valid_densities import quasi_random_points, solve_thresholds
from bagbasis.embeddings import BASES, index_set
from tests.oracles.densities import density_by_loop, threshold_by_bisection

FINITE = st.floats(-50, 50)


def wild(n, n_dims, basis="cosine", constant=1.0, seed=0, n_per_dim=4, box=None):
    """Series that dip far below zero."""
    indices = index_set(n_dims, n_per_dim, max_norm=None, basis=basis)
    a = np.random.default_rng(seed).standard_normal((n, len(indices)))
    a[:, 0] = constant
    return Densities(a, indices, basis=basis, box=Box.of(box, n_dims))


@pytest.mark.long
@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 60)), elements=FINITE),
    st.floats(1e-3, 1e3),
)
@settings(max_examples=200)
def test_threshold_solves_its_equation(values, scale):
    """max(v − c, 0) has mean one, whatever the values: ties, all negative, one value."""
    values = values * scale
    c = solve_thresholds(values)
    means = np.maximum(values - c[:, None], 0).mean(axis=1)
    np.testing.assert_allclose(means, 1, rtol=1e-10, atol=1e-13 * np.abs(values).max())
    for row, threshold in zip(values, c, strict=True):
        expected = threshold_by_bisection(row)
        assert threshold == pytest.approx(expected, rel=1e-9, abs=1e-12 * scale + 1e-11)


@pytest.mark.long
@given(st.data())
@settings(max_examples=150)
def test_theorem(data):
    """No density is farther from max(p − c, 0) than it was from p (Gajek 1986)."""
    m = data.draw(st.integers(1, 40))
    values = data.draw(arrays(np.float64, m, elements=FINITE))
    truth = data.draw(arrays(np.float64, m, elements=st.floats(0, 50)))
    truth = truth / truth.mean() if truth.mean() > 1e-6 else np.ones(m)
    projected = np.maximum(values - solve_thresholds(values[None])[0], 0)
    before, after = ((truth - v) @ (truth - v) for v in (values, projected))
    assert after <= before * (1 + 1e-12) + 1e-9
    # a projection on a convex set: the angle at the projection is obtuse
    assert (values - projected) @ (truth - projected) <= 1e-9 * (1 + before)


@pytest.mark.long
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(("n_dims", "n_per_dim"), [(1, 12), (2, 6), (3, 4)])
@pytest.mark.parametrize("constant", [1.0, 0.2, -3.0, 2.5])
def test_valid(basis, n_dims, n_per_dim, constant):
    """Nowhere negative, of integral one on its grid, whatever the series integrates to."""
    box = [(-10, 10), (0, 0.5), (3, 4)][:n_dims]
    series = wild(3, n_dims, basis, constant, n_per_dim=n_per_dim, box=box)
    valid = series.valid()
    assert valid.is_valid
    assert not series.is_valid
    values = valid.on_grid()
    assert values.min() == 0
    means = values.reshape(3, -1).mean(axis=1) * valid.volume
    np.testing.assert_allclose(means, 1, atol=1e-10)
    np.testing.assert_allclose(valid.integral(), np.ones(3), atol=1e-10)
    assert valid.integral().shape == (3,)
    points = np.random.default_rng(1).uniform(*np.array(box).T, (40, n_dims))
    assert (valid.at(points) >= 0).all()
    i = 1
    expected = density_by_loop(
        series.coefficients[i], series.indices, basis, box, points, valid.threshold[i]
    )
    np.testing.assert_allclose(valid.at(points)[i], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("n_dims", "n_per_dim", "expected"), [(1, 3, 256), (1, 100, 400), (2, 4, 64), (2, 200, 512)]
)
def test_the_default_grid(n_dims, n_per_dim, expected):
    """Four midpoints per function, at least enough for a figure, and at most 2^18 cells."""
    indices = np.zeros((2, n_dims), int)
    indices[1] = n_per_dim - 1
    densities = Densities([[1.0, 0.1]], indices, basis="cosine", box=Box.unit(n_dims))
    assert densities.resolution == expected


def test_threshold_against_a_finer_grid():
    """The default grid is fine enough: on one five times finer c changes by little."""
    series = wild(5, 2)
    coarse, fine = series.valid(), series.valid(5 * series.resolution)
    np.testing.assert_allclose(coarse.threshold, fine.threshold, atol=2e-3)
    assert fine.grid == fine.resolution == 5 * series.resolution
    assert (fine.on_grid().mean(axis=(1, 2)) - 1 < 1e-10).all()


@pytest.mark.parametrize("n_dims", [1, 3])
def test_idempotent(n_dims):
    """The nearest valid density of a valid density is itself; on its grid that is a theorem."""
    valid = wild(3, n_dims).valid()
    again = valid.valid()
    np.testing.assert_allclose(again.threshold, valid.threshold, atol=1e-13)
    on_grid = valid.on_grid().reshape(3, -1)
    np.testing.assert_allclose(solve_thresholds(on_grid), 0, atol=1e-12)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("n_dims", [1, 2])
def test_never_farther_from_a_true_density(basis, n_dims):
    """The estimate of a density from its points comes nearer, or stays, when made valid."""
    rng = np.random.default_rng(3)
    truth = wild(6, n_dims, basis, seed=4).valid(128)
    noise = 0.3 * rng.standard_normal(truth.coefficients.shape)
    noise[:, 0] = 0
    estimate = Densities(
        truth.coefficients + noise, truth.indices, basis=basis, box=truth.box, grid=128
    )
    before = estimate.l2_distance(truth)
    after = estimate.valid().l2_distance(truth)
    assert (after <= before * (1 + 1e-12)).all()
    assert after.mean() < 0.9 * before.mean()


def test_more_dimensions_use_quasi_random_points():
    """Beyond three dimensions the integral is one over the quasi-random points, and near one."""
    series = wild(2, 5, n_per_dim=2, seed=6)
    valid = series.valid()
    points = quasi_random_points(5)
    np.testing.assert_allclose(valid.at(points).mean(axis=1), 1, atol=1e-10)
    elsewhere = np.random.default_rng(7).random((20_000, 5))
    np.testing.assert_allclose(valid.at(elsewhere).mean(axis=1), 1, atol=0.05)
    np.testing.assert_array_equal(series.valid().threshold, valid.threshold)


def test_batches_as_one_by_one():
    """The threshold of a density does not depend on the others in its batch."""
    series = wild(40, 2, n_per_dim=10)
    together = series.valid().threshold
    np.testing.assert_allclose(
        [serie.valid().threshold[0] for serie in series], together, rtol=1e-12
    )
