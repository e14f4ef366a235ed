"""Memory available to this process, by the limits of its control groups and its own limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

from ..core.systems import address_limit, resident_limit

_GROUPS = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")
LIMIT_FILES = {"": "memory.max", "memory": "memory.limit_in_bytes"}  # file of a controller's limit


def memory_limit() -> int:
    """Return the number of bytes that this process may use in total.

    This is the memory of the machine, or the smallest limit. The process's control group and its
    parents may have limits (SLURM and systemd set them on groups below the root, containers on the
    group that they show as the root). So may the process: RLIMIT_RSS, which Dask respects, too, and
    RLIMIT_AS, of which the used part is subtracted.
    """
    own, addresses = resident_limit(), address_limit()
    limits: list[int] = [psutil.virtual_memory().total, *group_limits()]
    if own is not None:
        limits.append(own)
    if addresses is not None:
        limits.append(max(0, addresses - int(psutil.Process().memory_info().vms)))
    return min(limits)


def available_memory() -> int:
    """Return the bytes still available to this process: the machine's, or its limit if less."""
    return min(int(psutil.virtual_memory().available), memory_limit())


def group_limits(groups: Path = _GROUPS, mount: Path = MOUNT) -> Iterator[int]:
    """Yield the limits of the control groups that this process is in, of versions 1 and 2.

    Parameters
    ----------
    groups : Path
        File with lines "number:controllers:path"; paths are relative to ``mount``.
    mount : Path
        Folder where the control groups are mounted.
    """
    try:
        lines = groups.read_text().splitlines()
    except OSError:  # another system than Linux
        lines = []
    paths = {("", "/"), ("memory", "/")}  # in a container the path may be one of its host
    for line in lines:
        _, controllers, path = line.split(":", 2)
        paths |= {(name, path) for name in controllers.split(",") if name in LIMIT_FILES}
    for controller, path in sorted(paths):
        root = mount / controller
        folder = root / path.lstrip("/")
        for parent in (folder, *folder.parents):
            if parent.is_relative_to(root):
                yield from _limit(parent / LIMIT_FILES[controller])


def _limit(file: Path) -> Iterator[int]:
    try:
        text = file.read_text().strip()
    except OSError:  # no such group, or one without a limit
        return
    if text.isdecimal():  # "max": no limit
        yield int(text)
