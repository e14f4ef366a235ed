"""Names of unfinished files, and what happens to them if their writer is killed.

An unfinished file or folder is called ``.NAME.<32 hexadecimal digits>.partial`` and lies next to
``NAME``. `sweep` removes those that killed writers left. If a folder can only be replaced in two
steps, the old one is called ``.NAME.<…>.replaced`` between them; `put_back` knows that name.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

STALE_SECONDS = 86400.0  # a partial file or folder untouched for a day belongs to a dead writer
NAME_BYTES = 200  # filesystems take names of 255; `replaced_path` adds 43
_PARTIAL, REPLACED = ".partial", ".replaced"
_DIGITS = re.compile(r"[0-9a-f]{32}")
PARTIAL_NAME = re.compile(r".*\.[0-9a-f]{32}\.partial")  # of `partial_path`, and of Zarr's own


def partial_path(path: Path) -> Path:
    """Return a fresh name next to ``path`` for a file that is not finished yet."""
    return path.with_name(f".{_shortened(path.name)}.{uuid.uuid4().hex}{_PARTIAL}")


def replaced_path(path: Path) -> Path:
    """Return a fresh name next to ``path`` for the old file, until the new one is there."""
    return partial_path(path).with_suffix(REPLACED)


def put_back(path: Path) -> None:
    """Rename the old file back to ``path``, if a killed process left only that."""
    if os.path.lexists(path):
        return
    with suppress(OSError):  # another process has put it back, or nobody may write there
        replaced = sorted(_beside(path, REPLACED), key=lambda old: old.lstat().st_ctime_ns)
        for old in replaced[-1:]:
            old.rename(path)


def is_partial(name: str) -> bool:
    """Whether a file or folder of that name is unfinished, or left by a killed writer."""
    return PARTIAL_NAME.fullmatch(name) is not None


def sweep(path: Path) -> None:
    """Delete what killed writers of ``path`` left next to it, once it is a day old."""
    put_back(path)
    _delete_old(_beside(path, _PARTIAL, REPLACED))


def sweep_within(folder: Path) -> None:
    """Delete what killed writers left anywhere in a folder, once it is a day old."""
    _delete_old([entry for entry in folder.glob(".*") if is_partial(entry.name)])


def _delete_old(entries: Iterable[Path]) -> None:
    for entry in entries:
        with suppress(OSError):  # its writer has just finished
            inside = entry.rglob("*") if entry.is_dir() else ()
            last = max(item.lstat().st_mtime for item in (entry, *inside))
            if time.time() - last < STALE_SECONDS:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def _shortened(name: str) -> str:
    """Return the name, cut so that the parts that a partial file's name adds still fit."""
    return os.fsdecode(os.fsencode(name)[:NAME_BYTES])


def _beside(path: Path, *suffixes: str) -> list[Path]:
    """Return what has the name that `partial_path` or `replaced_path` made of a path's."""
    start = f".{_shortened(path.name)}."
    try:
        names = os.listdir(path.parent)
    except OSError:  # nothing is there, or nobody may look
        return []
    return [
        path.with_name(name)
        for name in names
        if name.startswith(start)
        and name.endswith(suffixes)
        and _DIGITS.fullmatch(Path(name).stem, len(start))
    ]
