"""How long idle threads of other libraries spin: set before any of them is imported."""

from __future__ import annotations

import os

# Idle threads of OpenMP (scikit-learn's k-means) and OpenBLAS spin for milliseconds (OpenBLAS: 2^26
# cycles) on the cores that the pool wants next. Both are read when the library is loaded; worker
# processes inherit it. 2^16 cycles are some 25 µs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
