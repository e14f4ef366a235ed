"""Where files of tests lie in memory, and as safe from a SIGKILL as on a disk."""

from __future__ import annotations

import os

MEMORY = "/dev/shm"


def memory_folder(n_bytes: int) -> str | None:
    """Return a folder with so many bytes free, of which files can be run; None without one."""
    if not os.path.isdir(MEMORY):
        return None
    result = os.statvfs(MEMORY)
    is_roomy = result.f_bavail * result.f_frsize >= n_bytes
    return MEMORY if is_roomy and not result.f_flag & os.ST_NOEXEC else None
