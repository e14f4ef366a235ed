"""A fit cut off, and begun again: only what is missing is done, and the model is the same."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bagbasis import connect
from bagbasis.execution.tasks import fold_results, map_reduce
from tests.execution.fitting import fitted
from tests.execution.gated import alive, kill, until
from tests.execution.logged import (
    EVERY,
    N_TASKS,
    FolderCheckpoints,
    Log,
    process,
    scheduler,
    worker,
)
from tests.oracles.labelled import labelled_bags, stored

N = 96  # too few for a scale of errors, which is learnt in passes of its own
BAGS, Y = labelled_bags(N, most=40)
TASK_BAGS = N // N_TASKS


def merged(a, b):
    """Not commutative and not associative: it spells the tree."""
    return f"({a} {b})"


def grouped_tree(names, every, split_every):
    """Groups merge from the left, and in the tree that any tasks merge in."""
    groups = [names[start : start + every] for start in range(0, len(names), every)]
    return fold_results((reduce(merged, group) for group in groups), merged, split_every)


class CutOff(Exception):
    """What ends a run before its time."""


class Worker:
    """Does tasks until its strength is gone; counts them."""

    def __init__(self, strength=10**9):
        self.done = []
        self.strength = strength

    def __call__(self, task, report):
        if len(self.done) == self.strength:
            raise CutOff
        self.done.append(task)
        return task


@pytest.mark.long
@settings(max_examples=150)
@given(
    n=st.integers(1, 60),
    split_every=st.integers(2, 9),
    every=st.integers(1, 9),
    strengths=st.lists(st.integers(0, 40), min_size=1, max_size=4),
)
def test_a_run_cut_off_anywhere(n, split_every, every, strengths):
    """Cut off again and again: the last run spells the very tree, and each does at most one group
    again that was begun before it."""
    tasks = [str(i) for i in range(n)]
    finished, cuts = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for strength in [*strengths, 10**9]:
            doing = Worker(strength)
            seen = []
            try:
                result = map_reduce(
                    doing,
                    tasks,
                    merged,
                    sizes=[2] * n,
                    split_every=split_every,
                    checkpoint_store=FolderCheckpoints(folder, every),
                    progress=lambda done, total, seen=seen: seen.append((done, total)),
                )
            except CutOff:
                result = None
            finished += len(doing.done)
            assert seen == sorted(seen)
            if result is not None:
                break
            cuts += 1
    assert seen[-1] == (2 * n, 2 * n)
    assert result == grouped_tree(tasks, every, split_every)
    assert finished <= n + cuts * (every - 1)


@pytest.mark.long
@settings(max_examples=60)
@given(
    n=st.integers(1, 40),
    every=st.integers(1, 5),
    damaged=st.sets(st.integers(0, 39)),
    gone=st.sets(st.integers(0, 39)),
)
def test_damaged_and_lost_checkpoints(n, every, damaged, gone):
    """What cannot be read any more is done again, and nothing else."""
    tasks = [str(i) for i in range(n)]
    options = {"sizes": [1] * n, "split_every": 4}
    with tempfile.TemporaryDirectory() as folder:
        checkpoint_store = FolderCheckpoints(folder, every)
        map_reduce(Worker(), tasks, merged, checkpoint_store=checkpoint_store, **options)
        paths = {int(path.name): path for path in Path(folder).iterdir()}
        for group in paths.keys() & damaged:
            paths[group].write_text("damaged")
        for group in paths.keys() & gone:
            paths[group].unlink()
        doing = Worker()
        result = map_reduce(doing, tasks, merged, checkpoint_store=checkpoint_store, **options)
    assert result == grouped_tree(tasks, every, 4)
    again = sorted(paths.keys() & (damaged | gone))
    assert doing.done == [task for i in again for task in tasks[every * i :][:every]]


def spelled(task, report):
    index, folder = task
    report(1)
    Path(folder, f"done-{index}").touch()
    return str(index)


@pytest.fixture(scope="module")
def cluster():
    with connect("local", n_workers=2, cores_per_worker=1) as client:
        yield client


@pytest.mark.long
@pytest.mark.parametrize("saved", ["none", "some", "all", "damaged"])
def test_tree_on_a_cluster(cluster, tmp_path, saved):
    """On workers the very tree, whatever was kept, and only what is missing is done."""
    n, every = 23, 3
    names = [str(i) for i in range(n)]
    options = {
        "sizes": [1] * n,
        "split_every": 4,
        "checkpoint_store": FolderCheckpoints(tmp_path / "kept", every),
    }
    missing = set(names)
    if saved != "none":
        with suppress(CutOff):
            strength = 8 if saved == "some" else 10**9
            map_reduce(Worker(strength), names, merged, here=True, **options)
        missing = set(names[6:] if saved == "some" else [])
    if saved == "damaged":
        (tmp_path / "kept" / "7").write_text("damaged")
        missing = {"21", "22"}
    work = tmp_path / "work"
    work.mkdir()
    seen = []
    tasks = [(i, str(work)) for i in range(n)]
    result = map_reduce(spelled, tasks, merged, progress=lambda *a: seen.append(a), **options)
    assert result == grouped_tree(names, every, 4)
    assert {path.name.removeprefix("done-") for path in work.iterdir()} == missing
    assert seen[-1] == (n, n)


def held(task, report):
    """The tasks after the tenth wait until the second worker has come."""
    index, folder = task
    if index >= 10:
        until(Path(folder, "go").exists)
    time.sleep(0.02)
    return spelled(task, report)


@pytest.mark.long
def test_late_workers_help_in_order(cluster, tmp_path):
    """Workers that come while a run is under way take the next tasks, not any: what is done can
    be merged at once."""
    tasks = [(i, str(tmp_path)) for i in range(60)]
    cluster.cluster.scale(1)
    until(lambda: len(cluster.scheduler_info()["workers"]) == 1)
    ahead = []

    def progress(done, total):
        names = {int(p.name.removeprefix("done-")) for p in tmp_path.glob("done-*")}
        ahead.append(max(names, default=0) + 1 - len(names))

    def send_for_another():
        until(lambda: len(list(tmp_path.glob("done-*"))) >= 5)
        cluster.cluster.scale(2)
        until(lambda: len(cluster.scheduler_info()["workers"]) == 2)
        (tmp_path / "go").touch()

    late = threading.Thread(target=send_for_another)
    late.start()
    map_reduce(held, tasks, merged, sizes=[1] * 60, progress=progress)
    late.join()
    assert len(cluster.scheduler_info()["workers"]) == 2
    assert max(ahead) <= 4


# ------------------------------------------------------------------ real processes, killed


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The model of a fit that nobody disturbs."""
    folder = tmp_path_factory.mktemp("alone")
    store = stored(folder / "s.zarr", BAGS, Y, chunk_points=50)
    return fitted(store.url, folder / "kept")


