"""`SizeEmbedding`: the number of points, which no other embedding sees."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    Bags,
    DoubleBasisRegressor,
    EmbeddingUnion,
    MomentsEmbedding,
    SizeEmbedding,
)

BAGS = [np.full((n, 2), 0.5) for n in (1, 2, 30, 1000)]


def test_is_the_logarithm_of_the_number_of_points():
    embedding = SizeEmbedding(dtype="float64").fit(BAGS)
    np.testing.assert_allclose(embedding.transform(BAGS)[:, 0], np.log([1, 2, 30, 1000]))
    assert embedding.get_feature_names_out().tolist() == ["log(n_points)"]


@pytest.mark.parametrize("join", ["sum", "product"])
def test_a_union_with_it_learns_totals(join):
    """A mean alone cannot tell a bag from its repetition."""
    rng = np.random.default_rng(0)
    bags = Bags.from_list([rng.normal(3, 1, (n, 1)) for n in rng.integers(5, 100, 120)])
    totals = np.log([bag.sum() for bag in bags])
    mean = MomentsEmbedding(covariance=False)
    joined = EmbeddingUnion([mean, SizeEmbedding()], join=join)
    errors = [
        np.std(DoubleBasisRegressor(e).fit(bags[:80], totals[:80]).predict(bags[80:]) - totals[80:])
        for e in (joined, mean)
    ]
    assert errors[0] < errors[1] / 4


def test_points_outside_are_counted_in_large_bags():
    """Points are compared with the box some at a time: each counts in its own bag."""
    rng = np.random.default_rng(5)
    sizes = [5000, 1, 3000, 7]
    points = rng.uniform(-0.2, 1.2, (sum(sizes), 2)).astype(np.float32)
    bags = Bags(points, np.append(0, np.cumsum(sizes)))
    spec = SizeEmbedding(out_of_box="drop", box=[(0, 1), (0, 1)]).fit(bags).spec_
    outside, out = np.empty(4, np.int64), np.empty((4, 1))
    spec.fill(bags, out, outside)
    expected = [int(((bag < 0) | (bag > 1)).any(axis=1).sum()) for bag in bags]
    assert outside.tolist() == expected
    inside = np.array(sizes) - expected
    np.testing.assert_allclose(
        out[:, 0], np.where(inside > 0, np.log(np.maximum(inside, 1)), np.nan)
    )
