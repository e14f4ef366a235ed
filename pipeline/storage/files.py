"""Single files at any URL: written whole or not at all, by many processes at once."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import StoreError
from .urls import filesystem, local_path, reaching, remove
from .zarr_writer import fsync, fsync_folder


@contextmanager
def writing(url: str) -> Iterator[Path]:
    """A path to write to; the file is at the URL when the block ends without an error.

    Locally it is on the disk before it is renamed; elsewhere it goes there in one PUT.

    Raises
    ------
    StoreError
        The place can not be written.
    """
    path = local_path(url)
    try:
        if path is not None:
            with _renamed(path) as partial:
                yield partial
        else:
            fs, remote = filesystem(url)
            with tempfile.TemporaryDirectory() as folder:
                partial = Path(folder, "file")
                yield partial
                with reaching(url):
                    _put(fs, partial, remote)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{url}: can not be written ({error.strerror or error})") from error


@contextmanager
def reading(url: str) -> Iterator[Path]:
    """A path to read the file from.

    Raises
    ------
    FileNotFoundError
        Nothing is there.
    StoreError
        It can not be fetched.
    """
    path = local_path(url)
    if path is not None:
        yield path
        return
    fs, remote = filesystem(url)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "file")
        try:
            with reaching(url):
                fs.get_file(remote, str(copy))
        except (FileNotFoundError, StoreError):
            raise
        except OSError as error:
            raise StoreError(f"{url}: can not be read ({error.strerror or error})") from error
        yield copy


def names_in(url: str) -> list[str]:
    """Names in a folder, sorted; none where there is no folder."""
    fs, path = filesystem(url)
    fs.invalidate_cache()  # others write there
    try:
        with reaching(url):
            entries = fs.ls(path, detail=False)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{url}: can not be listed ({error.strerror or error})") from error
    return sorted(str(entry).rstrip("/").rsplit("/", 1)[-1] for entry in entries)


def discard(url: str) -> None:
    """Delete what is there; what can not be deleted is no further error."""
    with suppress(OSError):
        remove(url)


def _put(fs: Any, partial: Path, remote: str) -> None:
    """Folders are made; a bucket, the first part of a path in an object store, is not."""
    first = remote.partition("/")[0]
    if not first or fs.exists(first):
        fs.makedirs(remote.rpartition("/")[0], exist_ok=True)
    fs.put_file(str(partial), remote)


@contextmanager
def _renamed(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield partial
        fsync(partial)
        partial.replace(path)
        fsync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)
