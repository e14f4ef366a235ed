"""The lane: all cores inside, what was set before outside, one at a time."""

from __future__ import annotations

import threading

import numba
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bagbasis.execution import lane
from bagbasis.execution.lanes import CORES_VARIABLE, lane_cores


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def one_thread():
    """As in a Dask worker: BLAS and numba limited to one thread."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    with threadpool_limits(1):
        yield
    numba.set_num_threads(before)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.usefixtures("one_thread")
def test_threads_inside_and_after(monkeypatch, cores):
    """Numba and BLAS have the lane's cores inside, and what they had before afterwards, also
    after an error."""
    cores = min(cores, numba.config.NUMBA_NUM_THREADS)
    monkeypatch.setenv(CORES_VARIABLE, str(cores))
    with lane() as given:
        assert given == cores
        assert numba.get_num_threads() == cores
        assert blas_threads() == {cores}
    assert numba.get_num_threads() == 1
    assert blas_threads() == {1}
    with pytest.raises(KeyError), lane():
        raise KeyError
    assert numba.get_num_threads() == 1
    assert blas_threads() == {1}


def test_lane_within_a_lane(monkeypatch):
    """Whoever holds the lane may ask for it again."""
    monkeypatch.setenv(CORES_VARIABLE, "1")
    with lane(), lane() as cores:
        assert cores == 1


def test_two_threads_exclude_each_other():
    """A second thread waits until the first has left."""
    inside, left, entered = threading.Event(), threading.Event(), threading.Event()
    order = []

    def first():
        with lane():
            inside.set()
            assert not entered.wait(0.3)
            order.append("first leaves")
        left.set()

    def second():
        inside.wait()
        with lane():
            entered.set()
            order.append("second enters")

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert order == ["first leaves", "second enters"]


def test_cores_outside_of_workers(monkeypatch):
    """What the environment says, else what the process may use; never less than one."""
    monkeypatch.delenv(CORES_VARIABLE, raising=False)
    assert lane_cores() >= 1
    for text, cores in (("3", 3), ("0", 1)):
        monkeypatch.setenv(CORES_VARIABLE, text)
        assert lane_cores() == cores


def test_no_more_cores_than_numba_has(monkeypatch):
    """Numba's pool has its size from the start: a larger lane is cut to it."""
    monkeypatch.setenv(CORES_VARIABLE, "1000")
    with lane() as cores:
        assert cores == numba.config.NUMBA_NUM_THREADS
