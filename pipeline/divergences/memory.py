"""How much memory is left, and the refusal of a matrix that would not fit into it."""

from __future__ import annotations

import os
from numbers import Integral
from pathlib import Path

from ..errors import DataError, ParameterError

MEMINFO = Path("/proc/meminfo")
CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def require_memory(what: str, n_bytes: int, advice: str, max_bytes: int | None = None) -> None:
    """Refuse work that needs more memory than there is.

    Parameters
    ----------
    what : str
        Named in the refusal, with its N.
    n_bytes : int
        What it takes: the result and the working copies.
    advice : str
        What to do instead.
    max_bytes : int, optional
        The limit; `available_bytes` when not given.

    Raises
    ------
    DataError
        ``n_bytes`` is above the limit.
    ParameterError
        ``max_bytes`` is not a positive integer.
    """
    if max_bytes is not None and (not isinstance(max_bytes, Integral) or max_bytes < 1):
        raise ParameterError(f"max_bytes is {max_bytes!r}; expected a number of bytes ≥ 1")
    limit = available_bytes() if max_bytes is None else int(max_bytes)
    if n_bytes > limit:
        allowed = "are available" if max_bytes is None else "are allowed (max_bytes)"
        raise DataError(
            f"{what} needs {n_bytes:,} bytes ({n_bytes / 2**30:.1f} GiB) and {limit:,} bytes "
            f"({limit / 2**30:.1f} GiB) {allowed}; {advice}"
        )


def available_bytes() -> int:
    """Bytes this process may still take: of the machine, or of its container when that has less."""
    available = _machine_bytes()
    for path in CONTAINER_LIMITS:
        limit = _read(path).strip()
        if limit.isdigit():  # "max": no limit
            available = min(available, int(limit))
    return available


def _machine_bytes() -> int:
    for line in _read(MEMINFO).splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # another system than Linux, or no container
        return ""
