"""One writer at a time: the kernel's lock on local files, conditional writes on objects.

Who writes into a folder takes a `Hold` of it. On local files that is a lock, which nobody else gets
meanwhile. Object stores have no locks, and a lease by the clock is never safe: there several may
hold the folder, and each replaces a small file only as it has read it. The second finds that it
has changed, and is refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import StoreError, WriterBusyError
from .files import discard, read_bytes, storage_errors, writing
from .urls import filesystem, local_path

LOCK_NAME = "points/writer.lock"  # not in the root, where Zarr would take it for a stray node
REMOVED = b"removed "  # begins an object that stands for none: deleting is not conditional
NOTHING = "nothing was committed"
REFUSALS = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")  # S3's codes

_one_comparison = threading.Lock()  # stands for the server's, on the filesystem memory://


class Hold:
    """A folder held for writing, and the small files in it by which its writers agree.

    Attributes
    ----------
    url : str
        Of the folder.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._seen: dict[str, Any] = {}  # the version of each file that was read

    def check(self) -> None:
        """Raise WriterBusyError when the folder is no longer ours; asked before every write."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None where there is none.

        Raises
        ------
        StoreError
            It can not be read.
        """
        url = f"{self.url}/{name}"
        # before the content: what is written in between then looks changed, which is safe
        self._seen[name] = _version(url)
        content = read_bytes(url)
        return None if content is None or content.startswith(REMOVED) else content

    def write(self, name: str, content: bytes) -> None:
        """Replace a file in one step, if it is as it was last read or written here.

        Raises
        ------
        WriterBusyError
            Somebody else wrote it since.
        StoreError
            It can not be written.
        """
        url = f"{self.url}/{name}"
        _write_if(url, content, self._seen.get(name))
        self._seen[name] = _version(url)

    def remove(self, name: str) -> None:
        """Remove a file, if it is as it was last read or written here."""
        with suppress(WriterBusyError):
            self.write(name, REMOVED + uuid.uuid4().hex.encode())


class LocalHold(Hold):
    """A local folder, locked by the kernel: the lock goes with the process, however that ends."""

    def __init__(self, url: str, fd: int, lock: Path) -> None:
        super().__init__(url)
        self._fd = fd
        self._lock = lock

    def check(self) -> None:
        try:
            ours = os.path.samestat(os.fstat(self._fd), os.stat(self._lock))
        except FileNotFoundError:
            ours = False
        if not ours:
            raise WriterBusyError(f"{self.url}: the store was replaced; {NOTHING}")

    def read(self, name: str) -> bytes | None:
        return read_bytes(f"{self.url}/{name}")

    def write(self, name: str, content: bytes) -> None:
        self.check()
        with writing(f"{self.url}/{name}") as path:
            path.write_bytes(content)

    def remove(self, name: str) -> None:
        self.check()
        discard(f"{self.url}/{name}")


@contextmanager
def writer_lock(url: str, *, lock_name: str = LOCK_NAME, make: bool = False) -> Iterator[Hold]:
    """Hold a folder for writing.

    Parameters
    ----------
    lock_name : str
        The file in a local folder that is locked.
    make : bool
        Whether a local folder that is not there is made.

    Raises
    ------
    WriterBusyError
        Another writer holds it.
    StoreError
        The lock can not be read or written.
    """
    path = local_path(url)
    if path is None:
        yield Hold(url)
        return
    lock = path / lock_name
    with storage_errors(url, "can not be written", NOTHING):
        if make:
            path.mkdir(parents=True, exist_ok=True)
        lock.parent.mkdir(exist_ok=True)
        # a link would lead to a file of somebody else's, which is none of ours to touch
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        with storage_errors(url, "can not be written", NOTHING):
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise StoreError(f"{lock} is not a plain file; remove it")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise WriterBusyError(
                    f"{url}: another writer is appending; wait for it to end and try again"
                ) from error
        try:
            hold = LocalHold(url, fd, lock)
            hold.check()
            yield hold
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # a child forked meanwhile holds the file open, too
    finally:
        os.close(fd)


def _version(url: str) -> Any:
    """What tells one content of an object from another; None where there is no object.

    Raises
    ------
    StoreError
        A filesystem whose writes can not be conditional.
    """
    with storage_errors(url, "can not be read"):
        fs, path = filesystem(url)
        if _is_s3(fs):
            fs.invalidate_cache(path)
            try:
                return fs.info(path, refresh=True).get("ETag")
            except FileNotFoundError:
                return None
        if _is_memory(fs):
            return read_bytes(url)
    raise StoreError(
        f"{url}: writers of this filesystem can not be told apart; give an s3:// URL or a local "
        "path"
    )


def _write_if(url: str, content: bytes, seen: Any) -> None:
    """Replace an object if its version is still the one that was seen."""
    with storage_errors(url, "can not be written"):
        fs, path = filesystem(url)
        if _is_s3(fs):
            _put_if(fs, path, url, content, seen)
            return
        with _one_comparison:
            if _version(url) not in (seen, content):
                raise _changed(url)
            fs.pipe_file(path, content)


def _put_if(fs: Any, path: str, url: str, content: bytes, seen: Any) -> None:
    """One conditional PUT to S3."""
    condition = {"IfNoneMatch": "*"} if seen is None else {"IfMatch": seen}
    try:
        fs.pipe_file(path, content, **condition)
    except OSError as error:
        response = getattr(error.__cause__, "response", {})
        code = response.get("Error", {}).get("Code")
        absent = isinstance(error, FileNotFoundError) and seen is not None
        if not (absent or code in REFUSALS or error.errno == errno.EINVAL):
            raise
        if read_bytes(url) != content:  # else a first try did it, whose answer was lost
            raise _changed(url) from error


def _changed(url: str) -> WriterBusyError:
    return WriterBusyError(f"{url}: another process changed it meanwhile; nothing was written")


def _is_s3(fs: Any) -> bool:
    return "s3" in ([fs.protocol] if isinstance(fs.protocol, str) else fs.protocol)


def _is_memory(fs: Any) -> bool:
    return "memory" in ([fs.protocol] if isinstance(fs.protocol, str) else fs.protocol)
