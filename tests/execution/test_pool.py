"""Parts of a piece of work: each is done once, whatever threads there are and whatever they do."""

import multiprocessing
import threading
import time

import numpy as np
import pytest

from bagbasis.execution.pool import MAX_RANGES, even_edges, run_parts
from tests.passes import use_cores


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("n_parts", [0, 1, 2, 100])
def test_each_part_once(cores, n_parts):
    counts = np.zeros(n_parts, int)

    def count(part):
        counts[part] += 1

    with use_cores(cores):
        run_parts(count, n_parts)
    assert (counts == 1).all()


def test_as_many_threads_as_cores():
    """Three parts that wait for each other end on three cores."""
    together = threading.Barrier(3)
    with use_cores(3):
        run_parts(lambda _: together.wait(30), 3)


@pytest.mark.parametrize("failing", [0, 40, 99])
def test_the_error_of_a_part(failing):
    """It is raised, no other part begins afterwards, and the next work is as any."""

    def fail(part):
        done.append(part)
        if part == failing:
            raise KeyError(part)
        time.sleep(0.001)

    done = []
    with use_cores(3), pytest.raises(KeyError, match=str(failing)):
        run_parts(fail, 100)
    n_done = len(done)
    test_each_part_once(3, 10)
    assert len(done) == n_done
    assert n_done <= failing + 4


def test_parts_that_have_parts():
    """Helpers that are busy with the outer parts do not hold up the inner ones."""
    counts = np.zeros((8, 8), int)

    def outer(i):
        def inner(j):
            counts[i, j] += 1

        run_parts(inner, 8)

    with use_cores(2):
        run_parts(outer, 8)
    assert (counts == 1).all()


def test_many_callers_at_once():
    """Threads of a user's own, with changing numbers of cores."""
    errors = []

    def call(cores):
        try:
            for _ in range(50):
                test_each_part_once(cores, 7)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(2 + i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors


def test_the_error_state_of_the_caller():
    """Numpy's, which is one of a thread: what the caller ignores, no helper warns of."""

    def divide(_):
        together.wait(30)
        np.ones(1) / np.zeros(1)

    together = threading.Barrier(2)
    with use_cores(2), np.errstate(divide="ignore"):
        run_parts(divide, 2)


def _run_in_child(queue):
    counts = []
    run_parts(counts.append, 20)
    queue.put(sorted(counts))


def test_a_forked_process_has_threads_of_its_own():
    """Those of the parent are not there; nothing waits for them."""
    with use_cores(2):
        run_parts(lambda _: None, 20)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_run_in_child, args=(queue,))
        child.start()
        assert queue.get(timeout=60) == list(range(20))
        child.join(60)


@pytest.mark.parametrize("n", [0, 1, 7, 1000, 10**6])
@pytest.mark.parametrize("seconds", [0.0, 1e-12, 1e-3, 10.0])
def test_edges(n, seconds):
    """Ranges that together are all units, each once, and never more than a pool has use for."""
    edges = even_edges(n, seconds)
    assert (edges[0], edges[-1]) == (0, n)
    assert 2 <= len(edges) <= MAX_RANGES + 1
    assert n == 0 or (np.diff(edges) > 0).all()
