"""Damaged models and pointers of a registry are refused by name, and can be put right."""

from __future__ import annotations

import json
import os
from pathlib import Path

import fsspec
import numpy as np
import pytest

from bagbasis import ModelError
from bagbasis.models.saving import MODEL_CHECKSUM
from bagbasis.operations import Registry
from bagbasis.operations.registry import registry as registry_module
from bagbasis.operations.registry.registry import REGISTRATION
from tests.models.edited import edit_attributes, edit_state
from tests.models.predicting import BAGS, fitted


def damage(registry, name, where):
    """Flip a bit of the coefficients, lose them, or change the description of a model."""
    fs, root = fsspec.core.url_to_fs(registry.model_url(name))
    chunk = next(path for path in fs.find(f"{root}/coef") if "/c/" in path)
    text = fs.cat_file(f"{root}/zarr.json")
    if where == "flipped":
        content = bytearray(fs.cat_file(chunk))
        content[len(content) // 2] ^= 1
        fs.pipe_file(chunk, bytes(content))
    elif where == "lost":
        fs.rm_file(chunk)
    elif where == "attributes lost":
        fs.rm_file(f"{root}/zarr.json")
    elif where == "attributes torn":
        fs.pipe_file(f"{root}/zarr.json", text[: len(text) // 2])
    elif where == "another alpha":  # with its checksum: the name of the model does not fit
        edit_state(registry.model_url(name), lambda state: state.update(alpha=0.7))
    else:
        edit_attributes(
            registry.model_url(name), lambda values: values["bagbasis_model"].update(alpha=0.7)
        )


DAMAGES = [
    "flipped",
    "lost",
    "attributes lost",
    "attributes torn",
    "another alpha",
    "alpha without its checksum",
]


@pytest.mark.long
@pytest.mark.parametrize("where", DAMAGES)
def test_a_damaged_model_is_not_promoted_and_can_be_put_right(registry, where):
    """Not by promote, not by rollback; registering the same model again replaces it."""
    bad, good = registry.register(fitted("one target")), registry.register(fitted("classes"))
    registry.promote(bad)
    registry.promote(good)
    damage(registry, bad, where)
    reason = "no model" if where == "attributes lost" else "damaged model"
    for change in (lambda: registry.promote(bad), registry.rollback):
        with pytest.raises(ModelError, match=reason) as caught:
            change()
        assert registry.url in str(caught.value)
    assert registry.current() == good
    if where == "attributes torn":
        assert [r.name for r in registry.list() if r.damage is not None] == [bad]
    assert registry.register(fitted("one target")) == bad
    assert registry.rollback() == bad
    np.testing.assert_array_equal(
        registry.load_current().predict(BAGS), fitted("one target").predict(BAGS)
    )
    assert len(registry.list()) == 2
    if "memory" not in registry.url:
        assert {path.name for path in (Path(registry.url) / "models").iterdir()} == {
            f"{bad}.zarr",
            f"{good}.zarr",
        }


def test_what_was_written_is_read_back(registry, monkeypatch):
    """A place that does not give back what was written is found out before anybody relies on it."""
    publish = registry_module.publish

    def publish_badly(staged, url, **options):
        publish(staged, url, **options)
        damage(registry, Path(url).stem, "lost")

    with monkeypatch.context() as patch:
        patch.setattr(registry_module, "publish", publish_badly)
        with pytest.raises(ModelError, match="after it was written; delete that folder"):
            registry.register(fitted("one target"))
    registry.promote(registry.register(fitted("one target")))


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lambda text: text[:-20], "char"),
        (lambda text: b"", "Expecting value"),
        (lambda text: b"[]", "a list"),
        (lambda text: b"\x80{", "codec"),
        (lambda text: text.replace(b'"promote"', b'"rollback"'), "cannot have followed"),
        (lambda text: text.replace(b'"current": "', b'"current": "0'), "its history ends at"),
        (lambda text: text.replace(b'"at": ', b'"action": '), "TypeError"),
        (lambda text: text.replace(b'"at": "2', b'"at": "3'), "does not match its checksum"),
    ],
)
def test_a_damaged_pointer(registry, content, reason):
    """It is never taken for an empty one, and never overwritten."""
    name = registry.register(fitted("one target"))
    registry.promote(name)
    fs, path = fsspec.core.url_to_fs(f"{registry.url}/champion.json")
    damaged = content(fs.cat_file(path))
    fs.pipe_file(path, damaged)
    calls = [registry.current, registry.list, registry.rollback, registry.load_current]
    for call in [*calls, lambda: registry.promote(name)]:
        with pytest.raises(ModelError, match=rf"champion\.json: damaged \(.*{reason}") as caught:
            call()
        assert "try again" in str(caught.value)
        assert "delete" not in str(caught.value)
    assert fs.cat_file(path) == damaged
    fs.rm_file(path)
    registry.promote(name)
    assert registry.current() == name


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"format_version": 1', b'"format_version": 2'),
        (b'"at"', b'"zz_reason": "", "at"'),
        (b'"at"', b'"when"'),
    ],
)
def test_a_pointer_of_a_newer_version(registry, old, new):
    """It is whole: this version says what it does not know, and leaves it as it is."""
    name = registry.register(fitted("one target"))
    registry.promote(name)
    fs, path = fsspec.core.url_to_fs(f"{registry.url}/champion.json")
    newer = fs.cat_file(path).replace(old, new)
    fs.pipe_file(path, newer)
    for call in (registry.current, registry.rollback, lambda: registry.promote(name)):
        with pytest.raises(ModelError, match="a newer version of bagbasis wrote it") as caught:
            call()
        for word in ("damaged", "restore", "delete"):
            assert word not in str(caught.value)
    assert fs.cat_file(path) == newer


