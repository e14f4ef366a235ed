"""The memory that a call takes, of Python and of NumPy."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def peak_of(call: Callable[[], object], n_times: int = 3, enough: float = 0) -> int:
    """Return the bytes that a call takes at most, made once before for what is kept by it.

    What is imported, compiled or cached by the first call is not counted. The least of some calls,
    up to one that takes no more than ``enough``: memory that other threads of the process take
    meanwhile is traced, too.
    """
    call()
    tracemalloc.start()
    try:
        peaks = [_traced(call)]
        while len(peaks) < n_times and min(peaks) > enough:
            peaks.append(_traced(call))
        return min(peaks)
    finally:
        tracemalloc.stop()


def _traced(call: Callable[[], object]) -> int:
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    call()
    return tracemalloc.get_traced_memory()[1] - before
