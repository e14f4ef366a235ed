"""Bag stores kept by Icechunk, at ``icechunk+file:///…`` and ``icechunk+s3://…``.

An append is one transaction, and any number of writers may try. The second commit fails because the
store has changed, and leaves no trace. A reader sees one snapshot, whatever is committed meanwhile.
No other module imports Icechunk.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import zarr
from zarr.abc.store import Store
from zarr.core.sync import sync

from ...core.errors import StoreError, WriterBusyError, needing_extra
from .files import GROUP_FILE, check_answers, read_bytes, staged, storage_errors
from .folders import replace_folder
from .lock import Hold, lock_file, take_lock
from .urls import ICECHUNK, filesystem
from .zarr_writer import NOTHING_COMMITTED, WriterStore

if TYPE_CHECKING:
    from icechunk import Repository, Session, Storage

BRANCH = "main"
BRANCH_FILE = f"refs/branch.{BRANCH}/ref.json"  # object that makes a place a repository
COMMIT_LOCK = "commit.lock"  # lock file of a repository on local files
COMMITTING = ("committing failed", NOTHING_COMMITTED)
OUTCOME_UNKNOWN = (
    "committing failed",
    "nobody answers whether it was done; look before you write again",
)
WRITER_KEY = "writer"  # key of the writer's mark in the metadata of a commit
NO_STORE = "exists and is not a bag store; remove it or choose another place"


def repository_exists(url: str) -> bool:
    """Whether a repository, or anything else on local files, is there.

    Raises
    ------
    StoreError
        Another URL than those two, Icechunk is not installed, or the place cannot be reached.
    """
    path = _local(url)
    if path is not None:
        return path.exists()
    with storage_errors(url, "cannot be read"):
        return _has_repository(url)


def repository_is_empty(url: str) -> bool:
    """Whether nothing was ever committed to the repository, because its maker was killed.

    An empty local folder counts too: its maker was killed even earlier.
    """
    path = _local(url)
    with storage_errors(url, "cannot be read"):
        if path is not None and not path.is_dir():
            return False
        if path is not None and not _has_repository(url):
            return not any(path.iterdir())
        return len(list(islice(_repository(url).ancestry(branch=BRANCH), 2))) == 1


def latest(url: str) -> str:
    """Return the id of the last snapshot that was committed.

    Raises
    ------
    StoreError
        No repository is there.
    """
    with storage_errors(url, "cannot be read"):
        return str(_repository(url).lookup_branch(BRANCH))


def delete_snapshots(url: str, before: datetime) -> None:
    """Delete the snapshots committed before a time, except the last, and their objects.

    A writer that began before this time and has not committed yet is refused when it commits: its
    objects may be deleted too.
    """
    with storage_errors(url, "old snapshots cannot be deleted", "compact again"):
        repository = _repository(url)
        repository.expire_snapshots(older_than=before)
        repository.garbage_collect(before)


def reader(url: str, snapshot: str | None) -> Store:
    """Return the Zarr store of a snapshot, or of the last one for None."""
    with storage_errors(url, "cannot be read"):
        repository = _repository(url)
        if snapshot is None:
            return _readable(repository.readonly_session(BRANCH))
        return _readable(repository.readonly_session(snapshot_id=snapshot))


class Transaction(WriterStore):
    """A writing session whose changes nobody sees until `commit`, and then all at once.

    Parameters
    ----------
    url : str
    still_ours : callable
        As of `WriterStore`.
    since : str or None
        The snapshot the writer has seen; None makes a repository where there is none.

    Raises
    ------
    WriterBusyError
        There is a later snapshot than the one the writer has seen.
    """

    def __init__(self, url: str, still_ours: Callable[[], None], since: str | None) -> None:
        with storage_errors(url, "cannot be written", NOTHING_COMMITTED):
            repository = _repository(url, make=since is None)
            self._session = repository.writable_session(BRANCH)
            store = _readable(self._session)
        if since is not None and self._session.snapshot_id != since:
            raise _overtaken(url)
        super().__init__(url, store, still_ours)

    def new_group(self, attributes: dict[str, Any]) -> zarr.Group:
        """Return a new, empty group with these attributes; it replaces the previous one."""
        return zarr.open_group(self, mode="w", zarr_format=3, attributes=attributes)

    def commit(self) -> str:
        """Commit what was written, if anything; return the id of the snapshot.

        A network may carry out a commit and lose the answer. Icechunk then asks again, and finds a
        conflict with this very commit. So a commit has a mark of its own, by which it is looked for
        when it seems to have failed, and nothing is committed twice.

        Raises
        ------
        WriterBusyError
            Another writer has committed since this one began; nothing is kept.
        StoreError
            The place cannot be written.
        """
        icechunk = _icechunk(self._url)
        if not self._session.has_uncommitted_changes:
            return str(self._session.snapshot_id)
        before, mark = self._session.snapshot_id, uuid.uuid4().hex
        with storage_errors(self._url, *COMMITTING), _one_commit_at_a_time(self._url):
            try:
                return str(self._session.commit("bagbasis", metadata={WRITER_KEY: mark}))
            except Exception as error:  # whatever it is, it may be the answer alone that failed
                with storage_errors(self._url, *OUTCOME_UNKNOWN):
                    done = _find_commit(self._url, mark, before)
                if done is not None:
                    return done
                if isinstance(error, icechunk.ConflictError):
                    raise _overtaken(self._url) from error
                raise


def _find_commit(url: str, mark: str, before: str) -> str | None:
    """Return the snapshot that has a mark, among those after another one; None if there is none."""
    for snapshot in _repository(url).ancestry(branch=BRANCH):
        if snapshot.id == before:
            return None
        if snapshot.metadata.get(WRITER_KEY) == mark:
            return str(snapshot.id)
    return None


def _overtaken(url: str) -> WriterBusyError:
    return WriterBusyError(
        f"{url}: another writer committed meanwhile; nothing was committed; try again"
    )


def _repository(url: str, make: bool = False) -> Repository:
    icechunk = _icechunk(url)
    path = _local(url)
    if make and path is not None:
        path.mkdir(parents=True, exist_ok=True)  # where that fails, Icechunk panics
    if make and not _has_repository(url):
        _make(url)
    if not repository_exists(url):  # Icechunk would make the folder
        check_answers(url.removeprefix(ICECHUNK))
        raise StoreError(f"{url}: not found")
    if path is not None and not path.is_dir():  # there Icechunk panics
        raise StoreError(f"{url}: not a folder")
    repository: Repository = icechunk.Repository.open(_storage(url))
    return repository


def _has_repository(url: str) -> bool:
    """Whether a repository is at the place: Icechunk is asked, then its branch is looked for."""
    if _icechunk(url).Repository.exists(_storage(url)):
        return True
    # Icechunk takes a page of HTML for a place without a repository
    place = url.removeprefix(ICECHUNK)
    return _local(url) is None and read_bytes(f"{place}/{BRANCH_FILE}") is not None


def _readable(session: Session) -> Store:
    """Return the store of a session whose snapshot has been read.

    Icechunk reads the snapshot with the first key and keeps it. If that fails, its `get` tells Zarr
    that there is no such key: with a bad network the store would look empty.
    """
    sync(session.store.exists(GROUP_FILE))
    return session.store


def _make(url: str) -> None:
    """Make a repository; if another process makes it at the same time, use that one.

    A local one is made next to its place and renamed. In an object store Icechunk first writes the
    first snapshot, whose name is always the same, and then, by a conditional PUT, the branch that
    turns it into a repository. If a maker is killed between the two, Icechunk refuses the place for
    ever.
    """
    icechunk, path = _icechunk(url), _local(url)
    if path is not None:
        with staged(path) as fresh, suppress(FileExistsError):
            _make_empty(url, fresh)
            replace_folder(fresh, path, overwrite=False)
        return
    try:
        icechunk.Repository.create(_storage(url))
    except icechunk.IcechunkError:
        if not repository_exists(url) and not _finish(url):
            raise


def _finish(url: str) -> bool:
    """Write the objects that a killed maker did not; False if it has written nothing.

    Every object is written only if it is missing. If two processes do this at once, one of them
    perhaps the maker, one writes the object and the other continues with it.
    """
    place = url.removeprefix(ICECHUNK)
    fs, root = filesystem(place)
    fs.invalidate_cache()  # others write there
    present = {name.removeprefix(f"{root}/") for name in fs.find(root)}
    if not present:
        return False
    with tempfile.TemporaryDirectory() as folder:
        whole = _make_empty(url, Path(folder, "whole"))
    if not present <= whole.keys():
        check_answers(place)
        raise StoreError(f"{url}: {NO_STORE}")
    hold = Hold(place)
    for name in sorted(whole.keys() - present):
        with suppress(WriterBusyError):
            hold.write(name, whole[name])
    return True


def _make_empty(url: str, folder: Path) -> dict[str, bytes]:
    """Make a repository in a local folder; return its files by their names."""
    icechunk = _icechunk(url)
    folder.mkdir()  # where Icechunk cannot make it, it panics
    icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder)))
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _storage(url: str) -> Storage:
    icechunk = _icechunk(url)
    path = _local(url)
    if path is not None:
        folder: Storage = icechunk.local_filesystem_storage(str(path))
        return folder
    bucket, _, prefix = url.removeprefix(f"{ICECHUNK}s3://").partition("/")
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    objects: Storage = icechunk.s3_storage(
        bucket=bucket,
        prefix=prefix,
        region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
        endpoint_url=endpoint,
        allow_http=endpoint is not None and endpoint.startswith("http://"),
        force_path_style=endpoint is not None,
        from_env=True,
    )
    return objects


def _local(url: str) -> Path | None:
    inner = url.removeprefix(ICECHUNK)
    if inner.startswith("file://"):
        return Path(inner.removeprefix("file://")).absolute()
    if inner.startswith("s3://"):
        return None
    raise StoreError(f"{url}: expected icechunk+file:///PATH or icechunk+s3://BUCKET/PATH")


def _icechunk(url: str) -> ModuleType:
    with needing_extra("icechunk", url, StoreError):
        icechunk = importlib.import_module("icechunk")  # which local stores do not need
    icechunk.set_logs_filter("error")  # its warning that local commits need the lock they have
    return icechunk


@contextmanager
def _one_commit_at_a_time(url: str) -> Iterator[None]:
    """Hold the kernel's lock, as local files have no compare-and-replace as objects have."""
    path = _local(url)
    if path is None:
        yield
        return
    with lock_file(path / COMMIT_LOCK, url) as fd:
        take_lock(fd, url, wait=True)
        yield
