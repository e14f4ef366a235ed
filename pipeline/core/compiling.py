"""How kernels are compiled: serial, without the GIL, kept on disk.

A kernel that Python calls is a `kernel`; what kernels alone call is a `subkernel`. Numba makes a
second function for each, which takes Python's objects, and a third for C: a fifth of the time of
compiling goes to those that nobody calls. So Python must not call a subkernel, which would end the
process by a signal. Subkernels are inlined: of a function that is not, a process that compiles has
another copy than one that loads the kernel, and with "reassoc" they may round otherwise.

Threads are those of `execution.pool`, which calls a kernel once per range of its work.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from .errors import ParameterError, StoreError
from .systems import code_folder

try:  # nobody else imports it earlier
    from numba import njit
    from numba.core import config, event as events
except ValueError as error:
    raise ParameterError(
        f"Numba cannot use what the environment says ({error}); see its variables NUMBA_…"
    ) from error

if folder := vars(config)["CACHE_DIR"]:  # kernels that are read from there are run
    try:
        vars(config)["CACHE_DIR"] = code_folder(folder)
    except OSError as error:
        raise StoreError(
            f"NUMBA_CACHE_DIR: {error}, and this process would run its compiled kernels; set "
            "NUMBA_CACHE_DIR to a folder of this account"
        ) from error

UNSIGNED = np.uint64  # an index: a signed one is first looked at for whether it counts from the end
Decorator = Callable[[Callable[..., Any]], Any]

NO_PLACE = (
    "compiled kernels have no place: neither the package's folder nor this account's home can be "
    "written; set NUMBA_CACHE_DIR to a folder of this account"
)


def kernel(**options: Any) -> Decorator:  # noqa: ANN401 - Numba's
    """Return the decorator of a kernel; ``options`` are Numba's."""
    return _kept(nogil=True, no_cfunc_wrapper=True, **options)


def subkernel(**options: Any) -> Decorator:  # noqa: ANN401 - Numba's
    """Return the decorator of what kernels alone call."""
    return _kept(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


def _kept(**options: Any) -> Decorator:  # noqa: ANN401 - Numba's
    """Return a decorator for what is kept on disk; StoreError where it has no place there."""
    compiled = njit(cache=True, error_model="numpy", **options)

    def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - Numba has no types
        try:
            return compiled(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            raise StoreError(NO_PLACE) from error

    return decorate


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
