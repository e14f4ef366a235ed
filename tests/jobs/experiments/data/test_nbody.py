"""Cubes of simulated universes as bags with responses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.spatial import cKDTree

from bagbasis.datasets.base import ResponseBlock
from bagbasis.jobs.experiments.data.nbody import NBody, cut

SMALL = NBody(n_boxes=2, n_particles=16, n_cubes=2, box_size=32, n_steps=4, seed=5)


def same_bytes(first: ResponseBlock, second: ResponseBlock) -> bool:
    """Are two blocks the same, to the last bit?"""
    return all(
        a.tobytes() == b.tobytes()
        for a, b in (
            (first.bags.points, second.bags.points),
            (first.bags.offsets, second.bags.offsets),
            (first.targets, second.targets),
            (first.responses.points, second.responses.points),
            (first.responses.offsets, second.responses.offsets),
        )
    )


def in_the_box(points: np.ndarray, offsets: np.ndarray, n_cubes: int, size: float) -> np.ndarray:
    """Positions of the particles of all cubes."""
    cube = np.repeat(np.arange(n_cubes**3), np.diff(offsets))
    corners = np.stack([cube // n_cubes**2, cube // n_cubes % n_cubes, cube % n_cubes], axis=1)
    return (points + corners) * (size / n_cubes)


def test_cubes_put_together_are_the_two_boxes() -> None:
    """Bags hold every particle of the 2LPT box once, responses those of the other one."""
    bags, targets, responses = SMALL.response_block(1)
    for (points, offsets), positions in zip(
        ((bags.points, bags.offsets), (responses.points, responses.offsets)),
        SMALL.simulate(1),
        strict=True,
    ):
        assert points.shape == positions.shape == (16**3, 3)
        assert points.dtype == np.float32
        assert (points.min(), points.max()) == (pytest.approx(0, abs=0.01), pytest.approx(1, 0.01))
        assert points.min() >= 0
        assert points.max() <= 1
        distances, rows = cKDTree(in_the_box(points, offsets, 2, 32.0)).query(positions)
        assert distances.max() < 1e-5
        assert len(np.unique(rows)) == 16**3
    np.testing.assert_array_equal(targets[:, 0], 1)
    np.testing.assert_array_equal(targets[:, 1], np.log(responses.sizes / bags.sizes))


def test_sharper_forces_make_denser_halos_of_the_same_field() -> None:
    """2LPT's box stays to the bit, and the other one has more neighbours closer than the lattice's
    shortest wave; from an epoch that is never reached, nothing changes."""
    soft, sharp = replace(SMALL, n_steps=10), replace(SMALL, n_steps=10, sharp_redshift=1.33)
    (theory, gravity), (same, denser) = soft.simulate(0), sharp.simulate(0)
    assert same.tobytes() == theory.tobytes()
    pairs = [cKDTree(x, boxsize=32.0).count_neighbors(cKDTree(x, boxsize=32.0), 1.0)
             for x in (gravity, denser)]  # fmt: skip
    assert pairs[1] - 16**3 > 1.1 * (pairs[0] - 16**3)
    early = replace(soft, redshift=5.0)
    late = replace(early, sharp_redshift=1.33)
    assert early.simulate(0)[1].tobytes() == late.simulate(0)[1].tobytes()


def test_simulations_agree_where_they_begin() -> None:
    """A leapfrog over next to no time leaves the 2LPT box: both evolve the same field."""
    dataset = replace(SMALL, redshift=18.0, n_steps=2)
    by_theory, by_gravity = dataset.simulate(0)
    moved = by_theory - replace(dataset, seed=6).simulate(0)[0]
    assert np.abs(by_theory - by_gravity).max() < 0.02
    assert np.abs(moved).max() > 0.5


def test_box_depends_on_seed_and_number_alone() -> None:
    """The same bytes again, however many boxes there are; another box or seed, another universe."""
    block = SMALL.response_block(1)
    assert same_bytes(block, NBody(**SMALL.params).response_block(1))
    assert same_bytes(block, replace(SMALL, n_boxes=9).response_block(1))
    for other in (SMALL.response_block(0), replace(SMALL, seed=6).response_block(1)):
        assert not np.isin(other.bags.points[:50], block.bags.points).all(axis=1).any()
        assert (other.targets[:, 1] != block.targets[:, 1]).all()


def test_poor_cubes_have_no_response() -> None:
    """Fewer particles than min_points, in either simulation, leave a cube unlabelled."""
    bags, targets, responses = SMALL.response_block(0)
    fewest = np.minimum(bags.sizes, responses.sizes)
    limit = int(np.sort(fewest)[4])
    poorer = replace(SMALL, min_points=limit).response_block(0)
    labelled = fewest >= limit
    assert 0 < labelled.sum() < len(labelled)
    np.testing.assert_array_equal(poorer.bags.points, bags.points)
    np.testing.assert_array_equal(poorer.responses.sizes, np.where(labelled, responses.sizes, 0))
    np.testing.assert_array_equal(
        poorer.responses.points, responses.points[np.repeat(labelled, responses.sizes)]
    )
    np.testing.assert_array_equal(poorer.targets[:, 0], 0)
    np.testing.assert_array_equal(poorer.targets[:, 1], np.where(labelled, targets[:, 1], np.nan))


@pytest.mark.long
@given(
    n=st.integers(0, 60), n_cubes=st.integers(1, 5), seed=st.integers(0, 99), edges=st.booleans()
)
@settings(max_examples=60)
def test_every_particle_is_in_its_cube(n: int, n_cubes: int, seed: int, edges: bool) -> None:
    """Cube by cube: the particles within its edges, lower ones included, in their order."""
    size = 3.7
    rng = np.random.default_rng(seed)
    positions = rng.uniform(0, size, (n, 3))
    if edges:
        ends = [0.0, np.nextafter(size, 0), *(size * np.arange(n_cubes) / n_cubes)]
        positions = rng.choice(ends, (n, 3))
    points, offsets = cut(positions, size, n_cubes)
    cell = np.minimum(np.floor(positions * (n_cubes / size)), n_cubes - 1)
    assert offsets.shape == (n_cubes**3 + 1,)
    for index, corner in enumerate(np.ndindex(n_cubes, n_cubes, n_cubes)):
        inside = (cell == corner).all(axis=1)
        expected = positions[inside] * (n_cubes / size) - corner
        np.testing.assert_allclose(points[offsets[index] : offsets[index + 1]], expected, atol=1e-6)
    assert points.size == 0 or (points.min() >= 0 and points.max() <= 1)


def periodic_distances(positions: np.ndarray, size: float) -> np.ndarray:
    """Distances of all pairs in a periodic box."""
    gap = np.abs(positions[:, None] - positions)
    return np.sqrt((np.minimum(gap, size - gap) ** 2).sum(axis=2))


def test_views_turn_mirror_and_shift_both_boxes_alike() -> None:
    """Each view after the first is another rigid motion of the periodic box, the same for both
    simulations; the first is the block without views."""
    viewed = replace(SMALL, n_views=4)
    block, plain = viewed.response_block(1), SMALL.response_block(1)
    assert len(block.bags) == viewed.block_bags == 4 * len(plain.bags)
    assert viewed.n_bags == 2 * viewed.block_bags
    n = plain.bags.n_points
    np.testing.assert_array_equal(block.bags.points[:n], plain.bags.points)
    np.testing.assert_array_equal(block.targets[:8], plain.targets)
    rng = np.random.default_rng(0)
    some = rng.choice(16**3, 40, replace=False)
    pairs = np.concatenate([positions[some] for positions in SMALL.simulate(1)])
    truth = periodic_distances(pairs, 32.0)
    seen = [viewed.seen(pairs, 1, view) for view in range(4)]
    for positions in seen:
        assert positions.min() >= 0
        assert positions.max() < 32
        np.testing.assert_allclose(periodic_distances(positions, 32.0), truth, atol=1e-9)
    for i in range(4):
        for j in range(i):
            assert np.abs(seen[i] - seen[j]).max() > 1
    for view in range(1, 4):
        part = slice(view * 8, view * 8 + 8)
        offsets = block.bags.offsets[view * 8 : view * 8 + 9]
        points = block.bags.points[offsets[0] : offsets[-1]]
        inside = in_the_box(points, offsets - offsets[0], 2, 32.0)
        expected = viewed.seen(SMALL.simulate(1)[0], 1, view)
        distances, _ = cKDTree(inside).query(expected)
        assert distances.max() < 1e-5
        assert (block.targets[part, 0] == 1).all()
