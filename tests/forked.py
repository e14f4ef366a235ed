"""What forked processes of tests have at hand: the imports of all, and Numba's tables of types."""

import gc
import importlib

import dask
from numba.core.registry import cpu_target

from bagbasis.models.evaluation import forest

for name in (
    "bagbasis.ingest.tables",
    "bagbasis.jobs.commands.retrain_report",
    "bagbasis.models.tuning",
    "dask.dataframe",
    "hypothesis",
    "pytest",
    "tests.data.store.processes",
):
    importlib.import_module(name)
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
forest._N_TREES = 20  # as in all tests
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
gc.freeze()  # no process looks for garbage among imports, nor writes to the pages they lie in
