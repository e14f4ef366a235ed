"""Calls that some operating systems lack, each with a portable twin that is chosen at import.

Linux has all of these calls. macOS lacks the exchange of two names. Windows also lacks locks by
`fcntl`, limits by `resource`, forks, owners of files and a way to open no link. Nothing else in the
package imports `fcntl`, `resource` or `msvcrt`, or asks the C library itself.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from .errors import ExhaustedError


def _module(name: str) -> Any | None:  # noqa: ANN401 - a module of one system has no types elsewhere
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, msvcrt, resource = (_module(name) for name in ("fcntl", "msvcrt", "resource"))

IS_WINDOWS = os.name == "nt"
AT_WORKING_FOLDER = -100  # AT_FDCWD of fcntl.h: renameat2 then takes paths as rename does
RENAME_EXCHANGE = 2  # of linux/fs.h: both names change places in one step
# Byte that Windows locks: it lies behind all content, which a lock makes unreadable.
LOCKED_BYTE = 2**30
_POLL_SECONDS = 0.02  # interval between attempts where a system cannot wait for a lock or a reader
READER_SECONDS = 5.0  # within which a reader closes a small file or chunk
LIBRARY_ADDRESSES = 3 * 2**30  # an ingest has reserved 2.9 GiB at most, a fit 1.4, on two cores
BLAS_LIBRARIES = 2  # those of numpy and of scipy, each with a thread per core
CORE_ADDRESSES = 2**28  # stacks, and what malloc and OpenBLAS reserve for each thread
LOCK_FILE = ".held"  # in a temporary folder, where folders themselves cannot be locked

# ------------------------------------------------------------------ locks


def lock(fd: int, *, wait: bool = False) -> None:
    """Lock an open file for this descriptor alone; the lock goes when the process ends in any way.

    Raises
    ------
    BlockingIOError
        Another descriptor has the lock, and this one is not to wait.
    OSError
        The filesystem keeps no locks.
    """
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    while not _lock_byte(fd):
        if not wait:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        time.sleep(_POLL_SECONDS)


def unlock(fd: int) -> None:
    """Release the lock of an open file."""
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_UN)
    else:
        _call_msvcrt(fd, "LK_UNLCK")


def _lock_byte(fd: int) -> bool:
    """Lock one byte of a file; return False if somebody else has locked it."""
    try:
        _call_msvcrt(fd, "LK_NBLCK")
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _call_msvcrt(fd: int, mode: str) -> None:
    if msvcrt is None:
        raise OSError(errno.ENOSYS, "this Python has neither fcntl nor msvcrt")
    os.lseek(fd, LOCKED_BYTE, os.SEEK_SET)
    msvcrt.locking(fd, getattr(msvcrt, mode), 1)


@contextmanager
def locked_folder(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a folder of this account.

    Where a folder cannot be opened, a file in it is locked: `LOCK_FILE`, which stays.

    Raises
    ------
    OSError
        No folder, a link, one of another account, or one that is locked.
    """
    if fcntl is not None and hasattr(os, "O_NOFOLLOW"):
        # any account may put a FIFO or a link there: opening one would wait, the other lead away
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK)
        status = os.fstat(fd)
    else:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        fd = open_no_link(Path(folder, LOCK_FILE), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not is_own(status):
            raise PermissionError(f"{folder} belongs to another account")
        lock(fd)
        yield
    finally:
        os.close(fd)


# ------------------------------------------------------------------ files and names


def open_no_link(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """Open a file as `os.open` does, but no symbolic link.

    Without O_NOFOLLOW the name is looked at before and after. A link that another process puts
    there in between is then opened, and refused before anything is read or written.

    Raises
    ------
    OSError
        A link (ELOOP), or what `os.open` raises.
    """
    flags |= getattr(os, "O_BINARY", 0)
    if hasattr(os, "O_NOFOLLOW"):
        return os.open(path, flags | os.O_NOFOLLOW, mode)
    is_link = OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if os.path.islink(path):
        raise is_link
    fd = os.open(path, flags, mode)
    try:
        is_same = os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        is_same = False
    if not is_same:
        os.close(fd)
        raise is_link
    return fd


def is_own(status: os.stat_result) -> bool:
    """Return whether a file is this account's; where files have no owners, True."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def code_folder(path: str | os.PathLike[str]) -> str:
    """Return a folder for code that processes of this account write and run, made if need be.

    It is ``path`` where only this account, or root, can write there. In a folder that accounts
    share it is one of this account alone.

    Raises
    ------
    PermissionError
        Another account can put code there.
    """
    path = os.fspath(path)
    if not hasattr(os, "geteuid"):
        return path
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        status = os.stat(path)
    except OSError:  # who writes there learns why
        return path
    if not is_own(status) and status.st_uid != 0:
        raise PermissionError(f"{path} belongs to another account")
    if not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return path
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise PermissionError(f"other accounts can replace what is in {path}")
    own = os.path.join(path, f"account-{os.geteuid()}")
    with suppress(FileExistsError):
        os.mkdir(own, 0o700)
    status = os.lstat(own)
    is_alone = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not (stat.S_ISDIR(status.st_mode) and is_own(status) and is_alone):
        raise PermissionError(f"{own} is not a folder of this account alone")
    return own


def flush(fd: int) -> None:
    """Wait until the data written to an open file is on the disk."""
    # of macOS, whose fsync leaves it in the disk's own memory
    if fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):
        with suppress(OSError):  # of filesystems that have only fsync
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            return
    os.fsync(fd)


def flush_name(path: str | os.PathLike[str]) -> None:
    """Return when the file or folder of this name is on the disk.

    Raises
    ------
    OSError
        It cannot be opened; Windows opens no folders.
    """
    fd = os.open(path, os.O_RDWR if IS_WINDOWS else os.O_RDONLY)  # it flushes what can be written
    try:
        flush(fd)
    finally:
        os.close(fd)


def replace_file(fresh: Path, path: Path) -> None:
    """Rename a file to ``path`` in one step, and replace a file that is there."""
    _while_read(lambda: fresh.replace(path))


def move_folder(fresh: Path, path: Path) -> None:
    """Rename a folder to ``path``, where nothing may be but an empty folder."""
    if IS_WINDOWS:
        with suppress(OSError):  # nothing is there, or something that must stay
            path.rmdir()
    _while_read(lambda: fresh.rename(path))


def _while_read(rename: Callable[[], object]) -> None:
    """Rename; on Windows try again while somebody has the file, or one in the folder, open."""
    deadline = time.monotonic() + READER_SECONDS
    while True:
        try:
            rename()
            return
        except PermissionError:
            if not IS_WINDOWS or time.monotonic() > deadline:
                raise
        time.sleep(_POLL_SECONDS)


def exchange_paths(first: Path, second: Path) -> bool:
    """Swap two names in one step; return False if the kernel or the filesystem cannot.

    Raises
    ------
    OSError
        The kernel can, but refuses these names.
    """
    renameat2 = getattr(c_library(), "renameat2", None)  # a C library of 2018 has it
    if renameat2 is None:
        return False
    names = os.fsencode(first), os.fsencode(second)
    there = AT_WORKING_FOLDER
    if renameat2(there, names[0], there, names[1], RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS):  # what filesystems without an exchange answer
        return False
    raise OSError(code, os.strerror(code), str(second))


# ------------------------------------------------------------------ processes


def c_library() -> ctypes.CDLL | None:
    """Return the C library that this process has loaded; None on Windows."""
    try:
        return ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):
        return None


def after_fork(forget: Callable[[], None]) -> None:
    """Call ``forget`` in each process that is forked from this one; Windows forks none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def address_limit() -> int | None:
    """Return the bytes of addresses that this process may have (RLIMIT_AS), or None: no limit."""
    if resource is None:
        return None
    limit = int(resource.getrlimit(resource.RLIMIT_AS)[0])
    return limit if limit > 0 else None


def addresses_needed() -> int:
    """Return the bytes of addresses that libraries and the threads of all cores may reserve."""
    return LIBRARY_ADDRESSES + usable_cores() * CORE_ADDRESSES


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1


def check_addresses() -> None:
    """Raise ExhaustedError where this process may have fewer addresses than libraries reserve.

    It is to be asked before they are loaded: OpenBLAS, OpenMP and DuckDB end a process that gets
    no addresses, or stand still, and say nothing that can be caught.
    """
    limit, needed = address_limit(), addresses_needed()
    if limit is not None and limit < needed:
        raise ExhaustedError(
            f"this process may have {limit / 2**30:.3g} GiB of addresses (ulimit -v, RLIMIT_AS), "
            f"and libraries and threads reserve up to {needed / 2**30:.3g} GiB, of which they use "
            "little: raise that limit, and bound memory by a control group instead (a container, "
            "MemoryMax of systemd, --mem of SLURM)"
        )


def check_threads() -> None:
    """Raise ExhaustedError where this process can start fewer threads than libraries do.

    Call it before they are loaded: an OpenBLAS that gets too few threads prints lines of its own
    and interrupts the process, as a Ctrl-C would. The check starts that many threads and ends them.
    """
    needed = BLAS_LIBRARIES * usable_cores()
    ended = threading.Event()
    threads = [threading.Thread(target=ended.wait, daemon=True) for _ in range(needed)]
    started = 0
    try:
        for thread in threads:
            thread.start()
            started += 1
    except RuntimeError as error:
        raise ExhaustedError(
            f"this process can start {started} threads, and libraries need {needed}: raise the "
            "limit of processes (ulimit -u, that of its job or container), or run less next to it"
        ) from error
    finally:
        ended.set()
        for thread in threads[:started]:
            thread.join()


def resident_limit() -> int | None:
    """Return the bytes that this process may have in memory (RLIMIT_RSS); None without a limit."""
    if resource is None:
        return None
    limit = int(resource.getrlimit(resource.RLIMIT_RSS)[1])
    return limit if limit > 0 else None
