"""One writer at a time: a kernel lock on local files, conditional writes in object stores.

A writer takes a `Hold` of a folder. On local files that is a lock, which nobody else gets
meanwhile. Object stores have no locks, and a lease by the clock is never safe. There several
writers may hold a folder, and each replaces a small file only if it still is as that writer read
it. A second write fails, because the file has changed.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fsspec import AbstractFileSystem

from ...core.errors import StoreError, WriterBusyError
from ...core.systems import lock as lock_open_file, open_no_link, unlock
from .files import PRIVATE, PUBLIC, discard, read_bytes, storage_errors, writing
from .urls import filesystem, local_path

LOCK_NAME = "points/writer.lock"  # not in the root, where Zarr would take it for a stray node
# First bytes of an object that counts as deleted: a delete cannot be conditional.
REMOVED_PREFIX = b"removed "
REFUSED_LOCK = "nothing was committed"  # a refused lock
# of flock: NFS without its lock daemon, Lustre mounted without flock, others that have none
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
NO_ETAG = ""  # no object has this ETag: the next conditional write is refused
REFUSALS = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")  # S3's codes

# an ETag of S3; the content itself on the filesystem memory://
Version = str | bytes | None

_one_comparison = threading.Lock()  # stands for the server's, on the filesystem memory://


class Hold:
    """A folder held for writing, and the small files in it that writers agree through.

    Attributes
    ----------
    url : str
        URL of the folder.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._seen: dict[str, Version] = {}  # of each file, when it was last read or written here

    def check(self) -> None:
        """Raise WriterBusyError if the folder is no longer ours; called before every write."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None where there is none.

        Raises
        ------
        StoreError
            It cannot be read.
        """
        url = f"{self.url}/{name}"
        # read before the content: a write in between then looks like a change, which is safe
        self._seen[name] = _version(url)
        content = read_bytes(url)
        return None if content is None or content.startswith(REMOVED_PREFIX) else content

    def write(self, name: str, content: bytes) -> None:
        """Replace a file in one step, unless it changed since it was last read or written here.

        Raises
        ------
        WriterBusyError
            Somebody else wrote it since.
        StoreError
            It cannot be written.
        """
        url = f"{self.url}/{name}"
        self._seen[name] = _write_if(url, content, self._seen.get(name))

    def remove(self, name: str) -> None:
        """Remove a file, unless it changed since it was last read or written here."""
        with suppress(WriterBusyError):
            self.write(name, REMOVED_PREFIX + uuid.uuid4().hex.encode())


