"""How kernels are compiled: serial, without the GIL, kept on disk.

A kernel that Python calls is a `kernel`; what kernels alone call is a `subkernel`. Numba makes a
second function for each, which takes Python's objects, and a third for C: a fifth of the time of
compiling goes to those that nobody calls. So Python must not call a subkernel, which would end the
process by a signal. Subkernels are inlined: of a function that is not, a process that compiles has
another copy than one that loads the kernel, and with "reassoc" they may round otherwise.

Threads are those of `execution.pool`, which calls a kernel once per range of its work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import ParameterError, StoreError

try:  # nobody else imports it earlier
    from numba import njit
    from numba.core import event as events  # noqa: F401 - for the lanes
except ValueError as error:
    raise ParameterError(
        f"Numba cannot use what the environment says ({error}); see its variables NUMBA_…"
    ) from error

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
    compiled = njit(cache=True, **options)

    def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - Numba has no types
        try:
            return compiled(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            raise StoreError(NO_PLACE) from error

    return decorate
