"""Kernels, nulls, samples and names: what all tests of hypotheses are made of."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest
from scipy import stats

from bagbasis import BagbasisError, Bags, BagStore, ProjectionEmbedding
from bagbasis.hypotheses import HypothesisResult, independence_test, two_sample_test
from bagbasis.hypotheses.kernels.kernels import Kernel
from bagbasis.hypotheses.nulls.distributions import (
    chi_square_null,
    gamma_null,
    mixture_null,
    normal_null,
    pearson_null,
    permutation_null,
)
from bagbasis.hypotheses.nulls.permutation import draw_orders, draw_splits, split_sums
from bagbasis.hypotheses.samples.samples import is_bags, read_samples
from tests.oracles.hypotheses import kernel_by_formula

pytestmark = pytest.mark.portable


@pytest.mark.parametrize(
    ("name", "nu"),
    [("gaussian", 1.5), ("laplacian", 1.5), *(("matern", nu) for nu in (0.5, 1.5, 2.5, 1.2))],
)
def test_kernels(name, nu):
    """Each equals its formula, is 1 at 0, and is the mean cosine of its frequencies."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    Y[0] = X[0]
    kernel, slow = Kernel(name, 1.7, nu), kernel_by_formula(name, 1.7, nu)
    expected = [[slow(x, y) for y in Y] for x in X]
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12)
    assert kernel(X, Y)[0, 0] == kernel.at_zero == 1
    cosines = np.cos((X[:1] - X[1:2]) @ kernel.frequencies(3, 40_000, 1)).mean()
    assert cosines == pytest.approx(kernel(X[:1], X[1:2])[0, 0], abs=0.015)


def test_laws_of_nulls():
    """Each has the moments it was given, and the p-value of its null distribution."""
    rng = np.random.default_rng(0)
    weights = np.array([0.6, 0.3, 0.1, -1e-18])
    mixture = rng.chisquare(1, (100_000, 3)) @ weights[:3]
    mean, variance, skewness = mixture.mean(), mixture.var(), stats.skew(mixture)
    at = float(np.quantile(mixture, 0.9))
    assert mixture_null(at, weights, 20_000, 0).p_value == pytest.approx(0.1, abs=0.01)
    shifted = mixture_null(at - 1, weights, 20_000, 0, shift=-1.0)
    assert shifted.p_value == pytest.approx(0.1, abs=0.01)
    assert gamma_null(at, mean, variance, 0.0).p_value == pytest.approx(0.1, abs=0.01)
    assert gamma_null(at - 1, mean - 1, variance, -1.0).p_value == pytest.approx(0.1, abs=0.01)
    assert pearson_null(at, mean, variance, skewness).p_value == pytest.approx(0.1, abs=0.01)
    assert normal_null(1.6448536 * 0.2, 0.2).p_value == pytest.approx(0.05)
    assert chi_square_null(stats.chi2.isf(0.01, 4), 4, 1e9).p_value == pytest.approx(0.01)
    assert chi_square_null(stats.chi2.isf(0.01, 4), 4, 40).p_value > 0.02  # T² of 41 rows
    assert 0 < normal_null(1e6, 1.0).p_value < 1e-300
    for null in (gamma_null(0.0, mean, variance, 0.0), pearson_null(0.0, mean, variance, skewness)):
        assert (null.values.mean(), null.values.var()) == pytest.approx((mean, variance), rel=0.1)
        assert (np.diff(null.values) >= 0).all()


def test_permutation_null():
    """Values that are equal up to rounding count as reached, whatever their size."""
    values = 1e-9 * np.array([3.0, 1.0, 2.0])
    assert permutation_null(2e-9 * (1 + 1e-15), values, 1e-9).p_value == 3 / 4
    assert permutation_null(2.1e-9, values, 1e-9).p_value == 2 / 4
    assert permutation_null(2.0, values).values.tolist() == sorted(values)


def test_splits_and_orders():
    """`draw_splits` are those of `split_sums`; orders hold each unit once."""
    first = np.arange(9) < 4
    splits = draw_splits(first, 5, 3)
    assert (splits.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(splits[0], first)
    np.testing.assert_array_equal(splits, split_sums(np.eye(9), first, 5, 3))
    orders = list(draw_orders(9, 5, 3))
    assert all(sorted(order) == list(range(9)) for order in orders)
    assert len({tuple(order) for order in orders}) == 5


def test_points_and_bags():
    """Arrays are points, lists of arrays bags; groups are the units where there are any."""
    rng = np.random.default_rng(0)
    points, bags = rng.random((5, 2)), [rng.random((4, 2)) for _ in range(5)]
    assert [is_bags(data) for data in (points, points[:, 0], [1, 2], points.tolist())] == [
        False
    ] * 4
    ragged = np.empty(2, dtype=object)
    ragged[:] = bags[:2]
    assert all(
        is_bags(d) for d in (bags, tuple(bags), Bags.from_list(bags), np.array(bags), ragged)
    )
    [sample] = read_samples({"a": points[:, 0]})
    assert (sample.unit, sample.n_units, sample.rows.shape) == ("point", 5, (5, 1))
    [sample] = read_samples({"a": points}, groups={"a": ["x", "y", "x", "z", "z"]})
    assert (sample.unit, sample.n_units) == ("group", 3)
    assert sample.unit_sizes.tolist() == [2, 1, 2]
    expected = [points[[0, 2]].sum(axis=0), points[1], points[3:].sum(axis=0)]
    np.testing.assert_allclose(sample.feature_sums(lambda rows: rows), expected)
    pooled, _ = read_samples({"a": bags, "b": points}, unit="point")
    assert (pooled.unit, len(pooled)) == ("point", 20)


def test_sums_of_units_of_one_row(monkeypatch):
    """They are the rows' features in double, block after block, without a sum; units that come in
    another order than the rows are summed."""
    monkeypatch.setattr("bagbasis.hypotheses.samples.samples.FEATURE_ROWS", 3)
    points = np.random.default_rng(0).random((8, 2))
    [sample] = read_samples({"a": points})
    result = sample.feature_sums(lambda rows: rows.astype(np.float32))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, points.astype(np.float32))
    [turned] = read_samples({"a": points}, groups={"a": np.arange(8)[::-1]})
    np.testing.assert_array_equal(turned.feature_sums(lambda rows: rows), points[::-1])


