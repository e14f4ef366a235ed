"""The k-NN divergences against brute force, known values and awkward bags."""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad

from bagbasis import BagError, Bags, DataError
from bagbasis.densities import divergence_matrix
from bagbasis.densities.divergences.resources import BLOCK_POINTS
from tests.oracles.divergences import PAIRWISE, matrix_by_loop
from tests.oracles.ragged import random_bags
from tests.passes import use_cores

NAMES = tuple(PAIRWISE)
SYMMETRIC = ("symmetric_kl", "hellinger", "l2", "js")
REPEATS = 200
SIZES = (7, 12, 5, 5, 16, 9)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_dims", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_against_brute_force(name, n_dims, dtype):
    """Every pair of ragged bags is what the formula gives by loops, from one set or from two."""
    rng = np.random.default_rng(n_dims)
    X = random_bags(rng, SIZES, n_dims, dtype)
    Y = random_bags(rng, (6, 20, 5), n_dims, dtype)
    for Y_given, Y_used in ((None, X), (Y, Y), ([*Y, X[2]], [*Y, X[2]])):
        truth = matrix_by_loop(X, Y_used, lambda x, y: PAIRWISE[name](x, y, 3))
        np.testing.assert_allclose(
            divergence_matrix(X, Y_given, divergence=name), truth, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_other_neighbours(name, k):
    """k reaches the formula."""
    if name == "l2" and k == 1:
        k = 3
    X = random_bags(np.random.default_rng(k), (9, 9, 9), 2)
    truth = matrix_by_loop(X, X, lambda x, y: PAIRWISE[name](x, y, k))
    np.testing.assert_allclose(divergence_matrix(X, None, divergence=name, k=k), truth, rtol=1e-9)


def test_alpha():
    """At α = ½ Rényi's divergence is that of the Hellinger affinity, averaged over directions."""
    X = random_bags(np.random.default_rng(0), SIZES, 2)
    renyi = divergence_matrix(X, None, divergence="renyi", alpha=0.5)
    affinities = np.exp(-renyi / 2)
    different = ~np.eye(len(X), dtype=bool)
    hellinger = 1 - (affinities + affinities.T) / 2
    np.testing.assert_allclose(
        hellinger[different], divergence_matrix(X, None, divergence="hellinger")[different]
    )


@cache
def shifted(n_dims):
    """Pairs of bags of 1,000 points from N(0, I) and from its unit mean shift."""
    rng = np.random.default_rng(0)
    shift = np.eye(n_dims)[0]
    return [
        (rng.standard_normal((1000, n_dims)), shift + rng.standard_normal((1000, n_dims)))
        for _ in range(REPEATS)
    ]


def estimates(pairs, name):
    return np.array([divergence_matrix([x], [y], divergence=name)[0, 0] for x, y in pairs])


@cache
def shifted_estimates(name, n_dims):
    return estimates(shifted(n_dims), name)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "n_dims", "published"),
    [
        ("kl", 1, 0.486),
        ("kl", 2, 0.465),
        ("hellinger", 1, 0.117),
        ("l2", 1, 0.353),
        ("l2", 2, 0.185),
    ],
)
def test_means_of_a_shifted_gaussian(name, n_dims, published):
    """k = 3, n = m = 1000: the mean over 200 repeats is the reference mean over as many, but for
    four standard errors of their difference. The reference for L2 is of the distance."""
    values = shifted_estimates(name, n_dims)
    if name == "l2":
        values = np.sqrt(np.maximum(values, 0))
    standard_error = values.std() * math.sqrt(2 / REPEATS)
    assert standard_error < 0.01
    assert abs(values.mean() - published) < 4 * standard_error


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "n_dims", "truth"),
    [
        ("hellinger", 1, 1 - math.exp(-1 / 8)),
        ("hellinger", 2, 1 - math.exp(-1 / 8)),
        ("l2", 1, (1 - math.exp(-1 / 4)) / math.sqrt(math.pi)),
        ("l2", 2, (1 - math.exp(-1 / 4)) / (2 * math.pi)),
    ],
)
def test_true_values_of_a_shifted_gaussian(name, n_dims, truth):
    """The nearly unbiased estimates have the true value as their mean, but for four standard
    errors."""
    values = shifted_estimates(name, n_dims)
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(REPEATS)


