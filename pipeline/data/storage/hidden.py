"""Which files of a folder are the user's: one rule for every folder that is read."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from glob import has_magic

SYSTEM_NAMES = frozenset(
    name.casefold()
    for name in (
        "__MACOSX",  # folder in zip archives made on macOS
        "__pycache__",
        "Thumbs.db",  # thumbnails of Windows
        "ehthumbs.db",
        "desktop.ini",
        "$RECYCLE.BIN",
        "System Volume Information",
        "@eaDir",  # thumbnails of Synology
        "@Recycle",  # of QNAP
        "#recycle",
        "lost+found",
        "Icon\r",  # icon of a folder on macOS
    )
)

logger = logging.getLogger(__name__)


def is_hidden(name: str) -> bool:
    """Return whether a file or folder is hidden, or was made by an operating system.

    These are names that begin with a dot, such as ``.ipynb_checkpoints``, ``._x.png`` and
    ``.DS_Store``, and names such as ``__MACOSX`` and ``Thumbs.db``.
    """
    return name.startswith(".") or name.casefold() in SYSTEM_NAMES


def visible_files(files: Iterable[str], folder: str) -> list[str]:
    """Return the files of a folder without hidden ones, in alphabetical order.

    Parameters
    ----------
    files : iterable of str
        Paths that lie in ``folder``, with slashes.
    folder : str
        The folder, or a glob: only the names that its wildcards stand for are judged. A folder
        that is hidden itself is read, and so is a name that the glob spells with its dot.
    """
    fixed = folder.rstrip("/").split("/")
    globbed = next((i for i, part in enumerate(fixed) if has_magic(part)), len(fixed))
    patterns = fixed[globbed:]
    result: list[str] = []
    hidden: list[str] = []
    for file in sorted(files):
        names = file.split("/")[globbed:]
        is_spelled = bool(patterns) and any(part.startswith(".") for part in patterns)
        bad = [name for name in names if is_hidden(name)]
        (hidden if bad and not is_spelled else result).append(file)
    if hidden:
        logger.info("%s: %d hidden files are left out, as %s", folder, len(hidden), hidden[0])
    return result
