"""Rows next to a store: a block is written atomically, and never of other data."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest
import zarr

from bagbasis import BagStore, StoreError, WriterBusyError
from bagbasis.models.tuning.cache import RowCache, discard_others, store_identity
from tests.data.storage.objects import among_objects
from tests.oracles.labelled import labelled_bags, stored

N, LENGTH = 70, 32
ROOT = Path(__file__).parents[3]
NAME = f"{'0' * 16}-{'1' * 16}.zarr"


def cache_at(folder, dtype="float32"):
    return RowCache(f"{folder}/{NAME}", N, 3, LENGTH, dtype)


def rows_of(block, dtype="float32"):
    rng = np.random.default_rng(block)
    rows = rng.standard_normal((min(LENGTH, N - block * LENGTH), 3)).astype(dtype)
    rows[::5] = np.nan
    return rows


def check(actual, block, dtype="float32"):
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, rows_of(block, dtype))


def objects(folder):
    return sorted((Path(folder) / NAME / "rows" / "c").glob("*/0"))


def test_two_that_make_a_cache_at_once(tmp_path, monkeypatch):
    """The second is one line of ours: one that finds the array made, and one that made it and
    finds the group emptied by the other."""
    open_group, update = zarr.open_group, zarr.Group.update_attributes

    def overtaken(store, **options):
        group = open_group(store, **options)
        group.create_array("rows", shape=(1,), dtype="f4")
        return group

    def emptied(group, values):
        updated = update(group, values)
        shutil.rmtree(tmp_path / NAME / "rows")
        return updated

    for owner, name, meanwhile in (
        (zarr, "open_group", overtaken),
        (zarr.Group, "update_attributes", emptied),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, meanwhile)
            with pytest.raises(WriterBusyError, match="another tune of the same begins"):
                cache_at(tmp_path).open()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("remote", [False, True])
def test_blocks_come_back_and_missing_ones_are_missing(tmp_path, remote, dtype):
    """What was written is read by another process's copy, bags without a target among it; the
    rest is None, here and elsewhere."""
    folder = f"memory://{uuid.uuid4().hex}" if remote else tmp_path
    written = cache_at(folder, dtype).open()
    written.write(0, rows_of(0, dtype))
    written.write(2, rows_of(2, dtype))
    again = cache_at(folder, dtype).open()
    check(again.read(0), 0, dtype)
    check(again.read(2), 2, dtype)
    assert again.read(1) is None
    cache_at(folder).remove()
    assert cache_at(folder).open().read(0) is None


@pytest.mark.parametrize("harm", ["removed", "empty", "cut", "flipped"])
def test_damaged_block_counts_as_missing(tmp_path, harm):
    """A block with a lost, emptied, cut or altered object is not read, and can be written anew."""
    cache_at(tmp_path).open().write(0, rows_of(0))
    cache_at(tmp_path).open().write(1, rows_of(1))
    (damaged, _) = objects(tmp_path)
    content = damaged.read_bytes()
    damaged.unlink()
    if harm != "removed":
        flipped = bytes([content[40] ^ 1])
        new = {"empty": b"", "cut": content[:-9], "flipped": content[:40] + flipped + content[41:]}
        damaged.write_bytes(new[harm])
    opened = cache_at(tmp_path).open()
    assert opened.read(0) is None
    check(opened.read(1), 1)
    opened.write(0, rows_of(0))
    check(opened.read(0), 0)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_what_is_missing_of_many_blocks_is_made_at_once(tmp_path, is_damaged):
    """Only the rows of missing and damaged blocks are asked for, by their places, and kept."""
    opened, made = cache_at(tmp_path).open(), []

    def make(places):
        made.append(places)
        return everything[places]

    everything = np.concatenate([rows_of(block) for block in range(3)])
    opened.write(1, rows_of(1))
    if is_damaged:
        (damaged,) = objects(tmp_path)
        damaged.write_bytes(damaged.read_bytes()[:-9])
    for _ in range(2):
        np.testing.assert_array_equal(opened.filled(range(3), make), everything)
    (places,) = made
    selected = range(0) if is_damaged else range(LENGTH, 2 * LENGTH)
    assert places.tolist() == [i for i in range(N) if i not in selected]
    np.testing.assert_array_equal(opened.filled(range(1, 3), make), everything[LENGTH:])


KILLED = """
import os, sys
from pathlib import Path
import numpy as np
from bagbasis.models.tuning.cache import RowCache

