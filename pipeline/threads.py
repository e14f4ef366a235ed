"""Threads of one process: how long idle ones spin, and the lock of parallel kernels.

Numba's fallback threading layer must not be entered by two threads at once, and two parallel
kernels at a time would only share the cores one of them can fill: whoever runs a parallel
kernel holds this lock.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .errors import BagbasisError

# Idle threads of OpenMP and OpenBLAS spin for milliseconds (OpenBLAS: 2^26 cycles) on the cores
# that the other wants next. Both are read when the library is loaded, so this module comes first
# in the package; worker processes inherit it. 2^16 cycles are some 25 µs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")


class KernelLock:
    """A lock that its holder may take again, and lend."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_lost = False
        os.register_at_fork(after_in_child=self._look_at_layer)

    def _look_at_layer(self) -> None:
        """See whether the parent had started GNU's OpenMP, which ends forked processes."""
        with suppress(KeyError, ValueError):  # no numba, or no kernel has run
            self._is_lost = self._is_lost or sys.modules["numba"].threading_layer() == "omp"

    def __enter__(self) -> None:
        """Wait for the lock; BagbasisError where numba would end the process by a signal."""
        if self._is_lost:
            raise BagbasisError(
                "this process was forked from one that had run kernels, which OpenMP does not "
                "survive: start it by multiprocessing.get_context('spawn'), or by joblib"
            )
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let other threads have the lock, if this one holds it, until the block ends.

        Users' functions are called within: they may wait for Dask's threads, and these for it.
        """
        depth = 0
        with suppress(RuntimeError):  # not held by this thread, or not any more
            while True:
                self._lock.release()
                depth += 1
        try:
            yield
        finally:
            for _ in range(depth):
                self._lock.acquire()


KERNELS = KernelLock()
