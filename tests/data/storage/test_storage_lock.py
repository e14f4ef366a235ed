"""One writer at a time: the lock of local files and the conditional writes of objects."""

from __future__ import annotations

import errno
import os

import fsspec
import numpy as np
import pytest

from bagbasis import BagStore, StoreError, WriterBusyError
from bagbasis.data.storage import transactions
from bagbasis.data.storage.lock import LOCK_NAME, writer_lock
from bagbasis.datasets import GMMComponents, generate
from bagbasis.ingest import ingest_arrays

ONE = [np.ones((1, 2), np.float32)]


# ---------------------------------------------------------------------- local files


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


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["file", "icechunk+file"])
@pytest.mark.parametrize(
    ("put", "message"),
    [
        (lambda lock, keys: lock.symlink_to(keys), "cannot be written .*; nothing was committed"),
        (lambda lock, keys: lock.hardlink_to(keys), "not a plain file of one name"),
        (lambda lock, keys: os.mkfifo(lock), "not a plain file of one name"),
    ],
    ids=["symlink", "hard link", "pipe"],
)
def test_the_lock_touches_no_file_of_others(tmp_path, put, message, scheme):
    """A link, or anything but a plain file, in the lock's place is refused and left alone."""
    store = BagStore.create(f"{scheme}://{tmp_path}/s.zarr", 2).append(ONE)
    keys = tmp_path / "authorized_keys"
    keys.write_text("ssh-ed25519 years")
    lock = tmp_path / "s.zarr" / (LOCK_NAME if scheme == "file" else transactions.COMMIT_LOCK)
    lock.unlink()
    put(lock, keys)
    with pytest.raises(StoreError, match=message):
        store.append(ONE)
    assert keys.read_text() == "ssh-ed25519 years"
    lock.unlink()
    assert store.append(ONE).n_bags == 2


def test_the_lock_is_made_in_no_folder_of_others(tmp_path):
    """A link in the place of the lock's folder is refused, and nothing is made where it leads."""
    store = BagStore.create(tmp_path / "s.zarr", 2)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "s.zarr" / "points").rename(tmp_path / "away")
    (tmp_path / "s.zarr" / "points").symlink_to(tmp_path / "theirs")
    with pytest.raises(StoreError, match="points is a link"):
        store.append(ONE)
    assert list((tmp_path / "theirs").iterdir()) == []


@pytest.mark.parametrize("code", ["ENOLCK", "ENOSYS", "EOPNOTSUPP"])
def test_a_filesystem_without_locks_is_one_clear_line(tmp_path, monkeypatch, code):
    """Where the kernel cannot lock, writers are told, and what they can do."""

    def fail(fd, operation):
        raise OSError(getattr(errno, code), "no locks here")

    monkeypatch.setattr("bagbasis.core.systems.fcntl.flock", fail)
    message = r"s\.zarr: its filesystem keeps no locks \(no locks here\); mount it with flock"
    with pytest.raises(StoreError, match=message):
        BagStore.create(tmp_path / "s.zarr", 2)


# ---------------------------------------------------------------------- objects


@pytest.mark.parametrize("first", [None, b"first"])
def test_the_second_writer_of_an_object_is_refused(memory_url, first):
    """Several may hold a folder of objects; what changed since it was read is not written over."""
    with writer_lock(memory_url) as ours, writer_lock(memory_url) as theirs:
        if first is not None:
            ours.read("a")
            ours.write("a", first)
        assert ours.read("a") == theirs.read("a") == first
        theirs.write("a", b"theirs")
        with pytest.raises(WriterBusyError, match="a: another process changed it meanwhile"):
            ours.write("a", b"ours")
        theirs.write("a", b"theirs, again")
        ours.remove("a")  # it has changed: stays
        assert ours.read("a") == b"theirs, again"
        ours.write("a", b"ours")
        assert theirs.read("a") == b"ours"


def test_an_object_that_was_removed_is_none(memory_url):
    """Removed twice it is not taken for the one that was removed first."""
    with writer_lock(memory_url) as ours, writer_lock(memory_url) as theirs:
        for hold in (ours, theirs):
            hold.read("a")
        ours.write("a", b"once")
        ours.remove("a")
        assert ours.read("a") is None
        seen = theirs.read("a")
        ours.write("a", b"twice")
        ours.remove("a")
        assert seen is None
        with pytest.raises(WriterBusyError):
            theirs.write("a", b"theirs")


def test_a_filesystem_without_conditional_writes():
    """Nothing is written where writers cannot be told apart."""
    with (
        writer_lock("http://127.0.0.1:1/m.zarr") as hold,
        pytest.raises(StoreError, match="cannot be told apart"),
    ):
        hold.read("champion.json")


@pytest.mark.long
def test_a_server_that_does_not_answer_is_not_an_empty_one():
    """A refused connection is an error that says so, not "not found"."""
    with pytest.raises(StoreError, match=r"cannot be read .*Connect call failed"):
        BagStore.open("http://127.0.0.1:1/s.zarr")


# ---------------------------------------------------------------------- plain Zarr on objects


def test_plain_zarr_on_objects_is_read_and_not_written(tmp_path, memory_url):
    """A store among objects is read as ever; whatever would write it is refused, and says how."""
    store = BagStore.create(tmp_path / "s.zarr", 2, target_names=["y"]).append(ONE, [1.0], ids=[4])
    url = f"{memory_url}/s.zarr"
    fs = fsspec.filesystem("memory")
    fs.put(store.url, url, recursive=True)
    there = BagStore.open(url)
    there.verify()
    assert there.ids().tolist() == [4]
    np.testing.assert_array_equal(there.read()[0], ONE[0])
    before = {path: fs.cat_file(path) for path in fs.find(memory_url)}
    fresh = f"{memory_url}/t.zarr"
    gmm = GMMComponents()
    for write in (
        lambda: there.append(ONE),
        lambda: BagStore.create(fresh, 2),
        lambda: BagStore.create(url, 2, overwrite=True),
        lambda: generate(gmm, fresh, n_bags=3),
        lambda: generate(gmm, url, n_bags=3, overwrite=True),
        lambda: ingest_arrays(iter(ONE), fresh),
        lambda: ingest_arrays(iter(ONE), url, overwrite=True),
    ):
        message = r"can only be read; to write bags there give icechunk\+s3://BUCKET/PATH \(pip"
        with pytest.raises(StoreError, match=message):
            write()
    assert {path: fs.cat_file(path) for path in fs.find(memory_url)} == before
