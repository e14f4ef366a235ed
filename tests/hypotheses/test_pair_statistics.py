"""Statistics of pairs of rows and of their features: formulas, moments, merging, and orders."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bagbasis import DataError
from bagbasis.hypotheses.dependence.row_pairs import CrossMoments, RowPair
from bagbasis.hypotheses.kernels import pair_grams
from bagbasis.hypotheses.kernels.kernels import Kernel, NegativeDistance
from bagbasis.hypotheses.kernels.pair_grams import CentredGram, GramSums, products_of_orders
from bagbasis.hypotheses.nulls.orders import permuted_orders, shifted_orders
from tests.oracles import dependence

KERNELS = (Kernel("gaussian", 1.3), Kernel("gaussian", 0.8))


def pair(n, p, q, seed=0, dependence=0.7):
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(n, p)), rng.normal(size=(n, q))
    return X, dependence * X[:, :1] + noise


def sums(X, Y, unbiased=False, kernels=KERNELS):
    grams = [CentredGram.of(k, rows, unbiased) for k, rows in zip(kernels, (X, Y), strict=True)]
    return GramSums.of(*grams), grams


def _counting(function, counted):
    def count(*arguments):
        counted.append(arguments)
        return function(*arguments)

    return count


class TestGrams:
    @pytest.mark.parametrize("unbiased", [False, True])
    def test_one_tile_is_kept(self, unbiased, monkeypatch):
        """For few rows the kernel is computed once per variable, and sums have the same bits."""
        X, Y = pair(30, 3, 2)
        counted = []
        monkeypatch.setattr(
            NegativeDistance, "__call__", _counting(NegativeDistance.__call__, counted)
        )
        kernels = NegativeDistance(), NegativeDistance()
        selected, grams = sums(X, Y, unbiased, kernels)
        skews = [gram.skew for gram in grams]
        assert len(counted) == (4 if unbiased else 2)  # the null's third moment is of biased ones
        monkeypatch.setattr(pair_grams, "tiles", lambda n: (slice(0, n), slice(n, n)))
        again, others = sums(X, Y, unbiased, kernels)
        np.testing.assert_array_equal(selected.products, again.products)
        assert selected.moments() == again.moments()
        assert skews == [gram.skew for gram in others]
        whole = grams[0].whole()
        whole[:] = 0  # a caller's own
        assert grams[0].whole().any()

    @pytest.mark.long
    def test_unbiased_is_zero_on_average(self):
        """For 12 independent pairs; with the centred matrix, as printed in 003, it is not."""
        values = []
        for seed in range(1500):
            X, Y = pair(12, 1, 1, seed, dependence=0.0)
            (u, grams), n = sums(X, Y, True), 12
            H = np.eye(n) - 1 / n
            K, L = (H @ g.kernel(g.rows, g.rows) @ H for g in grams)
            printed = (K * L).sum() - 2 * (K @ L).sum() / (n - 2)
            printed += K.sum() * L.sum() / ((n - 1) * (n - 2))
            values.append([u.product / (n * (n - 3)), printed / (n * (n - 3))])
        mean, error = np.mean(values, axis=0), np.std(values, axis=0) / len(values) ** 0.5
        assert abs(mean[0]) < 4 * error[0]
        assert mean[1] > 0.01

    @pytest.mark.parametrize("unbiased", [False, True])
    def test_tiles_are_the_whole(self, unbiased, monkeypatch):
        """In tiles of 5 rows every number is as in one tile."""
        X, Y = pair(23, 2, 1)
        whole, grams = sums(X, Y, unbiased)
        A, B = (gram.whole() for gram in grams)
        monkeypatch.setattr("bagbasis.hypotheses.kernels.kernels.tiles.__defaults__", (5,))
        tiled = sums(X, Y, unbiased)[0]
        for name, value in vars(whole).items():
            np.testing.assert_allclose(getattr(tiled, name), value, rtol=1e-9, atol=1e-12)
        assert tiled.product == pytest.approx(float((A * B).sum()))
        np.testing.assert_allclose(A.sum(axis=1), 0, atol=1e-12)

    @pytest.mark.parametrize("unbiased", [False, True])
    def test_moments_over_all_orders(self, unbiased):
        """Mean and variance over all 720 orders of six rows, exactly."""
        result, grams = sums(*pair(6, 2, 1), unbiased)
        orders = np.array(list(itertools.permutations(range(6))))
        values = products_of_orders(*(gram.whole() for gram in grams), iter([orders]))
        mean, variance = result.moments()
        assert values[0] == pytest.approx(result.product)
        assert mean == pytest.approx(values.mean(), abs=1e-12)
        assert variance == pytest.approx(values.var())

    @pytest.mark.long
    def test_standard_error(self):
        """The variance of HSIC_b over 400 samples of 60 dependent pairs."""
        values = [sums(*pair(60, 1, 1, seed))[0] for seed in range(400)]
        spread = np.std([item.product / 60**2 for item in values])
        assert np.mean([item.standard_error for item in values]) == pytest.approx(spread, rel=0.15)


class TestRows:
    def test_linear_features_are_linear_kernels(self):
        """HSIC_b of features is that of their inner products; alignment and spectra, too."""
        X, Y = pair(30, 3, 2)
        moments = CrossMoments.of(X, Y)
        K, L = X @ X.T, Y @ Y.T
        H = np.eye(30) - 1 / 30
        assert moments.hsic() == pytest.approx(dependence.hsic_b(K, L))
        assert RowPair.centred(X, Y).value() == pytest.approx(moments.hsic())
        Kc, Lc = H @ K @ H, H @ L @ H
        aligned = (Kc * Lc).sum() / np.linalg.norm(Kc) / np.linalg.norm(Lc)
        assert moments.alignment() == pytest.approx(aligned)
        np.testing.assert_allclose(moments.spectra()[0], np.linalg.eigvalsh(Kc / 30)[-3:])

    def test_sums_merge_and_subtract(self):
        X, Y = pair(50, 3, 2)
        parts = [CrossMoments.of(X[a:b], Y[a:b]) for a, b in ((0, 7), (7, 31), (31, 50))]
        merged, whole = parts[0] + parts[1] + parts[2], CrossMoments.of(X, Y)
        for actual, expected in ((merged, whole), (whole - parts[2], parts[0] + parts[1])):
            for name, value in vars(expected).items():
                np.testing.assert_allclose(getattr(actual, name), value, rtol=4e-13, atol=1e-12)

    @pytest.mark.long
    def test_standard_error(self):
        values = [RowPair.centred(*pair(100, 2, 2, seed)) for seed in range(500)]
        spread = np.std([item.value() for item in values])
        assert np.mean([item.standard_error() for item in values]) == pytest.approx(
            spread, rel=0.15
        )


class TestOrders:
    def test_units_move_as_wholes(self):
        """Groups trade places with groups of their size; rows of one stay together, in order."""
        units = np.array([0, 0, 1, 2, 2, 3, 3, 3])
        blocks = np.concatenate(list(permuted_orders(units, 200, seed=1)))
        assert blocks.shape == (200, 8)
        assert {tuple(row) for row in blocks} == {
            (0, 1, 2, 3, 4, 5, 6, 7),
            (3, 4, 2, 0, 1, 5, 6, 7),
        }
        with pytest.raises(DataError, match="no two groups"):
            next(permuted_orders(np.array([0, 1, 1]), 5, 0))

    def test_units_move_within_their_stratum(self):
        """Whether it comes first, in the middle or last."""
        units, strata = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 5]), np.repeat([1, 0, 2], [4, 4, 2])
        blocks = np.concatenate(list(permuted_orders(units, 300, 1, strata)))
        assert {tuple(row) for row in blocks} == {
            (*first, *second, *third)
            for first in ((0, 1, 2, 3), (2, 3, 0, 1))
            for second in ((4, 5, 6, 7), (6, 7, 4, 5))
            for third in ((8, 9), (9, 8))
        }
        with pytest.raises(DataError, match="no two groups within one label"):
            next(permuted_orders(np.arange(3), 5, 0, np.arange(3)))

    @pytest.mark.long
    def test_orders_are_uniform_and_follow_the_seed(self):
        rows = np.concatenate(list(permuted_orders(np.arange(3), 6000, seed=2)))
        again = np.concatenate(list(permuted_orders(np.arange(3), 6000, seed=2)))
        counts = np.unique(rows, axis=0, return_counts=True)[1]
        np.testing.assert_array_equal(rows, again)
        assert len(counts) == 6
        assert abs(counts - 1000).max() < 150

    def test_shifts_are_different_rotations(self):
        rows = np.concatenate(list(shifted_orders(7, 100, seed=0)))
        assert sorted(rows[:, 0]) == list(range(1, 7))
        np.testing.assert_array_equal((rows - rows[:, :1]) % 7, np.tile(np.arange(7), (6, 1)))
