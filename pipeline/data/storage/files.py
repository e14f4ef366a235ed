"""Files at any URL, written atomically, by many processes at once.

This is the only module that writes files atomically. It is also the only one that turns errors of
the operating system, of fsspec and of Icechunk into our own errors. Folders are in `folders`, and
names of unfinished files in `partials`.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ...core.errors import BagbasisError, StoreError
from ...core.saved import Format, newer_error
from ...core.systems import flush_name, replace_file
from .partials import is_partial, partial_path, sweep, sweep_within
from .urls import ICECHUNK, filesystem, local_path, normalize_url

GROUP_FILE = "zarr.json"  # the attributes of a Zarr group; a folder without it is not a store
PUBLIC, PRIVATE = 0o666, 0o600  # modes of local files, of which the umask takes away

PAGE_STARTS = (b"<!doctype html", b"<html")
PAGE = (
    "a page of HTML came instead of this object; something between here and the storage has "
    "answered, such as a network that asks its users to sign in: see to network and endpoint, and "
    "try again"
)

_T = TypeVar("_T")

# ------------------------------------------------------------------ errors


@contextmanager
def storage_errors(
    url: str | os.PathLike[str],
    action: str,
    consequence: str = "",
    kind: type[BagbasisError] = StoreError,
    passing: type[OSError] | tuple[type[OSError], ...] = (),
) -> Iterator[None]:
    """Convert errors of the storage within the block to errors of bagbasis.

    The message is ``URL: ACTION (REASON); CONSEQUENCE``. Our own errors pass unchanged, except a
    StoreError where another kind is wanted: it gets the kind and the consequence. Besides OSErrors
    a remote filesystem raises the errors of its client (no credentials, no answer), and Icechunk
    raises its own. Any other exception is a defect and passes unchanged.

    Parameters
    ----------
    url : str or path
        Beginning of the message.
    action : str
        The failure in words: "cannot be written".
    consequence : str
        The consequence, or the advice: "nothing was saved".
    kind : type
        Type of the error that is raised.
    passing : OSError type or tuple of them
        Errors that the caller handles: FileNotFoundError where absence is an answer.
    """
    tail = f"; {consequence}" if consequence else ""
    try:
        yield
    except passing:
        raise
    except StoreError as error:
        if kind is StoreError:
            raise
        raise kind(f"{error}{tail}") from error
    except BagbasisError:
        raise
    except OSError as error:
        raise kind(f"{url}: {action} ({_reason_of(error)}){tail}") from error
    except Exception as error:  # clients of object stores have no common base below this one
        if _is_of_icechunk(error):
            raise kind(f"{url}: {action} ({_said_by_icechunk(error)}){tail}") from error
        if local_path(os.fspath(url)) is not None or _is_defect(error):
            raise
        raise kind(
            f"{url}: cannot be reached ({_reason_of(error)}); see to credentials, endpoint and "
            f"network, and try again{tail}"
        ) from error


def is_page(content: bytes) -> bool:
    """Whether bytes begin as a page of HTML does, which nothing that is stored here does."""
    return content[:64].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(PAGE_STARTS)


def check_answers(url: str) -> None:
    """Raise StoreError for a remote URL that only seems to be empty.

    Either its bucket does not exist, or a page of HTML answers every request.
    """
    if local_path(normalize_url(url)) is None:
        read_bytes(f"{url}/{GROUP_FILE}")


def _reason_of(error: Exception) -> str:
    """Return the reason in a few words: the operating system's, else the type and the message."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return f"{type(error).__name__}: {error}"


def _is_defect(error: Exception) -> bool:
    """Whether Python or numpy raised the error, which the clients of a store do not.

    A RuntimeError does come from clients: Azure's raises it for failed uploads, fsspec for what a
    filesystem cannot do (NotImplementedError).
    """
    of_python = type(error).__module__.partition(".")[0] in ("builtins", "numpy")
    return of_python and not isinstance(error, RuntimeError)


def _is_of_icechunk(error: Exception) -> bool:
    """Whether Icechunk raised it; the package is an extra and may not be there."""
    module = sys.modules.get("icechunk")
    return module is not None and isinstance(error, module.IcechunkError)


