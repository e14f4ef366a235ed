"""The Zarr store of a writing session: durable on local files, closed when the session ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import zarr
from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import LocalStore, MemoryStore, WrapperStore

from ...core.errors import StoreError
from ...core.systems import flush, replace_file
from . import zarr_loop  # noqa: F401 - registers what ends with the process
from .files import GROUP_FILE, fsync, fsync_folder, storage_errors
from .lock import LOCK_NAME
from .partials import is_partial, partial_path, sweep
from .urls import local_path

# of every write that fails in a session: only `commit` makes it count
NOTHING_COMMITTED = "nothing was committed; try again when the place can be reached and written"


class WriterStore(WrapperStore[Store]):
    """A Zarr store for one writing session.

    On local files an object that replaces another is on the disk before it does, and `sync` brings
    the rest there: a power failure loses nothing that was committed. After an error or an interrupt
    Zarr may leave other writes running. `close` waits for those and refuses later ones, so that
    none of them lands in the next session. An error of the filesystem in `get`, `set`,
    `set_if_not_exists`, `delete` or `delete_dir`, the only methods that the groups and arrays of a
    bag store call, becomes a StoreError that names the object.

    Parameters
    ----------
    url : str
        URL of the bag store, for messages.
    store : Store
    still_ours : callable
        Raises when the writer has lost the store; asked before every write and deletion.
    """

    def __init__(self, url: str, store: Store, still_ours: Callable[[], None]) -> None:
        super().__init__(store)
        self._url = url
        self._still_ours = still_ours
        self._unsynced: set[Path] = set()
        self._folders: set[Path] = set()
        self._running = 0
        self._closed = False
        self._changed = threading.Condition()

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return an object or a part of it, as `Store.get`."""
        with self._naming(key, "reading"):
            return await self._store.get(key, prototype, byte_range)

    async def delete(self, key: str) -> None:
        """Delete an object, as `Store.delete`."""
        async with self._changing(key, "deleting"):
            await self._store.delete(key)
            self._forget(key)

    async def delete_dir(self, prefix: str) -> None:
        """Delete all objects under a prefix, as `Store.delete_dir`."""
        async with self._changing(prefix, "deleting"):
            await self._store.delete_dir(prefix)
            self._forget(prefix)

    async def set(self, key: str, value: Buffer) -> None:
        """Replace an object in one step, as `Store.set`."""
        async with self._changing(key, "writing"):
            if isinstance(self._store, LocalStore):
                await asyncio.to_thread(self._replace, self._store.root, key, value)
            else:
                await self._store.set(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write an object where there is none, as `Store.set_if_not_exists`."""
        async with self._changing(key, "writing"):
            await self._store.set_if_not_exists(key, value)

    def new_group(self, attributes: dict[str, Any]) -> zarr.Group:
        """Replace the current group by an empty one with these attributes, and return it.

        The attributes are written first, by one rename, and stay while the rest is deleted: a
        process that is killed meanwhile leaves a group that has them. The lock of the writers stays
        too.
        """
        marked = zarr.create_group(MemoryStore(), attributes=attributes)
        for key, value in marked.metadata.to_buffer_dict(default_buffer_prototype()).items():
            sync(self.set(key, value))
        if isinstance(self._store, LocalStore):
            sweep(self._store.root)
            self._clear(self._store.root)
        return zarr.open_group(self, mode="r+", zarr_format=3)

    def sync(self) -> None:
        """Bring everything written so far to the disk; objects elsewhere are there already."""
        for path in sorted(self._unsynced):
            fsync(path)
        for folder in sorted(self._folders):
            fsync_folder(folder)
        self._unsynced.clear()
        self._folders.clear()

    def commit(self) -> str | None:
        """Bring the rest to the disk; return the snapshot's id where the store has snapshots."""
        self.sync()
        return None

    def close(self) -> None:
        """Refuse further writes, and wait for those under way."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._running == 0)

    @asynccontextmanager
    async def _changing(self, key: str, action: str) -> AsyncIterator[None]:
        with self._write_under_way(), self._naming(key, action):
            await asyncio.to_thread(self._still_ours)
            yield

    @contextmanager
    def _naming(self, key: str, action: str) -> Iterator[None]:
        place = f"{self._url}: {_described(key)}"
        with storage_errors(place, f"{action} failed", NOTHING_COMMITTED):
            yield

    @contextmanager
    def _write_under_way(self) -> Iterator[None]:
        with self._changed:
            if self._closed:
                raise StoreError(f"{self._store}: the writing session is over")
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _replace(self, root: Path, key: str, value: Buffer) -> None:
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        replaces = path.exists()
        partial = partial_path(path)
        try:
            with partial.open("wb") as file:
                file.write(value.as_buffer_like())
                if replaces:
                    file.flush()
                    flush(file.fileno())
            replace_file(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        with self._changed:
            if not replaces:
                self._unsynced.add(path)
            self._folders.update(f for f in path.parents if f == root or root in f.parents)

    def _clear(self, root: Path) -> None:
        own = {root / GROUP_FILE, root / LOCK_NAME, (root / LOCK_NAME).parent}
        for path in sorted(root.rglob("*"), reverse=True):  # what is in a folder before the folder
            if path in own:
                continue
            self._still_ours()
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()

    def _forget(self, key: str) -> None:
        """Bring no deleted object to the disk."""
        if isinstance(self._store, LocalStore):
            gone = self._store.root / key
            with self._changed:
                self._unsynced -= {p for p in self._unsynced if p.is_relative_to(gone)}


def _described(key: str) -> str:
    """Return what messages call an object: its array and its name in that array."""
    array, slash, chunk = key.partition("/c/")
    if slash:
        return f"array {array!r}, object c/{chunk}"
    return f"object {key!r}" if key else "all objects"


def remove_partials(url: str) -> None:
    """Delete the temporary files of killed writers; only the holder of the lock may call it."""
    path = local_path(url)
    for partial in () if path is None else path.rglob("*.partial"):
        if is_partial(partial.name):  # Zarr's own temporary files have names of this form, too
            partial.unlink(missing_ok=True)
