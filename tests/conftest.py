"""What all tests share: no property is timed, for machines may be slow or busy; processes are
forked from a server that has imported the library once; the order of files keeps cores busy;
what is imported and collected is no garbage, and nobody looks for any in it; files lie in memory,
where there is room: a new store syncs twenty of them, and a disk takes its time for each; what a
test draws does not depend on the tests before it."""

import atexit
import gc
import multiprocessing
import os
import sys
import tempfile
import warnings

import dask
import numpy as np
import pytest
from distributed.utils import get_mp_context
from hypothesis import settings

from tests.memory import memory_folder
from tests.warned import Warned

FIRST = (
    "tests/oracles/test_table.py",  # one worker compiles nearly all kernels here; the other one
    "tests/data/store/",  # has files meanwhile that need none, so that few are compiled twice
    "tests/data/storage/",
    "tests/ingest/",
    "tests/jobs/experiments/",  # what takes longest comes next, not at the end
    "tests/jobs/runs/test_submit.py",
    "tests/contract/test_public_callables.py",
    "tests/execution/test_resume.py",
    "tests/operations/retraining/test_survival.py",
    "tests/object_stores/",
    "tests/models/tuning/",
    "tests/neural/",
    *("tests/test_docs.py", "tests/test_examples.py", "tests/test_readme.py"),  # the last by name
)

ROOM = 8 * 2**30  # bytes; a run of all tests leaves far less
tempfile.tempdir = memory_folder(ROOM)  # of pytest's folders, too

gc.disable()  # until all is collected: a third of its time is the search for garbage

FRESH = "TESTS_SEED" in os.environ  # `make test-fresh`; else each run draws the same examples
settings.register_profile("untimed", deadline=None, derandomize=not FRESH)
settings.load_profile("untimed")

dask.config.set(
    {
        # of local clusters, too; workers of jobs that run as commands are spawned, as users' are
        "distributed.worker.multiprocessing-method": "forkserver",
        # clusters wait most of the time; one of two workers took an eighth of a core meanwhile
        "distributed.worker.profile.enabled": False,
        "distributed.worker.memory.monitor-interval": "500ms",
        "distributed.admin.tick.interval": "500ms",
        "distributed.admin.system-monitor.interval": "10s",
    }
)
get_mp_context()  # has a list of its own, which it sets once
multiprocessing.get_context("forkserver").set_forkserver_preload(
    ["distributed", "bagbasis.operations.retraining", "tests.forked"]
)


@pytest.fixture(scope="session", autouse=True)
def _state_of_the_tests(tmp_path_factory):
    """What runs and models tests leave behind is not in the account's or the working folder; the
    forests that fits with a holdout are compared with are small, as in `tests.forked`."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["MLFLOW_TRACKING_URI"] = (tmp_path_factory.mktemp("mlflow") / "runs").as_uri()
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # which needs no database
    pytest.MonkeyPatch().setattr("bagbasis.models.evaluation.forest._N_TREES", 20)


@pytest.fixture(autouse=True)
def _figures_are_closed():
    """Matplotlib warns of more than twenty that are open, whoever opened them."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def warned():
    """Keep the library's warnings of a test, each of them, in words."""
    with warnings.catch_warnings(record=True) as result:
        warnings.simplefilter("always")
        yield Warned(result)


@pytest.fixture
def shell():
    """IPython on a terminal, whose displays are kept."""
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    made = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    made.display_pub = CapturingDisplayPublisher()
    yield made
    InteractiveShell.clear_instance()


@pytest.fixture
def kernel(shell):
    """IPython of a notebook."""
    shell.kernel = object()
    return shell


AS_IMPORTED = pytest.StashKey[list[tuple[np.random.Generator, dict]]]()  # generators, and states


def pytest_collection_finish(session):
    """Remember the states of generators; leave half a million objects, which stay to the end, out
    of all later searches for garbage."""
    for module in {item.getparent(pytest.Module) for item in session.items} - {None}:
        drawn = [
            element
            for element in vars(module.obj).values()
            if isinstance(element, np.random.Generator)
        ]
        module.stash[AS_IMPORTED] = [(element, element.bit_generator.state) for element in drawn]
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # libraries take leave of their objects; pytest has looked by then


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Generators of a test's module begin each test as they were when it was imported."""
    module = item.getparent(pytest.Module)
    for generator, state in [] if module is None else module.stash[AS_IMPORTED]:
        generator.bit_generator.state = state


def pytest_collection_modifyitems(items):
    """Order the files, so that no core compiles what the other one does or waits at the end."""

    def rank(item):
        return next((i for i, start in enumerate(FIRST) if item.nodeid.startswith(start)), 99)

    items.sort(key=rank)
