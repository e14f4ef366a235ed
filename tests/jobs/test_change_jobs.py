"""bags relabel, remove, compact and merge: stores that change on the command line."""

from __future__ import annotations

import json

import pytest

from bagbasis import BagStore
from tests.jobs.running import done, refused, settings


@pytest.mark.parametrize(
    ("target", "label", "message"),
    [
        ("k", "1", "target 'k' has the classes ['red', 'blue'], and the new label of bag 'y' is 1"),
        ("v", "abc", "target 'v' has numbers, and the new label of bag 'y' is 'abc'"),
        ("k", "yes", "key 'labels.y' is True; expected an integer, a number or a string; YAML"),
    ],
)
def test_labels_of_another_kind(target, label, message, tmp_path):
    """A number was taken for the position of a class."""
    names, classes = ["k", "v"], {"k": ["red", "blue"]}
    store = BagStore.create(tmp_path / "a", 1, target_names=names, class_names=classes)
    store.append([[[0.5]]], {"k": ["red"], "v": [1.0]}, ids=["y"])
    code = 2 if label == "yes" else 1
    labels = f"{{y: {label}}}"
    assert message in refused(
        code, "relabel", *settings(url=store.url, target=target, labels=labels)
    )


@pytest.mark.long
def test_a_store_changes(tmp_path):
    """Labels by id, then a removal, a compaction, and a merge of what is left."""
    store = BagStore.create(
        tmp_path / "a", 1, target_names=["k"], class_names={"k": ["red", "blue"]}
    )
    store.append([[[0.5]], [[0.25]]], ["red", "red"], ids=["x", "y"])
    done("relabel", *settings(url=store.url, target="k", labels="{y: blue}"))
    assert "no bag has the id 'z'" in refused(1, "remove", *settings(url=store.url, ids="[x, z]"))
    report = tmp_path / "report.json"
    printed = done("remove", *settings(url=store.url, ids="[x]", report=report))
    assert "until `bags compact`" in printed
    assert json.loads(report.read_text())["n_removed"] == 1
    assert "n_removed" in done("info", store.url)
    done("compact", store.url, *settings(report=report))
    assert json.loads(report.read_text())["n_erased"] == 2
    done("merge", *settings(stores=f"[{store.url}]", url=tmp_path / "b"))
    merged = BagStore.open(tmp_path / "b")
    assert merged.ids().tolist() == ["y"]
    assert merged.targets().tolist() == [[1.0]]
    line = refused(2, "relabel", *settings(url=store.url, target="k", labels="[y]"))
    assert "labels" in line