def _said_by_icechunk(error: Exception) -> str:
    """Return the first line of its message, and the last, which is where it began."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    first, root = lines[0].removeprefix("x "), lines[-1]
    return f"{first}: {root.removeprefix('`-> ')}" if root.startswith("`-> ") else first


# ------------------------------------------------------------------ single files


@contextmanager
def writing(url: str | os.PathLike[str], mode: int = PUBLIC) -> Iterator[Path]:
    """Yield a path to write to; the file is at the URL when the block ends without an error.

    A local file is on the disk before it takes its name; a remote one is sent in one PUT. Folders
    are made. A bucket, the first part of a path in an object store, is not.

    Raises
    ------
    StoreError
        If the place cannot be written.
    """
    url = normalize_url(url)
    path = local_path(url)
    if path is not None:
        with storage_errors(url, "cannot be written"), _renamed(path, mode) as partial:
            yield partial
        return
    with tempfile.TemporaryDirectory() as folder:
        partial = Path(folder, "file")
        with storage_errors(folder, "cannot be written"):
            yield partial
        with storage_errors(url, "cannot be written"):
            fs, remote = filesystem(url)
            first = remote.partition("/")[0]
            if not first or fs.exists(first):
                fs.makedirs(remote.rpartition("/")[0], exist_ok=True)
            fs.put_file(str(partial), remote)


@contextmanager
def reading(url: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to read the file from.

    Raises
    ------
    FileNotFoundError
        Nothing is there.
    StoreError
        It cannot be fetched or opened, or is a pipe, a device or a socket.
    """
    url = normalize_url(url)
    path = local_path(url)
    if path is not None:
        check_regular(path)
        with storage_errors(url, "cannot be read", passing=FileNotFoundError):
            yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "file")
        with storage_errors(url, "cannot be read", passing=FileNotFoundError):
            fs, remote = filesystem(url)
            fs.get_file(remote, str(copy))
            with copy.open("rb") as file:
                if is_page(file.read(64)):
                    raise StoreError(f"{url}: {PAGE}")
        yield copy


def read_bytes(url: str | os.PathLike[str]) -> bytes | None:
    """Return the bytes stored at the URL now, or None if there are none.

    Raises
    ------
    StoreError
        It cannot be read.
    """
    try:
        with reading(url) as path:
            return path.read_bytes()
    except FileNotFoundError:
        return None


