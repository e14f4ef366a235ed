"""How kernels are compiled: serial, without the GIL, kept on disk.

A kernel that Python calls is a `kernel`; what kernels alone call is a `subkernel`. Numba makes a
second function for each, which takes Python's objects, and a third for C: a fifth of the time of
compiling goes to those that nobody calls. So Python must not call a subkernel, which would end the
process by a signal. Subkernels are inlined: of a function that is not, a process that compiles has
another copy than one that loads the kernel, and with "reassoc" they may round otherwise.

Threads are those of `execution.pool`, which calls a kernel once per range of its work.
"""

from __future__ import annotations

from functools import partial

from numba import njit

kernel = partial(njit, cache=True, nogil=True, no_cfunc_wrapper=True)
subkernel = partial(
    njit, cache=True, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
