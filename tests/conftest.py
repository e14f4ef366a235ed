"""What all tests share: no property is timed, for machines may be slow or busy; processes are
forked from a server that has imported the library once; and long files run first."""

import multiprocessing

import dask
from distributed.utils import get_mp_context
from hypothesis import settings

LONGEST = (
    "tests/jobs/experiments/",
    "tests/execution/test_resume.py",
    "tests/retraining/test_survival.py",
    "tests/bags/test_store_machine.py",
    "tests/object_stores/",
    "tests/tuning/test_tune_on_a_cluster.py",
    "tests/test_packaging.py",
)

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Workers of local clusters, too; those of jobs that run as commands are spawned, as users' are.
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
get_mp_context()  # has a list of its own, which it sets once
multiprocessing.get_context("forkserver").set_forkserver_preload(
    ["distributed", "bagbasis.retraining", "tests.bags.processes"]
)


def pytest_collection_modifyitems(items):
    """Put the longest files first, so that no core waits for one of them at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))