def check_regular(path: Path, kind: type[BagbasisError] = StoreError) -> None:
    """Raise an error of a kind for a pipe, a device or a socket.

    Opening a pipe waits until another process writes to it, and a device may never end.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # who reads it learns why
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise kind(
            f"{os.fspath(path)}: not a regular file but a pipe, a device or a socket; replace it "
            "by the file that belongs there"
        )


def check_local(url: str, kind: type[BagbasisError]) -> None:
    """Raise an error of a kind for what `check_regular` refuses; remote URLs are fine."""
    path = local_path(url)
    if path is not None:
        check_regular(path, kind)


def write_json(
    url: str | os.PathLike[str],
    values: Mapping[str, Any],
    *,
    format: Format | None = None,
    indent: int = 1,
    mode: int = PUBLIC,
) -> None:
    """Replace a JSON object in one step.

    Parameters
    ----------
    format : Format, optional
        Its version is the first key, for `read_json` to check.
    mode : int
        File mode of a local file.

    Raises
    ------
    StoreError
        If the place cannot be written.
    ValueError
        If a value is NaN or infinite, which JSON does not support.
    """
    content = json_bytes(values, format=format, indent=indent)
    with writing(url, mode) as path:
        path.write_bytes(content)


def json_bytes(
    values: Mapping[str, Any], *, format: Format | None = None, indent: int = 1
) -> bytes:
    """Return the JSON text that `write_json` writes."""
    if format is not None:
        values = format.stamp(values)
    return (json.dumps(values, indent=indent, allow_nan=False) + "\n").encode()


def read_json(
    url: str | os.PathLike[str],
    parse: Callable[[dict[str, Any]], _T],
    *,
    read: Callable[[str], bytes | None] = read_bytes,
    format: Format | None = None,
    kind: type[BagbasisError] = StoreError,
    damaged: str = "damaged",
    remedy: str = "",
) -> _T | None:
    """Read and parse a JSON object; return None if nothing is stored.

    Parameters
    ----------
    parse : callable
        Function that parses the object, without its format version. Its AttributeError, TypeError,
        KeyError and ValueError say that the object is not what was written.
    read : callable
        Function that returns the content at the URL.
    format : Format, optional
        Format that the object must have.
    kind : type
        Type of the error that is raised for an object that cannot be parsed.
    damaged, remedy : str
        Name of the object in the message, and the advice.

    Raises
    ------
    kind
        If the object is damaged, or of another format version.
    StoreError
        It cannot be read.
    """
    url = normalize_url(url)
    path = local_path(url)
    if path is not None:
        check_regular(path)
    content = read(url)
    if content is None:
        return None
    values: Any = None
    try:
        values = json.loads(content)
        if not isinstance(values, dict):
            raise ValueError(f"a {type(values).__name__}, not an object")
        return parse(values if format is None else format.strip(values))
    except (AttributeError, TypeError, KeyError, ValueError, RecursionError) as error:
        newer = newer_error(error, values if isinstance(values, dict) else {})
        if newer is not None:  # nothing is to be restored
            raise kind(f"{url}: {newer}") from newer
        reason = str(error) if isinstance(error, ValueError) else _reason_of(error)
        if is_page(content):
            reason = "a page of HTML instead of JSON"
        tail = f"; {remedy}" if remedy else ""
        raise kind(f"{url}: {damaged} ({reason}){tail}") from error


# ------------------------------------------------------------------ names, deleting, syncing


def names_in(url: str | os.PathLike[str]) -> list[str]:
    """Return the names in a folder, sorted; none where there is no folder.

    Raises
    ------
    StoreError
        If the folder cannot be listed.
    """
    url = normalize_url(url)
    with storage_errors(url, "cannot be listed"):
        fs, path = filesystem(url)
        fs.invalidate_cache()  # others write there
        try:
            entries = fs.ls(path, detail=False)
        except NotADirectoryError:
            return []
        except FileNotFoundError:
            entries = []
    if not entries:  # a listing that is a page of HTML has no names
        check_answers(url)
    return sorted(str(entry).rstrip("/").rsplit("/", 1)[-1] for entry in entries)


def remove(url: str | os.PathLike[str]) -> None:
    """Delete everything stored under the URL; if nothing is there, do nothing.

    Raises
    ------
    StoreError
        If something cannot be deleted.
    """
    url = normalize_url(os.fspath(url).removeprefix(ICECHUNK))
    with storage_errors(url, "cannot be deleted"):
        path = local_path(url)
        if path is None:
            fs, remote = filesystem(url)
            fs.invalidate_cache()  # others write there
            inner = [name for name in fs.find(remote) if name != f"{remote}/{GROUP_FILE}"]
            if inner:
                fs.rm(inner)  # what says of which kind a folder is goes last
            if fs.exists(remote):
                fs.rm(remote, recursive=True)
        elif path.is_dir() and not path.is_symlink():
            sweep(path)
            # out of the way in one step: a kill meanwhile leaves no half of a folder
            shutil.rmtree(path if is_partial(path.name) else path.rename(partial_path(path)))
        else:
            path.unlink(missing_ok=True)


def discard_empty(url: str | os.PathLike[str]) -> None:
    """Delete a local folder if it holds nothing but day-old leftovers of killed writers.

    Those leftovers are deleted in any case. Object stores have no empty folders.
    """
    path = local_path(normalize_url(url))
    if path is not None:
        sweep_within(path)
        with suppress(OSError):  # something is in it, or it is gone
            path.rmdir()


def discard(url: str | os.PathLike[str]) -> None:
    """Delete files that are no longer needed, and ignore those that cannot be deleted."""
    with suppress(StoreError):
        remove(url)


def fsync(path: Path) -> None:
    """Return when the file is on the disk."""
    flush_name(path)


def fsync_folder(path: Path) -> None:
    """Return when the folder's names are on the disk, where its filesystem can say so."""
    with suppress(OSError):
        fsync(path)


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Yield a fresh name next to the path; if a file has it at the end, that is deleted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path)
    fresh = partial_path(path)
    try:
        yield fresh
    finally:
        discard(fresh)


@contextmanager
def _renamed(path: Path, mode: int) -> Iterator[Path]:
    with staged(path) as partial:
        if mode != PUBLIC:  # from the first byte on
            partial.touch(mode)
        yield partial
        fsync(partial)
        replace_file(partial, path)
        fsync_folder(path.parent)
