"""Killed writers, rival writers, full and read-only disks: what was committed stays, whole."""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
import time
import uuid
from pathlib import Path

import numpy as np
import pytest
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import LocalStore, MemoryStore

from bagbasis import Bags, BagStore, StoreError, WriterBusyError
from bagbasis.core import systems
from bagbasis.data.storage.zarr_writer import WriterStore
from bagbasis.data.store.snapshot import Snapshot
from tests.copied import copied
from tests.data.store.processes import (
    BATCH,
    append_batch,
    append_for_ever,
    fill_the_disk,
    hold,
    model_of,
    running,
    write_without_permission,
)


@copied
def one_batch(url):
    """Make a store of one batch with responses, with objects of sixteen points."""
    append_batch(BagStore.create(url, 2, target_names=["y"], response_dims=3, chunk_points=1))


@pytest.fixture
def store(tmp_path):
    """Return such a store."""
    return one_batch(tmp_path / "s.zarr")


def partials(store):
    """Return the names of temporary files in the store."""
    return sorted(path.name for path in Path(store.url).rglob("*.partial"))


@pytest.mark.long
def test_a_writer_killed_at_any_moment_loses_nothing_committed(store):
    """A kill -9 during an append leaves whole batches; the next append goes on from there."""
    moments = random.Random(0)
    for _ in range(3):
        with running(append_for_ever, store.url) as (writer, pipe):
            pipe.recv()
            time.sleep(moments.uniform(0.0, 0.15))
            writer.kill()
            writer.join()
        fresh = BagStore.open(store.url)
        model_of(fresh.n_bags).check(fresh)
        fresh.verify()
        append_batch(fresh)
        assert partials(fresh) == []
    assert fresh.n_bags >= 4 * BATCH
    model_of(fresh.n_bags).check(BagStore.open(store.url))
    fresh.verify()


@pytest.mark.long
def test_readers_see_whole_commits_while_a_writer_appends(store):
    """Opening, reading and verifying during appends gives a committed length, never a torn one."""
    store = BagStore.create(
        f"{store.url}-2", 2, target_names=["y"], response_dims=3, chunk_points=4
    )
    append_batch(store)
    seen = []
    with running(append_for_ever, store.url) as (_, pipe):
        pipe.recv()
        while len(set(seen)) < 5:
            fresh = BagStore.open(store.url)
            seen.append(fresh.n_bags)
            model_of(fresh.n_bags).check(fresh)
            fresh.verify()
            model_of(store.n_bags).check(store)
    assert seen == sorted(seen)


@pytest.mark.long
def test_a_second_writer_is_refused_until_the_first_is_gone(store):
    """Two processes never write at once; a kill frees the store at once, without its bags."""
    with running(hold, store.url) as (writer, pipe):
        pipe.recv()
        with pytest.raises(WriterBusyError, match="another writer is appending"):
            append_batch(store)
        with pytest.raises(WriterBusyError, match="another writer is appending"):
            BagStore.create(store.url, 2, overwrite=True)
        model_of(BATCH).check(BagStore.open(store.url))
        writer.kill()
        writer.join()
    append_batch(store)
    model_of(2 * BATCH).check(store)
    store.verify()


@pytest.mark.long
def test_a_child_forked_during_an_append_does_not_keep_the_lock(store):
    """The lock is given back at the end of the session, whoever inherited its file."""
    with store.appending():
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
    try:
        append_batch(store)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    store.verify()


@pytest.mark.long
def test_a_full_disk_commits_nothing(store):
    """Wherever the space runs out, the error says that nothing was committed, and that is so."""
    limits = [0, 40, 1100, 1500]
    with running(fill_the_disk, store.url, limits) as (_, pipe):
        output = pipe.recv()
    assert set(output) == {"create", *(f"append {limit}" for limit in limits)}
    for message in output.values():
        assert "(File too large); nothing was committed" in message
    fresh = BagStore.open(store.url)
    model_of(BATCH).check(fresh)
    fresh.verify()
    assert partials(fresh) == []
    append_batch(fresh)
    model_of(2 * BATCH).check(fresh)


