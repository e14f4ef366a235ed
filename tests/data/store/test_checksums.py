"""Checksums of a store's attributes, and of the rows that belong to it."""

from __future__ import annotations

import json
import random
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
import zarr

from bagbasis import BagStore, StoreError, merge_stores
from bagbasis.data.store.checksums import checksum_of_rows, replaced
from bagbasis.data.store.schema import STORE_CHECKSUM, STORE_KEY, arrays_of
from tests.copied import copied
from tests.data.store.six_bags import GOOD, edit_attributes, make, two_bags

KINDS = ("float32", "float64", "uint16", "uint8")


@copied
def store_of(url, dtype="float32", seed=0, ids=None):
    """Make a store of nine bags, with classes and responses; every store has the same shape."""
    rng = np.random.default_rng(seed)
    store = BagStore.create(
        url,
        2,
        target_names=["y", "c"],
        box=[(0, 255)] * 2,
        response_dims=1,
        response_box=[(0, 255)],
        class_names={"c": ["red", "blue"]},
        dtype=dtype,
        chunk_points=2,
    )
    bags = [rng.integers(0, 255, (n, 2)).astype(float) for n in (5, 30, 1, 40, 16, 8, 2, 2, 2)]
    targets = {"y": rng.normal(size=9), "c": rng.integers(0, 2, 9)}
    responses = [rng.integers(0, 255, (3, 1)).astype(float) for _ in bags]
    store.append(bags, targets, ids=ids and [*ids], responses=responses)


def attributes(store):
    """Return the attributes of ours, as they are on the disk."""
    return json.loads((Path(store.url) / "zarr.json").read_text())["attributes"][STORE_KEY]


# ------------------------------------------------------------------ attributes


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(box=[[0, 255], [0, 254]]),
        lambda a: a.update(target_names=["x", "c"]),
        lambda a: a["class_names"].update(c=["rad", "blue"]),
        lambda a: a.update(source={"job": "other"}),
        lambda a: a["checksums"].update(points="00000000"),
        lambda a: a.update({STORE_CHECKSUM: "00000000"}),
        lambda a: a.update({STORE_CHECKSUM: 17}),
        lambda a: a.update({STORE_CHECKSUM: {}}),
        lambda a: a.pop("checksums"),
    ],
)
def test_changed_attributes_are_refused(tmp_path, change):
    """Whatever changed behind the store's back, it is noticed when the store is opened."""
    store = store_of(tmp_path / "s.zarr")
    edit_attributes(store, change, checksum=False)
    with pytest.raises(StoreError, match=r"damaged bag store attributes \(their checksum is"):
        BagStore.open(store.url)
    with pytest.raises(StoreError, match="their checksum is"):
        store.append(two_bags(), GOOD)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_no_flip_of_the_attributes_changes_anything(tmp_path, dtype):
    """Each flipped bit of the root's metadata is found, or the store is what it was."""
    store = store_of(tmp_path / "s.zarr", dtype)
    store.remove([2])
    meta, path = store.meta, Path(store.url) / "zarr.json"
    whole = path.read_bytes()
    rng = random.Random(0)
    for _ in range(80):
        at, bit = rng.randrange(len(whole)), rng.randrange(8)
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            fresh = BagStore.open(store.url)
            fresh.verify()
        except StoreError:
            continue
        assert fresh.meta == meta, (at, bit)
    path.write_bytes(whole)


@pytest.mark.long
def test_what_other_readers_are_told_is_verified(tmp_path):
    """The attributes of the convention say of the arrays what the store's own attributes say."""
    store = store_of(tmp_path / "s.zarr", "uint16")
    group = zarr.open_group(store.url, mode="r+")
    ragged = group.attrs["ragged"]
    group.attrs["ragged"] = {**ragged, "arrays": ragged["arrays"][:1]}
    with pytest.raises(StoreError, match="attribute 'ragged' says something else"):
        store.verify()
    group.attrs["ragged"] = ragged
    store.verify()
    del group.attrs["ragged"]
    with pytest.raises(StoreError, match="only one of the attributes"):
        store.verify()


def test_sources_of_any_kind_are_read_back(tmp_path):
    """What a caller says of the origin may hold keys and numbers that JSON changes."""
    store = BagStore.create(tmp_path / "s.zarr", 1)
    source = {"numbers": {10: 0.1, 9: 1e300}, "list": (1, (2.0, None)), "text": "ä\ud800\n"}
    with store.appending(source) as session:
        session.write(two_bags(n_dims=1))
    fresh = BagStore.open(store.url)
    assert fresh.meta.source["numbers"] == {"10": 0.1, "9": 1e300}
    fresh.verify()


# ------------------------------------------------------------------ arrays and their store