opened = RowCache(sys.argv[1], *map(int, sys.argv[2:5]), "float32").open()
replace = Path.replace
def dying(path, target):
    if "rows/c" in str(target):
        os._exit(9)
    return replace(path, target)
Path.replace = dying
opened.write(0, np.ones((32, 3), np.float32))
"""


@pytest.mark.long
def test_killed_writer_leaves_no_block(tmp_path):
    """A process that dies with the object written, but not in its place, leaves no block."""
    arguments = [str(tmp_path / NAME), *map(str, (N, 3, LENGTH))]
    died = subprocess.run([sys.executable, "-c", KILLED, *arguments], cwd=ROOT, check=False)
    assert died.returncode == 9
    assert not objects(tmp_path)
    opened = cache_at(tmp_path).open()
    assert opened.read(0) is None
    opened.write(0, rows_of(0))
    check(opened.read(0), 0)


@pytest.mark.parametrize("text", ["", "{", "{}"])
def test_cache_with_damaged_metadata_is_made_anew(tmp_path, text):
    """Metadata that a killed maker left half-written are replaced, not refused."""
    cache_at(tmp_path).open().write(0, rows_of(0))
    (tmp_path / NAME / "zarr.json").write_text(text)
    opened = cache_at(tmp_path).open()
    assert opened.read(0) is None
    opened.write(0, rows_of(0))
    check(opened.read(0), 0)


def test_full_disk_is_one_clear_error(tmp_path, monkeypatch):
    """The refusal names the cache, the reason, and what to do."""
    opened = cache_at(tmp_path).open()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StoreError, match=rf"{NAME}: .*No space left.*checkpoints"):
        opened.write(0, rows_of(0))
    (tmp_path / "file").write_text("")
    monkeypatch.undo()
    with pytest.raises(StoreError, match=r"file.*cannot be kept there"):
        cache_at(tmp_path / "file").open()


def test_identity_goes_with_the_data(tmp_path):
    """Equal for the same store opened again; another after an append, and after making it anew
    with as many bags and points."""
    bags, y = labelled_bags(20)
    store = stored(tmp_path / "s.zarr", bags, y)
    first = store_identity(store)
    assert store_identity(BagStore.open(store.url)) == first
    store.append(bags[:3], y[:3])
    second = store_identity(store)
    assert second != first
    with pytest.raises(FileNotFoundError):
        (tmp_path / "s.zarr.cache").stat()
    again = stored(tmp_path / "s.zarr", bags, y, overwrite=True)
    assert (again.n_bags, again.n_points) == (20, sum(len(bag) for bag in bags))
    assert store_identity(again) not in (first, second)


@pytest.mark.parametrize("kept_by", ["zarr", "icechunk"])
def test_identity_of_a_remote_store(tmp_path, kept_by):
    """A store elsewhere has one too, and it changes with an append."""
    bags, y = labelled_bags(5)
    local = stored(tmp_path / "s.zarr", bags, y)
    store = (
        among_objects(local, f"memory://{uuid.uuid4().hex}/s.zarr")
        if kept_by == "zarr"
        else stored(f"icechunk+file://{tmp_path}/i", bags, y)
    )
    first = store_identity(store)
    assert store_identity(BagStore.open(store.url)) == first
    grown = (
        among_objects(local.append(bags, y), store.url)
        if kept_by == "zarr"
        else store.append(bags, y)
    )
    assert store_identity(grown) != first


def test_only_caches_of_other_data_are_discarded(tmp_path):
    """Those of this data stay, and so does everything that is no cache."""
    names = [f"{'a' * 16}-{'b' * 16}.zarr", f"{'c' * 16}-{'b' * 16}.zarr", "mine.zarr"]
    for name in names:
        (tmp_path / name).mkdir()
    discard_others(str(tmp_path), "a" * 16)
    assert sorted(path.name for path in tmp_path.iterdir()) == [names[0], names[2]]
    discard_others(str(tmp_path / "nothing"), "a" * 16)
