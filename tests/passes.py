"""How passes run, for tests: their limits, cores and threads, the client, and compiled kernels.

Tests take these from here, so that one file knows in which modules of the library they are.
"""

from bagbasis.core.compiling import compiling_at_once
from bagbasis.execution.costs import pass_limits
from bagbasis.execution.tasks import current_client, map_tasks
from bagbasis.execution.worker_threads import kernel_threads, use_cores

__all__ = [
    "compiling_at_once",
    "current_client",
    "kernel_threads",
    "map_tasks",
    "pass_limits",
    "use_cores",
]
