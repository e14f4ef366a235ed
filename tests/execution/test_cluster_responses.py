"""Fits to response bags: chunks, workers, killed workers and appends meanwhile change nothing."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from bagbasis import (
    BagStore,
    Box,
    DataError,
    ProjectionEmbedding,
    RandomFourierFeatures,
    TripleBasisRegressor,
)
from bagbasis.data.labelled.labels import ResponseBags
from tests.execution.gated import Gate, GatedBags, kill_a_worker, until
from tests.oracles.labelled import labelled_bags
from tests.passes import pass_limits
from tests.workers import two_workers

N = 160
BAGS, _ = labelled_bags(N, most=20)
RESPONSES = [None if i % 7 == 3 else (1 - bag)[: 1 + i % 5] for i, bag in enumerate(BAGS)]


def regressor(precision="float64"):
    return TripleBasisRegressor(
        ProjectionEmbedding(n_per_dim=4),
        RandomFourierFeatures(n_features=48, scale=0.7),
        response_embedding=ProjectionEmbedding(n_per_dim=7),
        alpha=1e-2,
        precision=precision,
    )


def store_of(url, chunk_points):
    store = BagStore.create(url, 2, response_dims=2, dtype=np.float64, chunk_points=chunk_points)
    return store.append(BAGS, responses=RESPONSES)


@pytest.fixture(scope="module")
def many_tasks():
    """Fits are cut into sixteen tasks, and a partition has about 60 points of two doubles."""
    with pass_limits(small_task_seconds=1e-9, partition_bytes=60 * 16):
        yield


@pytest.fixture(scope="module")
def alone(tmp_path_factory, many_tasks):
    """The model of one process."""
    return regressor().fit(store_of(tmp_path_factory.mktemp("alone") / "s.zarr", 50), holdout=0.1)


@pytest.fixture(scope="module")
def cluster(alone):
    with two_workers() as client:
        yield client


@pytest.mark.long
@pytest.mark.usefixtures("many_tasks")
def test_chunks_do_not_matter(tmp_path, alone):
    """In chunks of 7 or of all points, with partitions that end elsewhere: the same model to
    1e-12, the same bags, the same unlabelled ones."""
    for chunk_points in (7, None):
        store = store_of(tmp_path / f"{chunk_points}.zarr", chunk_points)
        model = regressor().fit(store, holdout=0.1)
        scale = np.abs(alone.coef_).max()
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=0, atol=1e-12 * scale)
        for key in ("n_bags_fitted", "n_bags_unlabelled", "n_bags_held_out", "n_points_seen"):
            assert model.report_[key] == alone.report_[key] > 0


@pytest.mark.long
def test_killed_worker_changes_nothing(cluster, alone, tmp_path):
    """A worker killed in the middle of a task: its work is done again, nothing counts twice."""
    store = store_of(tmp_path / "s.zarr", 50)
    gate = Gate(f"{store.url}.gate").arm()
    fitted = regressor()
    kill_a_worker(cluster, gate, lambda: fitted.fit(GatedBags(store, ResponseBags()), holdout=0.1))
    scale = np.abs(alone.coef_).max()
    np.testing.assert_allclose(fitted.coef_, alone.coef_, rtol=0, atol=1e-11 * scale)
    assert fitted.report_["n_bags_fitted"] == alone.report_["n_bags_fitted"]


@pytest.mark.long
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("alpha", [1e-2, "validation"])
def test_baseline_of_two_workers(tmp_path, alpha):
    """The sums of a baseline are those of one process."""
    store = store_of(tmp_path / "s.zarr", 50)
    models = [regressor().set_params(baseline="own", alpha=alpha) for _ in range(2)]
    there, here = models[0].fit(store), models[1].fit(BAGS, RESPONSES)
    assert there.alpha_ == here.alpha_
    scale = np.abs(here.coef_).max()
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-9 * scale)


@pytest.mark.long
def test_append_meanwhile_is_not_seen(cluster, alone, tmp_path):
    """Pairs committed while a fit runs belong to the next fit."""
    store = store_of(tmp_path / "s.zarr", 50)
    gate = Gate(f"{store.url}.gate").arm()
    fitted = regressor()
    bags = GatedBags(BagStore.open(store.url), ResponseBags())
    fit = threading.Thread(target=lambda: fitted.fit(bags, holdout=0.1))
    fit.start()
    until(lambda: gate.waiting() == set(cluster.run(os.getpid).values()))
    store.append([bag + 0.1 for bag in BAGS[:9]], responses=BAGS[:9])
    gate.open()
    fit.join(120)
    scale = np.abs(alone.coef_).max()
    np.testing.assert_allclose(fitted.coef_, alone.coef_, rtol=0, atol=1e-11 * scale)
    after = regressor().fit(BagStore.open(store.url), holdout=0.1)
    counted = ("n_bags_fitted", "n_bags_held_out")
    grown = sum(after.report_[key] for key in counted)
    assert grown - sum(fitted.report_[key] for key in counted) == 9


@pytest.mark.long
def test_response_that_is_refused_is_named(cluster, tmp_path):
    """A response outside its box, found by a worker: our error, with the store and the bag."""
    options = {"response_dims": 2, "response_box": Box.unit(2), "chunk_points": 50}
    store = BagStore.create(tmp_path / "s.zarr", 2, **options)
    responses = list(RESPONSES)
    responses[91] = np.array([[0.5, 0.5], [0.5, 1.5]])
    store.append(BAGS, responses=responses)
    model = regressor()
    model.set_params(response_embedding=ProjectionEmbedding(n_per_dim=3, out_of_box="error"))
    with pytest.raises(DataError, match=r"s\.zarr, bag 91: 1 points lie outside the box"):
        model.fit(store)
