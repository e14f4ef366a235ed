"""Temporary folders of one process, which no other account can enter or has made."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...core.systems import locked_folder

SECONDS_UNTIL_HELD = 60.0  # a folder that is younger may be about to be locked


@contextmanager
def temporary_folder(prefix: str, parent: str | None = None) -> Iterator[str]:
    """Yield a new folder of this account alone; remove it and the folders of killed processes.

    Parameters
    ----------
    prefix : str
        Beginning of the folder's name. Folders of killed processes are found by it.
    parent : str, optional
        Where the folder is made; default that of all temporary files (TMPDIR).
    """
    parent = os.path.abspath(parent or tempfile.gettempdir())
    for abandoned in Path(parent).glob(f"{prefix}*"):
        with suppress(OSError):  # no folder of this account, or one that is in use
            if time.time() - abandoned.lstat().st_mtime > SECONDS_UNTIL_HELD:
                with locked_folder(abandoned):
                    shutil.rmtree(abandoned, ignore_errors=True)
                shutil.rmtree(abandoned, ignore_errors=True)  # the lock's file, where that is in it
    path = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        with locked_folder(path):
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
