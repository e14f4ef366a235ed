"""Runs the parts of a piece of work on as many threads as the worker has cores.

Callers cut the work only by the sizes of the data, never by the number of threads. No two parts may
write to the same place. So the result has the same bits on any number of cores.

Kernels are serial and release the GIL. `run_kernel` runs a kernel over ranges of rows or bags.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ..core.systems import after_fork
from .worker_threads import log_compilers, worker_cores

Work = Callable[[int], None]

RANGE_SECONDS = 2e-4  # work in a range: handing one out takes a fiftieth of it
MAX_RANGES = 1024  # ranges of one call: enough for any machine


class _Helpers:
    """Reusable threads that help the calling thread with its parts."""

    def __init__(self) -> None:
        self.forget()
        after_fork(self.forget)

    def forget(self) -> None:
        """Start over after a fork, which ends the threads and may leave the lock held."""
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._n = 0

    def start(self, take: Callable[[], None], n: int) -> list[Future[None]]:
        """Ask n threads to call ``take``, each in the caller's context (numpy's error state)."""
        futures: list[Future[None]] = []
        # RuntimeError: Python is about to end, or another worker has replaced the threads just now.
        # The caller then does the work alone.
        with suppress(RuntimeError):
            for _ in range(n):
                futures.append(self._threads(n).submit(copy_context().run, take))
        return futures

    def _threads(self, n: int) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None or self._n != n:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)
                self._executor, self._n = ThreadPoolExecutor(n, "bagbasis"), n
            return self._executor


_HELPERS = _Helpers()


def run_parts(work: Work, n_parts: int) -> None:
    """Call ``work(part)`` for each part, on as many threads as the worker has cores.

    The calling thread takes parts, too, and waits only for parts that have begun. So a nested call,
    or a call while all helpers are busy, is at worst slow.

    Raises
    ------
    Exception
        The first exception that a part raises. Parts that have not begun are then skipped.
    """
    n_helpers = min(n_parts, worker_cores()) - 1 if n_parts > 1 else 0
    if n_helpers < 1:
        for part in range(n_parts):
            work(part)
        return
    parts = _Parts(n_parts)

    def take() -> None:
        for part in parts:
            try:
                work(part)
            except BaseException:
                parts.stop()
                raise

    futures = _HELPERS.start(take, n_helpers)
    try:
        take()
    finally:
        parts.stop()
        begun = [future for future in futures if not future.cancel()]
        errors = [future.exception() for future in begun]
    for error in errors:
        if error is not None:
            raise error


def run_kernel(kernel: Callable[..., None], edges: Sequence[int], *arguments: object) -> None:
    """Call ``kernel(start, stop, *arguments)`` for each range between neighbours of ``edges``.

    Parameters
    ----------
    kernel : callable
        Kernel compiled with ``nogil=True``. It writes only to the places of its range.
    edges : sequence of int
        Increasing edges of the ranges, see `even_edges` and `weighted_edges`. A single range is run
        by the caller.
    """
    log_compilers()
    if len(edges) == 2:
        kernel(edges[0], edges[1], *arguments)
        return
    run_parts(lambda part: kernel(edges[part], edges[part + 1], *arguments), len(edges) - 1)


def even_edges(n: int, seconds: float) -> list[int]:
    """Return the edges of ranges of n equal units of work that take ``seconds`` each.

    The seconds are an order of magnitude, or 0 for empty units. There is at least one range, which
    may be empty.
    """
    enough = int(RANGE_SECONDS / seconds) if seconds else n
    size = max(1, enough, -(-n // MAX_RANGES))
    return [*range(0, n, size), n] if n else [0, 0]


def weighted_edges(offsets: NDArray[np.int64], seconds: float) -> list[int]:
    """Return the edges of ranges of bags with about equal numbers of points.

    Parameters
    ----------
    offsets : int64, shape (n_bags + 1,)
    seconds : float
        Seconds per point, in order of magnitude.
    """
    n_bags = len(offsets) - 1
    n_ranges = min(n_bags, MAX_RANGES, math.ceil(int(offsets[-1]) * seconds / RANGE_SECONDS))
    if n_ranges <= 1:
        return [0, n_bags]
    wanted = np.linspace(0, offsets[-1], n_ranges + 1)[1:-1]
    return sorted({0, *np.searchsorted(offsets, wanted).tolist(), n_bags})


class _Parts:
    """Hands out each part to one of the threads that iterate over it."""

    def __init__(self, n: int) -> None:
        self._lock = Lock()
        self._left = iter(range(n))

    def stop(self) -> None:
        """Stop handing out parts."""
        with self._lock:
            self._left = iter(range(0))

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._left)
