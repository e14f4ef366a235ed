"""Reading by partitions: in order, one ahead, and each stored chunk about once."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.storage import LocalStore

from bagbasis import BagStore, StoreError
from bagbasis.data.store import reading
from bagbasis.data.store.reading import partitions, prefetch
from bagbasis.data.store.sampling import RunSample
from tests.oracles.labelled import LabelledBags
from tests.oracles.ragged import assert_same_bags, random_bags

RANGES = [(i, i + 1) for i in range(6)]
SMALL = 52 * 8  # bytes of 52 points in R^2, single precision


def batches(store, start=0, stop=None):
    """Batches of partitions of up to 52 points."""
    return LabelledBags(store).batches(start, stop, max_bytes=SMALL)


def ragged_store(path, sizes, chunk_points=8):
    """Make a store of bags of these sizes, and its bags."""
    bags = random_bags(np.random.default_rng(0), sizes, 2, np.float32)
    return BagStore.create(path, 2, chunk_points=chunk_points).append(bags), bags


SIZES = (3, 40, 1, 1, 100, 7, 9, 16, 8, 8, 30, 2, 2, 60, 5)
RUNS = [(0, 2), (6, 8), (13, 15)]


def test_a_sample_is_runs_of_bags(tmp_path):
    """Runs from the first bag to the last, in order; all bags when there are no more."""
    store, bags = ragged_store(tmp_path / "s.zarr", SIZES)
    some = LabelledBags(store).sample(RunSample(3, 2))
    for part, start in zip(some, (0, 6, 13), strict=True):
        assert_same_bags(part, bags[start : start + 2])
    (everything,) = LabelledBags(store).sample(RunSample(3, 5))
    assert_same_bags(everything, bags)
    empty = BagStore.create(tmp_path / "empty.zarr", 2)
    assert list(LabelledBags(empty).sample(RunSample(3, 5))) == []


@pytest.mark.parametrize(("values", "n_reads"), [(0, 3), (2 * 20 * 5, 1)])
def test_runs_of_a_sample_with_short_gaps_are_one_read(tmp_path, monkeypatch, values, n_reads):
    """Whatever is read at once, the bags are those of the runs; partitions stay the limit."""
    store, bags = ragged_store(tmp_path / "s.zarr", SIZES)
    calls, read = [], BagStore.read
    monkeypatch.setattr(
        BagStore, "read", lambda *arguments: calls.append(arguments) or read(*arguments)
    )
    monkeypatch.setattr(reading, "GAP_VALUES", values)
    for limit in (2**20, 4):
        monkeypatch.setattr(reading, "PARTITION_BYTES", limit)
        for part, start in zip(reading.read_runs(store, RUNS), (0, 6, 13), strict=True):
            assert_same_bags(part, bags[start : start + 2])
    assert len(calls) == n_reads + 3


def count_chunk_reads(monkeypatch):
    """How often each stored chunk of the points was fetched, whole objects apart."""
    reads = Counter()
    get = LocalStore.get

    async def counted(self, key, prototype=None, byte_range=None):
        if "points/c/" in f"{self.root}/{key}" and not isinstance(byte_range, SuffixByteRequest):
            assert byte_range is None or isinstance(byte_range, RangeByteRequest)
            reads[key, byte_range and byte_range.start] += 1
        return await get(self, key, prototype, byte_range)

    monkeypatch.setattr(LocalStore, "get", counted)
    return reads


@pytest.mark.long
def test_ragged_bags_are_read_about_once(tmp_path, monkeypatch):
    """Only a chunk that two partitions share is fetched twice."""
    rng = np.random.default_rng(1)
    store, _ = ragged_store(tmp_path / "s.zarr", rng.integers(1, 30, 60).tolist())
    n_partitions = len(partitions(store, 0, 60, SMALL))
    reads = count_chunk_reads(monkeypatch)
    for _ in batches(store):
        pass
    n_chunks = -(-store.n_points // 8)
    assert len(reads) == n_chunks
    assert max(reads.values()) == 2
    assert sum(reads.values()) < n_chunks + n_partitions


def test_prefetch_keeps_order():
    """Results come in the order of the ranges, whatever the thread does."""
    assert list(prefetch(lambda r: r[0] ** 2, RANGES)) == [0, 1, 4, 9, 16, 25]
    assert list(prefetch(lambda r: r, [])) == []


def test_prefetch_is_one_ahead_and_no_more():
    """While one value is worked on the next is loaded, and never the one after it."""
    started = [threading.Event() for _ in RANGES]

    def load(r):
        started[r[0]].set()
        return r[0]

    values = prefetch(load, RANGES)
    assert not started[0].is_set()
    for value in values:
        if value + 1 < len(RANGES):
            assert started[value + 1].wait(30)
        assert not any(event.is_set() for event in started[value + 2 :])


def test_an_error_comes_where_its_value_would():
    """Values before the error are delivered; then it is raised as it was, and nothing follows."""

    def load(r):
        if r[0] == 2:
            raise StoreError("chunk 2")
        return r[0]

    values = prefetch(load, RANGES)
    assert [next(values), next(values)] == [0, 1]
    with pytest.raises(StoreError, match="chunk 2"):
        next(values)
    with pytest.raises(StopIteration):
        next(values)


def test_closing_early_ends_the_thread(tmp_path):
    """A loop left early waits for the load under way, starts no other, and does not hang."""
    loaded, release = [], threading.Event()

    def load(r):
        if r[0] == 1:
            release.wait(30)
        loaded.append(r[0])
        return r[0]

    values = prefetch(load, RANGES)
    assert next(values) == 0
    threading.Timer(0.05, release.set).start()
    values.close()
    assert loaded == [0, 1]
    store, _ = ragged_store(tmp_path / "s.zarr", SIZES)
    loop = batches(store)
    next(loop)
    loop.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("prefetch")]


def test_an_object_replaced_between_index_and_chunks_is_read_again(tmp_path, monkeypatch):
    """An append may replace the last object while it is read: the reader sees the new one."""
    store, bags = ragged_store(tmp_path / "s.zarr", [40, 3], chunk_points=64)
    path = tmp_path / "s.zarr" / "points" / "c" / "0" / "0"
    old = path.read_bytes()
    reader = BagStore.open(store.url)
    store.append([np.ones((5, 2))])
    get, served = LocalStore.get, []

    async def stale_index(self, key, prototype=None, byte_range=None):
        if isinstance(byte_range, SuffixByteRequest) and "points/c/0/0" in key and len(served) < 3:
            served.append(key)
            return prototype.buffer.from_bytes(old[-byte_range.suffix :])
        return await get(self, key, prototype, byte_range)

    monkeypatch.setattr(LocalStore, "get", stale_index)
    assert_same_bags(reader.read(), bags)
    assert len(served) == 3
