"""Responses in a store: they come back, whole and in parts, and none is missing."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from hypothesis import given, strategies as st

from bagbasis import BagStore, Box
from bagbasis.data.labelled.labels import ResponseBags
from bagbasis.data.store.plan import plan_partitions
from bagbasis.data.store.reading import pair_partitions, partitions
from bagbasis.data.store.sampling import RunSample
from bagbasis.data.store.schema import STORE_KEY
from tests.oracles.labelled import LabelledBags
from tests.oracles.ragged import (
    StoreModel,
    assert_same_bags,
    assert_same_responses,
    random_bags,
    random_responses,
)

SIZES = (3, 40, 1, 1, 100, 7, 9, 16, 8, 8, 30, 2, 2, 60, 5)


@pytest.mark.parametrize(
    ("response_dims", "dtype", "chunk_points"),
    [
        pytest.param(1, np.float32, 1, marks=pytest.mark.long),
        pytest.param(2, np.float64, 7, marks=pytest.mark.long),
        (3, np.float32, 7),
        (3, np.float64, None),
    ],
)
def test_responses_come_back(tmp_path, response_dims, dtype, chunk_points):
    """Over chunk and shard boundaries and in several appends, for any range of bags."""
    rng = np.random.default_rng(response_dims)
    store = BagStore.create(
        tmp_path / "s.zarr",
        2,
        target_names=["y"],
        response_dims=response_dims,
        dtype=dtype,
        chunk_points=chunk_points,
    )
    model = StoreModel()
    for first in (0, 6, 12):
        bags = random_bags(rng, [3, 1, 40, 2, 9, 1], 2, dtype)
        responses = random_responses(rng, 6, response_dims, dtype) if first != 6 else None
        if first == 12:
            responses[2] = random_bags(rng, [200], response_dims, dtype)[0]
        targets = rng.standard_normal((6, 1)).tolist()
        store.append(bags, targets, responses=responses)
        model = model.extended(bags, targets, range(first, first + 6), responses)
    store = BagStore.open(store.url)
    assert store.responses().points.dtype == dtype
    for start in range(19):
        model.check(store, start, min(18, start + start % 4))
    model.check(store)
    store.verify()


def test_points_outside_the_response_box_are_kept(tmp_path):
    """The box scales; it neither moves nor drops a point. Its default is the unit cube."""
    far = [[-5.0, 2.0, 99.0]]
    store = BagStore.create(tmp_path / "s.zarr", 1, response_dims=3, response_box=[(0, 2)] * 3)
    store = BagStore.open(store.append([[[0.5]]], responses=[far]).url)
    assert store.response_box == Box((0.0,) * 3, (2.0,) * 3)
    assert store.responses().points.tolist() == far
    unit = BagStore.create(tmp_path / "unit.zarr", 1, response_dims=2)
    assert unit.response_box == Box.unit(2)
    assert "response_dims=2" in repr(unit)


@pytest.mark.long
def test_a_store_without_responses_is_of_the_first_format(tmp_path):
    """What earlier versions read stays as it was; only stores with responses are new to them."""
    plain = BagStore.create(tmp_path / "plain.zarr", 2).append([[[0.0, 0.0]]])
    attributes = zarr.open_group(plain.url, mode="r").attrs[STORE_KEY]
    assert attributes["format_version"] == 1
    assert not any("response" in name for name in attributes)
    assert (plain.response_dims, plain.response_box, plain.n_response_points) == (None, None, 0)
    store = BagStore.create(tmp_path / "s.zarr", 2, response_dims=1)
    store.append([[[0.0, 0.0]]] * 3, responses=[[1.0, 2.0], None, [3.0]])
    group = zarr.open_group(store.url, mode="r")
    attributes = group.attrs[STORE_KEY]
    assert attributes["format_version"] == 2
    assert (attributes["response_dims"], attributes["n_response_points"]) == (1, 3)
    assert group["responses/points"][:].tolist() == [[1], [2], [3]]
    assert group["responses/offsets"][:].tolist() == [0, 2, 2, 3]
    assert group["responses/offsets"].dtype == np.int64


# ---------------------------------------------------------------------- in parts


@pytest.fixture
def paired(tmp_path):
    """Make a store of ragged bags and responses, one of them of 500 points, and its contents."""
    rng = np.random.default_rng(0)
    bags = random_bags(rng, SIZES, 2, np.float32)
    responses = random_responses(np.random.default_rng(0), len(SIZES), 3, np.float32)
    responses[9] = random_bags(rng, [500], 3, np.float32)[0]
    store = BagStore.create(tmp_path / "s.zarr", 2, response_dims=3, chunk_points=8)
    return store.append(bags, responses=responses), bags, responses


@pytest.mark.long
def test_pairs_come_in_order_and_within_the_memory(paired):
    """Each bag once with its response; points and responses together stay below the limit."""
    store, bags, responses = paired
    source = LabelledBags(store, ResponseBags())
    there = [i for i, response in enumerate(responses) if response is not None]
    for start, stop in ((0, 15), (2, 11), (4, 5), (3, 3)):
        parts = list(source.batches(start, stop, max_bytes=800))
        values = [i for part in parts for i in part.index]
        assert values == [i for i in there if start <= i < stop]
        for part in parts:
            assert_same_bags(part.bags, [bags[i] for i in part.index])
            assert_same_responses(part.labels, [responses[i] for i in part.index])
            n_bytes = part.bags.points.nbytes + part.labels.points.nbytes
            assert n_bytes <= 800 or len(part) == 1
    assert len(pair_partitions(store, 0, 15, 800)) > len(partitions(store, 0, 15, 800))
    assert pair_partitions(store, 0, 15, 2**25) == [(0, 15)]


@pytest.mark.long
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=40),
    st.integers(1, 20),
    st.integers(1, 90),
)
def test_ranges_by_cost_are_maximal_or_end_on_a_chunk(sizes, chunk_rows, limit):
    """As by points: whole bags, all of them, and only a single one may cost more than allowed."""
    points, answers = np.array(sizes, dtype=np.int64).reshape(-1, 2).T
    offsets, cost = np.append(0, np.cumsum(points)), np.append(0, np.cumsum(points + 2 * answers))
    ranges = plan_partitions(offsets, chunk_rows, limit, cost)
    assert [i for a, b in ranges for i in range(a, b)] == list(range(len(sizes)))
    for a, b in ranges:
        assert cost[b] - cost[a] <= limit or b == a + 1
        if b < len(sizes) and cost[b + 1] - cost[a] <= limit:
            assert offsets[b] % chunk_rows == 0


@pytest.mark.long
def test_a_sample_of_responses(paired):
    """Those of evenly spread runs of bags; a run without any gives nothing."""
    store, _, responses = paired
    there = [r for r in responses if r is not None]
    source = LabelledBags(store, ResponseBags())
    (everything,) = source.response_sample(RunSample(1, 15))
    assert_same_bags(everything, there)
    runs = [responses[a : a + 2] for a in (0, 6, 13)]
    runs = [result for run in runs if (result := [r for r in run if r is not None])]
    for part, expected in zip(source.response_sample(RunSample(3, 2)), runs, strict=True):
        assert_same_bags(part, expected)
    store.append([[[0.0, 0.0]]] * 40)
    (result,) = LabelledBags(store, ResponseBags()).response_sample(RunSample(2, 15))
    assert_same_bags(result, there)
