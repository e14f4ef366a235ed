"""Files and folders are written atomically, and every failure is one error of ours."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bagbasis import DataError, ModelError, StoreError
from bagbasis.core.saved import Format
from bagbasis.data.storage.files import (
    discard_empty,
    names_in,
    read_bytes,
    read_json,
    reading,
    remove,
    storage_errors,
    write_json,
    writing,
)
from bagbasis.data.storage.partials import STALE_SECONDS, partial_path, sweep

FULL = OSError(28, "No space left on device")


# ---------------------------------------------------------------------- errors


class LostError(Exception):
    """What the client of an object store raises; not an OSError."""


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("/a", FULL, r"^/a: saving failed \(No space left on device\); nothing was saved$"),
        ("/a", OSError("odd"), r"^/a: saving failed \(odd\); nothing was saved$"),
        ("/a", StoreError("/a/b: gone"), "^/a/b: gone; nothing was saved$"),
        ("s3://a", LostError("no answer"), r"^s3://a: cannot be reached \(LostError: no answer"),
        ("abfs://a", RuntimeError("failed to upload"), r"\(RuntimeError: failed to upload\)"),
        ("http://a", NotImplementedError(), r"^http://a: cannot be reached \(NotImplementedError"),
    ],
)
def test_errors_of_the_storage_become_ours(url, error, message):
    """URL, action, reason and consequence stand in one line; the cause is kept."""
    refused = pytest.raises(ModelError, match=message)
    with refused as caught, storage_errors(url, "saving failed", "nothing was saved", ModelError):
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("url", "error"),
    [("/a", DataError("bag 3")), ("/a", LostError()), ("s3://a", ValueError("a defect"))],
)
def test_other_errors_go_on(url, error):
    """What is ours already, and what no storage raises, is not put into other words."""
    with pytest.raises(type(error)) as caught, storage_errors(url, "cannot be read"):
        raise error
    assert caught.value is error


def test_an_error_that_the_caller_handles():
    """Absence may be an answer."""
    absent = FileNotFoundError(2, "nothing there")
    with (
        pytest.raises(FileNotFoundError) as caught,
        storage_errors("/a", "cannot be read", passing=FileNotFoundError),
    ):
        raise absent
    assert caught.value is absent


# ---------------------------------------------------------------------- single files


def test_a_file_is_written_and_read(place):
    """Folders are made; what is there is replaced; the folder lists it; it can be deleted."""
    url = f"{place}/deep/a.txt"
    assert read_bytes(url) is None
    for text in ("old", "new"):
        with writing(url) as path:
            path.write_text(text)
        with reading(url) as path:
            assert path.read_text() == text
    assert read_bytes(url) == b"new"
    assert names_in(f"{place}/deep") == ["a.txt"]
    remove(url)
    remove(url)
    assert names_in(f"{place}/deep") == names_in(f"{place}/nowhere") == []
    with pytest.raises(FileNotFoundError), reading(url) as path:
        path.read_text()


def test_a_name_as_long_as_a_filesystem_takes(tmp_path):
    """What is half written has a name that is no longer; what a killed writer left is found."""
    url = tmp_path / ("a" * 250 + ".json")
    remaining = partial_path(url)
    remaining.touch()
    os.utime(remaining, (0, 0))
    write_json(url, {"n": 1})
    assert list(tmp_path.iterdir()) == [url]


def test_an_error_while_writing_leaves_the_old_file(place):
    """What was there before stays, and nothing is left next to it."""
    url = f"{place}/a.txt"
    write_json(url, {"n": 1})
    with pytest.raises(TypeError), writing(url) as path:
        path.write_text("half") + "no number"
    assert read_json(url, dict) == {"n": 1}
    assert names_in(place) == ["a.txt"]


def test_a_full_disk_is_an_error_of_ours(tmp_path):
    """An OSError while writing names the file, and nothing is left."""
    refused = pytest.raises(StoreError, match=r"a\.txt: cannot be written \(No space")
    with refused, writing(tmp_path / "a.txt"):
        raise FULL
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_on_the_disk_before_it_is_seen(tmp_path, monkeypatch):
    """It is synced before its rename, and its folder after."""
    steps = []
    fsync, replace = os.fsync, Path.replace

    def recorded_fsync(fd):
        fsync(fd)
        steps.append(Path(os.readlink(f"/proc/self/fd/{fd}")))

    def recorded_replace(self, target):
        steps.append("renamed")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    with writing(tmp_path / "a.txt") as path:
        path.write_text("text")
    assert steps == [path, "renamed", tmp_path]


def test_what_killed_writers_left_goes_after_a_day(tmp_path):
    """The next writer of a name removes old partial files and folders of that name alone; whoever
    is done with a folder of checkpoints or caches removes those of any name."""
    target = tmp_path / "m[1].zarr"
    stale, folder, young, other = (
        partial_path(path) for path in (target, target, target, tmp_path / "n.zarr")
    )
    foreign = tmp_path / ".m[1].zarr.mine.partial"
    for path in (stale, young, other, foreign):
        path.write_text("torn")
    (folder / "inner").mkdir(parents=True)
    now = time.time()  # which is not the time of new files where a test sets the clock
    for path in (stale, other, foreign, folder / "inner", folder):
        os.utime(path, (now - 2 * STALE_SECONDS,) * 2)
    os.utime(young, (now, now))
    sweep(target)
    assert set(tmp_path.iterdir()) == {young, other, foreign}
    discard_empty(tmp_path)
    assert set(tmp_path.iterdir()) == {young, foreign}


def test_a_folder_that_is_still_written_to_stays(tmp_path):
    """A young file deep inside says that the writer of an old folder lives."""
    fresh = partial_path(tmp_path / "p.zarr")
    (fresh / "c").mkdir(parents=True)
    (fresh / "c" / "0").write_text("just now")
    now = time.time()
    os.utime(fresh / "c" / "0", (now, now))
    for path in (fresh / "c", fresh):
        os.utime(path, (now - 2 * STALE_SECONDS,) * 2)
    sweep(tmp_path / "p.zarr")
    assert fresh.exists()


# ---------------------------------------------------------------------- JSON


def test_json_of_a_format_version(place):
    """What was written is read; nothing there is None; another version is refused."""
    url = f"{place}/state.json"
    assert read_json(url, dict, format=Format("thing", 2)) is None
    write_json(url, {"n": 1}, format=Format("thing", 2))
    assert read_json(url, dict, format=Format("thing", 2)) == {"n": 1}
    with pytest.raises(
        StoreError, match=r"damaged \(thing of format 2; this version reads 3\); do x"
    ):
        read_json(url, dict, format=Format("thing", 3), remedy="do x")


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", '{"n": "x"}', "{}", "\udcff"])
def test_damaged_json(place, text):
    """What cannot be parsed is named, with what to do."""
    url = f"{place}/state.json"
    with writing(url) as path:
        path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ModelError, match=r"state\.json: not a state \(.*\); delete it"):
        read_json(
            url,
            lambda values: int(values["n"]),
            kind=ModelError,
            damaged="not a state",
            remedy="delete it",
        )


def test_json_has_no_nan(place):
    """NaN is refused before anything is written."""
    with pytest.raises(ValueError, match="JSON"):
        write_json(f"{place}/state.json", {"n": float("nan")})
    assert names_in(place) == []
