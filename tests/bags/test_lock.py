"""One writer at a time: the lock of local files and the lease of object stores."""

from __future__ import annotations

import json
import os
import threading

import fsspec
import numpy as np
import pytest

from bagbasis.bags import Bags, BagStore
from bagbasis.errors import StoreError, WriterBusyError
from bagbasis.storage import lock
from bagbasis.storage.lock import LEASE_SECONDS, LOCK_NAME, holder, writer_lock
from bagbasis.storage.urls import normalize_url
from bagbasis.storage.zarr_writer import WriterStore
from tests.oracles.ragged import StoreModel

ONE = [np.ones((1, 2), np.float32)]


class Clock:
    """The time of day as the lease sees it, moved by hand."""

    def __init__(self) -> None:
        self.now = 1e9

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(lock, "time", clock)
    return clock


@pytest.fixture
def store(memory_url):
    return BagStore.create(memory_url, 2, ["y"], chunk_points=1).append(ONE, [1.0])


def lease_of(store):
    fs = fsspec.filesystem("memory")
    path = f"{store.url}/{LOCK_NAME}"
    return json.loads(fs.cat_file(path)) if fs.exists(path) else None


def put_lease(store, text):
    fsspec.filesystem("memory").pipe_file(f"{store.url}/{LOCK_NAME}", text.encode())


def test_busy_while_held_and_free_afterwards(url):
    """A held store refuses other writers, at any URL; after an end or an error it is free."""
    url = normalize_url(url)
    BagStore.create(url, 2)
    for error in (None, KeyError):
        try:
            with writer_lock(url) as hold:
                assert holder(url) == hold.token
                hold.check()
                with pytest.raises(WriterBusyError, match="another writer"), writer_lock(url):
                    pass
                assert holder(url) == hold.token
                if error:
                    raise error
        except KeyError:
            pass
        assert holder(url) is None
    with writer_lock(url):
        pass


def test_readers_are_never_kept_out(store):
    """Reading and verifying go on while somebody writes."""
    with store.appending() as session:
        session.write(Bags.from_list(ONE))
        reader = BagStore.open(store.url)
        assert len(reader.read()) == 1
        reader.verify()


def test_a_dead_writer_is_followed_after_its_lease(store, clock):
    """A lease without a sign of life for two minutes is taken over, and not before."""
    put_lease(store, json.dumps({"owner": "dead", "host": "node7", "renewed": clock.now}))
    clock.now += LEASE_SECONDS - 1
    with pytest.raises(WriterBusyError, match=r"another writer \(node7\) is appending.*120 s"):
        store.append(ONE)
    clock.now += 2
    store.append(ONE)
    assert store.n_bags == 2
    assert lease_of(store) is None


def test_a_writer_that_lost_its_lease_does_not_commit(store, clock):
    """A writer that slept too long commits nothing and writes over nothing of its successor."""
    successor = BagStore.open(store.url)
    theirs = [np.full((50, 2), 3, np.float32)]

    def sleep_in_a_session():
        with store.appending() as session:
            session.write(Bags.from_list([np.full((20, 2), 9.0)]))  # an object holds 16 rows
            clock.now += LEASE_SECONDS + 1
            successor.append(theirs, [2.0])

    with pytest.raises(WriterBusyError, match="took the store over; nothing was committed"):
        sleep_in_a_session()
    model = StoreModel(ONE + theirs, [[1.0], [2.0]], [0, 1])
    for seen in (successor, BagStore.open(store.url)):
        model.check(seen)
        seen.verify()
    assert lease_of(store) is None


def test_a_writer_that_lost_its_lease_writes_no_object(store, clock):
    """The loss is noticed at the next write, while the successor is still at work."""
    successor = BagStore.open(store.url)

    def write_beside_the_successor():
        with store.appending() as session:
            clock.now += LEASE_SECONDS + 1
            with successor.appending() as theirs:
                theirs.write(Bags.from_list([np.full((40, 2), 3.0)]))
                with pytest.raises(WriterBusyError, match="took the store over"):
                    session.write(Bags.from_list([np.full((40, 2), 9.0)]))

    with pytest.raises(StoreError, match="a write of this session failed"):
        write_beside_the_successor()
    assert (successor.read().points[1:] == 3).all()
    successor.verify()


def test_a_late_renewal_does_not_steal_the_lease_back(store, clock, monkeypatch):
    """The renewing thread of a writer that slept ends; its successor's lease is left alone."""
    monkeypatch.setattr(lock, "LEASE_SECONDS", 0.02)
    slept = lock._Lease(store.url, "slept")
    slept.take()
    clock.now += 1
    successor = {"owner": "successor", "host": "b", "renewed": clock.now}
    put_lease(store, json.dumps(successor))
    slept.renew_until(threading.Event())
    slept.release()
    assert lease_of(store) == successor


def test_a_lease_is_renewed_while_held(store, clock, monkeypatch):
    """A writer that lives keeps its lease however long it takes."""
    renewed = threading.Event()
    pipe_file = fsspec.implementations.memory.MemoryFileSystem.pipe_file

    def recorded(self, path, value, mode="overwrite", **options):
        pipe_file(self, path, value, mode=mode, **options)
        if path.endswith(LOCK_NAME) and mode == "overwrite":
            renewed.set()

    monkeypatch.setattr(fsspec.implementations.memory.MemoryFileSystem, "pipe_file", recorded)
    monkeypatch.setattr(lock, "LEASE_SECONDS", 0.4)
    with writer_lock(store.url):
        clock.now += 0.3
        assert renewed.wait(30)
        assert lease_of(store)["renewed"] == clock.now


def test_an_unreadable_lease_is_not_taken_for_none(store):
    """Nobody writes beside a lease that can not be understood."""
    for text in ("", "{}", "[1]", '{"owner": "x", "renewed": "soon"}'):
        put_lease(store, text)
        with pytest.raises(StoreError, match=r"the lease points/writer\.lock is unreadable"):
            store.append(ONE)
    fsspec.filesystem("memory").rm(f"{store.url}/{LOCK_NAME}")
    store.append(ONE)


def test_a_failed_append_gives_the_lease_back(store, monkeypatch):
    """Whatever goes wrong, the next writer need not wait."""

    async def fail(self, key, value):
        raise OSError("connection lost")

    with monkeypatch.context() as patch:
        patch.setattr(WriterStore, "set", fail)
        with pytest.raises(StoreError, match=r"\(connection lost\); nothing was committed"):
            store.append(ONE)
    assert lease_of(store) is None
    store.append(ONE)
    store.verify()


def test_the_lock_of_a_replaced_store_is_no_lock(tmp_path):
    """A writer whose store was deleted and made anew does not write into the new one."""
    url = str(tmp_path / "s.zarr")
    store = BagStore.create(url, 2)

    def replace_during_a_session():
        with store.appending():
            os.rename(url, f"{url}-old")
            BagStore.create(url, 2).append(ONE, ids=[5])

    with pytest.raises(WriterBusyError, match="the store was replaced"):
        replace_during_a_session()
    assert BagStore.open(url).ids().tolist() == [5]
    BagStore.open(url).verify()
