"""Folders are written atomically, and a reader always finds one."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import fsspec
import pytest

from bagbasis.data.storage import folders
from bagbasis.data.storage.files import discard, names_in, read_bytes
from bagbasis.data.storage.folders import writing_folder
from bagbasis.data.storage.zarr_stores import exists
from tests.data.storage.killing import each_kill


def write_folder(place, text, **options):
    with writing_folder(place, **options) as fresh:
        fs, path = fsspec.core.url_to_fs(fresh)
        fs.makedirs(path, exist_ok=True)
        fs.pipe_file(f"{path}/a", text.encode())


def test_a_folder_is_written_and_replaced(place):
    """The new folder takes the place of the old one, whole."""
    write_folder(place, "old", group=False)
    with fsspec.open(f"{place}/b", "w") as file:
        file.write("of the old one")
    write_folder(place, "new", group=False)
    assert names_in(place) == ["a"]
    assert read_bytes(f"{place}/a") == b"new"


@pytest.mark.parametrize("exchanges", [True, False])
def test_an_error_leaves_the_old_folder(tmp_path, monkeypatch, exchanges):
    """Whether the filesystem can exchange names or not."""
    if not exchanges:
        monkeypatch.setattr(folders, "exchange_paths", lambda item, other: False)
    place = tmp_path / "m"
    write_folder(place, "old")

    def fail(fresh):
        Path(fresh).mkdir()
        raise KeyError

    with pytest.raises(KeyError), writing_folder(place) as fresh:
        fail(fresh)
    assert read_bytes(place / "a") == b"old"
    write_folder(place, "new")
    assert read_bytes(place / "a") == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_folder_that_must_stay(tmp_path):
    """Without overwrite nothing is replaced that appeared meanwhile."""
    place = tmp_path / "m"

    def be_overtaken(fresh):
        Path(fresh).mkdir()
        write_folder(place, "theirs")

    with pytest.raises(FileExistsError), writing_folder(place, overwrite=False) as fresh:
        be_overtaken(fresh)
    assert read_bytes(place / "a") == b"theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    discard(place)
    write_folder(place, "ours", overwrite=False)
    assert read_bytes(place / "a") == b"ours"


def test_a_link_is_replaced_and_not_followed(tmp_path):
    """What a link leads to is left alone, and nothing dangles."""
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "a").write_text("first")
    (tmp_path / "current").symlink_to(tmp_path / "v1")
    write_folder(tmp_path / "current", "second")
    assert (tmp_path / "v1" / "a").read_text() == "first"
    assert (tmp_path / "current" / "a").read_text() == "second"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current", "v1"]


def test_a_reader_puts_the_old_folder_back_between_two_steps(tmp_path, monkeypatch):
    """What a killed process moved away is put back; of a living one, it is replaced again."""
    monkeypatch.setattr(folders, "exchange_paths", lambda item, other: False)
    place, rename, result = tmp_path / "m", Path.rename, []
    write_folder(place, "old")

    def rename_and_look(self, target):
        there = rename(self, target)
        if not result and Path(target).suffix == ".replaced":
            result.append(exists(str(place)))
        return there

    monkeypatch.setattr(Path, "rename", rename_and_look)
    write_folder(place, "new")
    assert result == [True]
    assert read_bytes(place / "a") == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def replace(place):
    with writing_folder(place / "m") as fresh:
        Path(fresh).mkdir()
        Path(fresh, "a").write_text("new")


def replace_in_two_steps(place):
    with patch.object(folders, "exchange_paths", lambda item, other: False):  # as on NFS
        replace(place)


@pytest.mark.long
@pytest.mark.parametrize("act", [replace, replace_in_two_steps])
def test_a_kill_leaves_the_old_folder_or_the_new_one(tmp_path, act):
    """In one step there is no instant without a folder; in two, who asks puts the old one back."""
    place = tmp_path / "place"
    place.mkdir()
    write_folder(place / "m", "old")
    seen = []
    for _ in each_kill(act, place):
        assert act is replace_in_two_steps or (place / "m").exists()
        assert exists(str(place / "m"))
        seen.append((place / "m" / "a").read_text())
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {"old", "new"}
