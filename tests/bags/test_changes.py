"""Stores that change: bags that are removed, and what others see of it."""

from __future__ import annotations

import numpy as np
import pytest

from bagbasis import BagStore
from bagbasis.errors import DataError, StoreError
from tests.bags.six_bags import make


@pytest.fixture
def store(url, model):
    """Make the store of six bags, locally and kept by Icechunk."""
    return make(url, model)


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
        store.append(model.bags[:1], np.zeros((1, len(store.target_names))), ids[:1])


def test_who_began_before_sees_what_was(store, model):
    """A reader of the moment before keeps bags and labels, though the log has grown."""
    before = BagStore.open(store.url)
    store.remove(model.ids[:2])
    store.relabel(store.target_names[0], {model.ids[5]: 7.25})
    assert before.targets().tolist() != store.targets().tolist()
    model.check(before)


def test_a_store_without_changes_has_the_attributes_of_before(store, model):
    """Older versions read a store of which nothing was removed, and refuse the others."""
    assert "n_changes" not in store.meta.to_attributes()["bagbasis"]
    store.remove(model.ids[:1])
    assert store.meta.to_attributes()["bagbasis"]["n_changes"] == 1


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


def test_labels_change_as_often_as_one_likes(store, model):
    """The last label holds, for the named target alone; a removed bag gets none."""
    y, ids = store.target_names[0], model.ids
    store.relabel(y, {ids[0]: 1.5, ids[3]: 2.5}).relabel(y, {ids[3]: -4.0}).remove(ids[:1]).verify()
    model.changed([0], {3: -4.0}).check(BagStore.open(store.url))
    with pytest.raises(DataError, match="was removed"):
        store.relabel(y, {ids[1]: 0.0, ids[0]: 1.0})
    model.changed([0], {3: -4.0}).check(store)


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
    store = BagStore.create(tmp_path / "s", 1, ["kind", "size"], class_names=names)
    store.append([[[0.5]]] * 2, {"kind": ["cat", ""], "size": [1.0, 2.0]}, ["a", "b"])
    with pytest.raises(DataError, match=message):
        store.relabel(target, {"a": value})
    assert store.relabel("kind", {"a": "dog", "b": "cat"}).targets().tolist() == [[1, 1], [0, 2]]


def test_all_bags_may_go(store, model):
    """A store without present bags is whole, grows, and is told apart from an empty one."""
    store.remove(model.ids).verify()
    assert store.n_removed == store.n_bags == len(model.ids)
    assert not store.present().any()


def test_a_damaged_log_is_found(store, model):
    """A change of a bag that is not there is named by verify."""
    with store.appending() as session:
        session.change(np.array([[99.0, -1.0, 0.0]]))
    with pytest.raises(StoreError, match="'changes', chunk 0: change 0 is none of a bag there is"):
        store.verify()
