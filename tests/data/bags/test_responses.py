"""Responses: what there is of them and what is missing."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from bagbasis import Bags, DataError, Responses, as_responses
from bagbasis.data.bags.bags import concatenate
from tests.oracles.ragged import (
    assert_same_responses,
    random_responses,
)


def some(n_bags=9, n_dims=2, dtype=np.float32):
    """Draw responses, some of them None."""
    return random_responses(np.random.default_rng(0), n_bags, n_dims, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_a_list_with_none_tells_the_missing_ones_apart(n_dims, dtype):
    """None and arrays without rows are no response; all others come back, in order."""
    value = some(n_dims=n_dims, dtype=dtype)
    missing = [i for i, response in enumerate(value) if response is None]
    assert 0 < len(missing) < 9
    for nothing in (None, [], np.empty((0, n_dims)), np.empty((0, 7))):
        responses = as_responses([nothing if r is None else r for r in value], 9)
        assert_same_responses(responses, value)
        assert (responses.n_dims, responses.points.dtype) == (n_dims, dtype)
    assert responses.n_points == responses.sizes.sum() == responses.present.n_points
    assert (responses.sizes == 0).nonzero()[0].tolist() == missing


def test_bags_are_a_response_for_every_bag():
    """Bags hold no empty ones, so none is missing; what is checked is not copied."""
    bags = Bags.from_list([np.ones((2, 3)), np.zeros((1, 3))])
    responses = as_responses(bags, 2, n_dims=3)
    assert responses.positions.tolist() == [0, 1]
    assert responses.points is bags.points
    assert as_responses(responses, 2).points is bags.points


@given(st.lists(st.integers(0, 3), max_size=12), st.data())
def test_ranges_of_responses(sizes, data):
    """A slice has the responses of its bags, and the parts of a cut join to the whole."""
    sizes = np.array(sizes, dtype=np.int64)
    points = np.arange(2.0 * sizes.sum()).reshape(-1, 2)
    responses = Responses(points, np.append(0, np.cumsum(sizes)))
    expected = [
        points[a : a + n] if n else None for a, n in zip(responses.offsets, sizes, strict=False)
    ]
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(sizes))] * 2)))
    assert_same_responses(responses[a:b], expected[a:b])
    joined = concatenate([responses[:a], responses[a:b], responses[b:]])
    assert_same_responses(joined, expected)
    assert len(responses[b:a]) == (0 if b > a else len(responses[a:b]))
    assert_same_responses(responses[::2], expected[::2])


def test_responses_keep_the_names_of_their_coordinates():
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [3.0, 4.0, 5.0]})
    responses = as_responses([frame[:1], frame[1:]], 2)
    for part in (responses, responses.present, responses[1:], responses.of(np.array([1]))):
        assert list(part.coordinate_names) == ["a", "b"]


def test_responses_are_picklable_and_described():
    """They travel to workers; printing one says how many bags have a response."""
    responses = as_responses([None, [[1.0, 2.0]]], 2)
    assert_same_responses(pickle.loads(pickle.dumps(responses)), [None, np.array([[1.0, 2.0]])])
    assert "n_bags=2, n_present=1, n_points=1, n_dims=2" in repr(responses)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([None, None], "no bag has a response"),
        ([[[1.0, 2.0]], [[1.0]]], "the response of bag 1 has dimension 1, expected 2"),
        ([[[1.0, 2.0]], [[1.0, 2.0], [1.0]]], "the response of bag 1 is not an"),
        ([None, [[np.nan]]], "the response of bag 1, row 0: coordinate 0 is nan"),
        ([None], "1 responses for 2 bags"),
        (np.ones((2, 2)), "pass a list with one"),
    ],
)
def test_what_is_no_list_of_responses(data, message):
    """One clear line that names the bag and the row."""
    with pytest.raises(DataError, match=message):
        as_responses(data, 2)
