"""Names of what is not whole yet, and what becomes of it when its writer is killed.

Whatever is half written has a name of one form, ``.NAME.<32 hexadecimal digits>.partial``, and lies
beside ``NAME``. `sweep` removes what killed writers left under such names. Where a folder can only
be replaced in two steps, the old one is ``.NAME.<…>.replaced`` between them; `put_back` knows it.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

STALE_SECONDS = 86400.0  # a partial file or folder untouched for a day belongs to a dead writer
NAME_BYTES = 200  # filesystems take names of 255; `replaced_path` adds 43
PARTIAL, REPLACED = ".partial", ".replaced"
PARTIAL_NAME = re.compile(r".*\.[0-9a-f]{32}\.partial")  # of `partial_path`, and of Zarr's own


def partial_path(path: Path) -> Path:
    """Return a fresh name beside ``path`` for what is not whole yet."""
    return path.with_name(f".{_shortened(path.name)}.{uuid.uuid4().hex}{PARTIAL}")


def replaced_path(path: Path) -> Path:
    """Return a fresh name beside ``path`` for what was there, until its successor is."""
    return partial_path(path).with_suffix(REPLACED)


def put_back(path: Path) -> None:
    """Rename what was at ``path`` back, if a killed process left nothing there but that."""
    if os.path.lexists(path):
        return
    with suppress(OSError):  # another process has put it back, or nobody may write there
        left = sorted(_beside(path, REPLACED), key=lambda old: old.lstat().st_ctime_ns)
        for old in left[-1:]:
            old.rename(path)


def is_partial(name: str) -> bool:
    """Whether a file or folder of that name is not whole yet, or was left by a killed writer."""
    return PARTIAL_NAME.fullmatch(name) is not None


def sweep(path: Path) -> None:
    """Delete what killed writers of ``path`` left beside it, when nobody wrote to it for a day."""
    put_back(path)
    _delete_old([*_beside(path, PARTIAL), *_beside(path, REPLACED)])


def sweep_within(folder: Path) -> None:
    """Delete what killed writers left in a folder, whatever it was to be, after a day."""
    _delete_old([entry for entry in folder.glob(".*") if is_partial(entry.name)])


def _delete_old(entries: Iterable[Path]) -> None:
    for left in entries:
        with suppress(OSError):  # its writer has just finished
            inside = left.rglob("*") if left.is_dir() else ()
            last = max(entry.lstat().st_mtime for entry in (left, *inside))
            if time.time() - last < STALE_SECONDS:
                continue
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()


def _shortened(name: str) -> str:
    """Return as much of a name as leaves room for what a partial file's name adds."""
    return os.fsdecode(os.fsencode(name)[:NAME_BYTES])


def _beside(path: Path, suffix: str) -> Iterator[Path]:
    """Yield what has the name that `partial_path` or `replaced_path` made of a path's."""
    return path.parent.glob(f".{_literal(_shortened(path.name))}.{'[0-9a-f]' * 32}{suffix}")


def _literal(name: str) -> str:
    """Return the name as a pattern of glob that matches it alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
