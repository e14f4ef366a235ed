"""Real worker processes: ragged data through Zarr to a fitted ridge and back."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from bagbasis import (
    Bags,
    DataError,
    DoubleBasisClassifier,
    DoubleBasisRegressor,
    ProjectionEmbedding,
    RandomFourierFeatures,
    connect,
    features,
)
from bagbasis.execution.tasks import map_reduce
from tests.execution.gated import Gate, GatedBags, kill_a_worker, until
from tests.execution.test_notebook import Spoken, compiled_twice, kernel_file
from tests.oracles.labelled import LabelledBags, labelled, labelled_bags, stored
from tests.oracles.planned import plan_of
from tests.oracles.ridge_entries import close
from tests.passes import current_client, kernel_threads, map_tasks, pass_limits

pytestmark = pytest.mark.long

N = 120
BAGS, Y = labelled_bags(N, most=40)
Y = np.where(np.arange(N) % 11 == 0, np.nan, Y)
CORES = 1


def regressor(precision="float64", **params):
    return DoubleBasisRegressor(
        ProjectionEmbedding(n_per_dim="auto"),
        RandomFourierFeatures(n_features=64),
        **{"alpha": "validation", "precision": precision, **params},
    )


@pytest.fixture(scope="module", autouse=True)
def many_tasks():
    """Small fits are cut into 24 tasks, each of several partitions."""
    # a partition has about 60 points of two doubles
    with pass_limits(small_task_seconds=1e-9, small_tasks=24, partition_bytes=60 * 16):
        yield


def bags_of(store):
    return labelled(store)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same bags in two chunkings."""
    folder = tmp_path_factory.mktemp("stores")
    return {
        chunk_points: stored(folder / f"{chunk_points}.zarr", BAGS, Y, chunk_points=chunk_points)
        for chunk_points in (50, None)
    }


@pytest.fixture(scope="module")
def alone(stores):
    """What one process makes of it, before there is any cluster."""
    assert current_client() is None
    result, store = {}, stores[None]
    for precision in ("float64", "float32"):
        model = regressor(precision).fit(store, holdout=0.1)
        fit = plan_of(bags_of(store), model.features_, precision=precision)
        result[precision] = (model, fit.run().train)
    return result


@pytest.fixture(scope="module")
def cluster(alone):
    """Two workers of one core each."""
    spoken = Spoken()
    with connect("local", n_workers=2, cores_per_worker=CORES, progress=spoken) as client:
        assert spoken.lines == [
            f"workers: 2 (one task at a time), cores: {2 * CORES}, dashboard: none"
        ]
        yield client


@pytest.mark.parametrize(("precision", "chunk_points"), [("float64", 50), ("float32", None)])
def test_fit_and_back(cluster, stores, alone, precision, chunk_points):
    """Statistics, model and predictions on two workers are those of one process, for any chunks:
    in double to 1e-12, in float32 to its rounding."""
    store = stores[chunk_points]
    model, statistics = alone[precision]
    fit = plan_of(bags_of(store), model.features_, precision=precision)
    close(fit.run().train, statistics, 1e-12 if precision == "float64" else 2e-7)
    seen = []
    fitted = regressor(precision).fit(
        store, holdout=0.1, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[0] == (0, N)
    assert seen[-1] == (N, N)
    assert seen == sorted(seen)
    assert fitted.features_ == model.features_
    assert fitted.alpha_ == model.alpha_
    size = np.abs(model.coef_).max()
    tolerance = 1e-9 if precision == "float64" else 1e-3
    np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=0, atol=tolerance * size)
    for key in ("n_bags_fitted", "n_bags_unlabelled", "n_bags_held_out", "n_points_seen"):
        assert fitted.report_[key] == model.report_[key]
    lazy = fitted.predict(store)
    assert lazy.shape == (N,)
    np.testing.assert_allclose(
        lazy.compute(), model.predict(BAGS), rtol=0, atol=1e-9 if precision == "float64" else 1e-4
    )


def test_compiling_in_a_worker_is_said(cluster, tmp_path):
    """The client hears of a kernel that a worker compiles, and nothing of one in the cache."""
    assert compiled_twice(kernel_file(tmp_path)) == (["compiling kernels (once)"], [])


def test_classifier_and_features(cluster, stores):
    """Classes, probabilities and features come back from workers as they are made here."""
    store = stores[50]
    codes = np.where(np.isnan(Y), np.nan, Y > 0)
    model = DoubleBasisClassifier(
        ProjectionEmbedding(n_per_dim=3),
        RandomFourierFeatures(n_features=32),
        alpha=0.1,
        precision="float64",
    ).fit(BAGS, codes)
    np.testing.assert_array_equal(model.predict(store).compute(), model.predict(BAGS))
    np.testing.assert_allclose(
        model.predict_proba(store).compute(), model.predict_proba(BAGS), atol=1e-12
    )
    embedding = ProjectionEmbedding(n_per_dim=3, dtype="float64").fit(store)
    array = features(store, embedding, dtype="float64")
    np.testing.assert_allclose(array.compute(), embedding.transform(BAGS), atol=1e-13)
    np.testing.assert_allclose(array.sum(axis=0).compute(), embedding.transform(BAGS).sum(axis=0))


