"""How kernels are compiled: serial, without the GIL, kept on disk.

A kernel that Python calls is a `kernel`; what kernels alone call is a `subkernel`. Numba makes a
second function for each, which takes Python's objects, and a third for C: a fifth of the time of
compiling goes to those that nobody calls. So Python must not call a subkernel, which would end the
process by a signal. Subkernels are inlined: of a function that is not, a process that compiles has
another copy than one that loads the kernel, and with "reassoc" they may round otherwise.

Some kernels have a function of NumPy that computes the same bits: it stands in for the kernel until
this is worth being compiled, see `EarlyKernel`.

Threads are those of `execution.pool`, which calls a kernel once per range of its work.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np

from .errors import ParameterError, StoreError
from .systems import code_folder

try:  # nobody else imports it earlier
    from numba import njit, version_info
    from numba.core import config, event as events
    from numba.core.caching import FunctionCache
    from numba.core.runtime import rtsys
except ValueError as error:
    raise ParameterError(
        f"Numba cannot use what the environment says ({error}); see its variables NUMBA_…"
    ) from error

__all__ = ["events"]

if folder := vars(config)["CACHE_DIR"]:  # kernels that are read from there are run
    try:
        vars(config)["CACHE_DIR"] = code_folder(folder)
    except OSError as error:
        raise StoreError(
            f"NUMBA_CACHE_DIR: {error}, and this process would run its compiled kernels; set "
            "NUMBA_CACHE_DIR to a folder of this account"
        ) from error

UNSIGNED = np.uint64  # type of an index: a signed one is first tested for counting from the end
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
NEWEST_NUMBA = 0, 68  # latest version of Numba whose kept code `_MachineCode` knows how to load
# Time that NumPy may take instead of one kernel: about that of compiling it.
SECONDS_BEFORE_COMPILING = 1.0

NO_PLACE = (
    "compiled kernels have no place: neither the package's folder nor this account's home can be "
    "written; set NUMBA_CACHE_DIR to a folder of this account"
)


class EarlyKernel:
    """A kernel for which a function of NumPy, of the same bits, stands in at first.

    A process that computes little never waits for the compiler. After so much time in the function
    as the kernel takes to be compiled, the kernel is called: both together take at most twice the
    time of the better one. One thread at a time is in the function, which takes memory that a pass
    declares once, not per thread.
    """

    seconds_early: float = SECONDS_BEFORE_COMPILING

    def __init__(
        self,
        compiled: Any,  # noqa: ANN401 - Numba's
        arrays: Callable[..., None],
        are_few: Callable[..., bool] | None = None,
    ) -> None:
        self.compiled, self.arrays, self.seconds = compiled, arrays, 0.0
        self._are_few, self._one_thread = are_few, Lock()

    def __call__(self, *arguments: Any) -> None:  # noqa: ANN401 - a kernel's
        """Write what the kernel writes."""
        if not self._is_late and (self._are_few is None or self._are_few(*arguments)):
            with self._one_thread:
                if not self._is_late:
                    begun = time.thread_time()
                    self.arrays(*arguments)
                    self.seconds += time.thread_time() - begun
                    return
        self.compiled(*arguments)

    @property
    def _is_late(self) -> bool:
        """Whether the kernel is worth compiling, or is compiled."""
        return self.seconds >= self.seconds_early or bool(self.compiled.signatures)


@contextmanager
def compiling_at_once() -> Iterator[None]:
    """Compile each kernel at its first call until the block ends, instead of when it pays."""
    before, EarlyKernel.seconds_early = EarlyKernel.seconds_early, 0.0
    try:
        yield
    finally:
        EarlyKernel.seconds_early = before


def kernel(
    arrays: Callable[..., None] | None = None,
    are_few: Callable[..., bool] | None = None,
    **options: Any,  # noqa: ANN401 - Numba's
) -> Decorator:
    """Return the decorator of a kernel.

    Parameters
    ----------
    arrays : callable, optional
        A function of NumPy that takes what the kernel takes, and writes the same bits.
    are_few : callable, optional
        Whether ``arrays`` takes little memory with its arguments. Default always.
    **options
        Numba's.
    """
    compiled = _kept(nogil=True, no_cfunc_wrapper=True, **options)
    if arrays is None:
        return compiled
    return lambda function: EarlyKernel(compiled(function), arrays, are_few)


def subkernel(**options: Any) -> Decorator:  # noqa: ANN401 - Numba's
    """Return the decorator of what kernels alone call."""
    return _kept(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


def _kept(**options: Any) -> Decorator:  # noqa: ANN401 - Numba's
    """Return a decorator for what is kept on disk; StoreError where it has no place there."""
    # said where it is not fast: else Numba takes what the caller says
    compiled = njit(error_model="numpy", **{"fastmath": False, **options})

    def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - Numba has no types
        dispatcher = compiled(function)
        try:
            if version_info.short <= NEWEST_NUMBA:
                quick = {"_cache": _MachineCode(function), "_compilation_chain_init_hook": _nothing}
                vars(dispatcher).update(quick)
            else:
                dispatcher.enable_caching()
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            raise StoreError(NO_PLACE) from error
        return dispatcher

    return decorate


class _MachineCode(FunctionCache):
    """Loads kept kernels without what only the compiler needs.

    Numba imports the implementations of everything that it can compile, and extensions of other
    packages, before it loads a kernel: half a second in each process, of a whole that takes a
    thirtieth. The compiler imports them when it is called.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401 - Numba's
        """Return the kernel for a signature, or None where it is not kept."""
        rtsys.initialize(target_context)  # the functions of Numba's runtime that kernels call
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def _nothing() -> None:
    """Stand for the import of extensions, which kernels do not need."""


class _WithoutCollector(events.Listener):
    """Pauses the collector of garbage while kernels are compiled.

    A compiler makes hundreds of thousands of objects, most of which stay: to look through all that
    a process has again and again took a tenth of the time.
    """

    def __init__(self) -> None:
        self._lock, self._n_within, self._was_on = Lock(), 0, False

    def on_start(self, event: events.Event) -> None:
        """Pause the collector, at the first of kernels within kernels."""
        with self._lock:
            if self._n_within == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._n_within += 1

    def on_end(self, event: events.Event) -> None:
        """Let the collector go on, after the last one."""
        with self._lock:
            self._n_within -= 1
            if self._n_within == 0 and self._was_on:
                gc.enable()


events.register("numba:compile", _WithoutCollector())
