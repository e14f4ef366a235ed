"""`kernel_threads`: BLAS has one thread inside, what it had before outside; tasks take turns."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client
from threadpoolctl import threadpool_info, threadpool_limits

from bagbasis import BagStore, DoubleBasisRegressor, ParameterError, ProjectionEmbedding
from bagbasis.execution.worker_threads import (
    CORES_VARIABLE,
    one_blas_thread,
    task_threads,
    worker_cores,
)
from bagbasis.hypotheses import fit_test, two_sample_test
from tests.passes import kernel_threads

pytestmark = pytest.mark.portable


def threads_of(api):
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == api}


def blas_threads():
    return threads_of("blas")


@pytest.mark.parametrize("cores", [1, 2])
def test_threads_inside_and_after(monkeypatch, cores):
    """Inside, OpenMP has the worker's cores and BLAS one thread; afterwards, also after an error,
    both have what they had before."""
    monkeypatch.setenv(CORES_VARIABLE, str(cores))
    before, of_openmp = blas_threads(), threads_of("openmp")
    with kernel_threads() as value:
        assert value == cores
        assert threads_of("openmp") == {cores}
        assert blas_threads() == {1}
    assert (blas_threads(), threads_of("openmp")) == (before, of_openmp)
    with pytest.raises(KeyError), kernel_threads():
        raise KeyError
    assert blas_threads() == before


def test_a_process_on_one_core_has_one():
    """A process counts its cores once: the count is asked of one that begins on one core."""
    ask = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from bagbasis.execution.worker_threads import worker_cores; print(worker_cores())"
    )
    without = {name: value for name, value in os.environ.items() if name != CORES_VARIABLE}
    run = subprocess.run(
        [sys.executable, "-c", ask], env=without, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["1"]


def test_a_worker_has_as_many_cores_as_threads(monkeypatch):
    monkeypatch.delenv(CORES_VARIABLE, raising=False)
    worker = SimpleNamespace(state=SimpleNamespace(nthreads=3))
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    assert worker_cores() == 3


def test_one_thread_while_any_is_within():
    """Threads of BLAS are restored afterwards, whichever of two threads leaves first."""
    with threadpool_limits(2):
        before, first, second = blas_threads(), one_blas_thread(), one_blas_thread()
        with first:
            thread = threading.Thread(target=second.__enter__)
            thread.start()
            thread.join()
            assert blas_threads() == {1}
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_each_thread_can_say_it():
    """Whichever thread said it before, and lives on."""
    seen = []

    def say():
        with one_blas_thread():
            seen.append(blas_threads())

    say()
    thread = threading.Thread(target=say)
    thread.start()
    thread.join()
    assert seen == [{1}, {1}]


@pytest.mark.long
def test_libraries_that_come_later(monkeypatch):
    """A library of BLAS or OpenMP that is loaded after the first block has the limits of the next,
    and SciPy's BLAS, which products use, is there from the start."""
    code = (
        "import sys\n"
        "from bagbasis.execution.worker_threads import kernel_threads, one_blas_thread\n"
        "from threadpoolctl import threadpool_info\n"
        "def say(): print(sorted((p['user_api'], p['num_threads']) for p in threadpool_info()))\n"
        "with one_blas_thread():\n"
        "    import scipy.linalg\n"
        "    say()\n"
        "with kernel_threads(): say()\n"
        "import sklearn.cluster\n"
        "with kernel_threads(): say()\n"
    )
    monkeypatch.setenv(CORES_VARIABLE, "1")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    blas, openmp = [("blas", 1)] * 2, ("openmp", 1)
    assert ran.stdout.splitlines() == [str(blas), str(blas), str([*blas, openmp])]


def test_worker_within_a_worker(monkeypatch):
    """Blocks nest."""
    monkeypatch.setenv(CORES_VARIABLE, "1")
    with kernel_threads(), kernel_threads() as cores:
        assert cores == 1


def test_tasks_of_two_threads_exclude_each_other():
    """A second task waits until the first has left; what is no task waits for none."""
    inside, remaining, entered = threading.Event(), threading.Event(), threading.Event()
    order = []

    def first():
        with task_threads():
            inside.set()
            ask_elsewhere()
            assert not entered.wait(0.3)
            order.append("first leaves")
        remaining.set()

    def second():
        inside.wait()
        with task_threads():
            entered.set()
            order.append("second enters")

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert order == ["first leaves", "second enters"]


def test_cores_outside_of_workers(monkeypatch):
    """What the environment says, if it is a positive number; else what the process may use."""
    monkeypatch.delenv(CORES_VARIABLE, raising=False)
    assert worker_cores() >= 1
    monkeypatch.setenv("BAGBASIS_LANE_CORES", "5")  # its name before 1.0
    assert worker_cores() == 5
    monkeypatch.setenv(CORES_VARIABLE, "3")
    assert worker_cores() == 3
    for text in ("0", "-1", "x", "", "2.5"):
        monkeypatch.setenv(CORES_VARIABLE, text)
        with pytest.raises(ParameterError, match=f"{CORES_VARIABLE}='{text}'"):
            worker_cores()


def ask_elsewhere(*_, seconds=10):
    """Run a kernel's worth in another thread, as Dask does; fails where it waits for this one."""

    def ask():
        with kernel_threads():
            asked.set()

    asked, thread = threading.Event(), threading.Thread(target=ask, daemon=True)
    thread.start()
    assert asked.wait(seconds), "a thread that this one waits for waits for its threads"


def test_a_users_functions_may_wait_for_kernels():
    """Progress, and a score: each may compute a lazy prediction, in the threads of Dask."""

    def score(points):
        ask_elsewhere()
        return -points

    bags = [np.full((3, 1), i / 20) for i in range(20)]
    model = DoubleBasisRegressor(ProjectionEmbedding(n_per_dim=3), alpha=1.0)
    model.fit(bags, np.arange(20.0), progress=ask_elsewhere)
    fit_test(np.linspace(-2, 2, 20)[:, None], score, n_draws=99)


def test_workers_that_are_threads_of_a_process_that_waits(tmp_path):
    """A notebook's `Client(processes=False)`: a caller waits for tasks of its process."""
    store = BagStore.create(tmp_path / "x.zarr", n_dims=1)
    bags = [np.full((3, 1), i / 20) for i in range(20)]
    store.append(bags)
    arguments = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}

    def ask_the_cluster():
        with Client(processes=False, **arguments):
            values.append(two_sample_test(store, bags, n_permutations=99).p_value)

    values = []
    thread = threading.Thread(target=ask_the_cluster, daemon=True)
    thread.start()
    thread.join(60)
    assert values


@pytest.mark.long
def test_a_forked_process_computes_the_same():
    """Threads do not survive a fork, and locks may be held: the child begins anew, and its own
    child, too. A pool would otherwise wait for its workers for ever."""
    code = (
        "import multiprocessing as mp, numpy as np\n"
        "from bagbasis import MomentsEmbedding\n"
        "from bagbasis.execution.worker_threads import task_threads, use_cores\n"
        "bags = np.random.default_rng(0).random((4000, 30, 3))\n"
        "def embed(_): return MomentsEmbedding().fit_transform(bags).tobytes()\n"
        "def in_turn(_):\n"
        "    with task_threads(): return embed(_)\n"
        "expected = embed(0)\n"
        "for _ in range(2):\n"
        "    with use_cores(3), task_threads():\n"
        "        pool = mp.get_context('fork').Pool(2)\n"
        "        print(set(pool.map(in_turn, range(4))) == {expected, embed(0)})\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert ran.stdout.splitlines() == ["True", "True"], ran.stderr
