"""What forked processes of tests have at hand: the imports of all, and Numba's tables of types."""

import gc
import importlib

import dask
from numba.core.registry import cpu_target

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
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
gc.freeze()  # no process looks for garbage among imports, nor writes to the pages they lie in
