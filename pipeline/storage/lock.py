"""One writer a store: a kernel lock on local files, a lease object elsewhere."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import StoreError, WriterBusyError
from .files import read_bytes, storage_errors
from .urls import filesystem, is_transactional, local_path

LOCK_NAME = "points/writer.lock"  # not in the root, where Zarr would take it for a stray node
LEASE_SECONDS = 120.0
NOTHING = "nothing was committed"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hold:
    """A store held for writing.

    Attributes
    ----------
    token : str
        Tells this hold from every other; `holder` returns it as long as nobody else took over.
    check : callable
        Raises WriterBusyError when the store is no longer ours.
    """

    token: str
    check: Callable[[], None]


@contextmanager
def writer_lock(url: str) -> Iterator[Hold]:
    """Hold the store for writing; the hold is to be checked before every write.

    On local files the lock is the kernel's (flock): it goes with the process, however that
    ends. Elsewhere it is a lease object, renewed while held, that expires two minutes after its
    holder died. A store kept by Icechunk needs none.

    Raises
    ------
    WriterBusyError
        Another writer holds the store, or took it over meanwhile.
    StoreError
        The lock can not be read or written.
    """
    token = uuid.uuid4().hex
    if is_transactional(url):  # whoever commits second is refused then
        yield Hold(token, lambda: None)
        return
    path = local_path(url)
    with _file_lock(path, url, token) if path is not None else _lease(url, token) as check:
        yield Hold(token, check)


def holder(url: str) -> str | None:
    """The token of the writer that holds the store, or held it when it was killed."""
    path = local_path(url)
    if path is None:
        return _Lease(url, "").current().get("owner")
    with suppress(OSError):
        return (path / LOCK_NAME).read_text() or None
    return None


@contextmanager
def _file_lock(path: Path, url: str, token: str) -> Iterator[Callable[[], None]]:
    lock = path / LOCK_NAME

    def check() -> None:
        if not _is_open_as(fd, lock):
            raise WriterBusyError(f"{url}: the store was replaced; nothing was committed")

    with storage_errors(url, "can not be written", NOTHING):
        lock.parent.mkdir(exist_ok=True)
        fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with storage_errors(url, "can not be written", NOTHING):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise WriterBusyError(
                    f"{url}: another writer is appending; wait for it to end and try again"
                ) from error
        try:
            check()
            with storage_errors(url, "can not be written", NOTHING):
                os.ftruncate(fd, 0)
                os.pwrite(fd, token.encode(), 0)
            yield check
        finally:
            with suppress(OSError):
                os.ftruncate(fd, 0)
            fcntl.flock(fd, fcntl.LOCK_UN)  # a child forked meanwhile holds the file open, too
    finally:
        os.close(fd)


def _is_open_as(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


@contextmanager
def _lease(url: str, token: str) -> Iterator[Callable[[], None]]:
    lease = _Lease(url, token)
    lease.take()
    over = threading.Event()
    renewer = threading.Thread(target=lease.renew_until, args=(over,), daemon=True)
    renewer.start()
    try:
        yield lease.check
    finally:
        over.set()
        renewer.join()
        lease.release()


class _Lease:
    """An object beside the points that says who writes, and when it last gave a sign of life."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._fs, root = filesystem(url)
        self._root = root
        self._path = f"{root}/{LOCK_NAME}"

    def current(self) -> dict[str, Any]:
        """The lease as it is stored; empty without one."""
        with storage_errors(f"{self._url}/{LOCK_NAME}", "can not be read", NOTHING):
            text = read_bytes(f"{self._url}/{LOCK_NAME}")
        if text is None:
            return {}
        try:
            lease = dict(json.loads(text))
            return {**lease, "renewed": float(lease["renewed"])}
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(
                f"{self._url}: the lease {LOCK_NAME} is unreadable; delete it if nobody is writing"
            ) from error

    def take(self) -> None:
        held = self.current()
        if held and time.time() - held["renewed"] < LEASE_SECONDS:
            raise WriterBusyError(
                f"{self._url}: another writer ({held.get('host')}) is appending; if it died, its "
                f"lease ends {LEASE_SECONDS:.0f} s after its last sign of life"
            )
        with storage_errors(self._url, "can not be written", NOTHING):
            try:
                if held:
                    self._fs.rm_file(self._path)
                self._fs.pipe_file(self._path, self._body(), mode="create")
            except (FileExistsError, FileNotFoundError) as error:
                raise WriterBusyError(
                    f"{self._url}: another writer is appending; try again later"
                ) from error
        self.check()

    def check(self) -> None:
        """Raise WriterBusyError when the lease is somebody else's; renew it when it is old."""
        held = self.current()
        if held.get("owner") != self._token:
            raise WriterBusyError(
                f"{self._url}: another writer took the store over; nothing was committed"
            )
        if time.time() - held["renewed"] > LEASE_SECONDS / 8:
            with storage_errors(f"{self._url}/{LOCK_NAME}", "can not be written", NOTHING):
                self._fs.pipe_file(self._path, self._body())

    def renew_until(self, over: threading.Event) -> None:
        while not over.wait(LEASE_SECONDS / 4):
            try:
                self.check()
            except WriterBusyError:
                return
            except Exception as error:
                logger.warning("%s: the lease could not be renewed (%s)", self._url, error)

    def release(self) -> None:
        try:
            if self.current().get("owner") == self._token:
                self._fs.rm_file(self._path)
        except Exception as error:
            logger.warning("%s: the lease could not be released (%s)", self._url, error)

    def _body(self) -> bytes:
        lease = {"owner": self._token, "host": socket.gethostname(), "renewed": time.time()}
        return json.dumps(lease).encode()
