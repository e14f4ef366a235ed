"""How often the drift test rejects: without drift, with it, and where thinning or bags matter."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis.operations import drift_test
from tests.operations.monitoring.drawing import NEW_SIZES, REFERENCE_SIZES, draw_bags
from tests.oracles.drift import pooled_p_value

ALPHA = 0.05


@pytest.fixture(autouse=True)
def _one_core(monkeypatch):
    """Hundreds of small tests: threads would cost more than they save."""
    monkeypatch.setenv("BAGBASIS_WORKER_CORES", "1")


def run(rng, n_reference, n_new, seed, shift=0.0, **options):
    """One round: both sets, and what the test says of them."""
    reference = draw_bags(rng, n_reference, options.pop("reference_sizes", REFERENCE_SIZES))
    new = draw_bags(rng, n_new, options.pop("new_sizes", NEW_SIZES), shift)
    result = drift_test(reference, new, n_features=64, n_permutations=99, seed=seed, **options)
    return reference, new, result


@pytest.mark.long
def test_without_drift_it_rejects_as_often_as_alpha_says():
    """Bag effects, sizes unequal within and between sets: 5 % of 400 rounds, overall and for the
    coordinates together; the test that pools points rejects most of the same sets."""
    rng, naive_rng = np.random.default_rng(0), np.random.default_rng(1)
    rejected, pointed_out, naive = [], [], []
    for i in range(400):
        reference, new, result = run(rng, 30, 20, i)
        rejected.append(result.p_value <= ALPHA)
        shifts = result.coordinates
        pointed_out.append(min(min(s.mean_p_value, s.spread_p_value) for s in shifts) <= ALPHA)
        if i < 60:
            naive.append(pooled_p_value(reference, new, naive_rng) <= ALPHA)
    assert 0.03 <= np.mean(rejected) <= 0.07
    assert 0.03 <= np.mean(pointed_out) <= 0.07
    assert np.mean(naive) > 0.6


@pytest.mark.long
def test_a_shift_is_found():
    """Every bag moved by one standard deviation of the bags' means, 40 bags against 40: the
    documented power."""
    rng = np.random.default_rng(2)
    results = [run(rng, 40, 40, i, shift=0.5)[2] for i in range(100)]
    assert np.mean([result.p_value <= ALPHA for result in results]) >= 0.9
    shifts = [s for result in results for s in result.coordinates]
    assert np.mean([s.mean_p_value <= ALPHA for s in shifts]) >= 0.9
    assert np.mean([s.spread_p_value <= ALPHA for s in shifts]) <= ALPHA


@pytest.mark.long
def test_sizes_alone_are_no_drift():
    """Tiny bags against large ones of the same densities: without thinning noise is drift."""
    sizes = {"reference_sizes": (2, 5), "new_sizes": (100, 300)}
    rates = {}
    for thin in (True, False):
        rng = np.random.default_rng(3)
        p = [run(rng, 30, 30, i, thin=thin, **sizes)[2].p_value for i in range(100)]
        rates[thin] = np.mean(np.array(p) <= ALPHA)
    assert rates[True] <= 0.1
    assert rates[False] >= 0.4


def test_dependence_of_coordinates_alone_is_found():
    """A drift that no coordinate shows by itself: the same means and spreads, now correlated."""
    rng = np.random.default_rng(4)
    turn = np.linalg.cholesky(np.array([[1.0, 0.8], [0.8, 1.0]])).T
    reference = [rng.standard_normal((100, 2)) for _ in range(40)]
    new = [rng.standard_normal((100, 2)) @ turn for _ in range(40)]
    result = drift_test(reference, new)
    assert result.p_value == 0.001
    assert all(abs(s.mean_shift) < 1 and abs(s.spread_shift) < 1 for s in result.coordinates)


def test_one_wild_point_hides_nothing():
    """A point at 10⁶ in one bag does not flatten the coordinate in which the others drift."""
    rng = np.random.default_rng(5)
    reference, new = (draw_bags(rng, 40, (50, 51)) for _ in range(2))
    new = [bag + np.array([1.0, 0.0]) for bag in new]
    reference[3][7, 0] = 1e6
    assert drift_test(reference, new).p_value == 0.001
