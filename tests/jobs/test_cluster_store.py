"""A job begins on a cluster only if every worker can open its store."""

from __future__ import annotations

import numpy as np
import pytest
from distributed import LocalCluster

from bagbasis import BagStore
from tests.data.storage.objects import among_objects
from tests.jobs.running import done, refused, settings
from tests.passes import current_client

pytestmark = pytest.mark.long

N = 60


@pytest.fixture(scope="module")
def scheduler():
    """The address of a scheduler with one worker process."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def hidden(tmp_path_factory):
    """A store in the memory of this process, and models of its targets and of its responses."""
    where = tmp_path_factory.mktemp("models")
    store = BagStore.create(where / "s.zarr", 2, target_names=["y"], response_dims=2)
    rng = np.random.default_rng(0)
    bags = [rng.random((9, 2)) for _ in range(N)]
    store.append(bags, rng.random((N, 1)), responses=bags)
    store = among_objects(store, "memory://hidden-from-workers.zarr")
    small = settings(model__random_features__n_features=16, model__embedding__n_per_dim=3)
    for task in ("regression", "densities"):
        urls = settings(data_url=store.url, model_url=where / f"{task}.zarr", model__task=task)
        done("fit", *urls, *small)
    return {"data_url": store.url, "where": where}


@pytest.mark.parametrize(
    ("job", "task"),
    [
        ("fit", "regression"),
        ("evaluate", "densities"),
        ("predict", "regression"),
        ("tune", "regression"),
    ],
)
def test_a_store_that_workers_can_not_open(hidden, scheduler, tmp_path, job, task):
    """One line names the worker, the store and why; nothing was computed or written."""
    model = tmp_path / "m.zarr" if job in ("fit", "tune") else hidden["where"] / f"{task}.zarr"
    arguments = {"data_url": hidden["data_url"], "model_url": model}
    if job in ("fit", "tune"):
        arguments |= {"model__task": task}
    if job in ("evaluate", "tune"):
        arguments |= {"out_dir": tmp_path / "out"}
    if job == "predict":
        arguments |= {"output_url": tmp_path / "predictions"}
    line = refused(1, job, *settings(**arguments), "--cluster", scheduler)
    assert f"{job}: worker tcp://" in line
    assert "cannot use the store memory://hidden-from-workers.zarr" in line
    assert list(tmp_path.iterdir()) == []
    assert current_client() is None
