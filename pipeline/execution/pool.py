"""Runs the parts of a piece of work on as many threads as the lane has cores.

Who calls it cuts the work by the sizes of the data alone, never by the number of threads, and lets
no two parts write to the same place. So the result has the same bits on any number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Lock

from .lanes import lane_cores

Work = Callable[[int], None]


class _Helpers:
    """Threads that take parts beside the one that asks for help; they are kept."""

    def __init__(self) -> None:
        self.forget()
        os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Begin anew: threads do not survive a fork, and the lock may have been held."""
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._n = 0

    def start(self, take: Callable[[], None], n: int) -> list[Future[None]]:
        """Ask n threads to call ``take``, each in the caller's context (numpy's error state)."""
        futures: list[Future[None]] = []
        # RuntimeError: Python is about to end, or another lane has replaced the threads just now.
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
    """Call ``work(part)`` for each part, on as many threads as the lane has cores.

    The calling thread takes parts, too, and waits for nothing but parts that have begun. So a call
    from within a part, or one whose helpers are all busy elsewhere, is at worst slow.

    Raises
    ------
    Exception
        The first that a part raises. Parts that have not begun are then left out.
    """
    n_helpers = min(n_parts, lane_cores()) - 1 if n_parts > 1 else 0
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


class _Parts:
    """Hands out each part to one of the threads that iterate over it."""

    def __init__(self, n: int) -> None:
        self._lock = Lock()
        self._left = iter(range(n))

    def stop(self) -> None:
        """Hand out no more."""
        with self._lock:
            self._left = iter(range(0))

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._left)
