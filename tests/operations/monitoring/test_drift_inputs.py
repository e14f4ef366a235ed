"""Where the drift test's bags come from, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import Bags, BagStore, DataError, ProjectionEmbedding
from bagbasis.hypotheses.samples.thinning import as_bag_set
from bagbasis.operations import drift_test
from tests.operations.monitoring.drawing import draw_bags

SIZES = [1, 2, 700, 3, 60, 61, 5, 64, 63, 9]  # around and far beyond a chunk of 64 points


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store of 60 ragged bags in three appends, and the same bags in memory."""
    rng = np.random.default_rng(0)
    bags = [rng.standard_normal((n, 2)).astype(np.float32) for n in SIZES * 6]
    path = tmp_path_factory.mktemp("drift") / "bags.zarr"
    store = BagStore.create(path, n_dims=2, box=[(-5, 5)] * 2, chunk_points=64)
    for start in (0, 7, 40):
        store.append(bags[start : {0: 7, 7: 40, 40: 60}[start]])
    return store, bags


@pytest.mark.long
@pytest.mark.parametrize("ends", [(0, 60), (3, 23), (58, 60)])
def test_ranges_of_a_store_are_its_bags(stored, ends):
    """A range of ragged bags across chunks gives what the same bags in memory give."""
    store, bags = stored
    rng = np.random.default_rng(1)
    new = [bag.astype(np.float32) for bag in draw_bags(rng, 12, (5, 30))]
    expected = drift_test(bags[slice(*ends)], new)
    assert drift_test((store, *ends), new) == expected
    assert drift_test((store, *ends), Bags.from_list(new)) == expected
    if ends == (0, 60):
        assert drift_test(store, new) == expected
    assert expected.n_reference + expected.n_left_out_reference == ends[1] - ends[0]


def test_two_ranges_of_one_store(stored):
    """A window against the newest bags of the same store, read in small partitions."""
    store, bags = stored
    calls = []
    result = drift_test((store, 0, 40), (store, 40, 60), progress=lambda *done: calls.append(done))
    assert result == drift_test(bags[:40], bags[40:])
    assert calls[-1] == (60, 60)
    assert calls == sorted(calls)


@pytest.mark.long
def test_large_sets_are_sampled(tmp_path):
    """From 6,000 bags, 32 evenly spread runs of 128 are read, from the first to the last."""
    points = np.random.default_rng(2).random((6000, 1, 1)).astype(np.float32)
    store = BagStore.create(tmp_path / "many.zarr", n_dims=1).append(list(points))
    sample = as_bag_set((store, 500, 6000), "reference")
    assert len(sample.ranges) == 32
    assert (sample.positions[0], sample.positions[-1]) == (500, 5999)
    assert (np.diff(sample.positions) > 0).all()
    read = np.concatenate([b.bags.points for b in sample.bags.batches_of(sample.ranges)])
    np.testing.assert_array_equal(read, points[sample.positions, 0])
    result = drift_test((store, 500, 6000), list(points[:200]), n_features=64, n_permutations=49)
    assert (result.n_reference, result.n_new) == (4096, 200)
    in_memory = drift_test(list(points[500:]), list(points[:200]), n_features=64, n_permutations=49)
    assert in_memory == result


def test_sets_that_can_not_be_compared(stored):
    """One clear line that names the set."""
    store, _ = stored
    good = draw_bags(np.random.default_rng(3), 5, (10, 11))
    for reference, new, message in [
        (good[:1], good, r"^reference: 1 bag; the test compares sets of at least two"),
        (good, Bags.from_list(good)[:0], r"^new: 0 bags; the test"),
        (good, [], r"^new: no bags: the list is empty"),
        (good, (store, 4, 5), r"^new: 1 bag; the test"),
        (good, (store, 50, 70), r"^new: .*bags.zarr: bags 50:70 of 60 do not exist"),
        ((store, 9), good, r"^reference: expected \(store, start, stop\), got 2 values"),
        ((store, 0, None), good, r"^reference: start and stop are 0 and None; expected integers"),
        (good, [bag[:, :1] for bag in good], r"^reference bags have dimension 2, new ones 1"),
        (good, [*good, good[0] * np.nan], r"^new: bag 5, row 0: coordinate 0 is nan"),
        (np.zeros((4, 2)), good, r"^reference: expected bags, got one array"),
    ]:
        with pytest.raises(DataError, match=message):
            drift_test(reference, new)


def test_bags_below_the_thinning_size():
    """A set of which too little is left says how large its bags are."""
    good = draw_bags(np.random.default_rng(4), 5, (10, 11))
    small = [good[0], *(bag[:7] for bag in good)]
    message = (
        r"^new: 1 bag of at least thin=8 points among 6, the largest of 10; the test compares "
    )
    with pytest.raises(DataError, match=message):
        drift_test(good, small, thin=8)


def test_a_bag_that_the_embedding_refuses(stored):
    """It is named by its set, its store and its place there, though bags are reordered."""
    store, _ = stored
    good = draw_bags(np.random.default_rng(5), 5, (10, 11))
    strict = ProjectionEmbedding(out_of_box="error", box=[(-50, 50)] * 2)
    with pytest.raises(DataError, match=r"^new: bag 3: 10 points lie outside the box"):
        drift_test(good, [bag + 100 * (i == 3) for i, bag in enumerate(good)], embedding=strict)
    strict.set_params(box=[(-2.9, 2.9), (-50, 50)])
    with pytest.raises(DataError, match=rf"^reference: {store.url}, bag 2: \d+ points lie outside"):
        drift_test((store, 2, 4), [bag.clip(-1, 1) for bag in good], embedding=strict, thin=False)


def test_an_embedding_of_another_dimension():
    """A model's embedding for other data is refused."""
    good = draw_bags(np.random.default_rng(7), 5, (10, 11))
    fitted = ProjectionEmbedding(n_per_dim=3).fit([bag[:, :1] for bag in good])
    with pytest.raises(DataError, match=r"bags have dimension 2, the embedding was made for 1"):
        drift_test(good, good, embedding=fitted)
