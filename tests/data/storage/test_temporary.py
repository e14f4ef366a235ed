"""Temporary folders: alone in them, gone afterwards, and nothing of other accounts is touched."""

from __future__ import annotations

import fcntl
import os
import tempfile

import pytest

from bagbasis.data.storage.temporary import temporary_folder

PREFIX = "bagbasis-try-"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def names(folder):
    return {path.name for path in folder.iterdir()}


def old(path):
    """As if made long ago."""
    os.utime(path, (0, 0), follow_symlinks=False)
    return path


def test_gone_afterwards(tmp_path):
    with temporary_folder(PREFIX) as folder:
        assert os.stat(folder).st_mode & 0o777 == 0o700
        assert names(tmp_path) == {os.path.basename(folder)}
        (tmp_path / folder / "rows").touch()
    assert names(tmp_path) == set()


def test_elsewhere(tmp_path):
    (tmp_path / "big").mkdir()
    with temporary_folder(PREFIX, str(tmp_path / "big")) as folder:
        assert os.path.dirname(folder) == str(tmp_path / "big")


def test_what_killed_processes_left_is_removed(tmp_path):
    """But not what another process holds, nor what was made just now."""
    remaining, held, new = (tmp_path / f"{PREFIX}{name}" for name in ("left", "held", "new"))
    for folder in (remaining, held, new):
        folder.mkdir()
        (folder / "rows").touch()
    fd = os.open(held, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    old(remaining)
    old(held)
    with temporary_folder(PREFIX) as folder:
        assert names(tmp_path) == {held.name, new.name, os.path.basename(folder)}
    os.close(fd)


@pytest.mark.timeout(60)
def test_things_that_are_no_folders(tmp_path):
    """A FIFO holds nobody up, and a link leads nowhere."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    os.mkfifo(tmp_path / f"{PREFIX}fifo")
    (tmp_path / f"{PREFIX}link").symlink_to("kept")
    (tmp_path / f"{PREFIX}file").touch()
    before = {old(path).name for path in tmp_path.iterdir()}
    with temporary_folder(PREFIX):
        pass
    assert names(tmp_path) == before
    assert names(tmp_path / "kept") == {"file"}


def test_folder_of_another_account(tmp_path, monkeypatch):
    """Root, too, leaves it alone."""
    other = tmp_path / f"{PREFIX}other"
    other.mkdir()
    old(other)
    accounts = iter([os.geteuid() + 1, os.geteuid()])  # when that folder is seen, then its own
    monkeypatch.setattr(os, "geteuid", lambda: next(accounts))
    with temporary_folder(PREFIX):
        pass
    assert other.exists()