class LocalHold(Hold):
    """A local folder, locked by the kernel; the lock goes when the process ends, in any way."""

    def __init__(self, url: str, fd: int, lock: Path, mode: int) -> None:
        super().__init__(url)
        self._fd = fd
        self._lock = lock
        self._mode = mode

    def check(self) -> None:
        """Raise WriterBusyError when another folder has taken the place of the locked one."""
        try:
            ours = os.path.samestat(os.fstat(self._fd), os.stat(self._lock))
        except FileNotFoundError:
            ours = False
        if not ours:
            raise WriterBusyError(f"{self.url}: the store was replaced; {REFUSED_LOCK}")

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None where there is none."""
        return read_bytes(f"{self.url}/{name}")

    def write(self, name: str, content: bytes) -> None:
        """Replace a file in one step."""
        self.check()
        with writing(f"{self.url}/{name}", self._mode) as path:
            path.write_bytes(content)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.check()
        discard(f"{self.url}/{name}")


@contextmanager
def writer_lock(
    url: str, *, lock_name: str = LOCK_NAME, make: bool = False, private: bool = False
) -> Iterator[Hold]:
    """Hold a folder for writing.

    Parameters
    ----------
    lock_name : str
        The file in a local folder that is locked.
    make : bool
        Whether a local folder that is not there is made.
    private : bool
        Whether a local folder that is made, and what is written into it, is for its owner alone.

    Raises
    ------
    WriterBusyError
        Another writer holds it.
    StoreError
        The lock cannot be read or written.
    """
    path = local_path(url)
    if path is None:
        yield Hold(url)
        return
    lock = path / lock_name
    mode = PRIVATE if private else PUBLIC
    with storage_errors(url, "cannot be written", REFUSED_LOCK):
        if make:
            path.mkdir(0o700 if private else 0o777, parents=True, exist_ok=True)
        if lock.parent != path and lock.parent.is_symlink():
            raise StoreError(f"{lock.parent} is a link; put what it leads to in its place")
        lock.parent.mkdir(exist_ok=True)
    with lock_file(lock, url, mode) as fd:
        with storage_errors(url, "cannot be written", REFUSED_LOCK):
            take_lock(fd, url)
        hold = LocalHold(url, fd, lock, mode)
        hold.check()
        yield hold


@contextmanager
def lock_file(lock: Path, url: str, mode: int = PUBLIC) -> Iterator[int]:
    """Yield the descriptor of a file used only for its lock; the file is made if missing.

    Raises
    ------
    StoreError
        It cannot be opened, or is a link: that would lead to a file of somebody else's.
    """
    with storage_errors(url, "cannot be written", REFUSED_LOCK):
        fd = open_no_link(lock, os.O_RDWR | os.O_CREAT, mode)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise StoreError(f"{lock} is not a plain file of one name; remove it")
        yield fd
    finally:
        with suppress(OSError):  # of filesystems without locks
            unlock(fd)  # a child forked meanwhile holds the file open, too
        os.close(fd)


def take_lock(fd: int, url: str, *, wait: bool = False) -> None:
    """Lock an open file with the kernel's lock, which is released when the process ends.

    Raises
    ------
    WriterBusyError
        Another writer has it, and this one is not to wait.
    StoreError
        The filesystem keeps no locks.
    """
    try:
        lock_open_file(fd, wait=wait)
    except BlockingIOError as error:
        raise WriterBusyError(
            f"{url}: another writer is appending; wait for it to end and try again"
        ) from error
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise StoreError(
                f"{url}: its filesystem keeps no locks ({error.strerror}); mount it with flock, or "
                "choose a place on another one"
            ) from error
        raise


def can_compare(url: str) -> bool:
    """Whether writes to this filesystem of objects can be conditional."""
    fs, _ = filesystem(url)
    return _speaks(fs, "s3") or _speaks(fs, "memory")


def _version(url: str) -> Version:
    """Return what tells one content of an object from another; None where there is no object.

    Raises
    ------
    StoreError
        A filesystem whose writes cannot be conditional.
    """
    with storage_errors(url, "cannot be read"):
        fs, path = filesystem(url)
        if _speaks(fs, "s3"):
            fs.invalidate_cache(path)
            try:
                return str(fs.info(path, refresh=True)["ETag"])
            except FileNotFoundError:
                return None
        if _speaks(fs, "memory"):
            return read_bytes(url)
    raise StoreError(
        f"{url}: writers of this filesystem cannot be told apart; give an s3:// URL or a local path"
    )


def _write_if(url: str, content: bytes, seen: Version) -> Version:
    """Replace an object if its version is the one that was seen; return the new version."""
    with storage_errors(url, "cannot be written"):
        fs, path = filesystem(url)
        if _speaks(fs, "s3"):
            return _put_if(fs, path, url, content, seen)
        with _one_comparison:
            if _version(url) not in (seen, content):
                raise _changed(url)
            fs.pipe_file(path, content)
        return content


def _put_if(fs: AbstractFileSystem, path: str, url: str, content: bytes, seen: Version) -> Version:
    """Write an object to S3 by one conditional PUT; return its ETag."""
    condition = {"IfNoneMatch": "*"} if seen is None else {"IfMatch": seen}
    answer = None
    try:
        answer = fs.pipe_file(path, content, **condition)
    except OSError as error:
        response = getattr(error.__cause__, "response", {})
        code = response.get("Error", {}).get("Code")
        absent = isinstance(error, FileNotFoundError) and seen is not None
        if not (absent or code in REFUSALS or error.errno == errno.EINVAL):
            raise
        if read_bytes(url) != content:  # else a first try did it, whose answer was lost
            raise _changed(url) from error
    if isinstance(answer, dict) and "ETag" in answer:
        return str(answer["ETag"])
    version = _version(url)  # before the content, as in `Hold.read`
    return version if read_bytes(url) == content else NO_ETAG


def _changed(url: str) -> WriterBusyError:
    return WriterBusyError(f"{url}: another process changed it meanwhile; nothing was written")


def _speaks(fs: AbstractFileSystem, protocol: str) -> bool:
    """Whether the filesystem is that of the protocol."""
    return protocol in ([fs.protocol] if isinstance(fs.protocol, str) else fs.protocol)
