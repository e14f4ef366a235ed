"""`BagStore`: what goes in comes out, wherever it is stored and however it is chunked."""

from __future__ import annotations

import pickle

import fsspec
import numpy as np
import pandas as pd
import pytest
import zarr

from bagbasis import Bags, BagStore, DataError, StoreError
from bagbasis.data.store.schema import CHUNKS_PER_SHARD, POINTS, STORE_KEY
from tests.oracles.ragged import SIZES, StoreModel, random_bags

ONE = [np.zeros((1, 2))]
SMALL = (1, 2, 30, 17, 16, 1, 1, 40)  # over objects of 16 and of 112 rows


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_dims", "dtype", "chunk_points", "sizes"),
    [
        (1, np.float32, 64, SIZES),
        (2, np.float64, 255, SIZES),
        (3, np.float32, None, SIZES),
        (4, np.float64, None, SIZES),
        (1, np.float64, 1, SMALL),
        (2, np.float32, 7, SMALL),
        (3, np.float64, 7, SMALL),
        (4, np.float32, 1, SMALL),
    ],
)
def test_ragged_bags_come_back(tmp_path, n_dims, dtype, chunk_points, sizes):
    """Bags of 1 to 10^4 points over chunk and shard boundaries are read back bit by bit."""
    rng = np.random.default_rng(n_dims)
    store = BagStore.create(
        tmp_path / "s.zarr", n_dims, target_names=["y"], dtype=dtype, chunk_points=chunk_points
    )
    model = StoreModel()
    for first in (0, len(sizes)):
        bags = random_bags(rng, sizes, n_dims, dtype)
        targets = rng.standard_normal((len(bags), 1)).tolist()
        store.append(bags, targets)
        model = model.extended(bags, targets, range(first, first + len(bags)))
    store = BagStore.open(tmp_path / "s.zarr")
    assert store.dtype == dtype
    model.check(store)
    for start in range(store.n_bags + 1):
        model.check(store, start, min(start + start % 4, store.n_bags))
    store.verify()


def test_points_and_objects_are_chunked_as_asked(tmp_path):
    """A chunk holds chunk_points rows, two MiB by default; an object holds sixteen chunks."""
    store = BagStore.create(tmp_path / "small.zarr", 2, chunk_points=5)
    assert store.chunk_points == 5
    assert store.array(POINTS).shards == (5 * CHUNKS_PER_SHARD, 2)
    assert BagStore.create(tmp_path / "default.zarr", 2).chunk_points == 2**21 // 8


@pytest.mark.long
@pytest.mark.parametrize("url", ["path", "file://", "icechunk"], indirect=True)
@pytest.mark.parametrize("ids", [None, [7, 3, -5], ["a", "ü", "a b"]])
def test_anywhere_with_any_ids(url, ids):
    """A local path, file:// and an object store hold the same; ids are integers or strings."""
    rng = np.random.default_rng(0)
    bags = random_bags(rng, [3, 1, 40], 2, np.float32)
    targets = [[1.0, 2.0], [np.nan, 3.0], [4.0, np.nan]]
    store = BagStore.create(url, 2, target_names=["y", "z"], chunk_points=2)
    assert store.append(bags, targets, ids=ids) is store
    model = StoreModel(bags, targets, [0, 1, 2] if ids is None else ids)
    for seen in (store, BagStore.open(url)):
        model.check(seen)
        model.check(seen, 1, 2)
        seen.verify()


@pytest.mark.parametrize(
    ("ids", "are_storable"),
    [
        ([-(2**63), 2**63 - 1], True),
        (["a", "b"], True),
        ([5, 2**63], False),
        ([False, True], False),
        ([0.5, 1.5], False),
    ],
)
def test_ids_of_a_table_are_stored(tmp_path, ids, are_storable):
    """Whole numbers of 64 bits and texts; bags with other ids are numbered."""
    bags = Bags.from_frame(pd.DataFrame({"who": ids, "v": [0.0, 1.0]}), "who")
    store = BagStore.create(tmp_path / "s.zarr", 1).append(bags)
    assert store.ids().tolist() == (ids if are_storable else [0, 1])


@pytest.mark.long
def test_an_empty_store_and_a_batch_without_bags(url):
    """Both can be read and verified; no bags have no targets, ids or responses."""
    none = Bags(np.empty((0, 3)), [0])
    store = BagStore.create(url, 3, target_names=["y"], response_dims=2)
    for seen in (store, BagStore.open(url), store.append(none, responses=[])):
        assert (seen.n_bags, seen.n_points, len(seen)) == (0, 0, 0)
        assert (seen.read().points.shape, seen.responses().points.shape) == ((0, 3), (0, 2))
        assert (seen.targets().shape, seen.ids().shape) == ((0, 1), (0,))
        seen.verify()
    bag = [np.zeros((1, 3))]
    store.append(bag, [5.0], ids=["a"]).append(none, ids=[], responses=[]).verify()
    StoreModel(bag, [[5.0]], ["a"], [None]).check(BagStore.open(url))


def test_the_source_is_kept_with_the_commit(tmp_path):
    """A job's note of where bags come from is committed with them and kept by later appends."""
    store = BagStore.create(tmp_path / "s.zarr", 2)
    with store.appending(source={"dataset": "x", "seed": 3}) as session:
        session.write(Bags.from_list(ONE))
    store.append(ONE)
    assert BagStore.open(store.url).meta.source == {"dataset": "x", "seed": 3}


