"""Mixtures of few cells: distances of one distribution stay near 0, and real differences show."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import DataError
from bagbasis.singlecell import sample_distances

PAIRS = np.triu_indices(6, 1)


def samples(cells, dims, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(cells, dims)) for _ in range(6)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("dims", "cells"), [(3, 2), (3, 3), (3, 4), (3, 5), (3, 12), (3, 20), (10, 15), (30, 25)]
)
def test_distances_of_one_distribution_are_near_0(dims, cells):
    """A difference of means of 3 standard deviations in each coordinate is 18 d."""
    bags = samples(cells, dims)
    alike = sample_distances(bags, "mixture")[PAIRS]
    assert np.median(alike) < 4
    moved = sample_distances(bags[:3] + [bag + 3 for bag in bags[3:]], "mixture")
    assert np.median(moved[:3, 3:]) > 5 * np.median(alike)


def test_cells_that_are_given_several_times_are_few():
    bags = [np.repeat(bag, 4, axis=0) for bag in samples(20, 3)]
    assert np.median(sample_distances(bags, "mixture")[PAIRS]) < 2


def test_units_of_coordinates_do_not_matter():
    bags = samples(8, 3)
    scaled = sample_distances([bag * [1, 1e4, 1e-3] + 7 for bag in bags], "mixture")
    np.testing.assert_allclose(scaled, sample_distances(bags, "mixture"), rtol=0.15, atol=0.3)


@pytest.mark.long
def test_a_small_sample_among_large_ones_is_near_them():
    rng = np.random.default_rng(1)
    bags = [rng.normal(size=(n, 3)) * [1, 100, 0] + 5 for n in (1, 3, 8, 200, 200, 200)]
    assert sample_distances(bags, "mixture").max() < 12


def test_one_spread_that_is_different_shows():
    bags = samples(12, 3)
    wide = sample_distances(bags[:3] + [4 * bag for bag in bags[3:]], "mixture")
    assert np.median(wide[:3, 3:]) > 3 * np.median(sample_distances(bags, "mixture")[PAIRS])


def test_samples_of_one_cell_each_are_refused():
    with pytest.raises(DataError, match="no sample has two different cells"):
        sample_distances(samples(1, 3), "mixture")
    with pytest.raises(DataError, match="no sample has two different cells"):
        sample_distances([np.ones((9, 2))] * 3, "mixture")
