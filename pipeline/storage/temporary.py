"""Temporary folders of one process, which no other account can enter or has made."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SECONDS_UNTIL_HELD = 60.0  # a folder that is younger may be about to be locked


@contextmanager
def temporary_folder(prefix: str, parent: str | None = None) -> Iterator[str]:
    """Yield a new folder of this account alone; remove it, and those of killed processes.

    Parameters
    ----------
    prefix : str
        What the folder's name begins with. Folders of killed processes are found by it.
    parent : str, optional
        Where the folder is made; default that of all temporary files (TMPDIR).
    """
    parent = os.path.abspath(parent or tempfile.gettempdir())
    for left in Path(parent).glob(f"{prefix}*"):
        with suppress(OSError):  # no folder of this account, or one that is in use
            if time.time() - left.lstat().st_mtime > SECONDS_UNTIL_HELD:
                with _holding(left):
                    shutil.rmtree(left, ignore_errors=True)
    path = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        with _holding(path):
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _holding(folder: str | Path) -> Iterator[None]:
    """Hold the kernel's lock of a folder, which is released when the process ends in any way.

    Raises
    ------
    OSError
        No folder, one of another account, or one that another process holds.
    """
    # any account may put a FIFO or a link there: opening the one would wait, the other lead away
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(fd).st_uid != os.geteuid():
            raise PermissionError(f"{folder} belongs to another account")
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
