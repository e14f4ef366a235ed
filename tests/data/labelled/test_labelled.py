"""`LabelledBags`: memory and a store give the same batches, whatever is skipped or left out."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bagbasis import (
    BagError,
    Bags,
    BagStore,
    DataError,
    DoubleBasisRegressor,
    ParameterError,
    ProjectionEmbedding,
    Responses,
    as_responses,
)
from bagbasis.data.labelled.inputs import with_responses, with_targets
from bagbasis.data.labelled.labels import ResponseBags
from bagbasis.data.store.sampling import RunSample
from tests.models.splits import Split
from tests.oracles.labelled import LabelledBags, Targets, labelled_bags
from tests.oracles.ragged import assert_same_bags

N = 70
BAGS, Y = labelled_bags(N, most=9)
Y = np.where(np.arange(N) % 5 == 0, np.nan, Y)
RESPONSES = [None if i % 3 == 1 else bag[: 1 + i % 4] for i, bag in enumerate(BAGS)]
LEFT_OUT, ONLY = Split(0.3, 1), Split(0.5, 2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The same labelled bags in memory and in a store, by kind of label."""
    path = tmp_path_factory.mktemp("labelled") / "s.zarr"
    store = BagStore.create(
        path, 2, target_names=["y"], response_dims=2, dtype=np.float64, chunk_points=16
    )
    store.append(BAGS, {"y": Y}, responses=RESPONSES)
    bags = Bags.from_list(BAGS)
    return {
        "none": (LabelledBags(bags), LabelledBags(store)),
        "targets": (
            LabelledBags(bags, Targets((), Y[:, None])),
            LabelledBags(store, Targets(("y",))),
        ),
        "responses": (
            LabelledBags(bags, ResponseBags(as_responses(RESPONSES, N))),
            LabelledBags(store, ResponseBags()),
        ),
    }


KNOWN = {
    "none": np.ones(N, dtype=bool),
    "targets": ~np.isnan(Y),
    "responses": np.array([response is not None for response in RESPONSES]),
}


def check_labels(kind, batch):
    if kind == "none":
        assert batch.labels is None
    elif kind == "targets":
        np.testing.assert_array_equal(batch.labels, Y[batch.index, None])
    else:
        assert isinstance(batch.labels, Responses)
        assert_same_bags(batch.labels.present, [RESPONSES[i] for i in batch.index])


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(KNOWN)),
    stored=st.booleans(),
    ends=st.tuples(st.integers(0, N), st.integers(0, N)).map(sorted),
    splits=st.tuples(st.sampled_from([None, LEFT_OUT]), st.sampled_from([None, ONLY])),
    rows=st.integers(1, 80),
    max_bytes=st.sampled_from([1, 300, 2**25]),
)
def test_batches(data, kind, stored, ends, splits, rows, max_bytes):
    """Each bag that counts comes once, in order, with its label; all others are counted."""
    start, stop = ends
    whole = data[kind][stored]
    part = LabelledBags(whole.data, whole.labels, start, stop, *splits)
    out = np.zeros(N, dtype=bool)
    if splits[0]:
        out |= LEFT_OUT.members(0, N)
    if splits[1]:
        out |= ~ONLY.members(0, N)
    seen, unlabelled, left_out, last = [], 0, 0, start
    for batch in part.batches(rows_per_block=rows, max_bytes=max_bytes):
        assert len(batch) == len(batch.bags) <= rows
        assert last <= batch.stop <= stop
        last = batch.stop
        seen += batch.index.tolist()
        unlabelled += batch.n_unlabelled
        left_out += batch.n_left_out
        if len(batch):
            assert batch.index[-1] < batch.stop
            assert_same_bags(batch.bags, [BAGS[i] for i in batch.index])
            check_labels(kind, batch)
    inside = np.arange(N)[start:stop]
    used = KNOWN[kind] & ~out
    assert seen == inside[used[inside]].tolist()
    assert unlabelled == (~KNOWN[kind] & ~out)[inside].sum()
    assert left_out == out[inside].sum()
    assert part.n_bags == 0 or last == stop


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("kind", ["targets", "responses"])
def test_labels_without_bags(data, kind, stored):
    """Ranges of labels have the very rows that batches have."""
    whole = data[kind][stored]
    part = LabelledBags(whole.data, whole.labels, left_out=LEFT_OUT)
    ranges = [(40, 61), (3, 9)]
    values = [(a + rows, labels) for (a, _), rows, labels in part.label_blocks(ranges)]
    expected = [batch.index for r in ranges for batch in part.batches(*r)]
    np.testing.assert_array_equal(
        np.concatenate([index for index, _ in values]), np.concatenate(expected)
    )
    assert all(len(index) == len(labels) for index, labels in values)


def test_sizes_and_what_it_holds(data):
    """Counts, boxes and sizes are those of the range, alike in memory and in the store."""
    for kind, (here, there) in data.items():
        for a, b in ((0, N), (5, 40), (7, 7)):
            for source in (here, there):
                np.testing.assert_array_equal(source.known(a, b), KNOWN[kind][a:b])
            ours = LabelledBags(here.data, here.labels, a, b)
            theirs = LabelledBags(there.data, there.labels, a, b)
            assert (ours.n_bags, ours.n_points) == (theirs.n_bags, theirs.n_points)
            assert ours.n_points == sum(map(len, BAGS[a:b]))
            assert ours.box == theirs.box
        runs = [(2, 9), (30, 33)]
        np.testing.assert_array_equal(here.sizes(runs), there.sizes(runs))
        samples = zip(here.sample(RunSample(3, 4)), there.sample(RunSample(3, 4)), strict=True)
        assert all((a.points == b.points).all() for a, b in samples)
    here, there = data["responses"]
    assert here.response_dims == there.response_dims == 2
    assert here.in_memory
    assert not there.in_memory
    assert pickle.loads(pickle.dumps(there)).n_points == there.n_points


def test_refused_bags_are_named(data):
    """By their position in the data, and by the store's URL."""
    here, there = data["none"]
    with pytest.raises(BagError, match="bag 31: why"), here.naming(np.array([30, 31])):
        raise BagError(1, "why")
    with pytest.raises(DataError, match=r"s\.zarr, bag 31: why"), there.naming(range(31, 40)):
        raise BagError(0, "why")


def test_what_fit_is_given(data):
    """LabelledBags are taken as they are; labels given in addition are refused."""
    here, there = data["targets"]
    assert with_targets(there) == (there, True)
    with pytest.raises(ParameterError, match="neither y nor target"):
        with_targets(here, Y)
    with pytest.raises(ParameterError, match="pass no responses"):
        with_responses(data["responses"][1], RESPONSES)


def test_fit_to_a_range(data):
    """A fit to a range of a store's bags is that to the same bags in memory."""
    whole = data["targets"][1]
    part = LabelledBags(whole.data, whole.labels, 10, 55)
    model = DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=3), alpha=1.0, precision="float64")
    alone = model.fit(BAGS[10:55], Y[10:55]).coef_
    fitted = model.fit(part)
    assert fitted.report_["n_bags"] == 45
    np.testing.assert_allclose(fitted.coef_, alone, rtol=1e-9)
