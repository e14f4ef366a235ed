"""`drift_test` against loops over pairs and splits, and what it promises of order and size."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bagbasis import Bags, MeanMapEmbedding, MomentsEmbedding, ProjectionEmbedding
from bagbasis.embeddings import FourierSpec
from bagbasis.hypotheses.nulls.permutation import mmd_squared_of_splits, p_values, split_sums
from bagbasis.hypotheses.samples.thinning import MAX_HELD_VALUES, as_bag_set, held_size, thin_sets
from bagbasis.operations import drift_test
from tests.operations.monitoring.drawing import draw_bags
from tests.oracles.drift import exact_p_value, mmd_unbiased_by_loop, p_value_by_loop
from tests.oracles.fourier import features, gaussian_kernel, median_distance_by_loop
from tests.oracles.mean_map import CHECK_MMD, check_samples, mean_map_by_loop

BOX = [(-4.0, 4.0)] * 2


def two_sets(seed=0, n_reference=6, n_new=4, size=30, shift=0.3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sets = [draw_bags(rng, n, (size, size + 1), s) for n, s in ((n_reference, 0), (n_new, shift))]
    return [[bag.astype(dtype) for bag in bags] for bags in sets]


def kernel_by_loop(bags, embedding, n_features, seed):
    """The kernel matrix of random features of mean maps, by numpy's sines."""
    lo, hi = zip(*BOX, strict=True)
    means, _ = mean_map_by_loop(bags, embedding.spec_.frequencies(), lo, hi)
    spec = FourierSpec(means.shape[1], n_features, scale=median_distance_by_loop(means), seed=seed)
    z = features(means, spec.frequencies())
    return z @ z.T, gaussian_kernel(means, means, spec.scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("counts", [(6, 4), (2, 5), (3, 3)])
def test_statistic_and_p_value_by_loops(dtype, counts):
    """The statistic of the definition, and the p-value of all splits to Monte Carlo's error."""
    reference, new = two_sets(1, *counts, dtype=dtype)
    embedding = MeanMapEmbedding(n_features=32, bandwidth=0.2, box=BOX).fit(reference)
    options = {"embedding": embedding, "n_features": 64, "seed": 5, "n_permutations": 9999}
    options["statistic"] = "mmd_u"
    result = drift_test(reference, new, **options)
    kernel, _ = kernel_by_loop([*reference, *new], embedding, 64, 5)
    first = range(counts[0])
    tolerance = 1e-6 if dtype == np.float32 else 1e-10
    assert result.statistic == pytest.approx(mmd_unbiased_by_loop(kernel, first), abs=tolerance)
    assert result.p_value == pytest.approx(exact_p_value(kernel, first), abs=0.02)


def test_many_features_give_the_exact_kernel():
    """The statistic tends to that of the Gaussian kernel itself."""
    reference, new = two_sets(2)
    embedding = MeanMapEmbedding(n_features=32, bandwidth=0.2, box=BOX).fit(reference)
    options = {"embedding": embedding, "n_features": 2**14, "n_permutations": 9}
    options["statistic"] = "mmd_u"
    _, exact = kernel_by_loop([*reference, *new], embedding, 64, 0)
    expected = mmd_unbiased_by_loop(exact, range(6))
    assert drift_test(reference, new, **options).statistic == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("scale", CHECK_MMD)
def test_check_values(scale):
    """The unbiased MMD² of two known samples, to the error of 2^16 features."""
    x, y = check_samples()
    rows, z = np.concatenate([x, y]), np.empty((70, 2**16))
    FourierSpec(3, 2**16, scale=scale, seed=0).transform(rows, z)
    sums = z[:40].sum(axis=0, keepdims=True)
    squared = mmd_squared_of_splits(sums, z.sum(axis=0), 40, 30)
    assert squared[0] == pytest.approx(CHECK_MMD[scale][1], abs=2e-3)


def test_every_split_by_loops():
    """One product gives the statistics of the very splits that were drawn."""
    rng = np.random.default_rng(3)
    is_reference = rng.permutation(np.arange(9) < 5)
    z = features(rng.standard_normal((9, 2)), rng.standard_normal((2, 20)))
    splits = split_sums(np.eye(9), is_reference, 60, 7)
    np.testing.assert_array_equal(splits[0], is_reference)
    assert (splits.sum(axis=1) == 5).all()
    assert set(np.unique(splits)) == {0.0, 1.0}
    squared = mmd_squared_of_splits(split_sums(z, is_reference, 60, 7), z.sum(axis=0), 5, 4)
    expected = [mmd_unbiased_by_loop(z @ z.T, np.flatnonzero(split)) for split in splits]
    np.testing.assert_allclose(squared, expected, atol=1e-13)
    sets = [np.flatnonzero(split).tolist() for split in splits]
    p = p_value_by_loop(z @ z.T, sets[0], sets[1:])
    assert p_values(squared[0], squared[1:]) == p


def test_splits_in_blocks_are_the_same(monkeypatch):
    """More splits than fit in memory at once are the same splits."""
    columns, is_reference = np.random.default_rng(4).random((30, 3)), np.arange(30) < 11
    whole = split_sums(columns, is_reference, 50, 1)
    monkeypatch.setattr("bagbasis.hypotheses.nulls.permutation.VALUES_PER_BLOCK", 200)
    np.testing.assert_allclose(split_sums(columns, is_reference, 50, 1), whole, rtol=1e-13)


@pytest.mark.parametrize(("counts", "least"), [((2, 2), 1 / 3), ((3, 3), 1 / 10), ((2, 3), 1 / 10)])
def test_tiny_sets_can_not_be_significant(counts, least):
    """However far apart: the p-value is the fraction of splits as good as the observed one."""
    reference, new = two_sets(5, *counts, shift=50.0)
    p = drift_test(reference, new, n_permutations=4999).p_value
    assert p == pytest.approx(least, abs=0.03)


def test_smallest_p_value():
    """A drift that no permutation reaches has 1 / (1 + n_permutations), never 0."""
    reference, new = two_sets(6, 15, 15, shift=5.0)
    for n_permutations in (1, 19, 99):
        result = drift_test(reference, new, n_permutations=n_permutations)
        assert result.p_value == 1 / (1 + n_permutations)


def test_order_within_sets_does_not_matter():
    """Bags in any order, thinned at random: the same result; another seed gives another."""
    rng = np.random.default_rng(7)
    reference, new = draw_bags(rng, 25, (10, 40)), draw_bags(rng, 30, (15, 90), 0.2)
    result = drift_test(reference, new)
    moved = drift_test([reference[i] for i in rng.permutation(25)], Bags.from_list(new[::-1]))
    assert moved.p_value == result.p_value
    assert moved.statistic == pytest.approx(result.statistic, abs=1e-12)
    for ours, theirs in zip(result.coordinates, moved.coordinates, strict=True):
        assert ours.mean_shift == pytest.approx(theirs.mean_shift, abs=1e-12)
        assert ours.spread_p_value == theirs.spread_p_value
    assert drift_test(reference, new) == result
    assert drift_test(reference, new, seed=1).statistic != result.statistic


def test_sets_exchanged():
    """Which set is called the reference changes the signs of shifts and nothing else."""
    reference, new = two_sets(8, 12, 12, shift=0.5)
    pairs = (reference, new), (new, reference)
    first, other = (drift_test(*pair, n_permutations=9999) for pair in pairs)
    assert other.statistic == pytest.approx(first.statistic, abs=1e-12)
    assert other.p_value == pytest.approx(first.p_value, abs=0.03)
    shifts = [s.mean_shift for s in first.coordinates]
    assert [-s.mean_shift for s in other.coordinates] == pytest.approx(shifts)


def test_thinning_size():
    """The smaller 5 % quantile of the sets, the smallest bag of few, and a limit for huge bags."""
    ragged = np.r_[3, np.full(39, 200)]
    assert held_size([ragged, np.full(5, 300)], 2) == 200
    assert held_size([ragged[:20], np.full(5, 300)], 2) == 3
    assert held_size([np.full(40, 300), np.arange(7, 12)], 2) == 7
    huge = np.full(50, 10**9)
    assert held_size([huge, huge], 4) == MAX_HELD_VALUES // 400


@pytest.mark.long
def test_thinned_bags_are_parts_of_their_bags():
    """Each is that many different points of its bag, and every point is as likely."""
    bags = [np.arange(100.0 * i, 100.0 * i + n)[:, None] for i, n in enumerate((9, 5, 20, 3, 5))]
    sets = as_bag_set(bags[:3], "reference"), as_bag_set(bags[2:], "new")
    chosen = np.zeros(20)
    for seed in range(400):
        thinned = thin_sets(sets, 5, seed, None)
        assert sorted(thinned.positions[thinned.is_reference]) == [0, 1, 2]
        assert sorted(thinned.positions[~thinned.is_reference]) == [0, 2]
        for bag, first, position in zip(
            thinned.bags, thinned.is_reference, thinned.positions, strict=True
        ):
            source = bags[position if first else position + 2]
            assert len(np.unique(bag)) == 5
            assert np.isin(bag, source).all()
        largest = thinned.bags[int(np.argmax(thinned.is_reference & (thinned.positions == 2)))]
        chosen[largest[:, 0].astype(int) - 200] += 1
    assert np.abs(chosen - 100).max() < 40  # a standard deviation is 8.7


def test_bags_left_out_are_counted():
    """Small bags are left out of both sets and counted; thin= sets the size, False keeps all."""
    rng = np.random.default_rng(9)
    reference = [*draw_bags(rng, 50, (40, 60)), *draw_bags(rng, 2, (3, 4))]
    new = [*draw_bags(rng, 10, (100, 101)), *draw_bags(rng, 3, (45, 46))]

    def counts(thin):
        r = drift_test(reference, new, thin=thin, n_permutations=9)
        return (r.points_per_bag, r.n_reference, r.n_left_out_reference, r.n_new, r.n_left_out_new)

    automatic = counts(True)
    assert 40 <= automatic[0] <= 45
    assert automatic[1:] == (50, 2, 13, 0)
    assert counts(3) == (3, 52, 0, 13, 0)
    assert counts(False) == (None, 52, 0, 13, 0)
    n_large = sum(len(bag) >= 46 for bag in reference)
    assert counts(46) == (46, n_large, 52 - n_large, 10, 3)


def test_shifts_of_coordinates():
    """Means and spreads in the units of the data, shifts in standard deviations between bags."""
    rng = np.random.default_rng(10)
    reference = draw_bags(rng, 50, (64, 65), n_dims=3)
    new = [1.5 * bag * [1, 1, 2] + [0, 10, 0] for bag in draw_bags(rng, 40, (64, 65), n_dims=3)]
    result = drift_test(reference, new)
    sets = np.array(reference), np.array(new)
    for j, s in enumerate(result.coordinates):
        assert s.coordinate == j
        for of_bags, seen in (
            ([x[:, :, j].mean(axis=1) for x in sets], (s.reference_mean, s.new_mean, s.mean_shift)),
            (
                [x[:, :, j].std(axis=1) for x in sets],
                (s.reference_spread, s.new_spread, s.spread_shift),
            ),
        ):
            a, b = of_bags
            pooled = np.sqrt((((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / 88)
            assert seen == pytest.approx((a.mean(), b.mean(), (b.mean() - a.mean()) / pooled))
    means = [s.mean_p_value for s in result.coordinates]
    assert means[1] == 0.001
    assert min(means[0], means[2]) > 0.05
    assert all(s.spread_p_value == 0.001 for s in result.coordinates)
    assert json.loads(json.dumps(result.to_dict()))["coordinates"][1]["mean_p_value"] == 0.001


def test_bags_that_are_all_alike():
    """No spread to measure shifts by: no drift where there is none, a finite report where all
    bags of a set are the same."""
    same = [np.full((5, 2), 0.1) for _ in range(12)]
    result = drift_test(same, same)
    assert result.p_value == 1.0
    assert result.statistic == pytest.approx(0.0, abs=1e-12)
    for s in result.coordinates:
        assert (s.mean_shift, s.mean_p_value, s.spread_shift, s.spread_p_value) == (0, 1, 0, 1)
    result = drift_test(same, [bag + np.array([0, 0.3]) for bag in same])
    assert result.p_value == 0.001
    assert [s.mean_shift for s in result.coordinates] == [0.0, pytest.approx(1e9)]
    assert [s.mean_p_value for s in result.coordinates] == [1.0, 0.001]


def test_rounding_is_no_spread():
    """Bags that are each constant: the rounding of their means is not taken for spreads."""
    constants = np.random.default_rng(15).random((40, 1, 1)) * np.ones((1, 7, 1))
    result = drift_test(constants[:20], constants[20:])
    assert np.std(constants, axis=1).max() > 0
    (shift,) = result.coordinates
    assert (shift.spread_shift, shift.spread_p_value) == (0.0, 1.0)
    assert shift.mean_p_value > 0.05


def test_bags_of_one_point():
    """The smallest bags there are: means drift, spreads are zero."""
    rng = np.random.default_rng(11)
    result = drift_test(rng.random(40)[:, None, None], 2 + rng.random(30)[:, None, None])
    assert (result.points_per_bag, result.p_value) == (1, 0.001)
    assert result.coordinates[0].spread_p_value == 1.0


@pytest.mark.parametrize(
    "embedding",
    [
        ProjectionEmbedding(n_per_dim=4),
        MomentsEmbedding(box=[(-6, 6)] * 2),
        MeanMapEmbedding(kernel="laplacian", n_features=64).fit(two_sets(12)[0]),
        ProjectionEmbedding(n_per_dim=5).fit(two_sets(12)[0]).spec_,
    ],
)
def test_other_embeddings(embedding):
    """Embeddings to be fitted, fitted, and specs find a shift; the same set is not a drift."""
    reference, new = two_sets(13, 20, 20, shift=1.5)
    assert drift_test(reference, new, embedding=embedding).p_value == 0.001
    assert drift_test(reference, reference, embedding=embedding).p_value > 0.9


def test_points_outside_the_box_are_counted():
    """The fraction of the points read that an embedding clips."""
    reference, new = two_sets(14, 8, 8)
    new = [bag + np.array([100, 0]) for bag in new]
    embedding = ProjectionEmbedding(n_per_dim=4, box=[(-9, 9)] * 2)
    result = drift_test(reference, new, embedding=embedding, thin=10)
    assert result.n_outside == 80
    inside = replace(embedding.fit(reference).spec_, out_of_box="clip")
    assert drift_test(reference, reference, embedding=inside).n_outside == 0
