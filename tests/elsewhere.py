"""``make test-elsewhere``: the core's tests without the calls that Windows and macOS lack.

As a plugin of pytest (``-p tests.elsewhere``), and for child processes by `hide`, it gives the
modules of bagbasis an `os`, a `ctypes` and a `sys.platform` without Linux' own calls, and refuses
them `fcntl` and `resource`. Instead of Windows' `msvcrt` they get one whose `locking` locks a byte
as Windows does: for one handle of a file, against all others, until the process ends. Other
packages keep the Linux that they were built for.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from . import oldest

ROOT = Path(__file__).parents[1]
REFUSED = ("fcntl", "resource")
HIDDEN = ("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "geteuid", "getuid", "register_at_fork")
HIDDEN += ("fork", "uname", "sched_getaffinity", "mkfifo")
WITHIN = "bagbasis."  # the modules that are elsewhere, all but jobs: they are for Linux and macOS
NOT_WITHIN = "bagbasis.jobs"

# next to the core's tests, what locks, forks and replaces
TESTS = (
    *oldest.TESTS,
    *(
        "tests/data/storage",
        "tests/data/store/test_survival.py",
        "tests/data/store/test_creation.py",
    ),
    *("tests/data/store/test_transactions.py", "tests/execution/test_memory.py"),
    "tests/execution/test_pool.py",
)
# of calls of Linux themselves; of what is done instead: tests/core/test_systems.py
OF_LINUX = (
    "tests/data/storage/test_storage_files.py::test_a_file_is_on_the_disk_before_it_is_seen",
    "tests/data/storage/test_storage_lock.py::test_a_filesystem_without_locks_is_one_clear_line",
    "tests/data/storage/test_temporary.py::test_what_killed_processes_left_is_removed",
    "tests/data/storage/test_temporary.py::test_folder_of_another_account",
    "tests/data/store/test_survival.py::test_everything_is_on_the_disk_before_the_commit",
)


class _Elsewhere(ModuleType):
    """A module of the standard library without some of its names; others can be replaced in it."""

    def __init__(self, module: ModuleType, without: tuple[str, ...], **other: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, _without=without, **other)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["_without"]:
            raise AttributeError(f"no {self.__name__}.{name} here")
        return getattr(self.__dict__["_module"], name)


class _Ctypes(_Elsewhere):
    """ctypes of Windows: no library is that of the process."""

    def CDLL(self, name: str | None, *options: Any, **named: Any) -> ctypes.CDLL:
        if name is None:
            raise TypeError("bad argument type for built-in operation")
        return ctypes.CDLL(name, *options, **named)


def _locking(fd: int, mode: int, n_bytes: int) -> None:
    """Lock or unlock bytes at the place of a descriptor, as Windows' C library does."""
    import fcntl

    if n_bytes != 1 or os.lseek(fd, 0, os.SEEK_CUR) < 2**20:
        raise AssertionError("a lock of bytes that hold content keeps readers out")
    if mode == 0:
        fcntl.flock(fd, fcntl.LOCK_UN)
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(errno.EACCES, "Permission denied") from error


def stand_in_for_msvcrt() -> ModuleType:
    """Return what has the functions of Windows' module."""
    msvcrt = ModuleType("msvcrt")
    vars(msvcrt).update(locking=_locking, LK_UNLCK=0, LK_NBLCK=2)
    return msvcrt


def os_elsewhere() -> ModuleType:
    """Return what has the functions of `os`, without those of Linux."""
    return _Elsewhere(os, HIDDEN, name="nt")


def hide() -> None:
    """Take the calls of Linux away from modules of bagbasis that are imported from now on."""
    if any(name.startswith(WITHIN) for name in sys.modules):
        raise AssertionError("bagbasis is imported already")
    arguments = {
        "os": os_elsewhere(),
        "ctypes": _Ctypes(ctypes, ()),
        "sys": _Elsewhere(sys, (), platform="win32"),
        "msvcrt": stand_in_for_msvcrt(),
    }
    real = builtins.__import__

    def from_elsewhere(name, globals=None, locals=None, fromlist=(), level=0):
        importer = (globals or {}).get("__name__", "")
        if level == 0 and importer.startswith(WITHIN) and not importer.startswith(NOT_WITHIN):
            if name in REFUSED:
                raise ImportError(f"no module named {name!r} here")
            if name in arguments:
                return arguments[name]
            if name == "importlib":
                result = SimpleNamespace(**vars(real(name)))
                result.import_module = lambda item, package=None: (
                    from_elsewhere(item, globals)
                    if item in (*REFUSED, *arguments)
                    else sys.modules["importlib"].import_module(item, package)
                )
                return result
        return real(name, globals, locals, fromlist, level)

    builtins.__import__ = from_elsewhere


def pytest_load_initial_conftests() -> None:
    """Hide them before any test is imported."""
    hide()


def main() -> int:
    """Run the tests in this environment, or the ones that are named."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.elsewhere", "-n", "logical"]
    command += ["-m", "", "--dist", "loadfile", "-p", "no:cacheprovider"]
    command += sys.argv[1:] or TESTS
    command += [f"--deselect={item}" for item in OF_LINUX]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
