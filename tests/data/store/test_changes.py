"""Stores that change: bags that are removed, and what others see of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bagbasis import BagStore, DataError, ParameterError, StoreError, merge_stores
from bagbasis.data.store.schema import TARGETS, points_of
from tests.data.store.six_bags import make


@pytest.fixture
def store(url):
    """Make the store of six bags, locally and kept by Icechunk."""
    return make(url)


@pytest.mark.long
def test_a_removed_bag_reads_as_empty_and_others_stay_where_they_are(store, model):
    """Ids, indices and counts stay; who read before sees what was, and whoever opens, what is."""
    before = BagStore.open(store.url)
    ids = [model.ids[i] for i in (1, 4)]
    store.remove(ids).remove(ids[:1]).verify()
    after = model.changed(removed=[1, 4])
    for seen in (store, BagStore.open(store.url), before.refresh()):
        after.check(seen)
        after.check(seen, 1, 5)
    assert "n_changes=2" in repr(store)
    with pytest.raises(DataError, match="duplicate"):
        store.append(model.bags[:1], np.zeros((1, len(store.target_names))), ids=ids[:1])


def test_ids_are_compared_whole(tmp_path):
    """Also after a NUL, where numpy takes its texts for equal: the bag that is named goes."""
    store = BagStore.create(tmp_path / "s.zarr", 1)
    store.append([np.full((1, 1), i / 4) for i in range(3)], ids=["a\0b1", "a\0b0", "a"]).verify()
    assert store.remove(["a\0b0"]).read().sizes.tolist() == [1, 0, 1]


def test_a_store_without_changes_has_the_attributes_of_before(store, model):
    """Older versions read a store of which nothing was removed, and refuse the others."""
    assert "n_changes" not in store.meta.to_attributes()["bagbasis"]
    store.remove(model.ids[:1])
    assert store.meta.to_attributes()["bagbasis"]["n_changes"] == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (lambda ids: [ids[0], "nobody" if isinstance(ids[0], str) else 99], "no bag has the id"),
        (lambda ids: [ids[0], ids[1], ids[0]], "is given twice"),
        (lambda ids: [0 if isinstance(ids[0], str) else "a"], "the store has .* ids, got"),
    ],
)
def test_refused_removals_change_nothing(store, model, ids, message):
    """Unknown ids, ids given twice, ids of another kind."""
    with pytest.raises(DataError, match=message):
        store.remove(ids(model.ids))
    model.check(BagStore.open(store.url))
    model.check(store.remove([]))


@pytest.mark.long
def test_labels_change_as_often_as_one_likes(store, model):
    """The last label holds, for the named target alone; a removed bag gets none."""
    y, ids = store.target_names[0], model.ids
    store.relabel(y, {ids[0]: 1.5, ids[3]: 2.5}).relabel(y, {ids[3]: -4.0}).remove(ids[:1]).verify()
    model.changed([0], {3: -4.0}).check(BagStore.open(store.url))
    with pytest.raises(DataError, match="was removed"):
        store.relabel(y, {ids[1]: 0.0, ids[0]: 1.0})
    model.changed([0], {3: -4.0}).check(store)


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "value", "message"),
    [
        ("kind", np.nan, "gets no label"),
        ("kind", "fish", "unknown class 'fish'"),
        ("kind", 2, "classes are 0 to 1"),
        ("size", np.inf, "is infinite"),
        ("size", "large", "expected numbers"),
        ("colour", 1.0, "no target 'colour'"),
    ],
)
def test_refused_labels_change_nothing(tmp_path, target, value, message):
    """NaN, an unknown class, infinity, a text, a target that is not there."""
    names = {"kind": ["cat", "dog"]}
    store = BagStore.create(tmp_path / "s", 1, target_names=["kind", "size"], class_names=names)
    store.append([[[0.5]]] * 2, {"kind": ["cat", ""], "size": [1.0, 2.0]}, ids=["a", "b"])
    with pytest.raises(DataError, match=message):
        store.relabel(target, {"a": value})
    assert store.relabel("kind", {"a": "dog", "b": "cat"}).targets().tolist() == [[1, 1], [0, 2]]


def test_a_number_that_is_another_class_is_refused(tmp_path):
    """The code 1 stands for "2", and somebody who gives 1 means "1"."""
    names = {"grade": ["1", "2", "3"], "rest": ["0", "1"]}
    store = BagStore.create(tmp_path / "s", 1, target_names=["grade", "rest"], class_names=names)
    store.append([[[0.5]]] * 2, {"grade": ["3", "3"], "rest": ["0", "0"]}, ids=["a", "b"])
    with pytest.raises(DataError, match="1 is the code of class '2', and a class is called '1'"):
        store.relabel("grade", {"a": 1})
    assert store.relabel("grade", {"a": "1"}).targets()[:, 0].tolist() == [0, 2]
    assert store.relabel("grade", {"b": 0}).targets()[:, 0].tolist() == [0, 0]
    assert store.relabel("rest", {"a": 1}).targets()[:, 1].tolist() == [1, 0]


def test_all_bags_may_go(store, model):
    """A store without present bags is whole, grows, and is told apart from an empty one."""
    store.remove(model.ids).verify()
    assert store.n_removed == store.n_bags == len(model.ids)
    assert not store.present().any()


# ---------------------------------------------------------------------- compacting, merging


def bytes_of(url) -> int:
    """Return the bytes of all files of a store, locally or kept by Icechunk."""
    folder = Path(str(url).removeprefix("icechunk+file://"))
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.long
def test_compacting_deletes_what_removed_bags_left(store, model):
    """Points, responses and labels are NaN; all else reads as before, also after an append."""
    store.relabel(store.target_names[0], {model.ids[1]: 0.5}).remove([model.ids[i] for i in (1, 4)])
    store.compact().verify()
    model.changed([1, 4]).check(BagStore.open(store.url))
    for array in points_of(store.meta):
        offsets = store.read_array(array.offsets, 0, store.n_bags + 1)
        values = store.read_array(array, 0, array.rows(store.meta))
        gone = np.repeat(~store.present(), np.diff(offsets))
        np.testing.assert_array_equal(np.isnan(values).all(axis=1), gone)
    assert np.isnan(store.read_array(TARGETS, 0, store.n_bags)[[1, 4]]).all()
    assert np.isnan(store.changes.rows[0, 2])
    store.remove(model.ids[:1]).compact().compact().verify()
    model.changed([0, 1, 4]).check(store)


@pytest.mark.long
def test_a_compacted_store_is_smaller(url):
    """A large bag that cannot be compressed is off the disk; nothing else changes."""
    big = np.random.default_rng(0).random((200_000, 2))
    store = BagStore.create(url, 2, dtype=np.float64, chunk_points=5000)
    store.append([big, [[0.5, 0.25]]], ids=["big", "small"]).remove(["big"])
    before = BagStore.open(url)
    assert bytes_of(url) > big.nbytes / 2
    store.compact()
    assert bytes_of(url) < big.nbytes / 20
    assert store.read()[1].tolist() == [[0.5, 0.25]]
    before.meta = replace(before.meta, n_changes=0)  # whoever began before the removal
    with pytest.raises(StoreError):
        before.read()


@pytest.mark.long
def test_merging_copies_what_is_there(store, model, tmp_path):
    """One store behind the other without removed bags, in a box that holds both."""
    y = store.target_names[0]
    store.relabel(y, {model.ids[2]: 0.25}).remove(model.ids[:1])
    classes = store.meta.class_names
    options = {"response_dims": store.response_dims, "dtype": store.dtype}
    other = BagStore.create(
        tmp_path / "o",
        store.n_dims,
        target_names=store.target_names,
        class_names=classes,
        **options,
    )
    bag = np.zeros((3, store.n_dims))
    other.append([bag], np.ones((1, len(store.target_names))), ids=[model.ids[0]])
    merged = merge_stores([store, other.url], tmp_path / "m")
    merged.verify()
    np.testing.assert_array_equal(merged.targets()[:-1], store.targets()[1:])
    assert merged.ids().tolist() == [*model.ids[1:], model.ids[0]]
    assert merged.read()[len(model.ids) - 1].tolist() == bag.tolist()
    assert merged.n_points == sum(map(len, model.bags[1:])) + 3
    pairs = zip(store.box.bounds, merged.box.bounds, strict=True)
    assert all(a[0] >= b[0] and a[1] <= b[1] for a, b in pairs)
    with pytest.raises(DataError, match="duplicate bag id"):
        merge_stores([other, other], tmp_path / "twice")
    target = merge_stores([other], tmp_path / "kept")
    url = re.escape(store.url)
    with pytest.raises(DataError, match=f"{url} and {url} have it; remove it from one"):
        merge_stores([store, store], target.url, overwrite=True)
    assert BagStore.open(target.url).n_bags == 1  # nothing is replaced by a merge that fails
    (tmp_path / "again").symlink_to(other.url)
    with pytest.raises(ParameterError, match="is one of the stores to merge; give another place"):
        merge_stores([store, other], tmp_path / "again", overwrite=True)
    assert BagStore.open(other.url).n_bags == 1
    third = BagStore.create(tmp_path / "t", store.n_dims, target_names=["z"], **options)
    with pytest.raises(DataError, match="its target_names is"):
        merge_stores([store, third], tmp_path / "n")


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_labels_that_were_deleted_meanwhile_are_no_missing_labels(tmp_path, dtype):
    """A reader that began before a removal and a compaction gets an error, and not NaN.

    Bags that stayed, and bags that never had a label, are read as before.
    """
    store = BagStore.create(
        tmp_path / "s.zarr", 1, target_names=["y", "z"], box=[(0, 9)], dtype=dtype
    )
    store.append([[[1.0]]] * 5, {"y": [0.0, 1.0, 2.0, 3.0, np.nan], "z": [0.0] * 5})
    store.relabel("z", {1: 7.0}).relabel("y", {3: 3.5})
    before, labels = BagStore.open(store.url), store.targets()
    store.remove([1, 3])
    np.testing.assert_array_equal(before.targets(), labels)
    after = BagStore.open(store.url)
    assert store.n_points == 3
    store.compact()
    assert store.n_points == 3
    assert np.isnan(store.changes.rows[:2, 2]).all()
    for names in (None, ["y"], ["z"]):
        with pytest.raises(StoreError, match="bag 1 was removed and the store was compacted"):
            before.targets(names=names)
    with pytest.raises(StoreError, match="bag 3 was removed and the store was compacted"):
        before.targets(2, 5)
    np.testing.assert_array_equal(before.targets(4, 5), labels[4:5])
    np.testing.assert_array_equal(before.targets(0, 1), labels[:1])
    assert np.isnan(after.targets()[[1, 3]]).all()  # it knows that they were removed
    assert np.isnan(BagStore.open(store.url).targets()[[1, 3]]).all()
