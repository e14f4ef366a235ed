"""Threads of one process: how long idle ones spin, and the lock of parallel kernels.

Numba's fallback threading layer must not be entered by two threads at once, and two parallel
kernels at a time would only share the cores one of them can fill: whoever runs a parallel
kernel holds this lock.
"""

from __future__ import annotations

import os
import threading

# Idle threads of OpenMP and OpenBLAS spin for milliseconds (OpenBLAS: 2^26 cycles) on the cores
# that the other wants next. Both are read when the library is loaded, so this module comes first
# in the package; worker processes inherit it. 2^16 cycles are some 25 µs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")

KERNELS = threading.RLock()
