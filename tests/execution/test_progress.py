"""Progress: by units of work, never backwards, each task counted once."""

from __future__ import annotations

import itertools
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bagbasis.execution import progress
from bagbasis.execution.progress import ProgressTally
from tests.passes import map_tasks


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=5),
    reports=st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 80)), max_size=40),
)
def test_never_backwards(sizes, reports):
    """Reports in any order, late, repeated or too large only ever move the count forward, and
    never beyond the total."""
    seen = []
    tally = ProgressTally(sizes, lambda done, total: seen.append((done, total)))
    for task, done in reports:
        tally.update(task % len(sizes), done)
    for task in range(len(sizes)):
        tally.finish(task)
    total = sum(sizes)
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    assert all(a[0] < b[0] for a, b in itertools.pairwise(seen))


def test_a_task_that_runs_again_counts_once():
    """A retried task starts from nothing again; the count waits for it."""
    seen = []
    tally = ProgressTally([10, 10], lambda done, total: seen.append(done))
    for done in (4, 8, 2, 6, 9):
        tally.update(0, done)
    assert seen == [0, 4, 8, 9]


@pytest.fixture
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_reports_from_many_threads():
    """Threads that report at once are counted one after the other."""
    seen = []
    tally = ProgressTally([1000] * 8, lambda done, total: seen.append(done))
    threads = [
        threading.Thread(target=lambda i=i: [tally.update(i, n) for n in range(1001)])
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == list(range(8001))


def test_tasks_in_this_process():
    """Without a cluster tasks run in order; the count moves within them and ends at the total."""
    seen = []

    def work(task, report):
        report(task)
        return task * 10

    results = map_tasks(
        work, [1, 2, 3], sizes=[2, 4, 6], progress=lambda done, total: seen.append((done, total))
    )
    assert next(results) == (0, 10)
    assert seen == [(0, 12), (1, 12), (2, 12)]
    assert list(results) == [(1, 20), (2, 30)]
    assert seen[-1] == (12, 12)


@pytest.mark.parametrize(("heartbeat", "expected"), [(0.5, 10), (6.0, 2)])
def test_events_are_as_rare_as_heartbeats(monkeypatch, heartbeat, expected):
    """One a second on a few workers; on a thousand, of which the scheduler wants a heartbeat in
    six seconds each, no more than that: so that events do not drown it."""
    events = []
    worker = SimpleNamespace(
        periodic_callbacks={"heartbeat": SimpleNamespace(callback_time=1000 * heartbeat)},
        log_event=lambda topic, message: events.append(message),
    )
    clock = iter(np.arange(0, 10, 0.25))
    monkeypatch.setattr(progress.distributed, "get_worker", lambda: worker, raising=False)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    report = progress.worker_report("topic", 3)
    for done in range(40):
        report(done)
    assert len(events) == expected
    assert events[:2] == [{"task": 3, "done": 0}, {"task": 3, "done": int(4 * max(1, heartbeat))}]