def gaussian_js(shift):
    def density(x):
        return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)

    def integrand(x):
        p, q = density(x), density(x - shift)
        return sum(0.5 * r * math.log(2 * r / (p + q)) for r in (p, q))

    return quad(integrand, -8, 8 + shift)[0]


class TestJensenShannon:
    @pytest.mark.long
    @pytest.mark.parametrize(("first", "second"), [(1000, 1000), (1000, 400), (200, 1000)])
    def test_shifted_gaussian(self, first, second):
        """The mean is the true value, for bags of different sizes too."""
        pairs = [(x[:first], y[:second]) for x, y in shifted(1)[:100]]
        values = estimates(pairs, "js")
        assert abs(values.mean() - gaussian_js(1)) < 4 * values.std() / math.sqrt(len(values))
        assert values.std() < 0.05

    @pytest.mark.long
    def test_two_dimensions(self):
        """The same true value; the estimate's bias at n = 1000 is below a twentieth of it."""
        assert abs(shifted_estimates("js", 2).mean() - gaussian_js(1)) < 0.0055

    @pytest.mark.long
    @pytest.mark.parametrize("sizes", [(400, 400), (400, 150)])
    def test_bounds(self, sizes):
        """log 2 for bags that do not meet, 0 for bags of one density."""
        rng = np.random.default_rng(1)
        x, y = random_bags(rng, sizes, 2)
        assert divergence_matrix([x], [y + 100], divergence="js")[0, 0] == pytest.approx(
            math.log(2), abs=0.01
        )
        pairs = [random_bags(rng, sizes, 2) for _ in range(60)]
        values = estimates(pairs, "js")
        assert abs(values.mean()) < 4 * values.std() / math.sqrt(60)
        assert values.min() < 0  # negative estimates are not clipped


