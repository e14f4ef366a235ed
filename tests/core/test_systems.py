"""What a system without Linux' calls does instead: the same promises, by other means."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import bagbasis
from bagbasis.core import systems
from bagbasis.data.storage.folders import replace_folder, writing_folder
from bagbasis.data.storage.temporary import temporary_folder
from bagbasis.execution.memory import memory_limit
from tests import elsewhere

# a process that holds a lock until it is killed, and says so
HOLDER = """
import sys, time
sys.path.insert(0, {root!r})
from tests import elsewhere
elsewhere.hide()
from bagbasis.core import systems
assert systems.fcntl is None and systems.resource is None and systems.IS_WINDOWS
from bagbasis.data.storage.lock import writer_lock
with writer_lock({url!r}, lock_name="lock", make=True):
    print("held", flush=True)
    time.sleep(600)
"""

CORE = """
import sys
sys.path.insert(0, {root!r})
from tests import elsewhere
elsewhere.hide()
import numpy as np
from bagbasis import BagStore, DoubleBasisRegressor, ProjectionEmbedding, load_model
from bagbasis.core import systems
from bagbasis.core.errors import WriterBusyError
from bagbasis.execution import worker_threads

assert not hasattr(systems.os, "geteuid") and systems.c_library() is None
spread = np.random.default_rng(0).uniform(0.1, 0.4, 60)
bags = [np.random.default_rng(i).uniform(0.5 - s, 0.5 + s, (20, 2)) for i, s in enumerate(spread)]
store = BagStore.create("bags.zarr", n_dims=2, target_names=["spread"])
store.append(bags, {{"spread": spread}})
with store.appending():
    try:
        BagStore.open("bags.zarr").append(bags, ids=range(60, 120))
    except WriterBusyError:
        pass
    else:
        raise AssertionError("two writers at once")
store = BagStore.open("bags.zarr")
store.verify()
for n in (3, 4):  # the second takes the place of the first
    model = DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=n), random_features=False, alpha=1)
    model.fit(store, target="spread")
    model.save("model.zarr", overwrite=True)
assert (load_model("model.zarr").predict(bags) == model.predict(bags)).all()
"""


@pytest.fixture
def windows(monkeypatch):
    """The twins instead of Linux' calls, in this process."""
    msvcrt = elsewhere.stand_in_for_msvcrt()
    for name, value in {"fcntl": None, "resource": None, "msvcrt": msvcrt}.items():
        monkeypatch.setattr(systems, name, value)
    monkeypatch.setattr(systems, "IS_WINDOWS", True)
    monkeypatch.setattr(systems, "c_library", lambda: None)
    monkeypatch.setattr(systems, "os", elsewhere.os_elsewhere())


@pytest.mark.usefixtures("windows")
def test_a_lock_is_of_one_descriptor(tmp_path):
    """Who waits gets it when the other lets go."""
    path = tmp_path / "lock"
    path.write_bytes(b"content")
    first, other = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    systems.lock(first)
    with pytest.raises(BlockingIOError):
        systems.lock(other)
    assert path.read_bytes() == b"content"
    waiting = threading.Thread(target=systems.lock, args=(other,), kwargs={"wait": True})
    waiting.start()
    time.sleep(0.1)
    assert waiting.is_alive()
    systems.unlock(first)
    waiting.join(60)
    with pytest.raises(BlockingIOError):
        systems.lock(first)
    os.close(other)
    systems.lock(first)
    os.close(first)


@pytest.mark.usefixtures("windows")
def test_other_errors_of_a_lock_are_raised(tmp_path, monkeypatch):
    """A filesystem without locks is not one whose lock somebody has."""
    fd = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)

    def fail(*_):
        raise OSError(errno.ENOSYS, "no locks here")

    monkeypatch.setattr(systems.msvcrt, "locking", fail)
    with pytest.raises(OSError, match="no locks here"):
        systems.lock(fd)
    monkeypatch.setattr(systems, "msvcrt", None)
    with pytest.raises(OSError, match="neither fcntl nor msvcrt"):
        systems.lock(fd)
    os.close(fd)