def test_bags_in_memory_stay_here(cluster):
    """Data in this process's memory are not sent to workers."""
    seen = []

    class Noted(LabelledBags):
        def batches(self, *bag_range, **limits):
            seen.append(os.getpid())
            yield from super().batches(*bag_range, **limits)

    regressor(alpha=1.0).fit(labelled(Bags.from_list(BAGS), Y, kind=Noted))
    assert set(seen) == {os.getpid()}


def spelled(a, b):
    return f"({a} {b})"


def named(task, report):
    report(1)
    return task


@pytest.mark.parametrize("n", [1, 24])
def test_tree(cluster, n):
    """On workers results merge in the very tree that one process folds."""
    tasks = [str(i) for i in range(n)]
    options = {"sizes": [1] * n, "split_every": 3}
    assert map_reduce(named, tasks, spelled, **options) == map_reduce(
        named, tasks, spelled, **options, here=True
    )


def cores_of_a_task(task, report):
    with kernel_threads() as cores:
        return os.getpid(), cores


def test_tasks_run_in_workers_on_their_cores(cluster):
    """Every task runs in another process, on the cores that the worker was given; results arrive
    with the index of their task, and progress reaches the total."""
    seen = []
    results = dict(
        map_tasks(
            cores_of_a_task,
            list(range(8)),
            sizes=[5] * 8,
            progress=lambda done, total: seen.append((done, total)),
        )
    )
    assert sorted(results) == list(range(8))
    assert {cores for _, cores in results.values()} == {CORES}
    assert os.getpid() not in {pid for pid, _ in results.values()}
    assert seen[0] == (0, 40)
    assert seen[-1] == (40, 40)
    assert seen == sorted(seen)


def first_or_gated(task, report):
    index, folder = task
    if index:
        Gate(folder).wait()
    return str(index)


def test_finished_tasks_count_at_once(cluster, tmp_path):
    """A task that is done is counted whole while another still runs, whatever it reported."""
    gate = Gate(tmp_path / "gate").arm()
    seen = []
    counted = threading.Event()

    def progress(done, total):
        seen.append(done)
        if done == 3:
            counted.set()

    tasks = [(i, str(gate.folder)) for i in range(2)]
    run = threading.Thread(
        target=lambda: map_reduce(first_or_gated, tasks, spelled, sizes=[3, 4], progress=progress)
    )
    run.start()
    assert counted.wait(30)
    gate.open()
    run.join(60)
    assert seen == [0, 3, 7]


def test_progress_without_any_report(cluster, monkeypatch):
    """Reports may be lost or late: the count reaches the total with the result all the same."""
    monkeypatch.setattr(cluster, "subscribe_topic", lambda topic, handler: None)
    monkeypatch.setattr(cluster, "unsubscribe_topic", lambda topic: None)
    seen = []
    map_reduce(
        named, ["a", "b"], spelled, sizes=[3, 4], progress=lambda done, total: seen.append(done)
    )
    assert seen == [0, 3, 7]


def test_refusals_arrive_as_ours(cluster, tmp_path):
    """A bag that a worker refuses is our error here, naming the store and the bag; the cluster
    goes on."""
    spoiled = [*BAGS[:90], np.full((3, 2), 1.5), *BAGS[90:]]
    store = stored(tmp_path / "s.zarr", spoiled, np.append(Y, 0.0), chunk_points=50)
    embedding = ProjectionEmbedding(n_per_dim=3, out_of_box="error", box=[(0, 1), (0, 1)])
    model = DoubleBasisRegressor(
        embedding, RandomFourierFeatures(n_features=16, scale=1.0), alpha=1.0
    )
    with pytest.raises(DataError, match=r"s\.zarr, bag 90: 3 points lie outside the box"):
        model.fit(store)
    with pytest.raises(DataError, match=r"s\.zarr, bag 90: 3 points lie outside the box"):
        model.fit(BAGS, Y).predict(store).compute()
    assert map_reduce(named, ["a", "b"], spelled, sizes=[1, 1]) == "(a b)"


def test_progress_comes_while_tasks_run(cluster, stores, tmp_path):
    """What tasks have done so far is heard while they are still running."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=50)
    gate = Gate(f"{store.url}.gate").arm()
    workers = len(cluster.scheduler_info(n_workers=-1)["workers"])
    seen = []
    moved = threading.Event()

    def progress(done, total):
        seen.append(done)
        if done > 0:
            moved.set()

    bags = labelled(store, kind=GatedBags)
    fit = threading.Thread(target=lambda: regressor(alpha=1.0).fit(bags, progress=progress))
    fit.start()
    until(lambda: len(gate.waiting()) == workers)
    assert moved.wait(30)
    assert 0 < max(seen) < N
    gate.open()
    fit.join(60)
    assert seen[-1] == N
    assert seen == sorted(seen)


def test_killed_worker_changes_nothing(cluster, stores, alone, tmp_path):
    """A worker killed in the middle of a task, with tasks behind it and before it: the others
    and its successor do the work again, and the model is the same."""
    store = stored(tmp_path / "s.zarr", BAGS, Y, chunk_points=50)
    gate = Gate(f"{store.url}.gate").arm()
    fitted = regressor()
    bags = labelled(store, kind=GatedBags)
    kill_a_worker(cluster, gate, lambda: fitted.fit(bags, holdout=0.1))
    model, _ = alone["float64"]
    np.testing.assert_allclose(fitted.coef_, model.coef_, rtol=0, atol=1e-9)
    assert fitted.report_["n_bags_fitted"] == model.report_["n_bags_fitted"]
    assert fitted.report_["n_points_seen"] == model.report_["n_points_seen"]
