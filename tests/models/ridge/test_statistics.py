"""`RidgeStatistics`: sums that can be merged, subtracted and collected in any pieces."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from bagbasis import Bags, DoubleBasisRegressor, ProjectionEmbedding, RandomFourierFeatures
from bagbasis.models.ridge.gram_products import PANEL_FEATURES
from bagbasis.models.ridge.sums import RidgeStatistics, StatisticsBuilder
from tests.oracles import ridge
from tests.oracles.ridge_entries import collected, feature_rows, unpacked
from tests.passes import use_cores

pytestmark = pytest.mark.portable

FIELDS = [field.name for field in fields(RidgeStatistics) if field.name != "weights"]


def same(a, b, rtol=1e-13):
    """Equal to rounding: sums of thousands of terms differ in their last digits."""
    for name in FIELDS:
        x, y = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max(initial=0))


def identical(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


@pytest.fixture(scope="module")
def rows():
    return feature_rows(np.random.default_rng(0), 900)


@pytest.mark.parametrize("k", [1, 40])
def test_weighted_sums_merge_and_subtract(rows, k):
    """As sums of the rows times the roots of their weights, for few targets and many."""
    z, y = rows[0], np.tile(rows[1][:, :1], k) + np.arange(k)
    w = np.random.default_rng(4).gamma(1.0, size=len(z)) * (np.arange(len(z)) % 3 > 0)
    builder = StatisticsBuilder(z.shape[1], k, np.float64)
    other = StatisticsBuilder(z.shape[1], k, np.float64)
    builder.add(z[:500], y[:500], w[:500])
    other.add(z[500:], y[500:], w[500:])
    part, rest = builder.finish(), other.finish()
    both, root = part + rest, np.sqrt(w)[:, None]
    assert (both.weight, both.n_weighted) == (pytest.approx(w.sum()), np.count_nonzero(w))
    upper = np.triu_indices(z.shape[1])
    np.testing.assert_allclose(both.gram, ((root * z).T @ (root * z))[upper], atol=1e-9)
    np.testing.assert_allclose(both.sum_z, w @ z, atol=1e-9)
    np.testing.assert_allclose(both.cross, (w[:, None] * y).T @ z, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(both.sum_yy, w @ y**2)
    same(both - rest, part, rtol=1e-10)
    np.testing.assert_allclose((both - rest).weights, part.weights)


def test_merging_leaves_its_parts_alone(rows):
    """A partial may be merged again after a worker is lost: adding must not change it."""
    z, y = rows
    a, b = collected(z[:300], y[:300]), collected(z[300:], y[300:])
    copy = collected(z[:300], y[:300])
    _ = a + b, a - b
    assert identical(a, copy)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pieces_do_not_matter(monkeypatch, dtype):
    """Rows that arrive one by one, in odd pieces or all at once give the same bits."""
    monkeypatch.setattr("bagbasis.models.ridge.sums.BLOCK_ROWS", 64)
    z, y = feature_rows(np.random.default_rng(1), 500, dtype)
    whole = collected(z, y, dtype)
    for cuts in (range(0, 501), [0, 1, 63, 64, 65, 129, 400, 500], [0, 0, 500, 500]):
        builder = StatisticsBuilder(z.shape[1], y.shape[1], dtype)
        for start, stop in zip(cuts, [*cuts][1:], strict=False):
            builder.add(z[start:stop], y[start:stop])
        assert identical(builder.finish(), whole)


@pytest.mark.parametrize("n_features", [1, 2, 7, 255, 256, 257, 600])
def test_odd_numbers_of_features(n_features):
    """Triangles and stripes of any width: nothing is left out at their ends."""
    rng = np.random.default_rng(n_features)
    z, y = rng.standard_normal((37, n_features)), rng.standard_normal((37, 2))
    statistics = collected(z, y)
    for ours, truth in zip(unpacked(statistics), ridge.statistics(z, y).values(), strict=True):
        np.testing.assert_allclose(ours, truth, rtol=1e-11, atol=1e-11)
    assert statistics.trace == pytest.approx((z**2).sum())
    centred = z - z.mean(axis=0)
    np.testing.assert_allclose(
        np.triu(statistics.centred_gram(0.5)),
        np.triu(centred.T @ centred + 0.5 * np.eye(n_features)),
        atol=1e-10,
    )


def test_float32_sums_do_not_drift():
    """20 blocks of tenths add up in double: a running float32 sum would be off by 1e-4."""
    z = np.full((80_000, 2), 0.1, dtype=np.float32)
    statistics = collected(z, np.full((80_000, 1), 0.1), np.float32)
    np.testing.assert_allclose(statistics.sum_z, 80_000 * np.float64(np.float32(0.1)), rtol=1e-12)
    np.testing.assert_allclose(statistics.gram, 800, rtol=2e-6)
    np.testing.assert_allclose(statistics.sum_yy, 800, rtol=1e-12)


@pytest.mark.parametrize("n_features", [333, PANEL_FEATURES + 7])
def test_float32_sums_of_many_features(n_features):
    """One panel of columns and two give the oracle's sums, and the same bits on any cores."""
    rng = np.random.default_rng(1)
    z = np.cos(rng.standard_normal((1200, 10)) @ rng.standard_normal((10, n_features)))
    z, y = z.astype(np.float32), rng.random((len(z), 1))
    weights = rng.gamma(1.0, size=len(z))
    root = np.sqrt(weights)[:, None]
    sums = collected(z, y, np.float32, weights)
    truth = ridge.statistics(root * z, root * y)["gram"]
    np.testing.assert_allclose(unpacked(sums)[2], truth, atol=2e-6 * len(z))
    with use_cores(1):
        assert identical(sums, collected(z, y, np.float32, weights))
    z[1100, 77] = np.nan
    assert not collected(z, y, np.float32).is_finite


def test_order_of_merging(rows):
    """Any order and nesting of merges gives the same to rounding; two parts exactly the same."""
    z, y = rows
    a, b, c = (collected(z[i::3], y[i::3]) for i in range(3))
    assert identical(a + b, b + a)
    same((a + b) + c, a + (b + c))
    same(c + b + a, collected(z, y))


def test_fits_agree_with_double_precision():
    """A fit to more bags than features, by kernels of which some are a hundred times too wide."""
    rng = np.random.default_rng(3)
    bags = Bags.from_list(list(rng.random((1500, 20, 1)) ** rng.uniform(0.5, 2, (1500, 1, 1))))
    y = np.array([bag.mean() for bag in bags])
    for multiplier in (1.0, 100.0):
        predictions = []
        for precision in ("float32", "float64"):
            second = RandomFourierFeatures(n_features=1024, scale_multiplier=multiplier)
            model = DoubleBasisRegressor(
                ProjectionEmbedding(), second, alpha=1e-5 * len(y), precision=precision
            )
            predictions.append(model.fit(bags, y).predict(bags))
        np.testing.assert_allclose(*predictions, atol=2e-5)
