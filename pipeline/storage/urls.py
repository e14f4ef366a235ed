"""From a URL to a Zarr store, and what differs between local files and other filesystems."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
from zarr.abc.store import Store
from zarr.storage import FsspecStore, LocalStore

from ..errors import BagbasisError, StoreError
from . import transactions
from .transactions import Transaction, is_transactional, latest, reader
from .zarr_writer import WriterStore


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


def zarr_store(url: str, read_only: bool = False, snapshot: str | None = None) -> Store:
    """The Zarr store at a normalized URL, at a snapshot where it has any.

    Local files are replaced by a temporary file and a rename, objects elsewhere by one PUT: in
    both a reader sees the old object or the new one.
    """
    if is_transactional(url):
        if not read_only:
            raise StoreError(f"{url}: bag stores alone can be kept by Icechunk; choose another URL")
        return reader(url, snapshot)
    path = local_path(url)
    if path is not None:
        return LocalStore(path, read_only=read_only)
    store = FsspecStore.from_url(url, read_only=read_only)
    store.fs.invalidate_cache()  # Zarr's filesystem keeps listings of its own; others write there
    return store


def writer_store(url: str, still_ours: Callable[[], None], since: str | None) -> WriterStore:
    """What one writing session of a bag store writes through.

    Parameters
    ----------
    still_ours : callable
        Raises when the writer has lost the store.
    since : str or None
        The snapshot the writer has seen, where the store has snapshots.
    """
    if is_transactional(url):
        return Transaction(url, still_ours, since)
    return WriterStore(url, zarr_store(url), still_ours)


def current_snapshot(url: str) -> str | None:
    """The id of the last snapshot; None for a store that has none, but its committed counts."""
    return latest(url) if is_transactional(url) else None


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
    """Whether anything is stored under the URL now.

    Raises
    ------
    StoreError
        Nobody can tell: an unknown protocol, no permission, no answer.
    """
    if is_transactional(url):
        return transactions.exists(url)
    fs, path = filesystem(url)
    fs.invalidate_cache()  # others write there
    try:
        with reaching(url):
            return bool(fs.exists(path))
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{url}: can not be read ({error.strerror or error})") from error


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """What a filesystem raises beside OSErrors becomes a StoreError: no credentials, no answer."""
    try:
        yield
    except (OSError, BagbasisError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise StoreError(
            f"{url}: can not be reached ({reason}); see to credentials, endpoint and network, and "
            "try again"
        ) from error


def remove(url: str) -> None:
    """Delete everything stored under the URL; nothing there is no error."""
    path = local_path(url)
    if path is not None:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return
    if exists(url):
        fs, remote = filesystem(url)
        with reaching(url):
            fs.rm(remote, recursive=True)
