"""`MeanMapEmbedding` and `mmd_squared` against kernels summed over all pairs of points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bagbasis import (
    BagError,
    Bags,
    BagStore,
    Box,
    DataError,
    MeanMapEmbedding,
    RandomFourierFeatures,
)
from bagbasis.embeddings import mmd_squared
from tests.oracles.mean_map import CHECK_MMD, check_samples, kernel, mmd_squared_by_pairs
from tests.oracles.ragged import random_bags

RNG = np.random.default_rng(0)
UNIT = [RNG.random((size, 2)) for size in (2, 30, 257)]
KERNELS = [("gaussian", 1.5), ("laplacian", 1.5), ("matern", 0.5), ("matern", 2.5)]


@pytest.mark.parametrize("width", CHECK_MMD)
def test_check_values(width):
    """The known MMD² of two fixed samples, biased and unbiased: by the oracle exactly, by the
    embedding with many features."""
    x, y = check_samples()
    grams = [kernel("gaussian", a, b, width) for a, b in ((x, x), (y, y), (x, y))]
    embedding = MeanMapEmbedding(
        n_features=200_000, bandwidth=width / 4, box=[(-2, 2)] * 3, dtype="float64"
    )
    A = embedding.transform([x, y])
    for unbiased, expected in zip((False, True), CHECK_MMD[width], strict=True):
        assert mmd_squared_by_pairs(*grams, unbiased) == pytest.approx(expected, abs=1e-10)
        assert mmd_squared(A, [40, 30], unbiased=unbiased)[0, 1] == pytest.approx(
            expected, abs=1e-3
        )


@pytest.mark.parametrize(("name", "nu"), KERNELS)
def test_spectra(name, nu):
    """The mean of cos(ωᵀΔ) over a kernel's frequencies is the kernel, at any distance."""
    delta = np.array([[0.0, 0.0], [0.1, 0.0], [0.5, -0.5], [1.0, 2.0], [4.0, 0.0]])
    embedding = MeanMapEmbedding(
        kernel=name, n_features=200_000, bandwidth=0.7, nu=nu, seed=4, box=[(0, 1)] * 2
    )
    means = np.cos(delta @ embedding.fit(UNIT).spec_.frequencies()).mean(axis=1)
    expected = kernel(name, delta, np.zeros((1, 2)), 0.7, nu)[:, 0]
    np.testing.assert_allclose(means, expected, atol=5 / np.sqrt(2 * 100_000))


@pytest.mark.parametrize("unbiased", [True, False])
def test_mmd_squared_of_any_features(unbiased):
    """With the features' own kernel zᵀz instead of k the formulas hold exactly, within one set
    of bags and between two."""
    bags = random_bags(RNG, [2, 3, 40], 2)
    others = random_bags(RNG, [5, 2], 2)
    z = RandomFourierFeatures(n_features=6, scale=1.0).fit(bags[0])
    A, B = (np.array([z.transform(bag).mean(axis=0) for bag in part]) for part in (bags, others))
    sizes, other_sizes = [2, 3, 40], np.array([5, 2])

    def by_pairs(x, y):
        x, y = z.transform(x), z.transform(y)
        return mmd_squared_by_pairs(x @ x.T, y @ y.T, x @ y.T, unbiased)

    between = [[by_pairs(x, y) for y in others] for x in bags]
    np.testing.assert_allclose(
        mmd_squared(A, sizes, B=B, sizes_B=other_sizes, unbiased=unbiased), between, atol=1e-12
    )
    within = [[by_pairs(x, y) if x is not y else 0.0 for y in bags] for x in bags]
    np.testing.assert_allclose(mmd_squared(A, sizes, unbiased=unbiased), within, atol=1e-12)


def test_unbiased_is_unbiased():
    """Over many small bags of one density the unbiased MMD² averages to 0, the biased one not."""
    bags = [RNG.random((5, 2)) for _ in range(400)]
    A = MeanMapEmbedding(bandwidth=0.3, dtype="float64").fit_transform(bags)
    pairs = np.arange(0, 400, 2), np.arange(1, 400, 2)
    squares = mmd_squared(A, [5] * 400)[pairs]
    assert abs(squares.mean()) < 4 * squares.std() / np.sqrt(200)
    assert (squares < 0).any()
    biased = mmd_squared(A, unbiased=False)[pairs]
    assert biased.mean() > 10 * biased.std() / np.sqrt(200)


@pytest.mark.long
def test_symmetric_noise_moves_no_phase():
    """Bags whose points carry normal noise, of another size in each bag, have the phases of those
    without; their mean maps move by ten times as much. A saved spec says so, and one of before
    there was a phase has none."""
    rng = np.random.default_rng(5)
    clean = [rng.beta(a, 3, (200_000, 1)) for a in (1.0, 2.0, 4.0)]
    noisy = [
        x + s * rng.standard_normal(x.shape) for x, s in zip(clean, (0, 0.1, 0.2), strict=True)
    ]
    moved = {}
    for phase in (False, True):
        arguments = {"n_features": 64, "bandwidth": 0.3, "phase": phase, "box": [(-1, 2)]}
        embedding = MeanMapEmbedding(**arguments, dtype="float64").fit(clean)
        A, B = embedding.transform(clean), embedding.transform(noisy)
        moved[phase] = np.linalg.norm(A - B, axis=1)
        saved = embedding.spec_.to_dict()
        assert ("phase" in saved) is phase
        assert type(embedding.spec_).from_dict(saved) == embedding.spec_
    assert (moved[True][1:] * 10 < moved[False][1:]).all()
    np.testing.assert_allclose(np.linalg.norm(B, axis=1), 1.0)


