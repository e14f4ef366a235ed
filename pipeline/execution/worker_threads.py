"""Threads of a worker: its number of cores, and the task that uses them."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import lru_cache
from threading import Lock, get_ident

import joblib
import scipy.linalg.cython_blas  # noqa: F401 - SciPy's BLAS, which limits have to find
from threadpoolctl import ThreadpoolController

from ..core.compiling import events
from ..core.errors import ParameterError, shown
from ..core.systems import after_fork, c_library, check_addresses
from .lazy_dask import distributed

CORES_VARIABLE = "BAGBASIS_WORKER_CORES"
EARLIER_VARIABLE = "BAGBASIS_LANE_CORES"  # read until 1.1
COMPILING = "compiling kernels (once)"
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
GIVEN_BACK_BYTES = 2**20  # blocks of this size are given back to the system when they are freed
# `reusing_memory` keeps freed blocks below this size, and up to twice as much at the heap's end
REUSED_BYTES = 2**24

logger = logging.getLogger(__name__)

_hearing: list[Callable[[str], None]] = []


def worker_cores() -> int:
    """Return the number of cores that this process may use.

    In a Dask worker this is the number that `connect` put in the environment, else the number of
    the worker's threads. Elsewhere it is the number of usable cores, by cgroups and affinity.

    Raises
    ------
    ParameterError
        If the environment variable is not a positive whole number.
    """
    for name in (CORES_VARIABLE, EARLIER_VARIABLE):
        if name in os.environ:
            return _cores_of(name, os.environ[name])
    if "distributed" in sys.modules:  # else this is not a worker
        with suppress(ValueError):
            return max(1, int(distributed.get_worker().state.nthreads))
    return _cores_of_process()


@lru_cache(maxsize=1)
def _cores_of_process() -> int:
    # the same number as Dask's, without the half second of importing Dask
    return max(1, int(joblib.cpu_count()))


@lru_cache(maxsize=8)
def _cores_of(name: str, text: str) -> int:
    """Return the number in an environment variable."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise ParameterError(
            f"the environment has {name}={shown(text)}; expected a positive number"
        )
    return int(text)


@contextmanager
def use_cores(n: int) -> Iterator[None]:
    """Let this process use ``n`` cores until the block ends.

    Processes started within the block inherit the number.
    """
    before = os.environ.get(CORES_VARIABLE)
    os.environ[CORES_VARIABLE] = str(n)
    try:
        yield
    finally:
        if before is None:
            del os.environ[CORES_VARIABLE]
        else:
            os.environ[CORES_VARIABLE] = before


@contextmanager
def kernel_threads() -> Iterator[int]:
    """Limit BLAS to one thread within the block; yield the worker's number of cores.

    `pool` runs kernels, and the parts of large products, on all cores. OpenMP uses all cores, too.
    """
    _begin_process()
    log_compilers()
    cores = worker_cores()
    # OpenMP has one number for each thread of this process
    with _thread_pools().limit(limits=cores, user_api="openmp"), one_blas_thread():
        yield cores


class _Turn:
    """A lock for the tasks of one process; it is released after a fork."""

    def __init__(self) -> None:
        self._begin_anew()
        after_fork(self._begin_anew)

    def _begin_anew(self) -> None:
        """Make a new lock after a fork, because another thread may have held the old one."""
        self._lock, self._holder = Lock(), 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = get_ident()

    def __exit__(self, *_: object) -> None:
        self._holder = 0
        self._lock.release()

    def is_held_here(self) -> bool:
        """Return whether this thread runs a task."""
        return self._holder == get_ident()


TURN = _Turn()


@contextmanager
def task_threads() -> Iterator[int]:
    """Within the block, be the only task of this process that uses `kernel_threads`.

    A task may need the memory of a whole worker, and workers may have several threads. Computations
    outside of tasks do not wait.
    """
    with TURN, kernel_threads() as cores:
        yield cores