@pytest.mark.long
@pytest.mark.parametrize(
    ("dtype", "whole"),
    [("float32", True), ("float64", False), ("uint16", True), ("uint8", False)],
)
def test_arrays_of_another_store_are_found(tmp_path, dtype, whole):
    """An array copied from a store of the same shape is named, with its metadata or without."""
    store, other = (store_of(tmp_path / f"{seed}.zarr", dtype, seed) for seed in (0, 1))
    for array in arrays_of(store.meta):
        name = array.name if whole else f"{array.name}/c"
        shutil.move(Path(store.url, name), tmp_path / "kept")
        shutil.copytree(Path(other.url, name), Path(store.url, name))
        fresh = BagStore.open(store.url)
        if array.name.endswith("offsets") or array.name == "ids":  # the same in both
            fresh.verify()
        else:
            with pytest.raises(StoreError, match=f"array '{array.name}' holds other rows"):
                fresh.verify()
        shutil.rmtree(Path(store.url, name))
        shutil.move(tmp_path / "kept", Path(store.url, name))
    store.verify()


@pytest.mark.long
@pytest.mark.parametrize(
    ("url", "dtype"),
    [*(("path", kind) for kind in KINDS), ("icechunk", "float32"), ("icechunk", "uint16")],
    indirect=["url"],
)
def test_checksums_follow_every_change(url, dtype):
    """Appends, changes, compactions and merges leave checksums of what is read."""
    store = BagStore.create(
        url, 2, target_names=["y"], box=[(0, 255)] * 2, dtype=dtype, chunk_points=2
    )
    store.verify()
    rng = np.random.default_rng(0)
    for round_ in range(2):
        bags = [rng.integers(0, 255, (n, 2)).astype(float) for n in (20, 33, 1, 7)]
        store.append(bags, rng.normal(size=4))
        store.relabel("y", {4 * round_: 1.0, 4 * round_ + 1: 2.0})
        store.verify()
        store.remove([4 * round_ + 1])
    store.verify()
    store.compact()
    store.verify()
    assert set(store.meta.checksums) == {a.name for a in arrays_of(store.meta)}
    copy = store.url + ".copy" if "://" not in store.url else f"{store.url}-copy"
    merged = merge_stores([store], copy)
    merged.verify()
    merged.remove([0])
    merged.compact()
    merged.verify()


@pytest.mark.long
def test_a_compaction_that_stopped_anywhere_verifies(tmp_path, monkeypatch):
    """Deleted rows count as fill values from the commit on, whether they are deleted or not."""
    store = store_of(tmp_path / "s.zarr")
    store.relabel("y", {1: 5.0})
    store.remove([1, 4])

    class KilledError(Exception):
        pass

    written = []

    def erase(erasure, array, n_rows):
        if len(written) == 2:
            raise KilledError
        written.append(erasure)
        real(erasure, array, n_rows)

    real = __import__("bagbasis.data.store.writer", fromlist=["erase"]).erase
    monkeypatch.setattr("bagbasis.data.store.writer.erase", erase)
    with pytest.raises(KilledError):
        store.compact()
    monkeypatch.undo()
    BagStore.open(store.url).verify()
    BagStore.open(store.url).remove([0])
    BagStore.open(store.url).verify()
    BagStore.open(store.url).compact().verify()
    assert not np.isfinite(zarr.open_array(store.url, path="points")[5:35]).any()


@pytest.mark.long
def test_stores_without_checksums_are_read_as_before(tmp_path):
    """A store of an earlier version verifies; what is appended to it verifies too."""
    store = make(tmp_path / "s.zarr")
    edit_attributes(store, lambda a: (a.pop("checksums"), a.pop(STORE_CHECKSUM)), checksum=False)
    old = BagStore.open(store.url)
    old.verify()
    assert old.meta.checksums == {}
    old.append(two_bags(), GOOD)
    old.remove([11])
    old.compact()
    BagStore.open(store.url).verify()
    assert set(attributes(store)["checksums"]) == {"changes"}  # the others were never known
    edit_attributes(store, lambda a: a.update(n_dims=3), checksum=False)
    with pytest.raises(StoreError, match="their checksum is"):
        BagStore.open(store.url)


@pytest.mark.parametrize("n_after", [0, 1, 7, 1000, 2**40])
def test_the_checksum_of_replaced_rows(n_after):
    """Rows are exchanged within a checksum without reading what is behind them."""
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(2, 5, 3))
    before = rng.normal(size=(4, 3))
    crc, crc_new = (checksum_of_rows(rows, checksum_of_rows(before)) for rows in (old, new))
    if n_after <= 1000:
        tail = rng.bytes(n_after)
        crc, crc_new = zlib.crc32(tail, crc), zlib.crc32(tail, crc_new)
        assert replaced(crc, old, new, n_after) == crc_new
    back = replaced(replaced(crc, old, new, n_after), new, old, n_after)
    assert back == crc
