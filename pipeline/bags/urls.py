"""From a URL to a Zarr store, and what differs between local files and other filesystems."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import fsspec
from zarr.abc.store import Store
from zarr.storage import FsspecStore, LocalStore

from ..errors import StoreError


def normalize_url(url: str | os.PathLike[str]) -> str:
    """An absolute path for local files, any other URL as it is, without a trailing slash."""
    text = os.fspath(url)
    for scheme in ("file://", "local://"):
        text = text.removeprefix(scheme)
    if "://" in text or "::" in text:
        return text.rstrip("/")
    return str(Path(text).expanduser().absolute())


def local_path(url: str) -> Path | None:
    """The path of a normalized local URL, None for a remote one."""
    return None if "://" in url or "::" in url else Path(url)


def zarr_store(url: str, read_only: bool = False) -> Store:
    """The Zarr store at a normalized URL.

    Local files are replaced by a temporary file and a rename, objects elsewhere by one PUT: in
    both a reader sees the old object or the new one.
    """
    path = local_path(url)
    if path is not None:
        return LocalStore(path, read_only=read_only)
    return FsspecStore.from_url(url, read_only=read_only)


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec filesystem of a URL and the path in it.

    Raises
    ------
    StoreError
        An unknown protocol, or one whose package is not installed.
    """
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise StoreError(f"{url}: {error}") from error
    return fs, path


def exists(url: str) -> bool:
    """Whether anything is stored under the URL."""
    fs, path = filesystem(url)
    return bool(fs.exists(path))


def remove(url: str) -> None:
    """Delete everything stored under the URL; nothing there is no error."""
    path = local_path(url)
    if path is not None:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return
    fs, remote = filesystem(url)
    if fs.exists(remote):
        fs.rm(remote, recursive=True)
