"""`BagOfWordsEmbedding`: where words lie, what distances are, and few points."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagOfWordsEmbedding, DataError, ParameterError
from bagbasis.embeddings import BagOfWordsSpec

RNG = np.random.default_rng(0)
PLACES = np.array([[0.2, 0.2], [0.8, 0.3], [0.5, 0.9]])
BOX = [(0, 1)] * 2


def bag(counts):
    """Points close to each of `PLACES`."""
    return np.repeat(PLACES, counts, axis=0) + 0.01 * RNG.standard_normal((sum(counts), 2))


def test_words_lie_where_points_are():
    """One at each place, and a bag is the roots of its shares: distances are Hellinger's."""
    counts = RNG.integers(5, 40, (30, 3))
    embedding = BagOfWordsEmbedding(n_words=3, box=BOX, dtype="float64")
    rows = embedding.fit_transform([bag(c) for c in counts])
    centres = np.array(embedding.spec_.centres).reshape(3, 2)
    order = np.linalg.norm(centres[:, None] - PLACES, axis=2).argmin(axis=1)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(centres, PLACES[order], atol=0.01)
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows, np.sqrt(shares)[:, order], rtol=1e-12)
    assert embedding.spec_ == BagOfWordsSpec.from_dict(embedding.spec_.to_dict())


def test_fewer_points_than_words():
    """Every different point is a word; none in the box is an error."""
    bags = [np.repeat(PLACES, 3, axis=0)]
    assert BagOfWordsEmbedding(n_words=64, box=BOX).fit(bags).spec_.n_features == 3
    dropping = BagOfWordsEmbedding(box=BOX, out_of_box="drop")
    assert dropping.fit([PLACES, PLACES + 0.15]).spec_.n_features == 5  # one of them lies outside
    with pytest.raises(DataError, match="no points in the box"):
        dropping.fit([PLACES + 5])


def test_wrong_centres():
    """Those that are not points of the box's dimension."""
    for centres in ((), (0.5,) * 3, (np.nan, 0.0)):
        with pytest.raises(ParameterError, match=r"^centres is .*; expected"):
            BagOfWordsSpec(centres=centres, box=BOX)