def test_more_features_keep_the_first_frequencies():
    """Frequencies depend on seed and block alone; another seed has others."""
    few, many, other = (
        MeanMapEmbedding(kernel="matern", n_features=n, bandwidth=0.2, seed=seed)
        .fit(UNIT)
        .spec_.frequencies()
        for n, seed in ((100, 1), (2000, 1), (100, 2))
    )
    np.testing.assert_array_equal(few, many[:, :50])
    assert not np.isin(few, other).any()


@pytest.mark.long
@pytest.mark.parametrize("name", ["gaussian", "laplacian"])
def test_median_bandwidth(name):
    """The median distance of points as the kernel measures them, in the unit cube; of a sample
    of bags as of all."""
    order = 1 if name == "laplacian" else 2
    points = RNG.beta(2, 5, (1500, 2))
    truth = np.median(
        [np.linalg.norm(a - b, order) for a, b in itertools.combinations(points[:700], 2)]
    )
    for bags in (np.split(points, 1500), np.split(points, 300), [points[:1], *[points] * 400]):
        spec = MeanMapEmbedding(kernel=name, box=[(0, 1)] * 2).fit(bags).spec_
        assert spec.bandwidth == pytest.approx(truth, rel=0.06)
    stretched = MeanMapEmbedding(kernel=name, box=[(-10, 10), (0, 4)])
    moved = stretched.fit([point * [20, 4] + [-10, 0] for point in np.split(points, 1500)])
    first = MeanMapEmbedding(kernel=name, box=[(0, 1)] * 2).fit(np.split(points, 1500))
    assert moved.spec_.bandwidth == pytest.approx(first.spec_.bandwidth, rel=1e-9)


def test_median_leaves_out_what_has_no_distance():
    """Equal points do not count, nor do dropped ones; without two others the width is 1."""
    bags = [np.full((50, 1), 0.25), np.full((3, 1), 0.5)]
    assert MeanMapEmbedding().fit(bags).spec_.bandwidth == 0.25
    assert MeanMapEmbedding().fit(bags[:1]).spec_.bandwidth == 1.0
    assert MeanMapEmbedding().fit([[[0.5]]]).spec_.bandwidth == 1.0
    far = [*bags, np.full((50, 1), 9.0)]
    dropping = MeanMapEmbedding(out_of_box="drop", box=[(0, 1)])
    assert dropping.fit(far).spec_.bandwidth == 0.25
    assert dropping.fit(far[2:]).spec_.bandwidth == 1.0
    clipping = MeanMapEmbedding(box=[(0, 1)]).fit([bags[0], far[2]])
    assert clipping.spec_.bandwidth == 0.75


def test_median_of_an_empty_store(tmp_path):
    """There is nothing to take it of; a number needs no bags."""
    store = BagStore.create(tmp_path / "s.zarr", 2, box=[(-3, 3), (0, 9)])
    with pytest.raises(DataError, match="no bags to take the median distance of"):
        MeanMapEmbedding().fit(store)
    assert MeanMapEmbedding(bandwidth=0.2).fit(store).spec_.box == Box((-3.0, 0.0), (3.0, 9.0))


def test_blocks_of_points_are_summed_in_double():
    """The mean of a million points in float32 is as exact as that of few."""
    points = RNG.random((1000, 2)).astype(np.float32)
    embedding = MeanMapEmbedding(n_features=64, bandwidth=0.1)
    few, many = embedding.fit_transform(Bags.from_list([points, np.tile(points, (1000, 1))]))
    np.testing.assert_allclose(many, few, atol=2e-7)


def test_wrong_arguments_of_mmd_squared():
    """Sizes that are missing, of another length or below two, and rows that do not fit."""
    A = np.eye(3)
    with pytest.raises(DataError, match=r"sizes_A is to be the number of points of each of the 3"):
        mmd_squared(A)
    for wrong in ([2, 3], [2.0, 3.0, 4.0], [[2, 3, 4]]):
        with pytest.raises(DataError, match="sizes_A"):
            mmd_squared(A, wrong)
    with pytest.raises(DataError, match="sizes_B"):
        mmd_squared(A, [2, 3, 4], B=A)
    with pytest.raises(BagError, match="bag 1: 1 points in sizes_A; unbiased MMD² needs two"):
        mmd_squared(A, [2, 1, 4])
    with pytest.raises(DataError, match="A has 3 features and B 2"):
        mmd_squared(A, B=np.eye(2), unbiased=False)
    with pytest.raises(DataError, match=r"A has shape \(3,\)"):
        mmd_squared(A[0], unbiased=False)
