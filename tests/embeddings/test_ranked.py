"""RankedSummariesEmbedding: ranks of statistics, whose Gaussian kernel is a Laplace kernel."""

import numpy as np
import pytest

from bagbasis import DataError, RankedSummariesEmbedding

RNG = np.random.default_rng(5)
BAGS = [RNG.gamma(2.0, s, (30, 2)) for s in RNG.uniform(0.5, 3.0, 65)]


def test_squared_distances_are_gaps_of_ranks():
    """With a level for each gap between bags, the squared distance of two bags is the sum over the
    statistics of the gaps of their ranks, in units of 1 / n_levels."""
    embedding = RankedSummariesEmbedding(n_levels=64, dtype="float64").fit(BAGS)
    codes = embedding.transform(BAGS)
    names = embedding.get_feature_names_out()
    assert names[0] == "rank(mean(x0), 0)"
    assert codes.shape == (65, 64 * 13)
    means = np.array([bag[:, 0].mean() for bag in BAGS])
    ranks = means.argsort().argsort()
    of_mean = codes[:, :64]
    squares = ((of_mean[:, None] - of_mean) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, np.abs(ranks[:, None] - ranks), atol=1e-6)


def test_units_and_order_alone():
    """Other units and origins of coordinates change nothing, and an outlier moves ranks only."""
    embedding = RankedSummariesEmbedding(dtype="float64")
    codes = embedding.fit_transform(BAGS)
    np.testing.assert_allclose(
        embedding.fit_transform([1000 * bag - 7 for bag in BAGS]), codes, atol=1e-7
    )
    far = [*BAGS[:-1], BAGS[-1] + 1e6]
    least, most = embedding.fit_transform(far).min(), embedding.fit_transform(far).max()
    assert (least, most) == (0.0, 1.0)


def test_equal_statistics():
    """A statistic that is the same in all bags is halfway, a larger one is above, at any level."""
    flat = [np.column_stack([bag[:, 0], np.full(30, 3.0)]) for bag in BAGS]
    embedding = RankedSummariesEmbedding(n_levels=2, dtype="float64", box=[(0, 30), (0, 10)])
    embedding.fit(flat)
    names = list(embedding.get_feature_names_out())
    at = names.index("rank(mean(x1), 0)")
    assert (embedding.transform(flat)[:, at : at + 2] == 0.5).all()
    raised = embedding.transform([flat[0] + [0, 1], flat[0] - [0, 1]])
    assert raised[:, at : at + 2].tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_many_coordinates():
    """From 25 coordinates on there are no covariances."""
    names = RankedSummariesEmbedding().fit([np.eye(25), -np.eye(25)]).get_feature_names_out()
    assert len(names) == 4 * 25 * 5
    assert not any("cov" in name for name in names)


def test_no_bags():
    with pytest.raises(DataError, match="no bags"):
        RankedSummariesEmbedding(box=[(0, 1)] * 2).fit([])
