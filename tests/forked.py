"""What forked processes of tests have at hand: the imports of all, and Numba's tables of types."""

import dask
import hypothesis
import pytest
from numba.core.registry import cpu_target

from bagbasis.jobs import retrain_report
from tests.bags import processes

__all__ = ["hypothesis", "processes", "pytest", "retrain_report"]

dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