@pytest.mark.usefixtures("windows")
def test_links_are_not_opened(tmp_path, monkeypatch):
    """Neither one that is there, nor one that comes between the look and the opening."""
    (tmp_path / "theirs").write_text("theirs")
    path = tmp_path / "ours"
    path.symlink_to("theirs")
    with pytest.raises(OSError, match="symbolic links"):
        systems.open_no_link(path, os.O_RDWR | os.O_CREAT)
    path.unlink()

    def swap(*arguments):
        path.symlink_to("theirs")
        return os.open(*arguments)

    monkeypatch.setitem(vars(systems.os), "open", swap)
    with pytest.raises(OSError, match="symbolic links"):
        systems.open_no_link(path, os.O_RDWR | os.O_CREAT)
    assert (tmp_path / "theirs").read_text() == "theirs"
    monkeypatch.undo()
    path.unlink()
    os.close(systems.open_no_link(path, os.O_RDWR | os.O_CREAT, 0o600))
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("windows")
def test_temporary_folders(tmp_path):
    """Held ones stay, those of killed processes go, links and files are left alone."""
    remaining, held, link = (tmp_path / f"try-{name}" for name in ("left", "held", "link"))
    remaining.mkdir()
    held.mkdir()
    link.symlink_to(held)
    (tmp_path / "try-file").touch()
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0), follow_symlinks=False)
    with systems.locked_folder(held):
        os.utime(held, (0, 0))
        with temporary_folder("try-", str(tmp_path)) as folder:
            values = {path.name for path in tmp_path.iterdir()}
            assert values == {"try-held", "try-link", "try-file", os.path.basename(folder)}
            with pytest.raises(BlockingIOError), systems.locked_folder(folder):
                pass
    assert not Path(folder).exists()


@pytest.mark.usefixtures("windows")
def test_a_rename_waits_for_readers(tmp_path, monkeypatch):
    """Windows renames nothing that is open; who has it open for long is an error."""
    fresh, path = tmp_path / "fresh", tmp_path / "path"
    fresh.write_text("new")
    path.write_text("old")
    real, n_readers = Path.replace, [2]

    def replace(self, target):
        if n_readers[0]:
            n_readers[0] -= 1
            raise PermissionError(errno.EACCES, "another process has it open")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    systems.replace_file(fresh, path)
    assert path.read_text() == "new"
    monkeypatch.setattr(systems, "READER_SECONDS", 0.05)
    n_readers[0] = -1
    path.rename(fresh)
    with pytest.raises(PermissionError):
        systems.replace_file(fresh, path)
    monkeypatch.setattr(systems, "IS_WINDOWS", False)
    n_readers[0] = 1
    with pytest.raises(PermissionError):
        systems.replace_file(fresh, path)


@pytest.mark.usefixtures("windows")
def test_a_folder_takes_the_place_of_another(tmp_path):
    """In two steps; an empty one does not keep it, as on other systems."""
    place = tmp_path / "m"
    place.mkdir()
    for text, overwrite in (("old", False), ("new", True)):
        with writing_folder(place, overwrite=overwrite) as fresh:
            Path(fresh).mkdir()
            Path(fresh, "a").write_text(text)
        assert (place / "a").read_text() == text
    (tmp_path / "third").mkdir()
    with pytest.raises(FileExistsError):
        replace_folder(tmp_path / "third", place, overwrite=False)
    (tmp_path / "third").rmdir()
    assert (place / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_what_a_process_is_not_told(monkeypatch):
    """Its own limit of memory, the C library, and forks."""
    real = ctypes.CDLL

    def cdll(name, **named):
        if name is None:
            raise TypeError("bad argument type for built-in operation")
        return real(name, **named)

    assert systems.c_library() is not None
    monkeypatch.setattr(ctypes, "CDLL", cdll)
    assert systems.c_library() is None
    assert not systems.exchange_paths(Path("a"), Path("b"))
    monkeypatch.setattr(systems, "resource", None)
    assert systems.resident_limit() is None
    assert memory_limit() > 2**20
    monkeypatch.setattr(systems, "os", elsewhere.os_elsewhere())
    systems.after_fork(lambda: None)
    assert systems.is_own(os.stat("/"))


def test_macos_flushes_the_disk(tmp_path, monkeypatch):
    """Its fsync leaves data in the disk's own memory."""
    asked = []

    class Fcntl:
        F_FULLFSYNC = 51
        fcntl = staticmethod(lambda fd, command: asked.append(command))

    monkeypatch.setattr(systems, "fcntl", Fcntl)
    systems.flush_name(tmp_path)
    assert asked == [51]


@pytest.mark.long
def test_a_killed_holder_lets_go(tmp_path):
    """A lock goes with its process, in any way."""
    code = HOLDER.format(root=str(elsewhere.ROOT), url=str(tmp_path / "s"))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        fd = os.open(tmp_path / "s" / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            systems.lock(fd)
        holder.kill()
        holder.wait()
        systems.lock(fd)
        os.close(fd)


@pytest.mark.long
def test_the_core_elsewhere(tmp_path):
    """A fresh process without Linux' calls stores, refuses a second writer, fits and replaces."""
    code = CORE.format(root=str(elsewhere.ROOT))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_nothing_else_asks_the_system():
    """One module knows what systems lack."""
    words = ("fcntl", "import resource\n", "CDLL(None", "register_at_fork", "O_NOFOLLOW", "geteuid")
    package = Path(bagbasis.__file__).resolve().parent
    values = {
        path.name
        for path in package.rglob("*.py")
        if path.name != "systems.py" and any(word in path.read_text() for word in words)
    }
    assert values == set()