@pytest.mark.long
@pytest.mark.parametrize("lock_writable", [False, True])
def test_a_read_only_disk_can_be_read_and_not_written(lock_writable):
    """Without permission to write, reading works and every write says so; nothing changes."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        store = BagStore.create(folder / "s.zarr", 2, target_names=["y"], chunk_points=1)
        append_batch(store)
        for path in [*folder.rglob("*"), folder]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        if lock_writable:
            next(folder.rglob("writer.lock")).chmod(0o666)
        with running(write_without_permission, store.url) as (_, pipe):
            output = pipe.recv()
        assert (output.pop("n_bags"), output.pop("read")) == (BATCH, BATCH)
        for message in output.values():
            assert "(Permission denied); nothing was committed" in message
        model_of(BATCH).check(BagStore.open(store.url))
        store.verify()
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(folder)


@pytest.mark.long
def test_temporary_files_of_killed_writers_are_removed(store):
    """The next writer clears what killed ones left, in every folder, and nothing else."""
    root = Path(store.url)
    for folder in (root, root / "points" / "c" / "0", root / "ids" / "c"):
        (folder / f"0.{uuid.uuid4().hex}.partial").write_bytes(b"torn")
    (root / "mine.partial").write_text("somebody's own")
    with store.appending():
        assert partials(store) == ["mine.partial"]
        late = root / "points" / f"zarr.{uuid.uuid4().hex}.partial"
        late.write_bytes(b"another writer would remove it")
        with pytest.raises(WriterBusyError):
            append_batch(BagStore.open(store.url))
        assert late.exists()
    store.verify()


# ---------------------------------------------------------------------- what Zarr leaves running


def failing_replace(monkeypatch, fails, slow):
    """Make the write of one object fail while the others are slow; returns what was finished."""
    original, finished = WriterStore._replace, []

    def replace(self, root, key, value):
        if key == fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if key in slow:
            time.sleep(0.3)
        original(self, root, key, value)
        finished.append(key)

    monkeypatch.setattr(WriterStore, "_replace", replace)
    return finished


@pytest.mark.long
def test_no_write_comes_after_a_failed_append(store, monkeypatch):
    """When one object of several fails, the others are waited for: the lock covers them."""
    slow = [f"points/c/{i}/0" for i in range(6, 20)]
    finished = failing_replace(monkeypatch, "points/c/6/0", slow)
    with pytest.raises(StoreError, match=r"No space left on device.*nothing was committed"):
        store.append([np.ones((200, 2))], [0.0], ids=[99])
    at_the_end = list(finished)
    time.sleep(0.6)
    assert finished == at_the_end
    monkeypatch.undo()
    append_batch(store)
    model_of(2 * BATCH).check(store)
    store.verify()


CHANGES = {
    "set": ("points/c/0/0", default_buffer_prototype().buffer.from_bytes(b"late")),
    "set_if_not_exists": ("zarr.json", default_buffer_prototype().buffer.from_bytes(b"{}")),
    "delete": ("points/c/0/0",),
    "delete_dir": ("ids/c",),
}


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_a_store_is_guarded(store, monkeypatch, change):
    """Each way to change an object is one error that names it where the filesystem fails.

    It is refused to a writer that lost the store, and once the session is over.
    """
    held = [True]

    def still_ours():
        if not held[0]:
            raise WriterBusyError("lost")

    async def fail(*args):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    key, *value = CHANGES[change]
    out = WriterStore(store.url, MemoryStore(), still_ours)
    sync(getattr(out, change)(key, *value))
    monkeypatch.setattr(MemoryStore, change, fail)
    named = "array 'points', object c/0/0" if "points" in key else f"object '{key}'"
    message = rf"^{store.url}: {named}: (writing|deleting) failed \(Input/output error\); nothing"
    with pytest.raises(StoreError, match=message):
        sync(getattr(out, change)(key, *value))
    held[0] = False
    with pytest.raises(WriterBusyError, match="lost"):
        sync(getattr(out, change)(key, *value))
    out.close()
    with pytest.raises(StoreError, match="the writing session is over"):
        sync(getattr(out, change)(key, *value))


@pytest.mark.parametrize(("change", "key"), [("delete", "a/c/1"), ("delete_dir", "a")])
def test_deleted_objects_are_not_synced(tmp_path, change, key):
    """An object deleted by the session that wrote it is no error when the rest goes to the disk."""
    out = WriterStore(str(tmp_path), LocalStore(tmp_path), lambda: None)
    for name in ("a/c/1", "b/c/1"):
        sync(out.set(name, default_buffer_prototype().buffer.from_bytes(b"new")))
    sync(getattr(out, change)(key))
    out.sync()
    assert [path for path in tmp_path.rglob("1")] == [tmp_path / "b" / "c" / "1"]


@pytest.mark.long
def test_a_session_with_a_failed_write_commits_nothing(store, monkeypatch):
    """A caller that swallows the error of a write cannot commit the rest."""
    failing_replace(monkeypatch, "points/c/8/0", [])

    def swallow_an_error():
        with store.appending() as session, pytest.raises(StoreError, match="No space left"):
            session.write(Bags.from_list([np.ones((200, 2))]), [0.0], [99])

    with pytest.raises(StoreError, match="a write of this session failed"):
        swallow_an_error()
    model_of(BATCH).check(BagStore.open(store.url))
    store.verify()


@pytest.mark.long
def test_a_store_that_vanishes_before_an_append(store, monkeypatch):
    """One error of ours, though the writer has just looked at it."""
    monkeypatch.setattr(Snapshot, "check_ends", lambda it: Path(it.url, "zarr.json").unlink())
    with pytest.raises(StoreError, match=r"writing failed .*; nothing was committed"):
        append_batch(store)


@pytest.mark.long
def test_a_commit_that_fails_is_no_commit(store, monkeypatch):
    """Not even the metadata write itself can fail half-way."""
    failing_replace(monkeypatch, "zarr.json", [])
    with pytest.raises(StoreError, match="nothing was committed"):
        append_batch(store)
    model_of(BATCH).check(BagStore.open(store.url))
    monkeypatch.undo()
    append_batch(store)
    model_of(2 * BATCH).check(store)


# ---------------------------------------------------------------------- power failure


@pytest.mark.long
def test_everything_is_on_the_disk_before_the_commit(store, monkeypatch):
    """Files that replace others are synced before they do, new ones before the counts change."""
    root = Path(store.url)
    synced, dirty, commits = set(), set(), []
    fsync, replace = os.fsync, Path.replace

    def recorded_fsync(fd):
        fsync(fd)
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        synced.add(path)
        dirty.discard(path)

    def recorded_replace(self, target):
        assert self in synced or not target.exists()
        if target == root / "zarr.json":
            commits.append(sorted(dirty))
        if self not in synced:
            dirty.add(target)
        dirty.add(target.parent)
        return replace(self, target)

    monkeypatch.setattr(systems.os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    append_batch(store)
    assert commits == [[]]
    assert dirty == set()
    assert root in synced


@pytest.mark.long
def test_a_disk_that_fails_to_sync_commits_nothing(store, monkeypatch):
    """An error that only shows when data reaches the disk is one before the commit."""

    def fsync(fd):
        if os.readlink(f"/proc/self/fd/{fd}").endswith("points/c/8/0"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(systems.os, "fsync", fsync)
    with pytest.raises(StoreError, match=r"Input/output error.*nothing was committed"):
        append_batch(store)
    monkeypatch.undo()
    model_of(BATCH).check(BagStore.open(store.url))
    append_batch(store)
    model_of(2 * BATCH).check(store)