def test_a_model_of_a_newer_version_is_not_registered_again(registry):
    """Its parameters are named, and no advice to replace it is given."""
    name = registry.register(fitted("one target"))
    edit_state(registry.model_url(name), lambda state: state["params"].update(zz_new=1))
    with pytest.raises(ModelError, match="bagbasis wrote it, with 'zz_new'") as caught:
        registry.promote(name)
    assert str(caught.value).endswith("update bagbasis; the champion stays")


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><title>Sign in</title>", b"\n<HTML>"])
def test_a_page_in_place_of_a_pointer(registry, page):
    """It is named as a page of HTML, in no place is deleting the history advised."""
    name = registry.register(fitted("one target"))
    registry.promote(name)
    fs, path = fsspec.core.url_to_fs(f"{registry.url}/champion.json")
    fs.pipe_file(path, page)
    for call in (registry.current, registry.list, lambda: registry.promote(name)):
        with pytest.raises(ModelError, match=r"champion\.json: .*a page of HTML.*try again"):
            call()
    assert fs.cat_file(path) == page


def test_a_pointer_that_is_a_pipe(tmp_path):
    """It is refused at once; nobody waits for a writer that never comes."""
    registry = Registry(tmp_path)
    registry.register(fitted("one target"))
    os.mkfifo(tmp_path / "champion.json")
    with pytest.raises(ModelError, match=r"champion\.json: not a regular file but a pipe"):
        registry.current()


def test_lists_without_an_end(tmp_path):
    """JSON that is deeper than Python counts is damage of a pointer, or of a model."""
    registry = Registry(tmp_path)
    name = registry.register(fitted("one target"))
    registry.promote(name)
    deep = b"[" * 10**5 + b"]" * 10**5
    (tmp_path / "champion.json").write_bytes(deep)
    for call in (registry.current, registry.history, registry.list):
        with pytest.raises(ModelError, match=r"champion\.json: damaged .*RecursionError"):
            call()
    (tmp_path / "champion.json").unlink()
    Path(registry.model_url(name), "zarr.json").write_bytes(deep)
    assert "RecursionError" in registry.list()[0].damage


@pytest.mark.long
def test_a_registration_with_and_without_its_checksum(registry):
    """A report that was changed is damage; registries of earlier versions have no checksums."""
    name = registry.register(fitted("one target"), report={"rmse": 0.1})
    registry.promote(name)
    edit_attributes(
        registry.model_url(name), lambda values: values[REGISTRATION]["report"].update(rmse=0.2)
    )
    (record,) = registry.list()
    assert "its registration does not match its checksum" in record.damage

    def without(values):
        values.pop(MODEL_CHECKSUM)
        values[REGISTRATION].pop("checksum")

    edit_attributes(registry.model_url(name), without)
    fs, path = fsspec.core.url_to_fs(f"{registry.url}/champion.json")
    pointer = json.loads(fs.cat_file(path))
    pointer.pop("checksum")
    fs.pipe_file(path, json.dumps(pointer).encode())
    (record,) = registry.list()
    assert record.damage is None
    assert record.report == {"rmse": 0.2}
    assert registry.current() == name
    registry.promote(registry.register(fitted("classes")))
    assert registry.rollback() == name
    assert json.loads(fs.cat_file(path))["checksum"]
