"""One writer a store: a kernel lock on local files, a lease object elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import StoreError, WriterBusyError
from .urls import filesystem, local_path

LOCK_NAME = "points/writer.lock"  # not in the root, where Zarr would take it for a stray node
LEASE_SECONDS = 120.0


@contextmanager
def writer_lock(url: str) -> Iterator[Callable[[], None]]:
    """Hold the store for writing; yields a check to call right before the commit.

    On local files the lock is the kernel's (flock): it goes with the process, however that
    ends. Elsewhere it is a lease object, renewed while held, that expires two minutes after its
    holder died.

    Raises
    ------
    WriterBusyError
        Another writer holds the store, or took it over meanwhile.
    """
    path = local_path(url)
    if path is not None:
        with _file_lock(path, url):
            yield lambda: None
    else:
        with _lease(url) as check:
            yield check


@contextmanager
def _file_lock(path: Path, url: str) -> Iterator[None]:
    try:
        fd = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"{url}: can not be written ({error.strerror})") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise WriterBusyError(
                f"{url}: another writer is appending; wait for it to end and try again"
            ) from error
        yield
    finally:
        os.close(fd)


@contextmanager
def _lease(url: str) -> Iterator[Callable[[], None]]:
    fs, root = filesystem(url)
    path = f"{root}/{LOCK_NAME}"
    owner = uuid.uuid4().hex

    def body() -> bytes:
        lease = {"owner": owner, "host": socket.gethostname(), "renewed": time.time()}
        return json.dumps(lease).encode()

    def current() -> dict[str, object]:
        fs.invalidate_cache(root)
        try:
            return dict(json.loads(fs.cat_file(path)))
        except FileNotFoundError:
            return {}

    def check() -> None:
        if current().get("owner") != owner:
            raise WriterBusyError(f"{url}: another writer took the store over; nothing committed")

    held = current()
    if held and time.time() - float(str(held["renewed"])) < LEASE_SECONDS:
        raise WriterBusyError(
            f"{url}: another writer ({held['host']}) is appending; if it died, its lease ends "
            f"{LEASE_SECONDS:.0f} s after its last sign of life"
        )
    if held:
        fs.rm_file(path)
    try:
        fs.pipe_file(path, body(), mode="create")
    except FileExistsError as error:
        raise WriterBusyError(f"{url}: another writer is appending; try again later") from error
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(LEASE_SECONDS / 4):
            fs.pipe_file(path, body())

    renewer = threading.Thread(target=renew, daemon=True)
    renewer.start()
    try:
        yield check
    finally:
        stop.set()
        renewer.join()
        if current().get("owner") == owner:
            fs.rm_file(path)
