"""The process-wide lock of parallel kernels.

Numba's fallback threading layer must not be entered by two threads at once, and two parallel
kernels at a time would only share the cores one of them can fill: whoever runs a parallel
kernel holds this lock.
"""

from __future__ import annotations

import threading

KERNELS = threading.RLock()