@pytest.fixture
def log(tmp_path):
    """The same store; when fourteen tasks are done the others stand still until the gate opens."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=50)
    return Log(store.url).arm()


def driver(log, cluster="none"):
    folder = Path(log.url).parent
    names = [log.url, str(folder / "kept"), str(folder / "out.json"), cluster]
    return process("tests.execution.fitting", *names)


def result_of(log, running):
    out = Path(log.url).parent / "out.json"
    until(lambda: out.exists() or running.exitcode is not None)
    running.join()
    return json.loads(out.read_text())


def check(message, log, expected, workers=1):
    """The same model to the bit; each worker did at most an interval twice; nothing is left."""
    assert "error" not in message, message
    np.testing.assert_array_equal(message["coef"], expected.coef_)
    for key in ("n_bags_fitted", "n_bags_held_out", "n_points_seen"):
        assert message[key] == expected.report_[key]
    lines = log.lines()
    assert len(set(lines)) == N_TASKS
    assert len(lines) - N_TASKS <= EVERY * workers
    assert not (Path(log.url).parent / "kept").exists()


@pytest.mark.long
def test_driver_killed(log, expected):
    """The driver dies by SIGKILL in the middle, and its worker processes go with it: run again,
    without a cluster, it goes on from the checkpoints."""
    with driver(log, "local") as running:
        workers = log.standing(1)
        kill(running.pid)
    until(lambda: not any(map(alive, workers)))
    log.gate.open()
    with driver(log) as running:
        message = result_of(log, running)
    assert message["n_bags_resumed"] >= 4 * TASK_BAGS
    check(message, log, expected)


@pytest.fixture
def profile(tmp_path):
    """Connects to whatever scheduler listens now."""

    def write():
        file = tmp_path / "scheduler.json"
        until(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        path = tmp_path / "profile.yaml"
        path.write_text(f"cluster: tcp\naddress: {address}\ntimeout: 2\n")
        return str(path)

    return write


@pytest.mark.long
def test_all_workers_killed(log, expected, profile, tmp_path):
    """Without a worker the fit waits; when others come it goes on from the checkpoints, though
    what the dead ones held in memory is lost."""
    with ExitStack() as stack:
        stack.enter_context(scheduler(tmp_path))
        where = profile()
        with worker(tmp_path), worker(tmp_path):
            running = stack.enter_context(driver(log, where))
            for pid in log.standing(2):
                kill(pid)
        log.gate.open()
        assert running.exitcode is None
        stack.enter_context(worker(tmp_path))
        check(result_of(log, running), log, expected, workers=2)


@pytest.mark.long
def test_scheduler_killed(log, expected, profile, tmp_path):
    """Without its scheduler the fit ends with one clear line; begun again on another cluster it
    does only what is missing."""
    with ExitStack() as stack:
        dying = stack.enter_context(scheduler(tmp_path))
        where = profile()
        stack.enter_context(worker(tmp_path))
        stack.enter_context(worker(tmp_path))
        running = stack.enter_context(driver(log, where))
        log.standing(2)
        kill(dying.pid)
        message = result_of(log, running)
        assert message["error"].startswith("ClusterError: the cluster lost the computation")
        assert "start it again" in message["error"]
    log.gate.open()
    Path(log.url).parent.joinpath("out.json").unlink()
    with scheduler(tmp_path), worker(tmp_path), driver(log, profile()) as running:
        check(result_of(log, running), log, expected, workers=2)
