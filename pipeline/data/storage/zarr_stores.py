"""The Zarr store at a URL: on local files, in an object store, or kept by Icechunk."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

from ...core.errors import ModelError, StoreError
from .files import GROUP_FILE, check_answers, names_in, storage_errors
from .generations import CURRENT, GENERATION, is_generation
from .lazy_zarr import transactions, zarr, zarr_reading, zarr_writer
from .lock import LOCK_NAME
from .partials import is_partial, put_back
from .urls import filesystem, is_transactional, local_path

if TYPE_CHECKING:
    from zarr.abc.store import Store

    from .zarr_writer import WriterStore

PART = re.compile(r"part-\d{12}\.parquet")  # of predictions

NO_GROUP = (  # what Zarr raises where nothing is, or what it cannot parse
    FileNotFoundError,
    NotADirectoryError,
    IsADirectoryError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    AssertionError,
    RecursionError,
)


def zarr_store(url: str, read_only: bool = False, snapshot: str | None = None) -> Store:
    """Return the Zarr store at a normalized URL, at a snapshot if it has any.

    Local files are replaced by a temporary file and a rename, remote objects by one PUT. In both
    cases a reader sees the old object or the new one.
    """
    if is_transactional(url):
        if not read_only:
            raise StoreError(f"{url}: bag stores alone can be kept by Icechunk; choose another URL")
        return transactions.reader(url, snapshot)
    path = local_path(url)
    if path is not None:
        return zarr_reading.RegularFiles(path, read_only=read_only)
    fs, inner = filesystem(url, asynchronous=True)
    if not fs.async_impl:
        fs = AsyncFileSystemWrapper(fs, asynchronous=True)
    store = zarr_reading.RemoteObjects(fs, path=inner, read_only=read_only)
    store.fs.invalidate_cache()  # Zarr's filesystem keeps listings of its own; others write there
    return store


def check_writable(url: str) -> None:
    """Raise StoreError for a bag store that can only be read: plain Zarr in an object store.

    Nothing there can keep a second writer out; Icechunk's transactions can.
    """
    if local_path(url) is None and not is_transactional(url):
        place = f"icechunk+{url}" if url.startswith("s3://") else "icechunk+s3://BUCKET/PATH"
        raise StoreError(
            f"{url}: plain Zarr on an object store can only be read; to write bags there give "
            f"{place} (pip install 'bagbasis[icechunk]'), or a local path"
        )


def writer_store(url: str, still_ours: Callable[[], None], since: str | None) -> WriterStore:
    """Return what one writing session of a bag store writes through.

    Parameters
    ----------
    still_ours : callable
        Raises when the writer has lost the store.
    since : str or None
        The snapshot the writer has seen, where the store has snapshots.

    Raises
    ------
    StoreError
        See `check_writable`.
    WriterBusyError
        There is a later snapshot than the one the writer has seen.
    """
    check_writable(url)
    if is_transactional(url):
        return transactions.Transaction(url, still_ours, since)
    return zarr_writer.WriterStore(url, zarr_store(url), still_ours)


def current_snapshot(url: str) -> str | None:
    """Return the id of the last snapshot; None for a store with counts but no snapshots."""
    return transactions.latest(url) if is_transactional(url) else None


def delete_history(url: str, before: datetime) -> None:
    """Delete the snapshots committed before a time, and the data that only they hold."""
    if is_transactional(url):
        transactions.delete_snapshots(url, before)


def exists(url: str) -> bool:
    """Whether anything is stored under the URL now.

    First, what a killed process had moved away is put back.

    Raises
    ------
    StoreError
        Nobody can tell: an unknown protocol, no permission, no answer.
    """
    if is_transactional(url):
        return transactions.repository_exists(url)
    place = local_path(url)
    if place is not None:
        put_back(place)
    with storage_errors(url, "cannot be read"):
        fs, path = filesystem(url)
        fs.invalidate_cache()  # others write there
        # of HTTP alone, which else takes a server that does not answer for one without the file
        strict = {"strict": True} if "http" in fs.protocol else {}
        is_there = bool(fs.exists(path, **strict))
    if not is_there:
        check_answers(url)
    return is_there


def is_empty(url: str) -> bool:
    """Whether nothing is stored under the URL except leftovers of killed writers, or their lock.

    A writer that is alive holds the lock.

    Raises
    ------
    StoreError
        Nobody can tell, as in `exists`.
    """
    if not exists(url):
        return True
    if is_transactional(url):
        return transactions.repository_is_empty(url)
    path = local_path(url)
    if path is None:
        names = names_in(url)
        return bool(names) and all(is_generation(name) for name in names)
    if not path.is_dir():
        return False
    with storage_errors(url, "cannot be read"):
        lock = path / LOCK_NAME
        locked = lock.parent.is_dir()
        return all(
            is_partial(entry.name) or entry == lock or (locked and entry == lock.parent)
            for entry in chain(path.iterdir(), lock.parent.iterdir() if locked else ())
        )


def is_taken(url: str) -> bool:
    """Whether anything is stored under the URL; in object stores leftovers do not count."""
    return exists(url) and (local_path(url) is not None or not is_empty(url))


def check_replaceable(url: str, overwrite: bool, kind: str, ours: Callable[[str], bool]) -> None:
    """Raise ModelError if something that must not be replaced is at the normalized URL.

    Parameters
    ----------
    kind : str
        Name of the data to be written, for the message.
    ours : callable
        Whether what is at the URL is of that kind.
    """
    with storage_errors(url, "cannot be read", kind=ModelError):
        check_no_link(url)
        if not is_taken(url):
            return
        if not overwrite:
            check_answers(url)
            raise ModelError(f"{url}: exists already; remove it, or replace it with overwrite=True")
        if not ours(url):
            raise ModelError(f"{url}: exists and is not {kind}; remove it or choose another place")
        check_no_foreign_files(url)


def check_no_link(url: str) -> None:
    """Raise StoreError if a symbolic link stands where a file or folder is to be written.

    Replacing the link would leave its target, and following it would replace something that was not
    named.
    """
    path = local_path(url)
    if path is not None and path.is_symlink():
        raise StoreError(
            f"{url}: a symbolic link to {path.readlink()}; give that place, or remove the link"
        )


def check_no_foreign_files(url: str, arrays: str = "[^/]+") -> None:
    """Raise StoreError if a folder to be replaced holds files that are not its own.

    Parameters
    ----------
    arrays : str
        Pattern of the paths of the Zarr group's arrays and groups.
    """
    if is_transactional(url):
        return
    group = rf"(?:{GENERATION}/)?(?:{GROUP_FILE}|(?:{arrays})/(?:{GROUP_FILE}|c(?:/\d+)*))"
    ours = re.compile(rf"{group}|{LOCK_NAME}|{PART.pattern}")
    with storage_errors(url, "cannot be read"):
        fs, root = filesystem(url)
        names = [path.removeprefix(root).lstrip("/") for path in sorted(fs.find(root))]
    foreign = [n for n in names if not ours.fullmatch(n) and not is_partial(n.rpartition("/")[2])]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise StoreError(
            f"{url}: holds files that are none of its own ({shown}); move them, or choose another "
            "place"
        )


def attributes_of(url: str) -> dict[str, Any]:
    """Return the attributes of a Zarr group; empty if no group can be parsed there.

    Raises
    ------
    StoreError
        The storage does not answer: nobody knows what is there.
    """
    with storage_errors(url, "cannot be read"):
        try:
            return dict(zarr_reading.open_group(zarr_store(url, read_only=True)).attrs)
        except NO_GROUP:
            return {}


def read_group(url: str) -> zarr.Group:
    """Return the Zarr group at the URL, or the one within that it points to.

    Raises
    ------
    Exception
        Whatever Zarr makes of damaged files.
    """
    group = zarr_reading.open_group(zarr_store(url, read_only=True))
    name = group.attrs.get(CURRENT)
    if name is None:
        return group
    if not is_generation(str(name)) or not isinstance(within := group[str(name)], zarr.Group):
        raise ValueError(f"it points to {name!r}")
    return within


def holds_parts(url: str) -> bool:
    """Whether the URL is a folder with Parquet files of predictions and nothing else.

    Leftovers of a killed writer may be there too.
    """
    fs, path = filesystem(url)
    if not fs.isdir(path):
        return False
    names = [str(entry).rstrip("/").rsplit("/", 1)[-1] for entry in fs.ls(path, detail=False)]
    return all(PART.fullmatch(name) or is_generation(name) for name in names)
