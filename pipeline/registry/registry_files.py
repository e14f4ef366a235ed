"""What a registry is made of on disk: an object or a model is there whole, or it is not there."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..storage.files import discard, replace_folder, storage_errors
from ..storage.urls import filesystem, local_path

GROUP = "zarr.json"  # holds a model's attributes, without which nothing loads
STAGING = ".staging-"
STALE_SECONDS = 86400.0  # far longer than it takes to write a model


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
    try:
        replace_folder(staged, path, overwrite=replace)
    except FileExistsError:
        if replace:
            raise


def _upload(staged: Path, url: str) -> None:
    fs, root = filesystem(url)
    files = [path for path in sorted(staged.rglob("*")) if path.is_file()]
    inner = [path for path in files if path != staged / GROUP]
    with storage_errors(url, "can not be written"):
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
