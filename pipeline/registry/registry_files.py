"""What a registry is made of on disk: an object or a model is there whole, or it is not there."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..storage.replacing import discard, put_in_place
from ..storage.urls import filesystem, local_path, reaching
from ..storage.zarr_writer import fsync, fsync_folder

GROUP = "zarr.json"  # holds a model's attributes, without which nothing loads
STAGING = ".staging-"
STALE_SECONDS = 86400.0  # far longer than it takes to write a model


def read_object(url: str) -> bytes | None:
    """The object as it is stored now; None where there is none."""
    fs, path = filesystem(url)
    fs.invalidate_cache(path)
    try:
        with reaching(url):
            return bytes(fs.cat_file(path))
    except FileNotFoundError:
        return None


def write_object(url: str, content: bytes) -> None:
    """Replace an object in one step; only one process at a time may (see `writer_lock`).

    A local file is on the disk before it takes the old one's place; elsewhere this is one PUT.
    What a killed process left is written over: unlike `files.writing` it leaves nothing behind.
    """
    path = local_path(url)
    if path is None:
        fs, remote = filesystem(url)
        fs.pipe_file(remote, content)
        return
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    fsync(partial)
    partial.replace(path)
    fsync_folder(path.parent)


@contextmanager
def staging(url: str) -> Iterator[Path]:
    """A local place for a model that is about to be published in the folder; deleted at the end.

    It is on the folder's own disk where that is local, so that one rename publishes the model.
    What killed processes left there goes after a day.
    """
    folder = local_path(url)
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary) / "model.zarr"
        return
    folder.mkdir(parents=True, exist_ok=True)
    _discard_stale(folder)
    place = folder / f"{STAGING}{uuid.uuid4().hex}"
    try:
        yield place
    finally:
        discard(str(place))


def publish(staged: Path, url: str, replace: bool) -> None:
    """Put a staged model at the URL, where a reader finds the whole of it or none.

    On local files it is on the disk before it is renamed. Elsewhere its attributes are the last
    object written; nothing is deleted, so that two processes that publish the same model at once
    only write the same objects twice.

    Parameters
    ----------
    replace : bool
        Whether what is at the URL is known to be damaged. Otherwise what appeared there meanwhile
        is the same model, and stays.
    """
    path = local_path(url)
    if path is None:
        _upload(staged, url)
        return
    for folder, _, files in os.walk(staged):
        for name in files:
            fsync(Path(folder, name))
        fsync_folder(Path(folder))
    if replace:
        put_in_place(staged, path)
    else:
        try:
            staged.rename(path)
        except OSError:
            if not path.exists():
                raise
    for parent in list(path.parents)[:3]:
        fsync_folder(parent)


def _upload(staged: Path, url: str) -> None:
    fs, root = filesystem(url)
    files = [path for path in sorted(staged.rglob("*")) if path.is_file()]
    inner = [path for path in files if path != staged / GROUP]
    with reaching(url):
        fs.put(
            [str(path) for path in inner],
            [f"{root}/{path.relative_to(staged).as_posix()}" for path in inner],
        )
        fs.pipe_file(f"{root}/{GROUP}", (staged / GROUP).read_bytes())
    fs.invalidate_cache(root)


def _discard_stale(folder: Path) -> None:
    for place in folder.glob(f"{STAGING}*"):
        with suppress(FileNotFoundError):
            if time.time() - place.stat().st_mtime > STALE_SECONDS:
                discard(str(place))
