"""Embeddings of the same bags are computed once while they are remembered."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import (
    Box,
    EmbeddingUnion,
    MomentsEmbedding,
    ShrunkEmbedding,
    SlicedWassersteinEmbedding,
    as_bags,
)
from bagbasis.embeddings import remembering as module
from bagbasis.embeddings.base import ChoiceSample
from bagbasis.embeddings.remembering import number_once, remembering

SLICED = SlicedWassersteinEmbedding(n_directions=3, n_quantiles=4)


@pytest.fixture
def bags():
    rng = np.random.default_rng(0)
    return as_bags([rng.normal(size=(n, 2)) for n in rng.integers(3, 30, 20)])


def box_of(bags, side=1.0):
    low, high = bags.points.min(axis=0), bags.points.max(axis=0)
    middle, half = (low + high) / 2, side * (high - low) / 2
    return Box(tuple((middle - half).tolist()), tuple((middle + half).tolist()))


def rows_of(embedding, bags, box, dtype=np.float64):
    spec = embedding.resolve(2, box, ChoiceSample.whole(bags))
    rows, outside = np.empty((len(bags), spec.n_features), dtype), np.zeros(len(bags), np.int64)
    spec.embed(bags, rows, outside)
    return rows, outside


@pytest.fixture
def n_filled(monkeypatch):
    """How often sliced quantiles were computed."""
    kind, calls = type(SLICED.resolve(2, Box.unit(2), None)), []
    fill = kind.fill

    def counted(self, *arguments):
        calls.append(self)
        fill(self, *arguments)

    monkeypatch.setattr(kind, "fill", counted)
    return calls


@pytest.mark.parametrize("side", [1.0, 0.5])
@pytest.mark.parametrize("join", ["sum", "product"])
def test_parts_of_unions(bags, n_filled, join, side):
    """A union has the rows of its parts, to the bit; with points outside the margin counts."""
    union, box = EmbeddingUnion([SLICED, MomentsEmbedding()], join=join), box_of(bags, side)
    expected = rows_of(union, bags, box)
    assert expected[1].any() == (side < 1)
    n_filled.clear()
    with remembering():
        rows_of(SLICED, bags, box)
        assert len(n_filled) == 1
        result = rows_of(union, bags, box)
        again = rows_of(union, bags, box)
    assert len(n_filled) == (1 if side == 1 else 2)  # the scales are those without a margin
    for pair in (result, again):
        np.testing.assert_array_equal(pair[0], expected[0])
        np.testing.assert_array_equal(pair[1], expected[1])


def test_shrunk(bags, n_filled):
    box, shrunk = box_of(bags), ShrunkEmbedding(SLICED)
    expected = rows_of(shrunk, bags, box)
    n_filled.clear()
    with remembering():
        rows_of(SLICED, bags, box)
        result = rows_of(shrunk, bags, box)
    assert len(n_filled) == 2  # of the bags, and of their halves
    np.testing.assert_array_equal(result[0], expected[0])


def test_other_bags_boxes_and_dtypes_are_computed(bags, n_filled):
    """What differs in anything is computed."""
    box = box_of(bags)
    with remembering():
        rows_of(SLICED, bags, box)
        rows_of(SLICED, bags, box)
        assert len(n_filled) == 1
        rows_of(SLICED, bags, box_of(bags, 2.0))
        rows_of(SLICED, bags, box, np.float32)
        rows_of(SLICED, bags[3:], box)
        moved = as_bags([bag + 1 for bag in bags])
        rows_of(SLICED, moved, box)
        assert len(n_filled) == 5
    rows_of(SLICED, bags, box)
    assert len(n_filled) == 6


def test_memory_is_bounded(bags, n_filled, monkeypatch):
    monkeypatch.setattr(module, "CACHE_BYTES", 100)
    with remembering():
        rows_of(SLICED, bags, box_of(bags))
        rows_of(SLICED, bags, box_of(bags))
    assert len(n_filled) == 2


def test_numbers_of_equal_rows_are_computed_once():
    rows, computed = np.arange(6.0).reshape(3, 2), []

    def total(values):
        computed.append(values)
        return float(values.sum())

    with remembering():
        assert number_once(total, rows) == number_once(total, rows.copy()) == 15
        assert len(computed) == 1
        assert number_once(total, rows.reshape(2, 3)) == 15
        assert number_once(total, rows + 1) == 21
        assert len(computed) == 3
    assert number_once(total, rows) == 15
    assert len(computed) == 4
