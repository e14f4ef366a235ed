"""Folders at any URL, written atomically: models, predictions, versions of a registry."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ...core.systems import exchange_paths, move_folder
from .files import (
    GROUP_FILE,
    discard,
    fsync,
    fsync_folder,
    read_bytes,
    read_json,
    remove,
    staged,
    storage_errors,
    write_json,
)
from .generations import writing_generation
from .partials import partial_path, put_back, replaced_path
from .urls import filesystem, local_path, normalize_url

_T = TypeVar("_T")


@contextmanager
def writing_folder(
    url: str | os.PathLike[str], *, overwrite: bool = True, group: bool = True
) -> Iterator[str]:
    """Yield a place to write a folder to; it is at the URL when the block ends.

    A local place lies next to the URL and is exchanged for what is there, see `replace_folder`.
    Elsewhere it is a folder of a new name within the URL, and one PUT points to it: the group at
    the URL then gets the attributes of the group at the place.

    Parameters
    ----------
    overwrite : bool
        Whether a filled folder that appears there meanwhile may be replaced.
    group : bool
        Whether it is a Zarr group. Nothing can point to another folder: elsewhere than on local
        files its place is the URL itself, emptied.

    Raises
    ------
    OSError
        The place cannot be written; FileExistsError where something appeared that must stay.
    """
    url = normalize_url(url)
    path = local_path(url)
    if path is not None:
        with staged(path) as fresh:
            yield str(fresh)
            replace_folder(fresh, path, overwrite=overwrite)
        return
    if not group:
        _forget_attributes(url)
        remove(url)
        yield url
        return
    with writing_generation(url, overwrite) as place:
        yield place


def _forget_attributes(url: str) -> None:
    """Empty the attributes of a Zarr group: it keeps its kind, and counts as unfinished."""
    metadata = read_json(f"{url}/{GROUP_FILE}", dict)
    if metadata and metadata.get("attributes"):
        metadata["attributes"] = {name: {} for name in metadata["attributes"]}
        write_json(f"{url}/{GROUP_FILE}", metadata)


@contextmanager
def staging(url: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a local place for a folder that `publish` then moves to the URL.

    If the URL is local, the place is on the same disk, so that one rename publishes it. It is
    deleted at the end.

    Raises
    ------
    OSError
        The place cannot be made.
    """
    folder = local_path(normalize_url(url))
    if folder is not None:
        with staged(folder / "staged") as place:
            yield place
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary, "staged")


def publish(staged: Path, url: str | os.PathLike[str], *, last: str, overwrite: bool) -> None:
    """Move a staged folder to the URL; a reader finds all of it or nothing.

    Parameters
    ----------
    last : str
        The file without which readers take the folder for none. Elsewhere than on local files it
        is written last and nothing is deleted, so that two processes that publish the same folder
        at once only write the same objects twice.
    overwrite : bool
        As of `replace_folder`.

    Raises
    ------
    StoreError, OSError
        The place cannot be written; FileExistsError as of `replace_folder`.
    """
    url = normalize_url(url)
    path = local_path(url)
    if path is not None:
        replace_folder(staged, path, overwrite=overwrite)
        return
    files = [file for file in sorted(staged.rglob("*")) if file.is_file()]
    inner = [file for file in files if file != staged / last]
    with storage_errors(url, "cannot be written"):
        fs, root = filesystem(url)
        names = [f"{root}/{file.relative_to(staged).as_posix()}" for file in inner]
        fs.put([str(file) for file in inner], names)
        fs.pipe_file(f"{root}/{last}", (staged / last).read_bytes())
        fs.invalidate_cache(root)


def replace_folder(fresh: Path, path: Path, *, overwrite: bool = True) -> None:
    """Rename a complete local folder to ``path``; a reader finds the old one or the new one.

    The folder is on the disk before. On Linux both names change places in one step. A filesystem
    that cannot do that (NFS) has no folder of the name for an instant; after a failure the old one
    is put back, after a kill by the next process that asks (`put_back`). The old folder is deleted
    at the end.

    Parameters
    ----------
    overwrite : bool
        Whether a filled folder may be replaced; if not, that is an error and nothing changes.

    Raises
    ------
    OSError
        FileExistsError where something appeared there that must stay.
    """
    sync_folder(fresh)
    if not overwrite:
        try:
            move_folder(fresh, path)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise FileExistsError(
                    errno.EEXIST, "somebody else wrote there", str(path)
                ) from error
            raise
    elif not os.path.lexists(path):
        move_folder(fresh, path)
    elif not exchange_paths(fresh, path):
        _replace_in_two_steps(fresh, path)
    for parent in list(path.parents)[:3]:  # a new folder's name is in its parent
        fsync_folder(parent)
    discard(fresh)  # the old one, after an exchange


def _replace_in_two_steps(fresh: Path, path: Path) -> None:
    old = replaced_path(path)
    move_folder(path, old)
    try:
        move_folder(fresh, path)
    except BaseException as error:
        put_back(path)
        # a reader has put the old one back between the steps; the next time it may not
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            _replace_in_two_steps(fresh, path)
            return
        raise
    discard(old.rename(partial_path(path)))  # never to be put back


def read_one(url: str | os.PathLike[str], read: Callable[[], _T], *, last: str) -> _T:
    """Return ``read()`` of a folder, entirely from the old folder or from the new one.

    A reader opens files one after the other. If the folder is replaced meanwhile, the reader could
    mix files of both folders, so it reads again.

    Parameters
    ----------
    last : str
        As of `publish`: elsewhere than on local files its content tells two folders apart.
    """
    url = normalize_url(url)
    while True:
        before = _identity(url, last)
        try:
            value = read()
        except Exception:
            if _identity(url, last) == before:
                raise
            continue
        if _identity(url, last) == before:
            return value


def _identity(url: str, last: str) -> object:
    """Return the identity of a folder among those of its name; None if there is no folder."""
    path = local_path(url)
    try:
        if path is None:
            return read_bytes(f"{url}/{last}")
        status = path.stat()
    except OSError:  # for `read` to explain
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns  # a number may be given again later


def sync_folder(root: Path) -> None:
    """Return when a folder and everything in it is on the disk."""
    for folder, _, files in os.walk(root):
        for name in files:
            fsync(Path(folder, name))
        fsync_folder(Path(folder))