@pytest.mark.long
def test_many_writes_are_one_commit(url):
    """A session's bags appear together when it ends, and not at all when it ends in an error."""
    store = BagStore.create(url, 2, chunk_points=1)
    with store.appending() as session:
        for _ in range(3):
            session.write(Bags.from_list([np.ones((20, 2))] * 2))
        assert BagStore.open(url).n_bags == 0
    assert BagStore.open(url).n_bags == 6

    def fail_after_a_write():
        with store.appending() as session:
            session.write(Bags.from_list(ONE * 5))
            raise KeyError

    with pytest.raises(KeyError):
        fail_after_a_write()
    assert BagStore.open(url).n_bags == store.n_bags == 6
    store.verify()


def test_a_refused_write_can_be_followed_by_a_good_one(url):
    """Refused input leaves the session as it was: its ids are free, its rows not taken."""
    store = BagStore.create(url, 2)
    good, bad = Bags.from_list(ONE * 2), Bags.trusted(np.full((2, 2), np.nan), np.arange(3))
    with store.appending() as session:
        for bags, ids in ((good, [1, 1]), (bad, [1, 2]), (good, ["a", "a"]), (bad, ["a", "b"])):
            with pytest.raises(DataError):
                session.write(bags, ids=ids)
        session.write(good, ids=["a", "b"])
        with pytest.raises(DataError, match="'a'"):
            session.write(good, ids=["c", "a"])
        session.write(good, ids=["c", "d"])
    assert store.ids().tolist() == ["a", "b", "c", "d"]
    store.verify()


def test_arrays_may_be_used_again_after_a_write(tmp_path):
    """A caller that fills one buffer over and over gets every batch stored as it was."""
    buffer, offsets = np.empty((3, 1), np.float32), np.array([0, 1, 3])
    ids = np.empty(2, dtype=np.int64)
    store = BagStore.create(tmp_path / "s.zarr", 1, target_names=["y"])
    labels = np.empty(2)
    with store.appending() as session:
        for i in range(4):
            buffer[:], ids[:], labels[:] = i, (2 * i, 2 * i + 1), i
            session.write(Bags.trusted(buffer, offsets), labels, ids)
    assert store.read().points[:, 0].tolist() == np.repeat(range(4), 3).tolist()
    assert store.ids().tolist() == list(range(8))
    assert store.targets()[:, 0].tolist() == np.repeat(range(4), 2).tolist()


# ---------------------------------------------------------------------- snapshots


@pytest.mark.long
def test_a_store_that_grew_is_not_seen_until_refresh(url):
    """An open store keeps its length while another one appends; `refresh` looks again."""
    writer = BagStore.create(url, 2, target_names=["y"], chunk_points=2).append(ONE * 3, [1, 2, 3])
    blob = pickle.dumps(BagStore.open(url))
    assert len(blob) < 2000
    reader = pickle.loads(blob)  # as in another process
    before = reader.read()
    writer.append([np.ones((50, 2))], [4])
    assert reader.n_bags == 3
    np.testing.assert_array_equal(reader.read().points, before.points)
    assert reader.targets().shape == (3, 1)
    reader.verify()
    with pytest.raises(DataError, match="bags 0:4 of 3"):
        reader.read(0, 4)
    assert reader.refresh() is reader
    assert len(reader.read()) == 4


def test_unknown_places_are_store_errors(tmp_path):
    """A protocol nobody knows and a path with nothing there are one clear line each."""
    with pytest.raises(StoreError, match="nosuch://x: Protocol not known"):
        BagStore.open("nosuch://x")
    with pytest.raises(StoreError, match=r"s\.zarr: not found"):
        BagStore.open(tmp_path / "s.zarr")
    store = BagStore.create(tmp_path / "s.zarr", 2)
    fsspec.filesystem("file").rm(str(tmp_path / "s.zarr"), recursive=True)
    with pytest.raises(StoreError, match="No such file"):
        store.append(ONE)
    assert not (tmp_path / "s.zarr").exists()


def test_ranges_and_targets_that_do_not_exist(tmp_path):
    """A range outside the store and an unknown target name are DataErrors that name them."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append(ONE * 2)
    for start, stop in ((0, 3), (-1, 1), (2, 1), (3, None)):
        with pytest.raises(DataError, match="of 2 do not exist"):
            store.read(start, stop)
    with pytest.raises(DataError, match="no target 'z'; there are"):
        store.targets(names=["z"])


def test_the_layout_is_the_documented_one(tmp_path):
    """Any Zarr reader finds the arrays of the documented layout, and never more than committed."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y", "z"], box=[(0, 2), (0, 3)])
    store.append([np.ones((2, 2)), np.zeros((1, 2))], [[1, 2], [3, 4]], ids=["a", "b"])
    group = zarr.open_group(store.url, mode="r")
    assert sorted(group.array_keys()) == ["ids", "offsets", "points", "targets"]
    assert group["points"].dtype == np.float32
    assert group["offsets"].dtype == np.int64
    assert group["offsets"][:].tolist() == [0, 2, 3]
    assert group["targets"][:].tolist() == [[1, 2], [3, 4]]
    attributes = group.attrs[STORE_KEY]
    assert attributes["format_version"] == 1
    assert (attributes["n_bags"], attributes["n_points"]) == (2, 3)
    assert attributes["box"] == [[0, 2], [0, 3]]
    assert attributes["target_names"] == ["y", "z"]
