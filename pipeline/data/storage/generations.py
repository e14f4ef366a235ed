"""Zarr groups in object stores, replaced as a whole although objects cannot be renamed.

A new group is written within the one at the URL, as ``URL/generation-<32 hexadecimal digits>``.
Then one PUT gives the group at the URL the new one's attributes and its name (`CURRENT`), by which
readers find the arrays. The group that was named before is deleted.
"""

from __future__ import annotations

import errno
import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from ...core.errors import StoreError, WriterBusyError
from .files import GROUP_FILE, discard, json_bytes, read_json, storage_errors, write_json
from .lock import Hold, can_compare
from .partials import STALE_SECONDS
from .urls import filesystem

CURRENT = "bagbasis_current"  # attribute: the group within a group that is to be read for it
GENERATION = r"generation-[0-9a-f]{32}"


def is_generation(name: str) -> bool:
    """Whether a folder has the name of a generation: current, old or unfinished."""
    return re.fullmatch(GENERATION, name) is not None


@contextmanager
def writing_generation(url: str, overwrite: bool) -> Iterator[str]:
    """Yield a place for a group; from the end of the block it is read for the one at the URL.

    Raises
    ------
    OSError
        FileExistsError where a group appeared at the URL and there is no ``overwrite``.
    """
    name = f"generation-{uuid.uuid4().hex}"
    place = f"{url}/{name}"
    try:
        yield place
        metadata = read_json(f"{place}/{GROUP_FILE}", dict)
        if metadata is None:
            raise FileNotFoundError(errno.ENOENT, "what was written is gone", place)
    except BaseException:
        discard(place)
        raise
    metadata["attributes"] |= {CURRENT: name}
    try:
        replaced = _replace(url, metadata, overwrite)
    except WriterBusyError as error:
        discard(place)
        raise FileExistsError(errno.EEXIST, "somebody else wrote there", url) from error
    with suppress(StoreError):  # the new one is there; the next writer deletes what stays
        _delete_others(url, name, replaced)


def _replace(url: str, metadata: dict[str, object], overwrite: bool) -> str | None:
    """Write the metadata of a group; return what the group pointed to before."""
    if not can_compare(url):
        write_json(f"{url}/{GROUP_FILE}", metadata)
        return None
    hold = Hold(url)
    while True:
        content = hold.read(GROUP_FILE) if overwrite else None
        try:
            hold.write(GROUP_FILE, json_bytes(metadata))
        except WriterBusyError:
            if not overwrite:
                raise
        else:
            return (
                None if content is None else json.loads(content).get("attributes", {}).get(CURRENT)
            )


def _delete_others(url: str, current: str, replaced: str | None) -> None:
    """Delete all generations but one; of unfinished ones only those a day old."""
    with storage_errors(url, "cannot be deleted"):
        fs, root = filesystem(url)
        fs.invalidate_cache()  # others write there
        paths_by_name: dict[str, list[str]] = {}
        for path in fs.find(root):
            paths_by_name.setdefault(path.removeprefix(f"{root}/").partition("/")[0], []).append(
                path
            )
        for name, paths in paths_by_name.items():
            if name in (GROUP_FILE, current):
                continue
            if is_generation(name) and name != replaced:  # its writer may live
                last = max(fs.modified(path) for path in paths)
                if (datetime.now(UTC) - last).total_seconds() < STALE_SECONDS:
                    continue
            fs.rm(paths)