def test_bags_are_thinned_and_embedded(tmp_path):
    """In memory and stored alike; bags that are too small are left out, and their groups, too."""
    rng = np.random.default_rng(0)
    a, b = ([rng.random((n, 2), np.float32) for n in sizes] for sizes in ((9, 3, 8, 7), (8, 9)))
    store = BagStore.create(tmp_path / "b.zarr", 2).append(b)
    embedding = ProjectionEmbedding(n_per_dim=3, box=[(0, 1)] * 2, dtype="float64")
    groups = {"a": list("ABCD"), "b": list("EF")}
    first, two = read_samples(
        {"a": a, "b": store}, embedding=embedding, thin=7, groups=groups, seed=1
    )
    assert (first.positions.tolist(), first.n_units, two.n_units) == ([0, 2, 3], 3, 2)
    np.testing.assert_allclose(first.rows[2], embedding.fit_transform(a[3:])[0])
    _, same = read_samples({"a": a, "b": b}, embedding=embedding, thin=7, seed=1)
    np.testing.assert_allclose(two.rows, same.rows, rtol=1e-6, atol=1e-6)
    whole, _ = read_samples({"a": a, "b": b}, embedding=embedding, thin=False)
    np.testing.assert_allclose(whole.rows, embedding.fit_transform(a))


@pytest.mark.parametrize("library", [pandas, polars])
def test_groups_are_bags(library):
    """A groupby is a sample of bags wherever a list of their points is."""
    sizes, rng = [3, 4, 5, 6, 7], np.random.default_rng(0)
    points, ids = rng.standard_normal((sum(sizes), 2)), np.repeat(np.arange(5), sizes)
    frame = library.DataFrame({"id": ids, "x": points[:, 0], "y": points[:, 1]})
    groups = frame.groupby("id") if library is pandas else frame.group_by("id", maintain_order=True)
    bags = np.split(points, np.cumsum(sizes)[:-1])
    assert two_sample_test(groups, bags).statistic == two_sample_test(bags, bags).statistic
    y = np.arange(5.0)
    assert independence_test(groups, y).statistic == independence_test(bags, y).statistic
    with pytest.raises(BagbasisError, match="points are compared with bags"):
        two_sample_test(groups, points)


def test_mappings_and_bags_of_one_coordinate():
    """Bags by their ids, and arrays of unlike lengths; columns by their names are no bags."""
    rng = np.random.default_rng(0)
    bags = [rng.standard_normal(n) for n in (3, 4, 5, 6, 7)]
    columns = [bag[:, None] for bag in bags]
    expected = two_sample_test(columns, columns[::-1]).statistic
    assert two_sample_test(bags, bags[::-1]).statistic == expected
    by_id = dict(enumerate(columns))
    assert two_sample_test(by_id, columns[::-1]).statistic == expected
    y = np.arange(5.0)
    assert independence_test(by_id, y).statistic == independence_test(bags, y).statistic
    table = {"x": bags[0], "y": bags[0]}
    with pytest.raises(BagbasisError, match=r"a is \{'x': .* not an array"):
        two_sample_test(table, table)
    assert not is_bags([bags[0], bags[0]])  # points of three coordinates
    assert not is_bags([[1.0, 2.0], [3.0]])  # or points, one of which lacks a number


def test_report():
    """It names what was found and tested; what is not known is left out, or None in JSON."""
    result = HypothesisResult(
        statistic=0.25,
        p_value=0.01,
        standard_error=float("nan"),
        effect=1.5,
        null_distribution=np.arange(3.0),
        question="two samples",
        name="toy",
        null="permutation",
        kernel="gaussian, bandwidth 1",
        n={"a": 20, "b": 1},
        unit="group",
        n_units={"a": 4, "b": 1},
        seed=7,
        seconds=0.5,
        details={"n_left_out": 2, "error_of_frequencies": 0.123456, "locations": [[1.0]]},
    )
    text = result.report()
    assert str(result) == text
    assert "locations" not in repr(result)
    for message in (
        "toy = 0.25",
        "0.01",
        "a 20 rows in 4 groups, b 1 row",
        "n left out            2",
        "error of frequencies  0.123",
    ):
        assert message in text
    assert "standard error" not in text
    assert "locations" not in text
    assert result.to_dict()["standard_error"] is None
    assert result.to_dict()["null_distribution"] == [0, 1, 2]