class _WhileAny:
    """A setting of the whole process while any thread of it is in the block.

    The first thread to enter sets it, and the last thread to leave restores it.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[object]]) -> None:
        self._setting = setting
        self._n_within = 0
        self._begin_anew()
        after_fork(self._begin_anew)

    def _begin_anew(self) -> None:
        """Make a new lock after a fork, because another thread may have held the old one."""
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._n_within == 0:
                self._set = ExitStack()
                self._set.enter_context(self._setting())
            self._n_within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_within -= 1
            if self._n_within == 0:
                self._set.close()


def _one_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread; OpenBLAS has one number of threads for the whole process."""
    # Entered and left, not only made: threadpoolctl lets one thread set limits until it leaves, and
    # silently ignores all others.
    limits: AbstractContextManager[object] = _thread_pools().limit(limits=1, user_api="blas")
    return limits


@contextmanager
def _reused_memory() -> Iterator[None]:
    """Let glibc keep what is freed, and give it back at the end."""
    _begin_process()
    _give_back(REUSED_BYTES)
    yield
    _give_back(GIVEN_BACK_BYTES)
    if trim := getattr(c_library(), "malloc_trim", None):
        trim(0)


_ONE_THREAD, _REUSED_MEMORY = _WhileAny(_one_thread), _WhileAny(_reused_memory)


def one_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS to one thread within the block.

    With several threads, BLAS cuts its work by their number, so that the last digits of results
    depend on it. The threads also wait for each other by spinning, which is slow if other processes
    use the same cores.
    """
    return _ONE_THREAD


def reusing_memory() -> AbstractContextManager[None]:
    """Reuse freed arrays of some MiB within the block, which makes hundreds of them.

    The system clears each page of a new array first, which takes as long as to compute with it. At
    the end of the block, what is free is given back.
    """
    return _REUSED_MEMORY


@contextmanager
def hearing_compilers(tell: Callable[[str], None]) -> Iterator[None]:
    """Call ``tell`` with `COMPILING` when a kernel is compiled that is not cached."""
    with events.install_listener("numba:compile", Compiling(tell)):
        _hearing.append(tell)
        try:
            yield
        finally:
            _hearing.remove(tell)


@lru_cache(maxsize=1)
def log_compilers() -> None:
    """Log once per process that kernels are compiled, unless `hearing_compilers` reports it."""
    events.register("numba:compile", Compiling(log_unless_heard))


def log_unless_heard(text: str) -> None:
    """Log that kernels are compiled, unless a call reports it."""
    if not _hearing:
        # of the moment: reports, which keep warnings, leave it out
        shown = {"is_progress": True}
        logger.warning("%s: some seconds; bags warm-up does it beforehand", text, extra=shown)


class Compiling(events.Listener):
    """Reports the compilation of the first kernel; more follow within seconds."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.has_told = False

    def on_start(self, event: events.Event) -> None:
        """Report a kernel that will be cached."""
        # without a path it is compiled in every process: that is not once
        is_kept = event.data["dispatcher"].stats.cache_path is not None
        if is_kept and not self.has_told:
            self.has_told = True
            self._tell(COMPILING)

    def on_end(self, event: events.Event) -> None:
        """Do nothing at the end."""


def _thread_pools() -> ThreadpoolController:
    """Return the BLAS and OpenMP libraries of this process.

    The look-up takes milliseconds, more than the prediction of a bag. So it is repeated only after
    new modules were imported, which may have loaded libraries.
    """
    return _looked_up(len(sys.modules))


@lru_cache(maxsize=1)
def _looked_up(_n_modules: int) -> ThreadpoolController:
    return ThreadpoolController()


@lru_cache(maxsize=1)
def _begin_process() -> None:
    """Refuse too few addresses, and let glibc give blocks of a MiB and more back when freed.

    By default glibc raises that limit to 32 MiB as it goes; the chunks that Zarr's threads decode
    then pile up in their arenas, and a long fit's memory creeps up by hundreds of MiB.
    """
    check_addresses()
    _give_back(GIVEN_BACK_BYTES)


def _give_back(n_bytes: int) -> None:
    """Let glibc give freed blocks of so many bytes back, and twice as much at the heap's end."""
    if mallopt := getattr(c_library(), "mallopt", None):
        mallopt(M_MMAP_THRESHOLD, n_bytes)
        mallopt(M_TRIM_THRESHOLD, 2 * n_bytes)
