"""Waiting for a result: a cluster without workers says so, and is given up in the end."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import CancelledError

import pytest
from distributed import Client as DaskClient, LocalCluster

from bagbasis import ClusterError
from bagbasis.execution import waiting
from bagbasis.execution.tasks import map_reduce
from tests.execution.gated import until
from tests.execution.test_notebook import Spoken
from tests.passes import map_tasks


class Client:
    def __init__(self, looks):
        self._looks = iter(looks)

    def nthreads(self):
        result = next(self._looks)
        if isinstance(result, Exception):
            raise result
        return {"a": 1} if result else {}


class Slow:
    """A result that comes when so many looks are over."""

    def __init__(self, looks, error=None):
        self.client, self.left, self.error = Client(looks), len(looks), error

    def result(self, timeout=None):
        if self.left:
            assert timeout == waiting.SECONDS_BETWEEN_LOOKS
            self.left -= 1
            raise TimeoutError
        if self.error:
            raise self.error
        return "found"

    def done(self):
        return not self.left and self.error is not None


@pytest.mark.parametrize(
    ("looks", "n_said"), [([True] * 3, 0), ([True, False, False, OSError(), False, True], 2)]
)
def test_no_workers_for_a_while(looks, n_said):
    """Said once each time that they are gone, with when that began."""
    messages = []
    assert waiting.gathered(Slow(looks), messages.append) == "found"
    assert [text[:17] for text in messages] == ["no workers since "] * n_said


def test_a_lost_computation_can_be_started_again():
    with pytest.raises(ClusterError, match=r"lost the computation \(scheduler gone\); start it"):
        waiting.gathered(Slow([], CancelledError("scheduler gone")), print)


def test_a_time_out_of_the_task_itself():
    with pytest.raises(TimeoutError, match="its own"):
        waiting.gathered(Slow([True], TimeoutError("its own")))


def double(task, report):
    report(1)
    return 2 * task


def add(a, b):
    return a + b


# each of the two ways to run tasks on a cluster, with the result of tasks 1, 2, 3
WAYS = {
    "merged": (lambda **options: map_reduce(double, [1, 2, 3], add, sizes=[1] * 3, **options), 12),
    "one by one": (
        lambda **options: sorted(map_tasks(double, [1, 2, 3], sizes=[1] * 3, **options)),
        [(0, 2), (1, 4), (2, 6)],
    ),
}


@pytest.fixture
def no_workers(monkeypatch):
    """A scheduler that has lost all of its workers."""
    monkeypatch.setattr(waiting, "SECONDS_BETWEEN_LOOKS", 0.1)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        DaskClient(cluster),
    ):
        yield cluster


@pytest.mark.parametrize("way", WAYS)
def test_cluster_without_workers(no_workers, way):
    """It is said; the work goes on as soon as there is one."""
    run, expected = WAYS[way]
    progress, result = Spoken(), []
    thread = threading.Thread(target=lambda: result.append(run(progress=progress)))
    thread.start()
    until(lambda: progress.lines)
    no_workers.scale(1)
    thread.join(60)
    assert result == [expected]
    assert len(progress.lines) == 1
    assert progress.lines[0].startswith("no workers since ")


@pytest.mark.parametrize("way", WAYS)
def test_cluster_that_stays_without_workers(no_workers, monkeypatch, caplog, way):
    """An error in the end; where no progress is shown the log says it before."""
    monkeypatch.setattr(waiting, "WAIT_SECONDS", 0.5)
    with caplog.at_level(logging.WARNING), pytest.raises(ClusterError, match="has had no workers"):
        WAYS[way][0]()
    assert [text[:17] for text in caplog.messages] == ["no workers since "]