@pytest.mark.parametrize("name", NAMES)
class TestShape:
    def test_diagonal_symmetry_and_equal_bags(self, name):
        """0 from itself and from a copy, symmetric to the bit where the divergence is, and the row
        of a copy is the row of the bag."""
        X = random_bags(np.random.default_rng(2), SIZES, 2)
        D = divergence_matrix(X, None, divergence=name)
        assert (np.diag(D) == 0).all()
        assert (D == D.T).all() == (name in SYMMETRIC)
        rows = divergence_matrix([X[4].copy(), X[0].astype(np.float32)], X, divergence=name)
        np.testing.assert_allclose(rows[0], D[4], rtol=1e-12)
        assert rows[1, 0] != 0

    def test_own_pairs_only(self, name):
        """A pair's value depends on no other bag, number of threads, or container, to the bit but
        for the order of sums."""
        X = random_bags(np.random.default_rng(3), SIZES, 3)
        D = divergence_matrix(Bags.from_list(X), Bags.from_list(X[::-1]), divergence=name)
        with use_cores(1):
            np.testing.assert_array_equal(D, divergence_matrix(X, X[::-1], divergence=name))
        alone = divergence_matrix([X[1]], [X[4]], divergence=name)[0, 0]
        assert D[1, 1] == pytest.approx(alone, rel=1e-12)

    def test_no_bags(self, name):
        """No rows, or no columns."""
        X = Bags.from_list(random_bags(np.random.default_rng(0), (5, 5), 2))
        assert divergence_matrix(X[:0], X, divergence=name).shape == (0, 2)
        assert divergence_matrix(X, X[:0], divergence=name).shape == (2, 0)

    def test_repeated_points(self, name):
        """Points on a coarse grid, a bag of copies of one point, two of them, and one with a few
        repeats: finite, and a warning but of what counts points."""
        rng = np.random.default_rng(4)
        bags = [
            np.round(rng.standard_normal((40, 2))),
            np.round(rng.standard_normal((60, 2))),
            np.full((10, 2), 0.3),
            np.full((12, 2), 0.3),
            np.full((10, 2), 1.7),
            np.zeros((8, 2)),
            np.repeat(rng.standard_normal((10, 2)), 5, axis=0),
            rng.standard_normal((30, 2)),
        ]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            D = divergence_matrix(bags, None, divergence=name)
        assert len(caught) == (name != "js")
        assert np.isfinite(D).all()
        if name != "l2":  # between densities of points L2 is infinite: finite is all one can ask
            assert abs(D[2, 3]) < 0.5 < D[2, 4]
            assert abs(D[0, 1]) < D[0, 4]

    def test_counts(self, name):
        """Counts that all repeat, and counts of which one does not, have the gap of 1 alike:
        estimates were off by the logarithm of a rounding error, Hellinger's by millions."""
        rng = np.random.default_rng(5)
        x, y = rng.poisson(3, (2, 400, 1)).astype(float)
        values, counts = np.unique(x, return_counts=True)
        x = x[np.isin(x[:, 0], values[counts > 4])]
        y[0] = y.max() + 1
        others = y.copy()
        others[1:5] = y[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            D = divergence_matrix([x], [y, others], divergence=name)[0]
        assert np.abs(D).max() < 1
        assert abs(D[0] - D[1]) < 0.1

    def test_few_repeated_points(self, name):
        """No warning of one point in 25 that repeats."""
        x = np.random.default_rng(6).standard_normal((2, 100, 1))
        x[:, :4] = 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            divergence_matrix(list(x), None, divergence=name)

    def test_copied_points(self, name):
        """A warning of points that their own bag alone repeats, fewer than k times."""
        x = [*np.random.default_rng(6).standard_normal((2, 100, 1))]
        with pytest.warns(UserWarning, match="100% of the different points occur more than once"):
            divergence_matrix([np.tile(bag, (2, 1)) for bag in x], None, divergence=name)

    def test_too_few_points(self, name):
        """k points or fewer are refused with the bag's number and which argument it is in."""
        X = random_bags(np.random.default_rng(0), (9, 4, 9), 1)
        divergence_matrix(X, None, divergence=name)
        with pytest.raises(BagError, match="bag 1: of X has 4 points; neighbour k = 4 needs 5"):
            divergence_matrix(X, None, divergence=name, k=4)
        with pytest.raises(BagError, match="bag 1: of Y") as caught:
            divergence_matrix(X[:1], X, divergence=name, k=4)
        assert caught.value.bag == 1

    def test_progress(self, name):
        """Pairs done, rising to all pairs."""
        X = random_bags(np.random.default_rng(0), SIZES, 1)
        for Y in (None, X[:4]):
            calls = []
            divergence_matrix(
                X, Y, divergence=name, progress=lambda *call, calls=calls: calls.append(call)
            )
            done, totals = zip(*calls, strict=True)
            assert done[0] == 0
            assert list(done) == sorted(set(done))
            assert set(totals) == {done[-1]}
            assert done[-1] in (36, 24, 48)

    def test_stopping(self, name):
        """An exception of the progress callable ends the work and comes out."""

        def stop(done, total):
            if done:
                raise KeyboardInterrupt

        X = random_bags(np.random.default_rng(0), SIZES, 1)
        with pytest.raises(KeyboardInterrupt):
            divergence_matrix(X, None, divergence=name, progress=stop)


@pytest.mark.parametrize("name", ["kl", "l2", "js"])
def test_more_points_than_a_block(name):
    """Bags are worked through in blocks, one of them larger than any."""
    rng = np.random.default_rng(5)
    X = random_bags(rng, (50, BLOCK_POINTS + 10, 50, 50), 1)
    Y = random_bags(rng, (50,), 1)
    if name == "js":  # its ball grows with the ratio of sizes
        X[1] = rng.standard_normal((1000, 1))
    D = divergence_matrix(X, Y, divergence=name)
    for i, x in enumerate(X):
        assert D[i, 0] == pytest.approx(divergence_matrix([x], Y, divergence=name)[0, 0], rel=1e-12)


def test_overflow_is_refused():
    """An estimate beyond float64 is refused with the numbers of the two bags."""
    rng = np.random.default_rng(0)
    X = [*random_bags(rng, (6, 6), 30), np.full((6, 30), 1.0)]
    with pytest.raises(DataError, match=r"'l2' divergence of bag 0 of X from bag 2 of Y is"):
        divergence_matrix(X, None, divergence="l2")


def test_dimensions_must_agree():
    """Bags of another dimension are refused."""
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="X have dimension 2, those of Y 3"):
        divergence_matrix(random_bags(rng, (9,), 2), random_bags(rng, (9,), 3))
